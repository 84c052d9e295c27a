"""The GRU's step: by the formula, alone and in a stack."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.func import vmap

from unseen.models.layers import gru
from unseen.models.layers.gru import gated

MEMBERS, BATCH, WIDTH = 5, 4, 7


LIMITS = pytest.mark.parametrize("limit", [0, 1 << 18], ids=["large", "small"])


def textbook(given: Tensor, from_state: Tensor, before: Tensor | None) -> Tensor:
    """The textbook step, with autograd's backward pass."""
    (r, z, n), (sr, sz, sn) = given.chunk(3, -1), from_state.chunk(3, -1)
    keep, new = (z + sz).sigmoid(), (n + (r + sr).sigmoid() * sn).tanh()
    return (1 - keep) * new + (0 if before is None else keep * before)


def numbers(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed)).requires_grad_()


@LIMITS
@pytest.mark.parametrize("first", [False, True])
def test_agrees_with_the_formula(first: bool, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first step there is no state, and what it says is the bias alone."""
    monkeypatch.setattr(gru, "LARGE", limit)
    given, from_state = numbers(BATCH, 3 * WIDTH, seed=0), numbers(*[BATCH][first:], 3 * WIDTH, seed=1)
    before = None if first else numbers(BATCH, WIDTH, seed=2)
    everything = [x for x in (given, from_state, before) if x is not None]
    mine, theirs = gated(given, from_state, before), textbook(given, from_state, before)
    torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-12)
    weight = numbers(BATCH, WIDTH, seed=3).detach()
    for a, b in zip(
        torch.autograd.grad(mine, everything, weight), torch.autograd.grad(theirs, everything, weight), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@LIMITS
def test_a_member_has_the_bits_it_has_alone(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gru, "LARGE", limit)
    given, from_state, before = (numbers(MEMBERS, BATCH, n * WIDTH, seed=n, dtype=torch.float32) for n in (3, 6, 1))
    from_state = from_state[..., : 3 * WIDTH].detach().requires_grad_()
    weight = numbers(MEMBERS, BATCH, WIDTH, seed=4, dtype=torch.float32).detach()
    together = vmap(gated)(given, from_state, before)
    gradients = torch.autograd.grad(together, [given, from_state, before], weight)
    for member in range(MEMBERS):
        own = [x[member].detach().requires_grad_() for x in (given, from_state, before)]
        alone = gated(*own)
        assert torch.equal(alone, together[member])
        for a, b in zip(torch.autograd.grad(alone, own, weight[member]), gradients, strict=True):
            assert torch.equal(a, b[member])

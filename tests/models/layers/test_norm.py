"""The norm: that of the library, also in a stack, bit for bit."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, vmap

from unseen.models.layers import norm
from unseen.models.layers.norm import LayerNorm

MEMBERS, WIDTH = 5, 37


def numbers(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def parts(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, scales and shifts of some members."""
    return (
        numbers(MEMBERS, 3, 11, WIDTH, seed=seed),
        numbers(MEMBERS, WIDTH, seed=seed + 1),
        numbers(MEMBERS, WIDTH, seed=seed + 2),
    )


def stacked(x: Tensor, scale: Tensor, shift: Tensor) -> list[Tensor]:
    """The norm of each member and the gradients of inputs, scales and shifts, by one stack."""
    given = [part.detach().requires_grad_() for part in (x, scale, shift)]
    module = LayerNorm(WIDTH)
    result = vmap(lambda x, w, b: functional_call(module, {"weight": w, "bias": b}, (x,)))(*given)
    return [result.detach(), *torch.autograd.grad(result, given, numbers(MEMBERS, *x.shape[1:], seed=9)[: len(x)])]


def alone(x: Tensor, scale: Tensor, shift: Tensor, member: int) -> list[Tensor]:
    """The same by the library, of one member."""
    given = [part[member].detach().requires_grad_() for part in (x, scale, shift)]
    result = F.layer_norm(given[0], (WIDTH,), given[1], given[2])
    return [result.detach(), *torch.autograd.grad(result, given, numbers(MEMBERS, *x.shape[1:], seed=9)[member])]


def test_large_members_have_the_library_s_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(norm, "LARGE", 0)
    for count in (1, 2, MEMBERS):
        together = stacked(*(part[:count] for part in parts()))
        for member in range(count):
            for mine, theirs in zip(together, alone(*parts(), member), strict=True):
                assert torch.equal(mine[member], theirs)


def test_the_two_ways_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    small = stacked(*parts())
    monkeypatch.setattr(norm, "LARGE", 0)
    for a, b in zip(stacked(*parts()), small, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_a_shared_input_and_a_single_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(norm, "LARGE", 0)
    (x, scale, shift), module = parts(), LayerNorm(WIDTH)
    shared = vmap(lambda w, b: functional_call(module, {"weight": w, "bias": b}, (x[0],)))(scale, shift)
    assert torch.equal(shared[3], F.layer_norm(x[0], (WIDTH,), scale[3], shift[3]))
    single = functional_call(module, {"weight": scale[0], "bias": shift[0]}, (x[0],))
    assert torch.equal(single, shared[0])


def test_members_are_large_by_their_own_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by those of the stack: the way taken, and so the bits, may not depend on how many there are."""
    x, scale, shift = parts()
    for limit in (x[0].numel(), x[0].numel() + 1):
        monkeypatch.setattr(norm, "LARGE", limit)
        together, one = stacked(x, scale, shift), stacked(x[:1], scale[:1], shift[:1])
        assert torch.equal(together[0][0], one[0][0])

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from unseen.models.layers.recurrence import Recurrence
from unseen.models.layers.tape import CountingTape

INPUTS, WIDTH, BATCH, LENGTH = 5, 7, 4, 6


def plain(module: Recurrence, x: Tensor, mask: Tensor | None = None) -> Tensor:
    """The textbook LSTM, one step and one gate at a time, with autograd's backward pass."""
    for layer in module.layers:
        h = c = x.new_zeros(len(x), WIDTH)
        states = []
        for t in range(x.shape[1]):
            gates = x[:, t] @ layer.input_weight + layer.input_bias + h @ layer.state_weight + layer.state_bias
            i, f, g, o = gates.chunk(4, -1)
            new_c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            new_h = o.sigmoid() * new_c.tanh()
            real = torch.ones(len(x), 1, dtype=torch.bool) if mask is None else mask[:, t, None]
            h, c = torch.where(real, new_h, h), torch.where(real, new_c, c)
            states.append(h)
        x = torch.stack(states, 1)
    return x


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def recurrence(layers: int = 1, dropout: float = 0.0) -> Recurrence:
    torch.manual_seed(3)
    return Recurrence(INPUTS, WIDTH, layers, dropout).double()


@pytest.mark.parametrize("layers", [1, 2])
def test_agrees_with_the_library(layers: int) -> None:
    ours = recurrence(layers)
    theirs = nn.LSTM(INPUTS, WIDTH, layers, batch_first=True).double()
    for k, layer in enumerate(ours.layers):
        for name, value in (
            (f"weight_ih_l{k}", layer.input_weight.T),
            (f"weight_hh_l{k}", layer.state_weight.T),
            (f"bias_ih_l{k}", layer.input_bias),
            (f"bias_hh_l{k}", layer.state_bias),
        ):
            getattr(theirs, name).data = value.detach().clone()
    x, g = numbers(BATCH, LENGTH, INPUTS).requires_grad_(), numbers(BATCH, LENGTH, WIDTH, seed=1)
    torch.testing.assert_close(ours(x), theirs(x)[0], rtol=1e-12, atol=1e-12)
    mine = torch.autograd.grad(ours(x), [x, *ours.parameters()], g)
    order = [p for k in range(layers) for p in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    names = [f"{p}_l{i // 4}" for i, p in enumerate(order)]
    yours = torch.autograd.grad(theirs(x)[0], [x, *(getattr(theirs, n) for n in names)], g)
    for a, b in zip(mine, yours, strict=True):
        torch.testing.assert_close(a, b.T if b.dim() == 2 else b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("masked", [False, True])
def test_agrees_with_the_plain_reference(masked: bool) -> None:
    ours = recurrence(2)
    mask = torch.rand(BATCH, LENGTH, generator=torch.Generator().manual_seed(4)) < 0.6 if masked else None
    x, g = numbers(BATCH, LENGTH, INPUTS).requires_grad_(), numbers(BATCH, LENGTH, WIDTH, seed=1)
    reference = plain(ours, x, mask)
    torch.testing.assert_close(ours(x, mask), reference, rtol=1e-12, atol=1e-12)
    everything = [x, *ours.parameters()]
    for a, b in zip(
        torch.autograd.grad(ours(x, mask), everything, g),
        torch.autograd.grad(reference, everything, g),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def test_padding_carries_the_state() -> None:
    ours = recurrence()
    x = numbers(1, LENGTH, INPUTS)
    mask = torch.tensor([[True, False, False, True, True, False]])
    padded, dense = ours(x, mask), ours(x[:, mask[0]])
    torch.testing.assert_close(padded[:, mask[0]], dense, rtol=1e-12, atol=1e-12)
    assert torch.equal(padded[:, 1], padded[:, 0]) and torch.equal(padded[:, 5], padded[:, 4])
    other = torch.where(mask[..., None], x, 1e3 * numbers(1, LENGTH, INPUTS, seed=9))
    assert torch.equal(ours(other, mask), padded)


def test_a_stack_with_masks_of_its_own() -> None:
    members = [Recurrence(INPUTS, WIDTH).double() for _ in range(3)]
    parameters, _ = stack_module_state(members)
    x = numbers(3, BATCH, LENGTH, INPUTS)
    mask = torch.rand(3, BATCH, LENGTH, generator=torch.Generator().manual_seed(4)) < 0.6
    together = vmap(lambda p, x, m: functional_call(members[0], p, (x, m)))(parameters, x, mask)
    for k, member in enumerate(members):
        torch.testing.assert_close(together[k], member(x[k], mask[k]), rtol=1e-12, atol=1e-12)
    shared = vmap(lambda p: functional_call(members[0], p, (x[0], mask[0])))(parameters)
    torch.testing.assert_close(shared[2], members[2](x[0], mask[0]), rtol=1e-12, atol=1e-12)


def test_second_derivatives_are_refused() -> None:
    ours, x = recurrence(), numbers(BATCH, LENGTH, INPUTS).requires_grad_()
    (gradient,) = torch.autograd.grad(ours(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(gradient.sum(), x)


def test_starts_within_one_over_root_width() -> None:
    layer = Recurrence(36, 100).layers[0]
    for p in layer.parameters():
        assert 0.097 < p.abs().max() <= 0.1
    assert sum(p.numel() for p in layer.parameters()) == 55_200


def test_dropout_acts_between_layers() -> None:
    for layers, lanes in ((1, 0), (3, 2 * BATCH * LENGTH * WIDTH)):
        tape = CountingTape()
        recurrence(layers, 0.5)(numbers(BATCH, LENGTH, INPUTS), tape=tape)
        assert tape.used == lanes

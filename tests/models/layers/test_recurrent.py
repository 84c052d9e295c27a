"""Recurrent layers: against the library and textbook references, with padding, in stacks."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from unseen.models.context import CountingContext
from unseen.models.layers import recurrent
from unseen.models.layers.recurrent import CellName, Recurrence, gru_step

INPUTS, WIDTH, BATCH, LENGTH, MEMBERS = 5, 7, 4, 6, 5
CELLS: tuple[CellName, ...] = ("lstm", "gru", "tanh", "relu")


def numbers(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def recurrence(layers: int = 1, dropout: float = 0.0, cell: CellName = "lstm") -> Recurrence:
    torch.manual_seed(3)
    return Recurrence(INPUTS, WIDTH, layers, dropout, cell=cell).double()


def with_library(cell: CellName, layers: int) -> tuple[Recurrence, nn.Module, list[Tensor]]:
    """Our layers, the library's with the same weights, and its parameters in our order."""
    ours = recurrence(layers, cell=cell)
    theirs: nn.Module
    if cell in ("lstm", "gru"):
        theirs = {"lstm": nn.LSTM, "gru": nn.GRU}[cell](INPUTS, WIDTH, layers, batch_first=True)
    else:
        theirs = nn.RNN(INPUTS, WIDTH, layers, cell, batch_first=True)
    theirs = theirs.double()
    order = []
    for k, layer in enumerate(ours.layers):
        values = {
            "weight_ih": layer.input_weight,
            "weight_hh": layer.state_weight,
            "bias_ih": layer.input_bias,
            "bias_hh": layer.state_bias,
        }
        for name, value in values.items():
            parameter = getattr(theirs, f"{name}_l{k}")
            parameter.data = value.detach().clone().mT if value.dim() == 2 else value.detach().clone()
            order.append(parameter)
    return ours, theirs, order


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("layers", [1, 2])
def test_agrees_with_the_library(cell: CellName, layers: int) -> None:
    ours, theirs, order = with_library(cell, layers)
    x = numbers(BATCH, LENGTH, INPUTS).requires_grad_()
    g = numbers(BATCH, LENGTH, WIDTH, seed=1)
    torch.testing.assert_close(ours(x), theirs(x)[0], rtol=1e-12, atol=1e-12)
    mine = torch.autograd.grad(ours(x), [x, *ours.parameters()], g)
    yours = torch.autograd.grad(theirs(x)[0], [x, *order], g)
    for a, b in zip(mine, yours, strict=True):
        torch.testing.assert_close(a, b.mT if b.dim() == 2 else b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("cell", CELLS)
def test_skips_padding_like_the_library(cell: CellName) -> None:
    """Rows of different lengths, packed by the library; and holes, by leaving them out."""
    ours, theirs, _ = with_library(cell, 2)
    x, lengths = numbers(BATCH, LENGTH, INPUTS), torch.tensor([3, 6, 1, 4])
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    expected, _ = nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
    mask = torch.arange(LENGTH) < lengths[:, None]
    states = ours(x, mask)
    torch.testing.assert_close(states[mask], expected[mask], rtol=1e-9, atol=1e-10)
    for row, length in zip(states, lengths, strict=True):
        assert (row[length - 1 :] == row[length - 1]).all()
    holes = torch.tensor([[False, True, False, False, True, True]])
    dense = theirs(x[:1, holes[0]])[0]
    torch.testing.assert_close(ours(x[:1], holes)[holes][None], dense, rtol=1e-9, atol=1e-10)
    assert not ours(x[:1], holes)[0, 0].any()


@pytest.mark.parametrize("cell", CELLS)
def test_starts_within_one_over_root_width(cell: CellName) -> None:
    layer = Recurrence(36, 100, cell=cell).layers[0]
    gates = {"lstm": 4, "gru": 3}.get(cell, 1)
    for p in layer.parameters():
        assert 0.095 < p.abs().max() <= 0.1
    assert sum(p.numel() for p in layer.parameters()) == gates * 100 * (36 + 100 + 2)


def textbook_lstm(module: Recurrence, x: Tensor, mask: Tensor | None = None) -> Tensor:
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


@pytest.mark.parametrize("masked", [False, True])
def test_lstm_agrees_with_the_textbook(masked: bool) -> None:
    ours = recurrence(2)
    mask = torch.rand(BATCH, LENGTH, generator=torch.Generator().manual_seed(4)) < 0.6 if masked else None
    x, g = numbers(BATCH, LENGTH, INPUTS).requires_grad_(), numbers(BATCH, LENGTH, WIDTH, seed=1)
    reference = textbook_lstm(ours, x, mask)
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


def test_dropout_acts_between_layers() -> None:
    for layers, lanes in ((1, 0), (3, 2 * BATCH * LENGTH * WIDTH)):
        ctx = CountingContext()
        recurrence(layers, 0.5)(numbers(BATCH, LENGTH, INPUTS), ctx=ctx)
        assert ctx.used == lanes


LIMITS = pytest.mark.parametrize("limit", [0, 1 << 18], ids=["large", "small"])


def textbook_gru(projection: Tensor, from_state: Tensor, before: Tensor | None) -> Tensor:
    """The textbook step, with autograd's backward pass."""
    (r, z, n), (sr, sz, sn) = projection.chunk(3, -1), from_state.chunk(3, -1)
    keep, new = (z + sz).sigmoid(), (n + (r + sr).sigmoid() * sn).tanh()
    return (1 - keep) * new + (0 if before is None else keep * before)


@LIMITS
@pytest.mark.parametrize("first", [False, True])
def test_gru_agrees_with_the_textbook_gru(first: bool, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first step there is no state, and its projection is the bias alone."""
    monkeypatch.setattr(recurrent, "LARGE", limit)
    projection, from_state = (
        numbers(BATCH, 3 * WIDTH, seed=0).requires_grad_(),
        numbers(*[BATCH][first:], 3 * WIDTH, seed=1).requires_grad_(),
    )
    before = None if first else numbers(BATCH, WIDTH, seed=2).requires_grad_()
    everything = [x for x in (projection, from_state, before) if x is not None]
    mine, theirs = gru_step(projection, from_state, before), textbook_gru(projection, from_state, before)
    torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-12)
    weight = numbers(BATCH, WIDTH, seed=3)
    for a, b in zip(
        torch.autograd.grad(mine, everything, weight), torch.autograd.grad(theirs, everything, weight), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@LIMITS
def test_a_member_of_a_gru_has_the_bits_it_has_alone(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrent, "LARGE", limit)
    projection, from_state, before = (
        numbers(MEMBERS, BATCH, n * WIDTH, seed=n, dtype=torch.float32).requires_grad_() for n in (3, 6, 1)
    )
    from_state = from_state[..., : 3 * WIDTH].detach().requires_grad_()
    weight = numbers(MEMBERS, BATCH, WIDTH, seed=4, dtype=torch.float32).detach()
    together = vmap(gru_step)(projection, from_state, before)
    gradients = torch.autograd.grad(together, [projection, from_state, before], weight)
    for member in range(MEMBERS):
        own = [x[member].detach().requires_grad_() for x in (projection, from_state, before)]
        alone = gru_step(*own)
        assert torch.equal(alone, together[member])
        for a, b in zip(torch.autograd.grad(alone, own, weight[member]), gradients, strict=True):
            assert torch.equal(a, b[member])

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import unseen
from support.ctl_cases import END, LONGEST, START, bits, inputs, model, within
from unseen.models.build import parameter_count
from unseen.models.context import Context, CountingContext

SMALL = {"embedding": 10, "width": 6}


def library(ours: nn.Module) -> nn.LSTM:
    """`nn.LSTM` in both directions with the same weights."""
    theirs = nn.LSTM(10, 6, batch_first=True, bidirectional=True).double()
    for suffix, way in (("", ours.rightwards), ("_reverse", ours.leftwards)):
        layer = way.layers[0]
        for name, value in (
            ("weight_ih", layer.input_weight.T),
            ("weight_hh", layer.state_weight.T),
            ("bias_ih", layer.input_bias),
            ("bias_hh", layer.state_bias),
        ):
            getattr(theirs, f"{name}_l0{suffix}").data = value.detach().clone()
    return theirs


def test_agrees_with_the_library_on_packed_sequences() -> None:
    ours, given = model("ctl-bilstm", **SMALL), inputs()
    theirs, count = library(ours), given["mask"].sum(1) - 1
    ctx = Context(bits(ours, given), wanted=["readout.state"])
    prediction = ours(given, ctx)
    embedded = Context(ctx.bits).dropout(ours.embed.weight[given["token"][:, 1:].clamp(max=END)], 0.5)
    packed = nn.utils.rnn.pack_padded_sequence(embedded, count, batch_first=True, enforce_sorted=False)
    final = theirs(packed)[1][0]
    state = torch.cat([final[0], final[1]], -1)
    torch.testing.assert_close(ctx.captured["readout.state"], state, rtol=1e-12, atol=1e-12)
    expected = state @ ours.answer.project.weight + ours.answer.project.bias
    torch.testing.assert_close(prediction, expected, rtol=1e-12, atol=1e-12)
    weights = ours.leftwards.layers[0].input_weight, theirs.weight_ih_l0_reverse
    mine, yours = (
        torch.autograd.grad(p.square().sum(), [ours.embed.weight, weight])
        for p, weight in zip((prediction, expected), weights, strict=True)
    )
    torch.testing.assert_close(mine[0], yours[0], rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(mine[1], yours[1].T, rtol=1e-10, atol=1e-10)


def test_states_at_every_token() -> None:
    ours, given = model("ctl-bilstm", **SMALL), inputs()
    ctx = Context(wanted=["encoder.state", "readout.state"])
    ours(given, ctx)
    states, read = ctx.captured["encoder.state"], ctx.captured["readout.state"]
    assert states.shape == (5, LONGEST + 2, 12)
    for k, count in enumerate(given["mask"].sum(1) - 1):
        assert torch.equal(states[k, count - 1, :6], read[k, :6]), "left to right ends at the end marker"
        assert torch.equal(states[k, 0, 6:], read[k, 6:]), "right to left ends at the first function"


def test_the_start_marker_is_not_read() -> None:
    ours, given = model("ctl-bilstm", **SMALL), inputs()
    other = given["token"].clone()
    other[:, 0] = 3
    assert torch.equal(ours(given), ours({**given, "token": other}))
    assert len(ours.embed.weight) == START


def test_dropout_acts_on_the_embedding_alone() -> None:
    ctx = CountingContext()
    model("ctl-bilstm", **SMALL)(inputs(), ctx)
    assert ctx.used == 5 * (LONGEST + 2) * 10


def test_size_and_start_as_published() -> None:
    module = model("ctl-bilstm", paper=True)
    assert parameter_count(module) == 407_816
    assert module.embed.weight.shape == (41, 256)
    assert module.embed.weight.std().item() == pytest.approx(1, rel=0.02)
    for way in (module.rightwards, module.leftwards):
        for parameter in way.parameters():
            assert within(parameter, 128**-0.5) or parameter.dim() == 1
            assert parameter.abs().max() <= 128**-0.5
    assert within(module.answer.project.weight, 1 / 16)


def test_nothing_but_a_start_marker() -> None:
    given: dict[str, Tensor] = {"token": torch.full((2, 1), START), "mask": torch.ones(2, 1, dtype=torch.bool)}
    ours = model("ctl-bilstm", **SMALL)
    assert torch.equal(ours(given), ours.answer.project.bias.expand(2, -1))


def test_no_token_of_the_embedding_stays_zero() -> None:
    """The router's code has an accidental padding index: there, the vector of token 1 is never trained."""
    made = unseen.task("ctl/lengths", symbols=4, composed=5)
    module = unseen.build(unseen.model("ctl-bilstm", embedding=8, width=8), made.spec)
    tables = [value for value in module.state_dict().values() if value.ndim == 2 and value.shape[1] == 8]
    assert any(len(table) > 1 for table in tables)
    for table in tables:
        assert (table.abs().sum(1) > 0).all()

"""Every shortcut is exact: the zoo's models against plain ones with the same weights, in values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from benchmarks import plain_gcog as plain
from support.gcog_models import CELLS, agree, inputs, model, reference, rows, spec
from unseen.models.context import Context, CountingContext

SMALL = {"width": 8, "hidden": 10}
ABSOLUTE, RELATIVE = {"positions": "absolute"}, {"positions": "relative"}
BOTH_WAYS = {**RELATIVE, "causal": False}
JOINT = {"places": 100 + CELLS + 1}

Plain = Callable[..., nn.Module]
CASES: list[tuple[str, dict[str, Any], Plain, dict[str, Any]]] = [
    *(
        (name, switches, maker, {**more, **as_plain})
        for name, maker, more in (
            ("gcog-single-stream", plain.PlainSingleStream, JOINT),
            ("gcog-dual-stream", plain.PlainDualStream, {}),
            ("gcog-cross-attention", plain.PlainCrossAttention, {}),
            ("gcog-perceiver", plain.PlainPerceiver, {}),
        )
        for switches, as_plain in (
            ({}, {}),
            (RELATIVE, {"relative": True}),
            (BOTH_WAYS, {"relative": True, "causal": False}),
        )
    ),
    ("gcog-single-stream", {"stim_position": "fixed"}, plain.PlainSingleStream, {"start": 100}),
    ("gcog-perceiver", {"latents": "learned"}, plain.PlainPerceiver, {"learned": True}),
    ("gcog-perceiver", {"latents": "learned", **RELATIVE}, plain.PlainPerceiver, {"learned": True, "relative": True}),
    ("gcog-perceiver", {"hidden": 8}, plain.PlainPerceiver, {"hidden": 8}),
    *(
        (
            "gcog-bert",
            {"layers": layers, "heads": heads, **switches},
            plain.PlainBert,
            {"layers": layers, "heads": heads, **JOINT, **as_plain},
        )
        for layers, heads, switches, as_plain in (
            (1, 1, {}, {}),
            (1, 4, {}, {}),
            (2, 4, {}, {}),
            (3, 1, {}, {}),
            (2, 4, {"causal": False}, {"causal": False}),
            (1, 4, ABSOLUTE, {"relative": False}),
            (2, 4, ABSOLUTE, {"relative": False}),
            (3, 1, ABSOLUTE, {"relative": False}),
            (2, 2, {**ABSOLUTE, "stim_position": "fixed"}, {"relative": False, "start": 100}),
        )
    ),
]
RECURRENT: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("gcog-rnn", {}, {}),
    ("gcog-rnn", {"activation": "tanh"}, {"activation": "tanh"}),
    ("gcog-gru", {}, {"gated": True}),
]


def named(value: object) -> str:
    return value.__name__ if isinstance(value, type) else str(value)


@pytest.mark.parametrize("coding", ["integer", "embedding"])
@pytest.mark.parametrize(("name", "given", "maker", "as_plain"), CASES, ids=named)
def test_transformers(name: str, given: dict[str, Any], maker: Plain, as_plain: dict[str, Any], coding: str) -> None:
    of = spec(coding)
    examples = inputs(of)
    ours = model(name, of, **{**SMALL, **given})
    sizes = {stream: rows(of, examples, stream).shape[2] for stream in ("rule", "stimulus")}
    theirs = maker(**sizes, **{**SMALL, **as_plain})
    agree(ours, ours(examples), reference(ours, theirs, of, examples))


@pytest.mark.parametrize("coding", ["integer", "onehot"])
@pytest.mark.parametrize(("name", "given", "as_plain"), RECURRENT, ids=named)
def test_recurrent_networks(name: str, given: dict[str, Any], as_plain: dict[str, Any], coding: str) -> None:
    of = spec(coding)
    examples = inputs(of)
    ours = model(name, of, width=9, **given)
    rule, stimulus = (rows(of, examples, stream) for stream in ("rule", "stimulus"))
    theirs = plain.PlainRecurrent(rule.shape[2], stimulus[0].numel(), 9, **as_plain)
    agree(ours, ours(examples), reference(ours, theirs, of, examples))


@pytest.mark.parametrize("masked", [True, False], ids=["mask not used", "no mask"])
@pytest.mark.parametrize("name", ["gcog-single-stream", "gcog-cross-attention", "gcog-perceiver", "gcog-bert"])
def test_without_a_mask_padding_is_looked_at_and_the_last_row_read(name: str, masked: bool) -> None:
    of = spec(masked=masked)
    makers: dict[str, Plain] = {
        "gcog-single-stream": plain.PlainSingleStream,
        "gcog-perceiver": plain.PlainPerceiver,
        "gcog-cross-attention": plain.PlainCrossAttention,
        "gcog-bert": plain.PlainBert,
    }
    more = {"layers": 2, "heads": 2} if name == "gcog-bert" else {}
    ours = model(name, of, **SMALL, **more, **({"pad_mask": False} if masked else {}))
    theirs = makers[name](**SMALL, **more, **(JOINT if name == "gcog-bert" else {}))
    agree(ours, ours(inputs(of)), reference(ours, theirs, of, inputs(of), masked=False))


def test_recurrent_network_without_a_mask() -> None:
    of = spec(masked=False)
    ours = model("gcog-gru", of, width=9)
    theirs = plain.PlainRecurrent(8, 3 * (CELLS + 1), 9, gated=True)
    agree(ours, ours(inputs(of)), reference(ours, theirs, of, inputs(of), masked=False))


class Dropped(nn.Module):
    """Dropout by the bits of a ctx."""

    def __init__(self, ctx: Context) -> None:
        super().__init__()
        self.ctx = ctx

    def forward(self, x: Tensor) -> Tensor:
        return self.ctx.dropout(x, 0.3)


@pytest.mark.parametrize(
    ("name", "maker", "given"),
    [
        ("gcog-single-stream", plain.PlainSingleStream, {}),
        ("gcog-perceiver", plain.PlainPerceiver, {}),
        ("gcog-bert", plain.PlainBert, {"layers": 2, "heads": 2}),
    ],
    ids=named,
)
def test_position_dropout_falls_on_the_sum_of_token_and_code(name: str, maker: Plain, given: dict[str, Any]) -> None:
    of = spec(masked=False)
    examples, absolute = inputs(of), {"relative": False} if name == "gcog-bert" else {}
    ours = model(name, of, **SMALL, **given, pos_dropout=0.3, positions="absolute")
    counting = CountingContext()
    ours(examples, counting)
    bits = torch.randint(
        -(2**15), 2**15, (counting.used,), dtype=torch.int16, generator=torch.Generator().manual_seed(3)
    )
    ctx, theirs = Context(bits), maker(**SMALL, **given, **absolute)
    for part in theirs.modules():
        if isinstance(part, plain.PlainBlock):
            part.dropout = Dropped(ctx)
    agree(ours, ours(examples, Context(bits)), reference(ours, theirs, of, examples, masked=False))
    assert ctx.used == len(bits)
    assert torch.equal(ours(examples), ours(examples, Context())), "none outside training"


@pytest.mark.parametrize(("name", "activation"), [("gcog-rnn", "relu"), ("gcog-rnn", "tanh"), ("gcog-gru", None)])
def test_a_norm_at_each_step_is_fed_back(name: str, activation: str | None) -> None:
    of = spec()
    examples, switches = inputs(of), {} if activation is None else {"activation": activation}
    ours = model(name, of, width=9, norm_each_step=True, **switches)
    cell = (
        nn.GRUCell(8 + 3 * (CELLS + 1), 9)
        if activation is None
        else nn.RNNCell(8 + 3 * (CELLS + 1), 9, nonlinearity=activation)
    ).double()
    own = {
        "weight_ih": ours.input_weight.mT,
        "weight_hh": ours.state_weight.mT,
        "bias_ih": ours.input_bias,
        "bias_hh": ours.state_bias,
    }
    states = []
    for example in range(5):
        state, stimulus = torch.zeros(1, 9, dtype=torch.float64), examples["stimulus"][example].flatten()
        for token in examples["rule"][example][examples["rule_mask"][example]]:
            state = ours.norm(torch.func.functional_call(cell, own, (torch.cat([token, stimulus])[None], state)))
        states.append(state)
    agree(ours, ours(examples), ours.head.answer(torch.cat(states)))


def test_equal_latents_are_one() -> None:
    """Ten latents that start equal (here not at zero) are equal at the end; the model's one is a tenth of the work."""
    of = spec()
    ours = model("gcog-perceiver", of, **SMALL, latents="learned")
    ours.latents.data[:] = ours.latents.data[:1].clone()
    ctx = Context(wanted=["cross.rule.attention", "cross.stimulus.attention"])
    prediction = ours(inputs(of), ctx)
    for weights in ctx.captured.values():
        assert weights.shape[2] == 10 and torch.allclose(weights, weights[:, :, :1].expand_as(weights))
    ours.latents = nn.Parameter(ours.latents.data[:1])
    torch.testing.assert_close(ours(inputs(of)), prediction)


def test_vectors_of_the_coding_embedding_are_standard_normal() -> None:
    from unseen.models.layers.embedding import TokenEmbedding

    torch.manual_seed(0)
    weight = TokenEmbedding(500, 64).weight.detach()
    assert abs(float(weight.mean())) < 0.02 and abs(float(weight.std()) - 1) < 0.02

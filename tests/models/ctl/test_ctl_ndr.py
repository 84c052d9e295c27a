from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from support.ctl_cases import LONGEST, START, bits, inputs, model, within
from unseen.errors import UsageError
from unseen.models.build import parameter_count
from unseen.models.context import NO_CONTEXT, Context, CountingContext
from unseen.models.layers.ndr import NDRBlock

SMALL = {"width": 8, "heads": 2, "feedforward": 10, "layers": 3, "extra_layers": 1}
LENGTH, NOTHING = LONGEST + 3, torch.zeros(0, dtype=torch.int16)
CERTAIN = {"dropout": 0.0, "key_dropout": 0.0, "gate_dropout": 0.0}


def slow_attention(attention: nn.Module, x: Tensor, mask: Tensor, ctx: Context) -> Tensor:
    """Geometric attention by the formulas: a head, a query and a neighbour at a time."""
    query, key, value = (x @ attention.input.weight).chunk(3, -1)
    if attention.input.bias is not None:
        query, key, value = (p + b for p, b in zip((query, key, value), attention.input.bias.chunk(3), strict=True))
    else:
        query = query + attention.content.flatten()
    sides = x @ attention.direction.weight + attention.direction.bias
    key = ctx.dropout(key.view(*key.shape[:2], 2, 4).transpose(1, 2), 0.1).transpose(1, 2).flatten(2)
    mixed = []
    for b in range(len(x)):
        for i in range(LENGTH):
            for h in range(2):
                part, reached, found = slice(4 * h, 4 * h + 4), 1.0, torch.zeros(4, dtype=x.dtype)
                for j in [j for r in range(1, LENGTH) for j in (i + r, i - r) if 0 <= j < LENGTH and mask[b, j]]:
                    score = attention.content_scale * (query[b, i, part] @ key[b, j, part])
                    score = score + attention.direction_scale * sides[b, i, h if j > i else 2 + h] + attention.offset
                    match = 1 / (1 + torch.exp(-score))
                    found = found + reached * match * value[b, j, part]
                    reached = reached * (1 - match)
                mixed.append(found)
    return torch.cat(mixed).view(x.shape) @ attention.output.weight


def slow_layer(block: nn.Module, x: Tensor, mask: Tensor, ctx: Context, form: str) -> Tensor:
    """One application by the formulas, for every token."""
    a = block.norm_first(x + ctx.dropout(slow_attention(block.attention, x, mask, ctx), 0.5))
    hidden = a @ block.expand.weight + block.expand.bias
    if form == "ctl++":
        hidden = hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2
        u = block.norm_second(hidden @ block.contract.weight + block.contract.bias + a)
        gate = a @ block.gate_expand.weight + block.gate_expand.bias
        gate = gate * (1 + torch.erf(gate / math.sqrt(2))) / 2
    else:
        hidden = ctx.dropout(hidden.clamp(min=0), 0.5)
        u = block.norm_second(hidden @ block.contract.weight + block.contract.bias)
        gate = ctx.dropout((a @ block.gate_expand.weight + block.gate_expand.bias).clamp(min=0), 0.5)
    gate = 1 / (1 + torch.exp(-(gate @ block.gate_contract.weight + block.gate_contract.bias)))
    open_ = ctx.dropout(torch.ones(*x.shape[:2], 1, dtype=x.dtype), 0.1) != 0
    gate = torch.where(open_, gate, 0.0)
    return (1 - gate) * x + gate * u


def slow(
    module: nn.Module, given: dict[str, Tensor], layers: int, form: str, ctx: Context = NO_CONTEXT, end: bool = False
) -> Tensor:
    x = module.embed.weight[given["token"]]
    for _ in range(layers):
        x = slow_layer(module.block, x, given["mask"], ctx, form)
    state = torch.stack([s[m.sum() - 1 if end else 0] for s, m in zip(x, given["mask"], strict=True)])
    return state @ module.answer.project.weight + module.answer.project.bias


def agree(module: nn.Module, prediction: Tensor, reference: Tensor) -> None:
    """Values and gradients of all parameters."""
    torch.testing.assert_close(prediction, reference, rtol=1e-10, atol=1e-10)
    g = torch.linspace(-1, 2, prediction.numel(), dtype=prediction.dtype).view(prediction.shape)
    pairs = (torch.autograd.grad(p, list(module.parameters()), g) for p in (prediction, reference))
    for (name, _), a, b in zip(module.named_parameters(), *pairs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-8, msg=name)


@pytest.mark.parametrize("form", ["ctl++", "original"])
@pytest.mark.parametrize("read_at", ["start", "end"])
def test_agrees_with_the_formulas(form: str, read_at: str) -> None:
    ours, given = model("ctl-ndr", **SMALL, form=form, read_at=read_at), inputs(3)
    agree(ours, ours(given), slow(ours, given, 4, form, end=read_at == "end"))


@pytest.mark.parametrize("form", ["ctl++", "original"])
def test_dropout_falls_where_the_formulas_say(form: str) -> None:
    # Read at the end marker no token is left out of the last layer, so that both take the same bits in the same order.
    ours, given = model("ctl-ndr", **SMALL, form=form, read_at="end"), inputs(3)
    drawn = bits(ours, given)
    ctx = Context(drawn)
    agree(ours, ours(given, Context(drawn)), slow(ours, given, 3, form, ctx, end=True))
    assert ctx.used == len(drawn)


def test_one_layer_in_single_precision() -> None:
    ours, given = model("ctl-ndr", **SMALL), inputs(3)
    x = ours.embed.weight[given["token"]]
    reference = slow_layer(ours.block, x, given["mask"], NO_CONTEXT, "ctl++")
    torch.testing.assert_close(ours.float().block(x.float(), given["mask"]).double(), reference, rtol=1e-5, atol=1e-5)


def test_in_training_the_last_layer_works_for_one_token() -> None:
    ours, given = model("ctl-ndr", **{**SMALL, **CERTAIN, "extra_layers": 0}), inputs()
    contexts = Context(NOTHING, wanted=["encoder.state"]), Context(wanted=["encoder.state"])
    agree(ours, ours(given, contexts[0]), ours(given, contexts[1]))
    assert contexts[0].captured["encoder.state"].shape == (5, 1, 8) and contexts[1].captured["encoder.state"].shape == (
        5,
        LENGTH,
        8,
    )


def test_evaluation_has_more_layers() -> None:
    given = inputs()
    ours = model("ctl-ndr", **{**SMALL, **CERTAIN})
    deeper = model("ctl-ndr", **{**SMALL, **CERTAIN, "layers": 4, "extra_layers": 0})
    same = model("ctl-ndr", **{**SMALL, **CERTAIN, "extra_layers": 0})
    assert torch.equal(ours(given), deeper(given)), "without a context it is evaluation"
    assert torch.equal(ours(given, Context(NOTHING)), same(given, Context(NOTHING)))
    assert not torch.allclose(ours(given), same(given))


def test_what_the_gate_leaves_closed_is_copied() -> None:
    ours, given = model("ctl-ndr", **{**SMALL, "dropout": 0.0, "key_dropout": 0.0}), inputs()
    drawn = bits(ours, given)
    x = ours.embed(given["token"])
    ctx = Context(drawn[: 5 * LENGTH], wanted=["encoder.gate"])
    after = ours.block(x, given["mask"], ctx=ctx)
    closed = drawn[: 5 * LENGTH].view(5, LENGTH) < round(0.1 * 2**16) - 2**15
    assert 0 < closed.sum() < 12
    assert torch.equal(after[closed], x[closed]), "the whole vector, to the bit"
    open_ = ours.block(x, given["mask"])
    torch.testing.assert_close(after[~closed], open_[~closed], rtol=1e-12, atol=1e-12, msg="nothing is scaled up")
    ours.block.gate_contract.weight.data.zero_()
    ours.block.gate_contract.bias.data.fill_(-1e3)
    assert torch.equal(ours.block(x, given["mask"]), x)


def test_captured_activations() -> None:
    ours, given = model("ctl-ndr", **SMALL), inputs()
    counting = CountingContext(training=False)
    ours(given, counting)
    layers = ["encoder.0", "encoder.1", "encoder.2", "encoder"]
    assert counting.names == [f"{i}.{kept}" for i in layers for kept in ("attention", "gate")] + [
        "encoder.state",
        "readout.state",
    ]
    ctx = Context(wanted=counting.names)
    ours(given, ctx)
    for name in layers:
        attention, gate = ctx.captured[f"{name}.attention"], ctx.captured[f"{name}.gate"]
        assert attention.shape == (5, 2, LENGTH, LENGTH) and gate.shape == (5, LENGTH, 8)
        assert not attention.transpose(1, 3)[~given["mask"]].any() and (attention.sum(-1) <= 1 + 1e-12).all()
        assert ((gate > 0) & (gate < 1)).all()
    assert torch.equal(ctx.captured["readout.state"], ctx.captured["encoder.state"][:, 0])


def test_lanes_of_a_pass() -> None:
    ctx = CountingContext()
    model("ctl-ndr", **SMALL)(inputs(1), ctx)
    assert ctx.used == 2 * (LENGTH * 8 + LENGTH * 8 + LENGTH) + LENGTH * 8 + 8 + 1


def bounds(block: NDRBlock) -> dict[str, list[float]]:
    """The largest start of each head's keys and values."""
    width = block.attention.output.weight.shape[0]
    _, key, value = block.attention.input.weight.split(width, -1)
    return {
        name: [part.abs().max().item() for part in weight.chunk(4, -1)]
        for name, weight in (("key", key), ("value", value))
    }


def test_size_and_start_as_published() -> None:
    module = model("ctl-ndr", paper=True)
    assert parameter_count(module) == 673_299
    assert parameter_count(model("ctl-ndr", paper=True, feedforward=1024)) == 935_955
    block, one, whole = module.block, (6 / 320) ** 0.5, (6 / 512) ** 0.5
    assert module.embed.weight.shape == (42, 256)
    assert module.embed.weight.std().item() == pytest.approx(1, rel=0.02)
    query, key, value = block.attention.input.weight.chunk(3, -1)
    assert within(query, one) and within(key, one) and within(value, whole)
    assert within(block.attention.output.weight, whole)
    assert within(block.expand.weight, math.sqrt(2 * 6 / 768)) and within(block.contract.weight, (6 / 768) ** 0.5)
    assert within(block.gate_expand.weight, math.sqrt(2) * whole) and within(block.gate_contract.weight, whole)
    assert torch.equal(block.gate_contract.bias, torch.full((256,), -3.0))
    for bias, inside in (
        (block.attention.input.bias, 256),
        (block.expand.bias, 256),
        (block.contract.bias, 512),
        (block.gate_expand.bias, 256),
        (module.answer.project.bias, 256),
    ):
        assert 0.5 * inside**-0.5 < bias.abs().max() <= inside**-0.5


def test_the_slip_in_the_released_start() -> None:
    one, whole = (6 / 320) ** 0.5, (6 / 512) ** 0.5
    sound = bounds(model("ctl-ndr", paper=True).block)
    assert sound["key"] == pytest.approx([one] * 4, rel=0.01)
    assert sound["value"] == pytest.approx([whole] * 4, rel=0.01)
    slip = bounds(model("ctl-ndr", paper=True, interleaved_start=True).block)
    assert slip["key"] == pytest.approx([one, one, whole, whole], rel=0.01)
    assert slip["value"] == pytest.approx([one, one, whole, whole], rel=0.01)


def test_the_original_form_starts_differently() -> None:
    module = model("ctl-ndr", paper=True, form="original")
    block, one = module.block, (6 / 320) ** 0.5
    assert parameter_count(module) == 673_299 - 3 * 256 + 256
    for weight in (*block.attention.input.weight.chunk(3, -1), block.attention.output.weight):
        assert within(weight, one)
    assert within(block.contract.weight, 5 / 3 * (6 / 768) ** 0.5)
    assert block.attention.input.bias is None and not block.attention.content.any()


def test_heads_must_fit() -> None:
    with pytest.raises(UsageError, match="width 10 does not split into 4 heads"):
        model("ctl-ndr", width=10)


def test_the_start_marker_alone() -> None:
    given = {"token": torch.full((2, 1), START), "mask": torch.ones(2, 1, dtype=torch.bool)}
    assert model("ctl-ndr", **SMALL)(given).isfinite().all()

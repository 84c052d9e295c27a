from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from support.ctl_cases import LONGEST, START, bits, inputs, model, within
from unseen.models.build import parameter_count
from unseen.models.context import NO_CONTEXT, Context, CountingContext

SMALL = {"width": 8, "heads": 2, "feedforward": 10, "layers": 3}
LENGTH = LONGEST + 3


def code(offset: int, width: int) -> Tensor:
    """The sinusoidal code of one offset."""
    values = []
    for channel in range(width):
        angle = offset * 10_000 ** (-2 * (channel // 2) / width)
        values.append(math.cos(angle) if channel % 2 else math.sin(angle))
    return torch.tensor(values, dtype=torch.float64)


def slow_layer(module: nn.Module, x: Tensor, mask: Tensor, ctx: Context) -> Tensor:
    """One application by the formulas, a pair of tokens at a time, every token in every layer."""
    block = module.encoder.blocks[0]
    attention, relative = block.attention, block.attention.relative
    query, key, value = (x @ attention.input.weight).chunk(3, -1)
    size = query.shape[-1] // 2
    by_head = key.view(*key.shape[:2], 2, size).transpose(1, 2)
    key = ctx.dropout(by_head, 0.1).transpose(1, 2).flatten(2)
    codes = torch.stack([code(offset, 8) for offset in range(1 - LENGTH, LENGTH)])
    place_keys = ctx.dropout(codes @ relative.weight, 0.1)
    mixed = []
    for b in range(len(x)):
        for i in range(LENGTH):
            heads = []
            for h in range(2):
                part = slice(h * size, (h + 1) * size)
                scores = {
                    j: attention.scale
                    * (
                        (query[b, i, part] + relative.content[h, 0]) @ key[b, j, part]
                        + (query[b, i, part] + relative.position[h, 0]) @ place_keys[j - i + LENGTH - 1, part]
                    )
                    for j in range(LENGTH)
                    if mask[b, j]
                }
                weights = torch.stack(list(scores.values())).softmax(0)
                heads.append(sum(w * value[b, j, part] for w, j in zip(weights, scores, strict=True)))
            mixed.append(torch.cat(heads))
    found = torch.stack(mixed).view(x.shape) @ attention.output.weight
    u = block.norm_first(x + ctx.dropout(found, 0.1))
    hidden = ctx.dropout((u @ block.expand.weight + block.expand.bias).relu(), 0.1)
    return block.norm_second(u + ctx.dropout(hidden @ block.contract.weight + block.contract.bias, 0.1))


def slow(module: nn.Module, given: dict[str, Tensor], ctx: Context = NO_CONTEXT, end: bool = False) -> Tensor:
    x = module.embed.weight[given["token"]]
    for _ in range(SMALL["layers"]):
        x = slow_layer(module, x, given["mask"], ctx)
    state = torch.stack([s[m.sum() - 1 if end else 0] for s, m in zip(x, given["mask"], strict=True)])
    return state @ module.answer.project.weight + module.answer.project.bias


def agree(module: nn.Module, prediction: Tensor, reference: Tensor) -> None:
    """Values and gradients of all parameters."""
    torch.testing.assert_close(prediction, reference, rtol=1e-10, atol=1e-10)
    g = torch.linspace(-1, 2, prediction.numel(), dtype=prediction.dtype).view(prediction.shape)
    pairs = (torch.autograd.grad(p, list(module.parameters()), g) for p in (prediction, reference))
    for (name, _), a, b in zip(module.named_parameters(), *pairs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-8, msg=name)


@pytest.mark.parametrize("read_at", ["start", "end"])
def test_agrees_with_the_formulas(read_at: str) -> None:
    ours, given = model("ctl-transformer", **SMALL, read_at=read_at), inputs(3)
    agree(ours, ours(given), slow(ours, given, end=read_at == "end"))


def test_dropout_falls_where_the_formulas_say() -> None:
    # Read at the end marker no token is left out of the last layer, so that both take the same bits in the same order.
    ours, given = model("ctl-transformer", **SMALL, read_at="end"), inputs(3)
    drawn = bits(ours, given)
    ctx = Context(drawn)
    agree(ours, ours(given, Context(drawn)), slow(ours, given, ctx, end=True))
    assert ctx.used == len(drawn)


def test_in_training_the_last_layer_works_for_one_token() -> None:
    options = {**SMALL, "dropout": 0.0, "key_dropout": 0.0}
    ours, given = model("ctl-transformer", **options), inputs()
    contexts = Context(torch.zeros(0, dtype=torch.int16), wanted=["encoder.state"]), Context(wanted=["encoder.state"])
    agree(ours, ours(given, contexts[0]), ours(given, contexts[1]))
    assert contexts[0].captured["encoder.state"].shape == (5, 1, 8) and contexts[1].captured["encoder.state"].shape == (
        5,
        LENGTH,
        8,
    )


def test_every_application_draws_new_masks_and_positions_share_one_over_the_batch() -> None:
    ours = model("ctl-transformer", **SMALL)
    used = []
    for batch in (1, 2):
        ctx = CountingContext()
        ours(inputs(batch), ctx)
        used.append(ctx.used)
    tokens, offsets = LENGTH * 8, (2 * LENGTH - 1) * 8
    each = tokens + tokens + LENGTH * 10 + tokens
    last = tokens + 8 + 10 + 8
    assert used[1] - used[0] == 2 * each + last
    assert 2 * used[0] - used[1] == 2 * offsets + LENGTH * 8, "of positions: one for all examples, each time"


def test_captured_activations() -> None:
    ours, given = model("ctl-transformer", **SMALL), inputs()
    counting = CountingContext(training=False)
    ours(given, counting)
    assert counting.names == [
        "encoder.0.attention",
        "encoder.1.attention",
        "encoder.attention",
        "encoder.state",
        "readout.state",
    ]
    ctx = Context(wanted=counting.names)
    ours(given, ctx)
    for name in counting.names[:3]:
        assert ctx.captured[name].shape == (5, 2, LENGTH, LENGTH)
        torch.testing.assert_close(ctx.captured[name].sum(-1), torch.ones(5, 2, LENGTH, dtype=torch.float64))
        assert not ctx.captured[name].transpose(1, 3)[~given["mask"]].any()
    assert torch.equal(ctx.captured["readout.state"], ctx.captured["encoder.state"][:, 0])


def test_size_and_start_as_published() -> None:
    module = model("ctl-transformer", paper=True)
    assert parameter_count(module) == 155_017
    assert parameter_count(model("ctl-transformer", paper=True, feedforward=512)) == 220_810 - 1
    block = module.encoder.blocks[0]
    attention = block.attention
    assert module.embed.weight.shape == (42, 128)
    assert module.embed.weight.std().item() == pytest.approx(0.125, rel=0.03)
    query, key, value = attention.input.weight.chunk(3, -1)
    assert within(query, (6 / 256) ** 0.5) and within(attention.relative.weight, (6 / 256) ** 0.5)
    assert within(key, 0.125) and within(value, 0.125) and within(block.contract.weight, 0.125)
    assert block.expand.weight.std().item() == pytest.approx((2 * 2 / 384) ** 0.5, rel=0.02)
    assert block.expand.weight.abs().max() > 3.5 * (2 * 2 / 384) ** 0.5, "normal, not uniform"
    for weight, inside in ((attention.output.weight, 128), (module.answer.project.weight, 128)):
        assert within(weight, inside**-0.5)
    for bias, inside in ((block.expand.bias, 128), (block.contract.bias, 256), (module.answer.project.bias, 128)):
        assert 0.6 * inside**-0.5 < bias.abs().max() <= inside**-0.5
    assert attention.scale.item() == pytest.approx(32**-0.5)
    assert attention.input.bias is None and attention.output.bias is None
    assert not attention.relative.content.any() and not attention.relative.position.any()


def test_the_start_marker_alone() -> None:
    given = {"token": torch.full((2, 1), START), "mask": torch.ones(2, 1, dtype=torch.bool)}
    assert model("ctl-transformer", **SMALL)(given).isfinite().all()

from __future__ import annotations

import pytest
import torch
from torch import nn

from unseen.errors import UsageError
from unseen.models.context import Context, CountingContext
from unseen.models.layers.attention import SelfAttention, attend, causal_barrier, padding_barrier

WIDTH, BATCH, LENGTH = 12, 3, 5


def library(ours: SelfAttention) -> nn.MultiheadAttention:
    """`nn.MultiheadAttention` with the same weights."""
    theirs = nn.MultiheadAttention(WIDTH, ours.heads, batch_first=True).double()
    theirs.in_proj_weight.data = ours.input.weight.data.T.clone()
    theirs.in_proj_bias.data = ours.input.bias.data.clone()
    theirs.out_proj.weight.data = ours.output.weight.data.T.clone()
    theirs.out_proj.bias.data = ours.output.bias.data.clone()
    return theirs


@pytest.fixture(params=[1, 2, 4])
def attention(request: pytest.FixtureRequest) -> SelfAttention:
    torch.manual_seed(0)
    layer = SelfAttention(WIDTH, request.param).double()
    for bias in (layer.input.bias, layer.output.bias):
        bias.data.normal_()
    return layer


@pytest.mark.parametrize("look", ["all", "causal", "padding"])
def test_agrees_with_the_library(attention: SelfAttention, look: str) -> None:
    theirs = library(attention)
    x = torch.randn(BATCH, LENGTH, WIDTH, dtype=torch.float64, requires_grad=True)
    g = torch.randn(BATCH, LENGTH, WIDTH, dtype=torch.float64)
    barrier, options = None, {}
    if look == "causal":
        barrier = causal_barrier(LENGTH, x.dtype, x.device)
        options["attn_mask"] = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
    elif look == "padding":
        mask = torch.arange(LENGTH) < torch.tensor([[2], [5], [1]])
        barrier, options["key_padding_mask"] = padding_barrier(mask, x.dtype), ~mask
    ctx = Context(wanted=["attention"])
    mine = attention(x, barrier, ctx=ctx)
    yours, weights = theirs(x, x, x, average_attn_weights=False, **options)
    torch.testing.assert_close(mine, yours, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(ctx.captured["attention"], weights, rtol=1e-10, atol=1e-10)
    my_gradients = torch.autograd.grad(mine, [x, attention.input.weight, attention.output.weight], g)
    your_gradients = torch.autograd.grad(yours, [x, theirs.in_proj_weight, theirs.out_proj.weight], g)
    torch.testing.assert_close(my_gradients[0], your_gradients[0], rtol=1e-10, atol=1e-10)
    for a, b in zip(my_gradients[1:], your_gradients[1:], strict=True):
        torch.testing.assert_close(a, b.T, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("positions", ["none", "rotary", "relative"])
def test_some_rows_are_those_rows_of_all(positions: str) -> None:
    layer = SelfAttention(WIDTH, 2, positions=positions).double()
    x = torch.randn(BATCH, LENGTH, WIDTH, dtype=torch.float64)
    barrier = causal_barrier(LENGTH, x.dtype, x.device)
    every = layer(x, barrier)
    assert torch.allclose(layer(x, barrier, rows=slice(1, 4)), every[:, 1:4], rtol=1e-12)
    assert torch.allclose(layer(x, barrier, rows=slice(4, 5)), every[:, 4:], rtol=1e-12)


def test_what_is_barred_has_no_weight_at_all() -> None:
    ctx = Context(wanted=["w"])
    scores = torch.randn(2, 1, 4, 4) * 50
    attend(scores, torch.randn(2, 1, 4, 3), causal_barrier(4, torch.float32, scores.device), ctx=ctx, name="w")
    weights = ctx.captured["w"]
    assert not weights.triu(1).any()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 1, 4))


def test_nothing_to_look_at_is_not_nan() -> None:
    barrier = padding_barrier(torch.zeros(1, 3, dtype=torch.bool), torch.float32)
    assert attend(torch.randn(1, 1, 3, 3), torch.randn(1, 1, 3, 2), barrier).isfinite().all()


def test_dropout_acts_on_the_weights_but_not_on_the_captured_ones() -> None:
    value = torch.ones(1, 1, 3, 2)
    bits = torch.full((9,), -(2**15), dtype=torch.int16)
    ctx = Context(bits, wanted=["attention"])
    assert not attend(torch.zeros(1, 1, 3, 3), value, dropout=0.5, ctx=ctx).any()
    assert torch.allclose(ctx.captured["attention"], torch.tensor(1 / 3))


def test_initialisation() -> None:
    layer = SelfAttention(100)
    assert 0.12 < layer.input.weight.abs().max() <= (6 / 400) ** 0.5
    assert 0.098 < layer.output.weight.abs().max() <= 0.1
    assert not layer.input.bias.any() and not layer.output.bias.any()


def test_heads_must_fit() -> None:
    with pytest.raises(UsageError, match="width 10 does not split into 4 heads"):
        SelfAttention(10, 4)
    with pytest.raises(UsageError, match="even width"):
        SelfAttention(6, 2, positions="rotary")


def test_a_learned_scale_starts_as_the_fixed_one() -> None:
    torch.manual_seed(0)
    learned = SelfAttention(WIDTH, 3, learned_scale=True, bias=False)
    torch.manual_seed(0)
    fixed = SelfAttention(WIDTH, 3, bias=False)
    x = torch.randn(BATCH, LENGTH, WIDTH)
    torch.testing.assert_close(learned(x), fixed(x))
    assert [name for name, _ in learned.named_parameters()] == ["scale", "input.weight", "output.weight"]
    (gradient,) = torch.autograd.grad(learned(x).square().sum(), learned.scale)
    assert gradient.shape == (1,) and gradient != 0


@pytest.mark.parametrize("positions", ["none", "rotary", "relative"])
def test_dropout_of_keys(positions: str) -> None:
    layer = SelfAttention(WIDTH, 2, positions=positions, key_dropout=0.5).double()
    x = torch.randn(BATCH, LENGTH, WIDTH, dtype=torch.float64)
    ctx = CountingContext()
    layer(x, ctx=ctx)
    offsets = 2 * LENGTH - 1 if positions == "relative" else 0
    assert ctx.used == BATCH * LENGTH * WIDTH + offsets * WIDTH
    nothing = Context(torch.full((ctx.used,), -(2**15), dtype=torch.int16), wanted=["attention"])
    layer(x, ctx=nothing)
    torch.testing.assert_close(
        nothing.captured["attention"], torch.full((BATCH, 2, LENGTH, LENGTH), 1 / LENGTH).double()
    )

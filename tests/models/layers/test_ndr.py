"""Geometric attention against products taken one neighbour after the other."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from unseen.models.context import Context, CountingContext
from unseen.models.layers.attention import ALL
from unseen.models.layers.ndr import GeometricAttention, geometric_weights, scan_order

CPU = torch.device("cpu")


def neighbours(place: int, length: int) -> list[int]:
    """Where a token looks, in order: one to the right, one to the left, two to the right, …"""
    found = []
    for distance in range(1, length):
        found += [p for p in (place + distance, place - distance) if 0 <= p < length]
    return found


def scanned(scores: Tensor, real: Tensor) -> Tensor:
    """(B, heads, T, T) scores and (B, T) real → the weights, a product at a time."""
    batch, heads, length, _ = scores.shape
    weights = [
        [[[scores.new_zeros(()) for _ in range(length)] for _ in range(length)] for _ in range(heads)]
        for _ in range(batch)
    ]
    for b in range(batch):
        for h in range(heads):
            for i in range(length):
                reached = scores.new_ones(())
                for j in neighbours(i, length):
                    if real[b, j]:
                        match = 1 / (1 + torch.exp(-scores[b, h, i, j]))
                        weights[b][h][i][j] = reached * match
                        reached = reached * (1 - match)
    return torch.stack(
        [torch.stack([torch.stack([torch.stack(row) for row in rows]) for rows in part]) for part in weights]
    )


def allowed(real: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    return real[:, None, None, :].to(dtype) * (1 - torch.eye(real.shape[1], dtype=dtype))


def case(batch: int, heads: int, length: int, seed: int, scale: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn(batch, heads, length, length, generator=generator, dtype=torch.float64)
    counts = torch.randint(1, length + 1, (batch, 1), generator=generator)
    return scores.to(dtype), torch.arange(length) < counts


def test_everybody_scans_the_nearest_first_and_right_before_left() -> None:
    for length in range(1, 12):
        for place, order in enumerate(scan_order(length, CPU).tolist()):
            assert order == [*neighbours(place, length), place]


@settings(derandomize=True, deadline=None, max_examples=40)
@given(length=st.integers(1, 9), seed=st.integers(0, 1000), scale=st.sampled_from([0.1, 1.0, 3.0, 10.0]))
def test_agrees_with_products_over_the_scan(length: int, seed: int, scale: float) -> None:
    scores, real = case(2, 2, length, seed, scale, torch.float32)
    weights = geometric_weights(scores, allowed(real))
    torch.testing.assert_close(weights.double(), scanned(scores.double(), real), rtol=1e-5, atol=1e-6)
    assert not weights.masked_select(~real[:, None, None, :]).any()
    assert not weights.diagonal(dim1=-2, dim2=-1).any()
    assert (weights >= 0).all() and (weights.sum(-1) <= 1 + 1e-6).all()


@pytest.mark.parametrize("length", [1, 2, 7])
def test_gradients_agree_with_products_over_the_scan(length: int) -> None:
    scores, real = case(2, 2, length, 3, 2.0, torch.float64)
    incoming = torch.randn(scores.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    found = []
    for weights_of in (lambda s: geometric_weights(s, allowed(real, s.dtype)), lambda s: scanned(s, real)):
        leaf = scores.clone().requires_grad_()
        weights = weights_of(leaf)
        gradient = torch.autograd.grad((weights * incoming).sum() + 0 * leaf.sum(), leaf)[0]
        found.append((weights.detach(), gradient))
    torch.testing.assert_close(found[0], found[1], rtol=1e-10, atol=1e-12)


def test_the_slope_at_zero_is_a_half_of_a_half() -> None:
    scores = torch.zeros(1, 1, 2, 2, requires_grad=True)
    (gradient,) = torch.autograd.grad(
        geometric_weights(scores, allowed(torch.ones(1, 2, dtype=torch.bool))).sum(), scores
    )
    assert torch.equal(gradient[0, 0], torch.tensor([[0.0, 0.25], [0.25, 0.0]]))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.lists(st.sampled_from([-1e9, -200.0, -50.0, -1.0, 0.0, 1.0, 50.0, 200.0, 1e9]), min_size=16, max_size=16),
    st.integers(0, 4),
)
def test_extreme_scores_have_finite_values_and_gradients(values: list[float], count: int) -> None:
    scores = torch.tensor(values).view(1, 1, 4, 4).requires_grad_()
    real = (torch.arange(4) < count)[None]
    weights = geometric_weights(scores, allowed(real))
    (gradient,) = torch.autograd.grad((weights * torch.arange(1.0, 17.0).view(4, 4)).sum(), scores)
    assert weights.isfinite().all() and gradient.isfinite().all()
    # The slow product knows no extremes either: σ(±50) is within rounding of 0 or 1 in double precision.
    mild = scores.detach().double().clamp(-700, 700)
    torch.testing.assert_close(weights.detach().double(), scanned(mild, real), rtol=1e-4, atol=1e-6)


def test_a_certain_match_takes_everything_and_hides_the_rest() -> None:
    scores = torch.full((1, 1, 5, 5), 50.0)
    weights = geometric_weights(scores, allowed(torch.ones(1, 5, dtype=torch.bool)))[0, 0]
    assert weights.argmax(-1).tolist() == [1, 2, 3, 4, 3]
    torch.testing.assert_close(weights.max(-1).values, torch.ones(5))
    assert weights.sort(-1).values[:, -2].max() < 1e-20


def test_padding_does_not_move_what_is_seen() -> None:
    scores, _ = case(1, 2, 6, 1, 2.0, torch.float64)
    four = scores[..., :4, :4]
    full = geometric_weights(scores, allowed(torch.arange(6)[None] < 4, torch.float64))
    torch.testing.assert_close(full[..., :4, :4], geometric_weights(four, allowed(torch.ones(1, 4) > 0, torch.float64)))


WIDTH, BATCH, LENGTH = 12, 3, 6


def attention(heads: int = 2, **options: bool | float) -> GeometricAttention:
    torch.manual_seed(0)
    made = GeometricAttention(WIDTH, heads, **options).double()  # type: ignore[arg-type]
    for parameter in made.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return made


@pytest.mark.parametrize("content_bias", [False, True])
def test_scores_by_the_formula(content_bias: bool) -> None:
    layer = attention(content_bias=content_bias)
    x = torch.randn(BATCH, LENGTH, WIDTH, dtype=torch.float64)
    mask = torch.arange(LENGTH) < torch.tensor([[6], [2], [4]])
    query, key, value = (x @ layer.input.weight).chunk(3, -1)
    if content_bias:
        assert layer.input.bias is None and layer.content is not None
        query = query + layer.content.flatten()
    else:
        assert layer.content is None
        query, key, value = (p + b for p, b in zip((query, key, value), layer.input.bias.chunk(3), strict=True))
    sides = x @ layer.direction.weight + layer.direction.bias
    scores = torch.zeros(BATCH, 2, LENGTH, LENGTH, dtype=torch.float64)
    for h in range(2):
        part = slice(6 * h, 6 * h + 6)
        for i in range(LENGTH):
            for j in range(LENGTH):
                direction = sides[:, i, h] if j > i else sides[:, i, 2 + h]
                match = (query[:, i, part] * key[:, j, part]).sum(-1)
                scores[:, h, i, j] = layer.content_scale * match + layer.direction_scale * direction + layer.offset
    weights = scanned(scores, mask)
    mixed = torch.cat([weights[:, h] @ value[..., 6 * h : 6 * h + 6] for h in range(2)], -1)
    ctx = Context(wanted=["attention"])
    torch.testing.assert_close(layer(x, mask, ctx=ctx), mixed @ layer.output.weight, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(ctx.captured["attention"], weights, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("rows", [slice(0, 1), slice(2, 5), ALL])
def test_some_rows_are_those_rows_of_all(rows: slice) -> None:
    layer, x = attention(), torch.randn(BATCH, LENGTH, WIDTH, dtype=torch.float64)
    mask = torch.arange(LENGTH) < torch.tensor([[6], [2], [4]])
    torch.testing.assert_close(layer(x, mask, rows=rows), layer(x, mask)[:, rows], rtol=1e-12, atol=1e-12)


def test_without_a_mask_everything_is_real() -> None:
    layer, x = attention(), torch.randn(BATCH, LENGTH, WIDTH, dtype=torch.float64)
    assert torch.equal(layer(x), layer(x, torch.ones(BATCH, LENGTH, dtype=torch.bool)))


def test_dropout_falls_on_the_keys() -> None:
    layer, x = attention(key_dropout=0.5), torch.randn(BATCH, LENGTH, WIDTH, dtype=torch.float64)
    ctx = CountingContext()
    layer(x, ctx=ctx)
    assert ctx.used == BATCH * LENGTH * WIDTH
    nothing = torch.full((ctx.used,), -(2**15), dtype=torch.int16)
    contexts = Context(nothing, wanted=["attention"]), Context(wanted=["attention"])
    layer(x, ctx=contexts[0])
    layer.content_scale.data.zero_()
    layer(x, ctx=contexts[1])
    assert torch.equal(contexts[0].captured["attention"], contexts[1].captured["attention"]), (
        "without keys only direction is left"
    )


def test_start() -> None:
    layer = GeometricAttention(256, 4)
    assert (layer.content_scale.item(), layer.direction_scale.item(), layer.offset.item()) == (0.125, 1.0, 0.0)
    assert layer.output.bias is None and layer.input.bias is not None
    for parameter in (layer.direction.weight, layer.direction.bias):
        assert 0.02 < parameter.abs().max() <= 1 / 16
    assert sum(p.numel() for p in layer.parameters()) == 264_971

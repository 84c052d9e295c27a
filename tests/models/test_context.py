from __future__ import annotations

import pytest
import torch

from unseen.errors import UsageError
from unseen.models.context import NO_CONTEXT, Context, CountingContext


def random_bits(count: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(-(2**15), 2**15, (count,), generator=generator, dtype=torch.int16)


def test_without_bits_dropout_is_the_identity() -> None:
    x = torch.randn(3, 4)
    assert NO_CONTEXT.dropout(x, 0.5) is x
    assert Context(random_bits(12)).dropout(x, 0.0) is x


@pytest.mark.parametrize(
    ("p", "lanes", "kept"),
    [
        (0.5, [-(2**15), -1, 0, 2**15 - 1], [0, 0, 1, 1]),
        (0.2, [13106 - 2**15, 13107 - 2**15], [0, 1]),
        (2**-16, [-(2**15), 1 - 2**15], [0, 1]),
        (0.999999, [2**15 - 2, 2**15 - 1], [0, 1]),
    ],
)
def test_a_lane_below_the_threshold_drops(p: float, lanes: list[int], kept: list[int]) -> None:
    dropped = Context(torch.tensor(lanes, dtype=torch.int16)).dropout(torch.ones(len(lanes)), p)
    share = min(round(p * 2**16), 2**16 - 1) / 2**16
    assert torch.allclose(dropped, torch.tensor(kept) / (1 - share), rtol=1e-6)


def test_shares_and_means() -> None:
    x = torch.ones(400, 500, dtype=torch.float64)
    dropped = Context(random_bits(200_000)).dropout(x, 0.2)
    assert abs((dropped == 0).double().mean() - 0.2) < 4 * (0.16 / 200_000) ** 0.5
    assert abs(dropped.mean() - 1) < 4 * (0.25 / 200_000) ** 0.5


def test_every_call_gets_its_own_mask() -> None:
    ctx = Context(random_bits(2000))
    first, second = ctx.dropout(torch.ones(1000), 0.5), ctx.dropout(torch.ones(1000), 0.5)
    assert ctx.used == 2000
    assert 400 < (first != second).sum() < 600


def test_gradients_pass_where_values_do() -> None:
    x = torch.randn(1000, requires_grad=True)
    dropped = Context(random_bits(1000)).dropout(x, 0.3)
    (gradient,) = torch.autograd.grad(dropped.sum(), x)
    assert torch.allclose(gradient * x, dropped)


def test_too_few_lanes_are_an_error() -> None:
    with pytest.raises(UsageError, match="10 dropout lanes, 12 are needed"):
        Context(random_bits(10)).dropout(torch.ones(3, 4), 0.5)


def test_counting_takes_what_the_pass_takes() -> None:
    counting, ctx = CountingContext(), Context(random_bits(100))
    for one in (counting, ctx):
        one.dropout(torch.ones(3, 4), 0.5)
        one.dropout(torch.ones(7), 1e-9)
        one.dropout(torch.ones(2, 5), 0.1)
        one.capture("a", torch.ones(1))
    assert counting.used == ctx.used == 22
    assert counting.names == ["a"]


def test_only_what_was_asked_for_is_kept() -> None:
    ctx = Context(wanted=["b"])
    ctx.capture("a", torch.ones(1))
    ctx.capture("b", torch.zeros(2))
    assert list(ctx.captured) == ["b"]
    NO_CONTEXT.capture("a", torch.ones(1))
    assert not NO_CONTEXT.captured


def test_dropping_without_scaling() -> None:
    bits, x = random_bits(1000), torch.randn(1000)
    dropped, plain = Context(bits).dropout(x, 0.3), Context(bits).dropout(x, 0.3, scaled=False)
    kept = plain != 0
    assert torch.equal(kept, dropped != 0) and 600 < kept.sum() < 800
    assert torch.equal(plain[kept], x[kept])
    assert NO_CONTEXT.dropout(x, 0.3, scaled=False) is x


def test_a_pass_with_bits_is_one_of_training() -> None:
    assert Context(random_bits(0)).training and not Context().training and not NO_CONTEXT.training
    assert CountingContext().training and not CountingContext(training=False).training


@pytest.mark.parametrize("p", [0.0, 0.3])
def test_onto_is_a_sum_with_what_dropout_leaves(p: float) -> None:
    x, added, bits = torch.randn(30, 33), torch.randn(30, 33), random_bits(990)
    ctx = Context(bits)
    torch.testing.assert_close(ctx.add_dropped(x, added, p), x + Context(bits).dropout(added, p), rtol=1e-6, atol=1e-6)
    counting = CountingContext()
    assert torch.equal(counting.add_dropped(x, added, p), x + added)
    assert ctx.used == counting.used == (990 if p else 0)

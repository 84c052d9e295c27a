from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen.errors import UsageError
from unseen.randomness import stream
from unseen.stats import seeds_to_settle


def with_moments(mean, spread, n=5):
    """n values with exactly this mean and standard deviation."""
    plain = np.arange(n) - (n - 1) / 2
    return mean + spread * plain / plain.std(ddof=1)


@pytest.mark.parametrize(("effect", "n"), [(1.0, 10), (0.5, 34), (0.2, 199), (0.8, 15)])
def test_textbook_sizes_of_the_paired_t_test(effect, n):
    """Two-sided 5 %, power 80 %: sizes as printed in tables of the one-sample t test."""
    assert seeds_to_settle(with_moments(effect, 1.0)) == n


@pytest.mark.parametrize("effect", [0.45, 1.3])
def test_with_that_many_seeds_the_interval_excludes_the_margin_as_often_as_asked(effect):
    from scipy import stats

    n = seeds_to_settle(with_moments(effect, 1.0), power=0.8)
    draws = stream("power", effect).block()
    for size, reaches in ((n, True), (math.floor(0.7 * n), False)):
        samples = draws.normal((20_000, size)) + effect
        half = stats.t.ppf(0.975, size - 1) * samples.std(axis=1, ddof=1) / math.sqrt(size)
        share = np.mean(samples.mean(axis=1) - half > 0)
        assert (share >= 0.79) == reaches


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.floats(0.02, 3), st.floats(0.1, 2), st.sampled_from([-1.0, 1.0]), st.floats(-1, 1))
def test_sign_scale_and_margin_do_not_matter(effect, spread, sign, margin):
    plain = seeds_to_settle(with_moments(effect, 1.0))
    moved = seeds_to_settle(with_moments(margin + sign * effect * spread, spread), margin=margin)
    assert abs(plain - moved) <= 1, "rounding may move an effect across a whole number"
    assert plain >= 3


def test_more_is_needed_for_more():
    values = with_moments(0.3, 1.0)
    sizes = [seeds_to_settle(values, power=p) for p in (0.1, 0.5, 0.8, 0.95)]
    levels = [seeds_to_settle(values, level=p) for p in (0.5, 0.8, 0.95, 0.99)]
    assert sizes == sorted(set(sizes)) and levels == sorted(set(levels))


def test_large_numbers_go_over_into_the_normal_formula():
    assert seeds_to_settle(with_moments(0.001, 1.0)) == math.ceil(((1.959963985 + 0.841621234) / 0.001) ** 2)
    near = [seeds_to_settle(with_moments(effect, 1.0)) for effect in (0.02802, 0.02801)]
    assert 0 <= near[1] - near[0] < 20, "no jump where the formulas meet"


def test_scores_by_seed_are_paired_first():
    a, b = {0: 0.9, 1: 0.8, 2: 0.95, 5: 0.1}, {2: 0.8, 1: 0.7, 0: 0.7, 9: 0.3}
    assert seeds_to_settle(a, b) == seeds_to_settle([0.2, 0.1, 0.15]) == seeds_to_settle({0: 0.2, 1: 0.1, 2: 0.15})


def test_where_nothing_can_be_said():
    assert seeds_to_settle([0.1, 0.2]) is None
    assert seeds_to_settle([]) is None
    assert seeds_to_settle([0.1, 0.2, 0.3], margin=0.2) is None
    assert seeds_to_settle([0.7, 0.7, 0.7], margin=0.7) is None
    assert seeds_to_settle([0.7, 0.7, 0.7]) == 3
    assert seeds_to_settle([100.0, 100.0, 100.1]) == 3


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: seeds_to_settle([0.1, math.nan, 0.2]), "finite"),
        (lambda: seeds_to_settle([0.1, 0.2, 0.3], power=1.0), "power lies between"),
        (lambda: seeds_to_settle([0.1, 0.2, 0.3], level=95), "confidence level"),
        (lambda: seeds_to_settle([0.1, 0.2], {0: 0.1}), "two dicts or Series"),
        (lambda: seeds_to_settle({("T1", 0): 1.0, ("T6", 0): 1.0}, {("T1", 0): 1.0, ("T6", 0): 1.0}), "average over"),
    ],
)
def test_wrong_use_is_answered(call, says):
    with pytest.raises(UsageError, match=says):
        call()

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from unseen.errors import UsageError
from unseen.randomness import stream
from unseen.stats import bootstrap, differences, iqm, paired, probability_of_improvement

A = {0: 0.98, 1: 0.97, 2: 0.99, 3: 0.95, 4: 0.96}
B = {2: 0.70, 1: 0.93, 0: 0.71, 7: 0.5}

side = st.lists(st.integers(0, 6).map(float), min_size=3, max_size=8)
quick = settings(deadline=None, derandomize=True, max_examples=60)


def draws(name="test"):
    return stream("compare", name).block()


def compared(a, b, **options):
    return paired(a, b, generator=draws(), covers="initialisation", **{"resamples": 400, **options})


def improvement(a, b, **options):
    return probability_of_improvement(a, b, generator=draws(), covers="initialisation", **{"resamples": 400, **options})


def test_differences_are_taken_on_shared_seeds():
    found = compared(A, B)
    assert found.value == pytest.approx(np.mean([0.27, 0.04, 0.29]))
    assert (found.n, found.strata) == (3, ())
    assert found.note.startswith("3 pairs on shared seeds, 2 of a and 1 of b left out")
    whole = compared(A, A)
    assert (whole.value, whole.p_value, whole.n) == (0.0, 1.0, 5)
    assert whole.note.startswith("5 pairs on shared seeds;")


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_the_interval_is_the_bootstrap_of_the_differences(method):
    found = compared(A, B, statistic=iqm, method=method, level=0.9)
    values = [A[k] - B[k] for k in (0, 1, 2)]
    assert found.interval == bootstrap(
        values, iqm, generator=draws(), covers="initialisation", method=method, level=0.9, resamples=400
    )
    assert found.value == pytest.approx(iqm(values))


@quick
@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=3, max_size=9),
    st.sampled_from(["two-sided", "greater", "less"]),
)
def test_the_p_value_agrees_with_scipys_sign_flips(pairs, alternative):
    a, b = (dict(enumerate(column)) for column in zip(*pairs, strict=True))
    theirs = stats.permutation_test(
        ([x - y for x, y in pairs],),
        np.mean,
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
        alternative=alternative,
    )
    assert compared(a, b, alternative=alternative).p_value == pytest.approx(theirs.pvalue)


def test_series_and_strata():
    """(task, seed) → score, as records give them: pairs are resampled within their task."""
    frame = pd.DataFrame(
        [
            {"task": task, "seed": seed, "value": value + 0.01 * seed + noise}
            for task, value in (("T1", 0.9), ("T6", 0.5))
            for seed, noise in enumerate((0, 1, 5, 2))
        ]
    )
    a = frame.set_index(["task", "seed"]).value
    b = pd.Series(0.0, index=a.index)
    found = compared(a, b)
    assert found.strata == (4, 4)
    assert found.interval == bootstrap(a, generator=draws(), covers="initialisation", resamples=400, strata=frame.task)
    assert compared(a["T1"], b["T1"]).strata == ()
    assert compared(a.to_dict(), b.sample(frac=1, random_state=0)) == found


@quick
@given(st.dictionaries(st.integers(0, 30), st.floats(0, 1), min_size=3, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_the_seeds_does_not_matter(scores, random):
    other = {seed: math.sin(seed) for seed in scores}
    shuffled = list(scores.items())
    random.shuffle(shuffled)
    assert compared(dict(shuffled), other) == compared(scores, other)
    assert improvement(dict(shuffled), other) == improvement(scores, other)
    there, back = compared(scores, other), compared(other, scores)
    assert (there.value, there.p_value) == pytest.approx((-back.value, back.p_value))


def test_two_pairs_have_no_interval():
    found = compared({0: 0.5, 1: 0.6}, {0: 0.4, 1: 0.2})
    assert found.value == pytest.approx(0.25)
    assert math.isnan(found.interval.low)


@quick
@given(side, side)
def test_probability_of_improvement_is_mann_and_whitneys(a, b):
    found = improvement(a, b)
    assert found.value == pytest.approx(stats.mannwhitneyu(a, b).statistic / (len(a) * len(b)))
    assert found.value + improvement(b, a).value == pytest.approx(1)
    assert 0 <= found.interval.low <= found.interval.high <= 1
    assert found.strata == (len(a), len(b))


@quick
@given(side, side)
def test_probability_of_improvement_sees_only_the_order(a, b):
    assert improvement(np.exp(a), np.exp(b)) == improvement(a, b)


def test_its_interval_agrees_with_all_resamples():
    """Three against three: 27 × 27 equally likely resamples, enumerated."""
    a, b = [1.0, 3.0, 3.0], [0.0, 2.0, 3.0]
    every = [
        np.mean([(x > y) + (x == y) / 2 for x in chosen for y in against])
        for chosen in itertools.product(a, repeat=3)
        for against in itertools.product(b, repeat=3)
    ]
    found = improvement(a, b, level=0.8, resamples=40_000)
    for bound, share in ((found.interval.low, 0.1), (found.interval.high, 0.9)):
        assert np.quantile(every, share - 0.01) - 1e-9 <= bound <= np.quantile(every, share + 0.01) + 1e-9


def test_strata_count_equally_whatever_their_size():
    a = {("T1", k): 1.0 for k in range(9)} | {("T6", k): 0.0 for k in range(3)}
    b = {("T1", k): 0.5 for k in range(4)} | {("T6", k): float(k) for k in range(3)}
    found = improvement(a, b)
    assert found.value == pytest.approx((1 + 1 / 6) / 2)
    assert (found.n, found.strata) == (19, (9, 4, 3, 3))


def test_certainty_is_not_claimed_where_one_side_always_wins():
    found = improvement([0.9, 0.8, 0.7], [0.1, 0.2, 0.3])
    assert (found.value, found.interval.low, found.interval.high) == (1.0, 1.0, 1.0)
    assert "can't show how uncertain" in found.note
    assert improvement([0.9, 0.8, 0.2], [0.1, 0.2, 0.3]).note == ""
    half = improvement(
        {("T1", k): 1.0 for k in range(3)} | {("T6", k): float(k) for k in range(3)},
        {(task, k): k / 2 for task in ("T1", "T6") for k in range(3)},
    )
    assert half.note == "", "one stratum still varies"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: compared({0: 1.0}, {1: 1.0}), "shared seeds: a has 0, b has 1"),
        (lambda: compared({}, {1: 1.0}), "a has no seeds"),
        (lambda: compared([0.5, 0.6], {1: 1.0}), "a is a list"),
        (lambda: compared({1: 1.0}, {1: math.nan}), "b has no finite score for 1"),
        (lambda: compared(pd.Series([1.0, 2.0], index=[0, 0]), {0: 1.0}), "2 scores for 1 seeds"),
        (lambda: improvement({("T1", 0): 1.0}, {("T6", 0): 1.0}), "only one has: T1, T6"),
        (lambda: improvement([], [1.0]), "at least 1 value"),
        (lambda: improvement([1.0], {}), "b has none"),
    ],
)
def test_wrong_layouts_are_answered(call, says):
    with pytest.raises(UsageError, match=says):
        call()


def test_differences_can_be_had_alone():
    found = differences({("T1", 1): 3.0, ("T6", 1): 5.0}, {("T6", 1): 1.0, ("T1", 1): 1.0})
    assert (found.values.tolist(), found.strata) == ([2.0, 4.0], [("T1",), ("T6",)])

"""Uniform subsets: different, exact, the same with Python integers, and every set equally likely."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from unseen.errors import UsageError
from unseen.randomness import Draws, stream
from unseen.tasks.ctl import subsets
from unseen.tasks.ctl.subsets import below, number_type, skip, subset

SETTINGS = settings(derandomize=True, deadline=None, max_examples=60)


def floyd(draws: Draws, population: int, count: int) -> list[int]:
    """The algorithm as it is usually written, one number after the other."""
    found: list[int] = []
    tops = np.arange(population - count, population, dtype=number_type(population))
    for top, drawn in zip(tops.tolist(), below(draws, tops + 1).tolist(), strict=True):
        found.append(top if drawn in found else drawn)
    return found


@SETTINGS
@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 10**6))
def test_subset_is_what_the_plain_algorithm_finds(count: int, more: int, seed: int) -> None:
    population, named = count + more, stream("test", seed)
    found = subset(named.block(), population, count).tolist()
    assert found == floyd(named.block(), population, count)
    assert len(set(found)) == count and all(0 <= number < population for number in found)


@pytest.mark.parametrize("population", [2**61, 2**62, 2**70, 10**40])
def test_large_populations_are_exact_too(population: int) -> None:
    found = subset(stream("test", population).block(), population, 500)
    assert found.tolist() == floyd(stream("test", population).block(), population, 500)
    assert found.dtype == number_type(population) and len(set(found.tolist())) == 500
    spread = np.array([number / population for number in found.tolist()])
    assert abs(spread.mean() - 0.5) < 4 / np.sqrt(12 * 500)


def test_every_set_is_equally_likely() -> None:
    sets = dict.fromkeys(combinations(range(6), 3), 0)
    draws = stream("test", "uniform sets").block()
    for _ in range(4_000):
        sets[tuple(sorted(subset(draws, 6, 3).tolist()))] += 1
    assert chisquare(list(sets.values())).pvalue > 0.001


@SETTINGS
@given(st.integers(1, 2**62 - 1), st.integers(0, 10**6))
def test_products_of_64_bits_equal_those_of_python(bound: int, seed: int) -> None:
    drawn = below(stream("test", seed).block(), np.full(20, bound)).tolist()
    words = stream("test", seed).block().words(40).tolist()
    assert drawn == [((high << 64 | low) * bound) >> 128 for high, low in zip(words[:20], words[20:], strict=True)]


@SETTINGS
@given(st.sets(st.integers(0, 40)), st.lists(st.integers(0, 30), max_size=20))
def test_skip_counts_past_the_banned(banned: set[int], numbers: list[int]) -> None:
    free = [number for number in range(100) if number not in banned]
    found = skip(np.array(numbers, np.int64), np.array(sorted(banned), np.int64))
    assert found.tolist() == [free[number] for number in numbers]


def test_more_than_there_are_is_an_error() -> None:
    with pytest.raises(UsageError, match="8 different numbers were asked for, 7 exist"):
        subset(stream("test").block(), 7, 8)
    assert subset(stream("test").block(), 0, 0).tolist() == []
    assert subsets.LARGEST == 2**62

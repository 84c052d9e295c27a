"""Excluded features: uniform subsets from the right pool."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.stats import chisquare

from unseen.randomness import stream
from unseen.tasks.retrieval.exclusion import draw_exclusion, draw_subsets


def test_subsets_are_uniform_for_every_size() -> None:
    count = 6000
    for size in range(1, 5):
        draws = stream("test", "subsets", size).block()
        picks = draw_subsets(np.full(count, size), np.full(count, 6), draws)
        assert (picks[:, size:] == -1).all()
        found = [tuple(sorted(row[:size])) for row in picks.tolist()]
        possible = list(combinations(range(6), size))
        counts = [found.count(subset) for subset in possible]
        assert sum(counts) == count and chisquare(counts).pvalue > 1e-4


def test_sizes_may_differ_and_reach_the_whole_pool() -> None:
    size = np.array([0, 1, 6, 6, 3])
    picks = draw_subsets(size, np.array([9, 1, 6, 30, 3]), stream("test").block())
    assert [sorted(set(row) - {-1}) for row in picks.tolist()][:3] == [[], [0], [0, 1, 2, 3, 4, 5]]
    assert sorted(picks[4][:3].tolist()) == [0, 1, 2]
    assert (picks >= 0).sum(axis=1).tolist() == size.tolist()


def exclude(roles: list[int], absent: list[bool], size: int, hits_relevant: bool, count: int = 4000) -> np.ndarray:
    return draw_exclusion(
        np.tile(roles, (count, 1)),
        np.tile(absent, (count, 1)),
        np.full(count, size),
        hits_relevant,
        12,
        stream("test", roles, absent, size).block(),
    )


def test_relevant_features_are_spared_or_not() -> None:
    spared = exclude([3, 9, 0, 11], [False, True, False, False], 4, hits_relevant=False)
    assert (spared.sum(axis=1) == 5).all()
    assert spared[:, 9].all() and not spared[:, [3, 0, 11]].any()
    others = spared[:, [1, 2, 4, 5, 6, 7, 8, 10]].mean(axis=0)
    assert np.abs(others - 4 / 8).max() < 0.04
    hit = exclude([3, 9, 0, 11], [False, True, False, False], 4, hits_relevant=True)
    assert np.abs(np.delete(hit.mean(axis=0), 9) - 4 / 12).max() < 0.04 and hit[:, 9].all()


def test_a_shared_feature_counts_once() -> None:
    excluded = exclude([3, 9, 3, 11], [False, False, False, True], 5, hits_relevant=False)
    assert (excluded.sum(axis=1) == 6).all()
    assert not excluded[:, [3, 9]].any()
    others = excluded[:, [0, 1, 2, 4, 5, 6, 7, 8, 10]].mean(axis=0)
    assert np.abs(others - 5 / 9).max() < 0.04

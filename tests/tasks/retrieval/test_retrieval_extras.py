"""Extra occurrences: the vectorised scan against the rule written out token by token, and the cut."""

from __future__ import annotations

import numpy as np
import pytest

from unseen.randomness import stream
from unseen.tasks.retrieval import extras

FEATURES, LENGTH = 8, 7


def plain_scan(tokens: np.ndarray, roles: list[int], forced: dict[int, int]) -> np.ndarray:
    """Tokens from left to right, features ascending: drop what would set the right order."""
    pairs = [(roles[i], roles[i + 1]) for i in range(0, len(roles), 2)]
    kept = tokens.copy()
    there = set()
    for t in range(len(tokens)):
        for feature in sorted(set(roles)):
            if forced.get(feature) == t or not tokens[t, feature]:
                continue
            first_there = any(
                second == feature and (first in there or forced.get(first, t) < t) for first, second in pairs
            )
            second_comes = any(first == feature and forced.get(second, -1) >= t for first, second in pairs)
            if first_there or second_comes:
                kept[t, feature] = False
            else:
                there.add(feature)
    return kept


# Chosen pair (first, second), then the other pair: distinct, and the two ways to share a feature.
ROLES = [(1, 5), (5, 1), (1, 5, 6, 2), (5, 1, 2, 6), (5, 1, 1, 6), (1, 5, 6, 1), (2, 7, 7, 0), (7, 2, 3, 7)]


@pytest.mark.parametrize("roles", ROLES)
@pytest.mark.parametrize("density", [0.2, 0.6])
def test_scan_follows_the_rule_token_by_token(roles: tuple[int, ...], density: float) -> None:
    draws = stream("test", "scan", roles, density).block()
    count = 300
    bits = draws.bernoulli(density, (count, LENGTH, FEATURES))
    early, late = np.sort(draws.permutations(count, LENGTH)[:, :2], axis=1).T
    which = draws.integers(3, count)  # both present in the wrong order, first only, second only
    positions = np.stack([np.where(which == 2, -1, late), np.where(which == 1, -1, early)], axis=1)
    forced = [{roles[side]: int(p[side]) for side in (0, 1) if p[side] >= 0} for p in positions]
    for row, places in enumerate(forced):
        for side in (0, 1):
            if roles[side] not in places:
                bits[row, :, roles[side]] = False
        for own, t in places.items():
            for feature in set(roles) - {own}:  # nothing relevant enters a forced token but what is forced there
                bits[row, t, feature] = False
            bits[row, t, own] = True
    expected = np.stack([plain_scan(bits[i], list(roles), forced[i]) for i in range(count)])
    whole = np.array([[places.get(f, -1) for f in roles] for places in forced])
    scanned = bits.copy()
    extras.scan(scanned, np.tile(roles, (count, 1)), whole)
    assert np.array_equal(scanned, expected)
    assert not np.array_equal(scanned, bits)


def test_scan_lets_both_share_a_token_only_if_the_second_has_the_smaller_id() -> None:
    for first, second, both in ((5, 1, True), (1, 5, False)):
        bits = np.zeros((1, 4, FEATURES), np.bool_)
        bits[0, :, [first, second]] = True  # candidates everywhere
        positions = np.array([[3, 0]])  # the second feature is forced at 0, the first at 3
        bits[0, 0, first] = bits[0, 3, second] = False
        extras.scan(bits, np.array([[first, second]]), positions)
        assert bits[0, :, first].tolist() == [False, True, True, True]
        assert bits[0, :, second].tolist() == [True, both, False, False]


def test_cut_keeps_the_second_feature_up_to_a_token_and_the_first_after_it() -> None:
    count = 6000
    positions = np.tile([5, 2], (count, 1))
    wrong = np.arange(count) % 2 == 0
    allowed = [np.ones((count, LENGTH), np.bool_) for _ in range(2)]
    extras.cut(allowed, positions, wrong, stream("test", "cut").block())
    first, second = allowed
    assert first[~wrong].all() and second[~wrong].all()
    assert (first[wrong] != second[wrong]).all()
    last = second[wrong].sum(axis=1) - 1
    assert np.array_equal(second[wrong], np.arange(LENGTH) <= last[:, None])
    shares = np.bincount(last, minlength=LENGTH) / len(last)
    assert np.abs(shares - [0, 0, 1 / 3, 1 / 3, 1 / 3, 0, 0]).max() < 0.04


def test_single_allows_no_extra_and_free_all_but_the_partner() -> None:
    positions = np.array([[1, 3], [1, 3], [2, -1]])
    first, second = extras.allowed_for_chosen(positions, np.array([True, False, False]), 4)
    assert not first[0].any() and not second[0].any()
    assert first[1].tolist() == [True, True, True, False] and second[1].tolist() == [True, False, True, True]
    assert first[2].all()

"""Who is above whom: significance groups instead of ranks, and the smallest difference that a test can show."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from unseen.errors import UsageError
from unseen.stats.confidence_intervals import compare_means
from unseen.stats.intervals import FEWEST, check_level
from unseen.stats.tests import holm


class Relation(StrEnum):
    """The result of a comparison of two means."""

    ABOVE = "above"
    LEVEL = "level with"
    BELOW = "below"


@dataclass(frozen=True)
class GroupStanding:
    """The group of one competitor, 1 for the best, and the competitors that it is above, level with and below.

    Competitors with fewer than three values are in no group (None) and are not compared.
    """

    group: int | None
    above: tuple[str, ...] = ()
    level: tuple[str, ...] = ()
    below: tuple[str, ...] = ()


def relate(
    scores: Mapping[str, Sequence[float]], pairs: Sequence[tuple[str, str]], level: float = 0.95
) -> dict[tuple[str, str], Relation]:
    """Compare the means of pairs of competitors by Welch's test, adjusted for the number of pairs (Holm).

    >>> scores = {"a": [0.9, 0.91, 0.92], "b": [0.5, 0.51, 0.49], "c": [0.9, 0.93, 0.9]}
    >>> [relation.value for relation in relate(scores, [("a", "b"), ("a", "c"), ("b", "c")]).values()]
    ['above', 'level with', 'below']
    """
    check_level(level)
    differences = []
    p_values = []
    for first, second in pairs:
        a = {str(i): float(value) for i, value in enumerate(scores[first])}
        b = {str(i): float(value) for i, value in enumerate(scores[second])}
        estimate = compare_means(a, b, covers="seeds", paired=False)
        differences.append(estimate.value)
        if estimate.p_value is not None:
            p_values.append(estimate.p_value)
        else:  # neither varies: they are equal, or they certainly differ
            p_values.append(1.0 if estimate.value == 0 or estimate.interval.fewest < FEWEST else 0.0)
    relations = {}
    for pair, difference, p in zip(pairs, differences, holm(p_values) if pairs else [], strict=True):
        relation = Relation.LEVEL
        if p < 1 - level:
            relation = Relation.ABOVE if difference > 0 else Relation.BELOW
        relations[pair] = relation
    return relations


def rank(scores: Mapping[str, Sequence[float]], level: float = 0.95) -> dict[str, GroupStanding]:
    """Significance groups: the best by mean and all that are not below it; then the best of the rest, and so on.

    Every pair is compared (see `relate`). Members of a group are level with its leader, not always with each other.

    >>> scores = {"a": [0.9, 0.91, 0.92], "b": [0.5, 0.51, 0.49], "c": [0.9, 0.93, 0.9]}
    >>> {name: standing.group for name, standing in rank(scores).items()}
    {'a': 1, 'c': 1, 'b': 2}
    """
    compared = [name for name, values in scores.items() if len(values) >= FEWEST]
    compared.sort(key=lambda name: -float(np.mean(scores[name])))
    relations = relate(scores, list(combinations(compared, 2)), level)
    groups: dict[str, int] = {}
    remaining = list(compared)
    number = 0
    while remaining:
        number += 1
        leader = remaining[0]
        members = [leader]
        members += [name for name in remaining[1:] if relations[leader, name] is not Relation.ABOVE]
        groups |= dict.fromkeys(members, number)
        remaining = [name for name in remaining if name not in members]
    standings = {}
    for name in compared:
        by_relation: dict[Relation, list[str]] = {relation: [] for relation in Relation}
        for (first, second), relation in relations.items():
            if first == name:
                by_relation[relation].append(second)
            elif second == name:
                mirrored = {Relation.ABOVE: Relation.BELOW, Relation.BELOW: Relation.ABOVE}
                by_relation[mirrored.get(relation, relation)].append(first)
        above, level_with, below = (tuple(by_relation[relation]) for relation in Relation)
        standings[name] = GroupStanding(groups[name], above, level_with, below)
    return standings | {name: GroupStanding(None) for name in scores if name not in groups}


def pooled_deviation(groups: Iterable[Sequence[float] | NDArray[np.float64]]) -> float:
    """The standard deviation within groups that are taken to have the same one; each has at least two values.

    >>> pooled_deviation([[1.0, 3.0], [10.0, 12.0]])
    1.4142135623730951
    """
    squares = 0.0
    freedom = 0
    for values in groups:
        squares += float(np.var(values, ddof=1)) * (len(values) - 1)
        freedom += len(values) - 1
    return math.sqrt(squares / freedom)


def smallest_difference(
    seeds: int, others: int | None = None, *, spread: float = 1.0, level: float = 0.95, power: float = 0.8
) -> float:
    """The smallest true difference of two means that a test with these numbers of seeds shows with probability `power`.

    The test is Student's of two groups whose values have the standard deviation `spread`. It depends on the number of
    seeds alone, so it can be stated before anything is run. Infinite below three seeds.

    >>> round(smallest_difference(3), 2), round(smallest_difference(5), 2), round(smallest_difference(5, spread=0.02), 3)
    (3.07, 2.02, 0.04)
    """
    from scipy.stats import nct, t  # inside, because importing it takes most of a second

    check_level(level)
    if not 0 < power < 1:
        raise UsageError(f"power lies between 0 and 1, got {power}; 0.8 is usual")
    if not spread >= 0:
        raise UsageError(f"spread = {spread}: a standard deviation is not negative")
    other_seeds = seeds if others is None else others
    if min(seeds, other_seeds) < FEWEST:
        return math.inf
    freedom = seeds + other_seeds - 2
    critical = t.ppf((1 + level) / 2, freedom)
    scale = math.sqrt(seeds * other_seeds / (seeds + other_seeds))
    low = 0.0
    high = 100.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        if nct.sf(critical, freedom, middle * scale) >= power:
            high = middle
        else:
            low = middle
    return spread * high

"""A criterion of a claim: a quantity that must lie in a range, what was found, and what it still waits for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from unseen.claims.evidence import Group, LeftOut, Missing
from unseen.claims.quantity import MEAN, SPREAD, Quantity, Statistic
from unseen.stats import Estimate

Verdict = Literal["supported", "contradicted", "undecided", "not run"]
VERDICTS: tuple[Verdict, ...] = ("supported", "contradicted", "undecided", "not run")


@dataclass(frozen=True)
class Criterion:
    """The quantity must lie strictly between `low` and `high`.

    `key` states this in words. It also names the random stream of the interval, so it must never change. `printed`
    means that the range comes from numbers that the paper prints for one setting; it is compared only there.
    """

    key: str
    quantity: Quantity
    low: float = -math.inf
    high: float = math.inf
    printed: bool = False


Need = Literal["seeds", "tasks", "steps", "runs", "nothing"]


class Obstacle(Enum):
    """Why a criterion is not decided."""

    TOO_FEW = "there are too few usable units for an interval"
    BOUND_INSIDE = "the interval contains a bound"
    CHANCE = "the interval lies outside the range, but one of so many criteria may do so by chance"
    ON_BOUND = "the mean lies on the bound"
    CONSTANT = "the values do not vary"
    MISSING = "runs are missing"


@dataclass(frozen=True)
class Waiting:
    """What a criterion waits for: more seeds, tasks, training steps or runs; or nothing that would help.

    `count` is the number of seeds or tasks that would settle it, None where that cannot be told. `unit` is the unit of
    the claim ("seed" or "task"), `usable` how many there are, `criteria` how many the claim has (for
    `Obstacle.CHANCE`), and `missing` describes the runs that do not exist (for `Obstacle.MISSING`).
    """

    kind: Need
    reason: Obstacle
    count: int | None = None
    unit: str = "seed"
    usable: int = 0
    criteria: int = 1
    missing: Missing | None = None


@dataclass(frozen=True)
class Finding:
    """What the records say about a criterion: the verdict with its estimate, and what an open one waits for.

    `compared` is False if the criterion is about another setting than the one at hand. It does not count then.
    """

    criterion: Criterion
    verdict: Verdict
    estimate: Estimate | None = None
    left_out: tuple[LeftOut, ...] = ()
    waiting: Waiting | None = None
    compared: bool = True


# -- the comparisons that claims are made of ----------------------------------------------------------------------------


def above(group: Group, bound: float, *, printed: bool = False, statistic: Statistic = MEAN) -> Criterion:
    """More than a bound."""
    quantity = Quantity(statistic, group)
    return Criterion(f"{quantity} above {bound:g}", quantity, low=bound, printed=printed)


def below(group: Group, bound: float, *, printed: bool = False, statistic: Statistic = MEAN) -> Criterion:
    """Less than a bound."""
    quantity = Quantity(statistic, group)
    return Criterion(f"{quantity} below {bound:g}", quantity, high=bound, printed=printed)


def between(group: Group, low: float, high: float, *, printed: bool = False, statistic: Statistic = MEAN) -> Criterion:
    """In a range."""
    quantity = Quantity(statistic, group)
    return Criterion(f"{quantity} between {low:g} and {high:g}", quantity, low, high, printed)


def close(
    group: Group, value: float, tolerance: float, *, printed: bool = True, statistic: Statistic = MEAN
) -> Criterion:
    """Within a tolerance of a printed value."""
    quantity = Quantity(statistic, group)
    return Criterion(f"{quantity} {value:g} ± {tolerance:g}", quantity, value - tolerance, value + tolerance, printed)


def better(
    first: Group, other: Group, by: float = 0.0, *, printed: bool = False, statistic: Statistic = MEAN
) -> Criterion:
    """More than another group on shared seeds: by more than a margin, or (negative `by`) by no less than it."""
    same_metric = first.metric == other.metric != "accuracy"
    than = f"that of {other.runs_only}" if same_metric or statistic.name else str(other)
    margin = ""
    if by > 0:
        margin = f" by more than {by:g}"
    elif by < 0:
        margin = f", or less than {-by:g} below"
    quantity = Quantity(statistic, first, other)
    return Criterion(f"{statistic.name}{first} above {than}{margin}", quantity, low=by, printed=printed)


def no_better(first: Group, other: Group, by: float, *, statistic: Statistic = MEAN) -> Criterion:
    """Less than a margin above another group on shared seeds."""
    quantity = Quantity(statistic, first, other)
    than = f"that of {other.runs_only}" if first.metric == other.metric != "accuracy" else str(other)
    return Criterion(f"{first} less than {by:g} above {than}", quantity, high=by)


def grows(now: tuple[Group, Group], before: tuple[Group, Group], *, statistic: Statistic = MEAN) -> Criterion:
    """One group is above another by more than the same two were before."""
    quantity = Quantity(statistic, *now, Quantity(statistic, *before))
    gain_now = f"{now[0]} above that of {now[1].runs_only}"
    gain_before = f"{before[0]} above that of {before[1].runs_only}"
    return Criterion(f"{gain_now}, by more than {gain_before}", quantity, low=0.0)


def wider(first: Group, other: Group) -> Criterion:
    """Seeds differ more than in another group."""
    return better(first, other, statistic=SPREAD)


def for_all(
    compare: Callable[..., Criterion], groups: Iterable[Group], *bounds: float, **options: Any
) -> list[Criterion]:
    """Make one criterion per group: `for_all(above, groups, 0.9)`."""
    return [compare(group, *bounds, **options) for group in groups]


def for_pairs(
    compare: Callable[..., Criterion], firsts: Iterable[Group], others: Iterable[Group], **options: Any
) -> list[Criterion]:
    """Compare every group of `firsts` with every group of `others`: `for_pairs(better, attending, recurrent)`."""
    compared_with = list(others)
    return [compare(first, other, **options) for first in firsts for other in compared_with]

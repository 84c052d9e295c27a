"""A criterion of a claim, a quantity that must lie in a range; and a finding: its outcome and what it still waits for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product
from typing import Any, Literal, get_args

from unseen.claims.evidence import Group, LeftOut, Missing
from unseen.claims.quantity import MEAN, SPREAD, Quantity, Statistic
from unseen.stats import Estimate

Verdict = Literal["supported", "mixed", "contradicted", "not reached", "undecided", "in progress", "not run"]
"""On a claim. *In progress*: the study has a fixed number of units, which are not complete."""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
DECIDED: tuple[Verdict, ...] = ("supported", "mixed", "contradicted")
Outcome = Literal["holds", "contradicted", "open", "not run"]
"""Of a criterion. Of a printed number, *holds* means that ours agrees with it, *contradicted* that it differs."""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


Role = Literal["headline", "detail"]


@dataclass(frozen=True)
class Criterion:
    """The quantity must lie strictly between `low` and `high`.

    `key` states this in words; it is part of what is registered. `printed`
    means that the range comes from numbers that the paper prints for one setting; it is compared only there. `role`
    says whether this is the main point of the paper's sentence or a detail of it. `may_fail` marks a criterion that
    says itself that the runs of its last (or only) group do not learn: that these never left their starting level is
    then evidence, too.
    """

    key: str
    quantity: Quantity
    low: float = -math.inf
    high: float = math.inf
    printed: bool = False
    role: Role = "headline"
    may_fail: bool = False


@dataclass(frozen=True)
class PrintedNumber(Criterion):
    """A number of a printed table: its mean and standard deviation over some seeds (None where they are not printed).

    A claim that consists of printed numbers is an agreement: it counts how many of ours agree with the paper's, and is
    judged only in the paper's own setting.
    """

    value: float = math.nan
    spread: float | None = None
    seeds: int | None = None


Need = Literal["seeds", "tasks", "steps", "runs", "nothing"]


class Obstacle(Enum):
    """Why a criterion is not decided."""

    TOO_FEW = "there are too few usable units for an interval"
    BOUND_INSIDE = "the interval contains a bound"
    CHANCE = "the interval lies outside the range, but with this many criteria, one may do so by chance"
    ON_BOUND = "the mean lies on the bound"
    FAILING = "the paper says that some seeds fail, and too few were run to tell how many"
    CONSTANT = "the values do not vary"
    MISSING = "runs are missing"
    DRIFT = "the runs still drifted towards a bound when they ended"
    NOT_LEARNED = "no run of a group left its starting level"
    NOT_REACHED = "fewer than half of the runs of a configuration learned, which is smaller than the paper's"
    LAST_LOOK = "the last planned look is over"
    PLANNED = "the planned number of units is not complete"


@dataclass(frozen=True)
class Waiting:
    """What a criterion waits for: more seeds, tasks, training steps or runs; or nothing that would help.

    `count` is the number of seeds or tasks that would settle it, those that exist included; of steps it is the number
    of further ones. It is None where that cannot be told. `unit` is the unit of the claim ("seed" or "task"), `usable`
    how many there are, `criteria` how many are judged together (for `Obstacle.CHANCE`), and `missing` describes the
    runs that do not exist (for `Obstacle.MISSING`).
    """

    kind: Need
    reason: Obstacle
    count: int | None = None
    unit: str = "seed"
    usable: int = 0
    criteria: int = 1
    missing: Missing | None = None

    @property
    def further(self) -> int | None:
        """How many more units or steps are needed; None where that cannot be told."""
        if self.count is None:
            return None
        return self.count - self.usable if self.kind in ("seeds", "tasks") else self.count


@dataclass(frozen=True)
class CriterionDrift:
    """How far the quantity moved over the last third of training, with its standard error over units.

    `judged` says that it is the drift of the judged score itself; otherwise it is that of the validation score. If that
    has another metric, its drift says how fast the quantity moved, but not in which direction (`signed` is False).
    """

    value: float
    standard_error: float
    judged: bool
    signed: bool = True


@dataclass(frozen=True)
class Finding:
    """What the records say about a criterion: the outcome with its estimate, and what an open one waits for.

    `p_holds` and `p_contradicted` are the one-sided p values of both outcomes, the second adjusted (Holm) over the
    criteria of the same role. `learned` is the share of runs that learned in the worst configuration, and `reached` is
    False if no verdict may rest on it. `compared` is False if the criterion is about another setting than the one at
    hand. It does not count then.
    """

    criterion: Criterion
    verdict: Outcome
    estimate: Estimate | None = None
    left_out: tuple[LeftOut, ...] = ()
    waiting: Waiting | None = None
    compared: bool = True
    p_holds: float | None = None
    p_contradicted: float | None = None
    drift: CriterionDrift | None = None
    learned: float = 1.0
    reached: bool = True


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


def printed_number(
    group: Group,
    value: float,
    spread: float | None = None,
    seeds: int | None = None,
    *,
    tolerance: float,
    statistic: Statistic = MEAN,
) -> PrintedNumber:
    """A number that the paper prints; ours agrees if it lies within the tolerance."""
    quantity = Quantity(statistic, group)
    return PrintedNumber(
        f"{quantity} {value:g} ± {tolerance:g}",
        quantity,
        low=value - tolerance,
        high=value + tolerance,
        printed=True,
        value=value,
        spread=spread,
        seeds=seeds,
    )


def details(*criteria: Criterion) -> list[Criterion]:
    """Mark criteria as details of a claim."""
    return [replace(criterion, role="detail") for criterion in criteria]


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


def gains_more(now: tuple[Group, Group], before: tuple[Group, Group], *, statistic: Statistic = MEAN) -> Criterion:
    """One group is above another by more than the same two were before."""
    quantity = Quantity(statistic, *now, Quantity(statistic, *before))
    gain_now = f"{now[0]} above that of {now[1].runs_only}"
    gain_before = f"{before[0]} above that of {before[1].runs_only}"
    return Criterion(f"{gain_now}, by more than {gain_before}", quantity, low=0.0)


def varies_more(first: Group, other: Group) -> Criterion:
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
    return [compare(first, other, **options) for first, other in product(firsts, others)]

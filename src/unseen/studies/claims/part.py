"""A part of a claim: a quantity that should lie in a range, and what its interval says about that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from unseen.randomness import Draws
from unseen.stats import FEWEST, Estimate, Interval, seeds_to_settle
from unseen.studies.claims.evidence import Evidence, Group
from unseen.studies.claims.quantity import MEAN, SPREAD, Quantity, Sample, Statistic

Word = Literal["supported", "contradicted", "undecided", "not run"]
SHOWN = 6
"""How many places with unusable runs a part names; the ledger lists all of them."""


@dataclass(frozen=True)
class Part:
    """`says`, in words: the quantity lies strictly between `low` and `high`.

    `printed`: the range comes from numbers that the paper prints for one setting, so it is compared only there.
    """

    says: str
    quantity: Quantity
    low: float = -math.inf
    high: float = math.inf
    printed: bool = False


@dataclass(frozen=True)
class Finding:
    """What the records say about a part: the estimate behind the word, what was left out, and why it is open, if so.

    `compared` is false where the part is about another setting than the one at hand: then it does not count.
    """

    part: Part
    word: Word
    estimate: Estimate | None = None
    left_out: tuple[str, ...] = ()
    open: str = ""
    compared: bool = True


def examine(part: Part, evidence: Evidence, generator: Draws, among: int = 1) -> Finding:
    """Supported if the whole interval lies in the range, contradicted if all of it lies outside, else undecided.

    A claim needs all its parts to be supported, but one that is contradicted is enough, and of many the interval of one
    easily lies outside by chance: a part `among` so many is contradicted by an interval of 1 − 0.05 / among alone
    (Bonferroni). Fewer than three draws (seeds, tasks) have no interval: undecided, whatever their mean.
    """
    sample = part.quantity.sample(evidence)
    if sample.missing:
        return Finding(part, "not run", open=sample.missing)
    if sample.independent < FEWEST:
        return Finding(part, "undecided", left_out=sample.left_out, open=_too_few(sample))
    found = part.quantity.estimate(sample, generator, evidence.covers)
    interval = found.interval
    if math.isnan(interval.low) or math.isnan(interval.high):
        return Finding(part, "undecided", found, sample.left_out, "it can't be measured: the values do not vary")
    if part.low < interval.low and interval.high < part.high:
        return Finding(part, "supported", found, sample.left_out)
    if _outside(part, interval):
        level = 1 - (1 - interval.level) / among
        interval = part.quantity.estimate(sample, generator, evidence.covers, level).interval
        if _outside(part, interval):
            return Finding(part, "contradicted", found, sample.left_out)
        return Finding(
            part,
            "undecided",
            found,
            sample.left_out,
            f"{_more_seeds(part, sample, interval)}: one of {among} parts may lie outside by chance",
        )
    return Finding(part, "undecided", found, sample.left_out, _more_seeds(part, sample, interval))


def _outside(part: Part, interval: Interval) -> bool:
    return interval.high < part.low or part.high < interval.low


def _too_few(sample: Sample) -> str:
    shown, more = sample.left_out[:SHOWN], len(sample.left_out) - SHOWN
    unusable = "; ".join([*shown, *([f"and {more} more places"] if more > 0 else [])])
    steps = "more steps would settle it: " if any("still learning" in text for text in sample.left_out) else ""
    count = f"{sample.independent} usable {sample.noun}{'s' * (sample.independent != 1)}, {FEWEST} are the least"
    return f"{steps}{count}" + (f" ({unusable})" if unusable else "")


def _more_seeds(part: Part, sample: Sample, interval: Interval) -> str:
    """How many seeds, or tasks, would push the interval off the bounds that it holds."""
    values, noun = part.quantity.per_draw(sample), f"{sample.noun}s"
    if values is None:
        return f"more {noun} would settle it"
    held = [bound for bound in (part.low, part.high) if interval.low <= bound <= interval.high]
    needed = [seeds_to_settle(values, margin=bound, level=interval.level) for bound in held]
    known = [count for count in needed if count is not None]
    if len(known) < len(needed):
        return f"no number of {noun} settles it: the mean lies on the bound"
    # A t interval may be narrower than the bootstrap's: never fewer seeds than there are.
    return f"about {max(*known, sample.independent + 1)} {noun} would settle it"


# -- the comparisons a claim is made of -----------------------------------------------------------------------------


def above(group: Group, bound: float, *, printed: bool = False, statistic: Statistic = MEAN) -> Part:
    """More than a bound."""
    quantity = Quantity(statistic, group)
    return Part(f"{quantity} above {bound:g}", quantity, low=bound, printed=printed)


def below(group: Group, bound: float, *, printed: bool = False, statistic: Statistic = MEAN) -> Part:
    """Less than a bound."""
    quantity = Quantity(statistic, group)
    return Part(f"{quantity} below {bound:g}", quantity, high=bound, printed=printed)


def between(group: Group, low: float, high: float, *, printed: bool = False, statistic: Statistic = MEAN) -> Part:
    """In a range."""
    quantity = Quantity(statistic, group)
    return Part(f"{quantity} between {low:g} and {high:g}", quantity, low, high, printed)


def close(group: Group, value: float, tolerance: float, *, printed: bool = True, statistic: Statistic = MEAN) -> Part:
    """A printed value, give or take."""
    quantity = Quantity(statistic, group)
    return Part(f"{quantity} {value:g} ± {tolerance:g}", quantity, value - tolerance, value + tolerance, printed)


def better(one: Group, other: Group, by: float = 0.0, *, printed: bool = False, statistic: Statistic = MEAN) -> Part:
    """More than another group, on shared seeds; by more than a margin, or (negative) by no less than one."""
    than = f"that of {other.who}" if one.metric == other.metric != "accuracy" or statistic.name else str(other)
    margin = f" by more than {by:g}" if by > 0 else f", or less than {-by:g} below" if by < 0 else ""
    quantity = Quantity(statistic, one, other)
    return Part(f"{statistic.name}{one} above {than}{margin}", quantity, low=by, printed=printed)


def no_better(one: Group, other: Group, by: float, *, statistic: Statistic = MEAN) -> Part:
    """Less than a margin above another group, on shared seeds."""
    quantity = Quantity(statistic, one, other)
    than = f"that of {other.who}" if one.metric == other.metric != "accuracy" else str(other)
    return Part(f"{one} less than {by:g} above {than}", quantity, high=by)


def grows(now: tuple[Group, Group], before: tuple[Group, Group], *, statistic: Statistic = MEAN) -> Part:
    """One group is above another by more than the same two were before."""
    quantity = Quantity(statistic, *now, Quantity(statistic, *before))
    said = [f"{one} above that of {other.who}" for one, other in (now, before)]
    return Part(f"{said[0]}, by more than {said[1]}", quantity, low=0.0)


def wider(one: Group, other: Group) -> Part:
    """Seeds differ more than in another group."""
    return better(one, other, statistic=SPREAD)

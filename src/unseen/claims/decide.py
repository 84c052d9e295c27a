"""From measurements to findings on criteria, and from these to the verdict on a claim. See `docs/statistics.md`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from unseen.claims.criterion import (
    Criterion,
    CriterionDrift,
    Finding,
    Need,
    Obstacle,
    Outcome,
    PrintedNumber,
    Role,
    Verdict,
    Waiting,
)
from unseen.claims.evidence import Evidence, Group
from unseen.claims.learning import ADVERSE
from unseen.claims.mode import ALPHA
from unseen.claims.quantity import MEAN, Sample
from unseen.stats import (
    FEWEST,
    INDICATIVE,
    Estimate,
    Interval,
    Limits,
    MeanLimits,
    Variance,
    holm,
    moderate,
    p_above,
    p_below,
    seeds_to_settle,
    welch,
)

MODEL_COLUMNS = ("model", "variant", "architecture", "gating")
"""The columns of a claim that tell models apart; variances are moderated over the other columns only."""
AGREEING = 0.9
"""A printed table is supported if at least this share of its numbers agree,"""
FARTHEST = 0.10
"""and none differs by more than this."""
DIFFERING = 0.25
"""It is contradicted if at least this share differ, and undecided if more than this share are open."""
MOST_UNITS = 1000
"""Larger numbers of seeds or tasks are out of reach."""
LEAST_SLACK = 0.02
"""No number of steps is given for a drift that is fifty times the distance to the bound."""


# -- measurements -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measurement:
    """A criterion with the units it was measured on, its limits and its drift; `limits` is None for too few units."""

    criterion: Criterion
    sample: Sample
    unit: str
    covers: str
    limits: Limits | None = None
    drift: CriterionDrift | None = None
    learned: float = 1.0
    reached: bool = True
    rival_learned: bool = True


def measure(criteria: Sequence[Criterion], evidence: Evidence) -> list[Measurement]:
    """Measure the criteria of a claim; variances of few units are moderated over alike configurations."""
    samples = [criterion.quantity.sample(evidence) for criterion in criteria]
    variances = _moderated_variances(criteria, samples)
    measurements = []
    for number, (criterion, sample) in enumerate(zip(criteria, samples, strict=True)):
        measurement = Measurement(criterion, sample, evidence.design.unit, evidence.covers)
        if sample.missing is None and sample.independent >= FEWEST:
            limits = criterion.quantity.limits(sample, variances.get(number))
            if isinstance(criterion, PrintedNumber) and isinstance(limits, MeanLimits):
                limits = welch(limits, criterion.spread, criterion.seeds)
            limits = criterion.quantity.widen(sample, limits)
            learned, reached, rival_learned = _check_learning(criterion, evidence)
            measurement = replace(
                measurement,
                limits=limits,
                drift=_find_drift(criterion, sample),
                learned=learned,
                reached=reached,
                rival_learned=rival_learned,
            )
        measurements.append(measurement)
    return measurements


def _moderated_variances(criteria: Sequence[Criterion], samples: Sequence[Sample]) -> dict[int, Variance]:
    """The moderated variance of the criteria, by their number, where enough alike quantities were measured.

    Ten units tell their spread well enough by themselves.
    """
    pools: dict[Hashable, dict[tuple[Hashable, ...], list[int]]] = {}
    for number, (criterion, sample) in enumerate(zip(criteria, samples, strict=True)):
        quantity = criterion.quantity
        few_units = FEWEST <= sample.independent < INDICATIVE
        if quantity.statistic is MEAN and sample.missing is None and few_units:
            alike = tuple(_describe_model(group) for group in quantity.groups)
            pool = pools.setdefault(alike, {})
            # Several criteria may be about one quantity: it is one configuration.
            pool.setdefault(tuple(group.key for group in quantity.groups), []).append(number)
    moderated = {}
    for pool in pools.values():
        numbers = list(pool.values())
        variances = [criteria[first].quantity.unit_variance(samples[first]) for first, *_ in numbers]
        for members, variance in zip(numbers, moderate(variances), strict=True):
            for number in members:
                floor = sum(samples[number].sampling)
                moderated[number] = Variance(max(variance.value, floor), variance.freedom)
    return moderated


def _describe_model(group: Group) -> Hashable:
    models = tuple(group.columns.get(column, ()) for column in MODEL_COLUMNS)
    return group.metric, group.factor, models


def _find_drift(criterion: Criterion, sample: Sample) -> CriterionDrift | None:
    if sample.drift is None:
        return None
    units = np.array([sample.drift[sample.units == unit].mean() for unit in range(sample.independent)])
    error = float(units.std(ddof=1)) / math.sqrt(len(units))
    signed = sample.drift_judged or all(group.metric == "accuracy" for group in criterion.quantity.groups)
    return CriterionDrift(float(units.mean()), error, sample.drift_judged, signed)


def _check_learning(criterion: Criterion, evidence: Evidence) -> tuple[float, bool, bool]:
    """The share that learned in the worst configuration, and whether a verdict may rest on it, and on each group."""
    groups = [evidence.examine_learning(group) for group in criterion.quantity.groups]
    share = min(entry.share for entry in groups)
    if criterion.may_fail:
        groups = groups[:-1]  # the weaker model, which is named last, fails as the sentence says; the others must learn
    return share, all(entry.reached for entry in groups), all(entry.any for entry in groups)


# -- findings ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PValues:
    """The one-sided p values that a criterion holds, and that it is contradicted."""

    holds: float
    contradicted: float


def compare_with_range(criterion: Criterion, limits: Limits, shift: tuple[float, float] = (0.0, 0.0)) -> PValues:
    """Test whether the value lies in the range or outside; `shift` is how far it may still fall and rise.

    To hold, it must lie above one bound and below the other, each at the full level. Outside it lies on one side, which
    is two-sided where both sides have a bound.
    """
    fall, rise = shift
    inside = [0.0]
    outside = []
    if criterion.low > -math.inf:
        inside.append(p_above(limits, criterion.low + fall))
        outside.append(p_below(limits, criterion.low - rise))
    if criterion.high < math.inf:
        inside.append(p_below(limits, criterion.high - rise))
        outside.append(p_above(limits, criterion.high + fall))
    return PValues(max(inside), min(1.0, len(outside) * min(outside, default=1.0)))


def decide(measurements: Sequence[Measurement], alpha: float = ALPHA) -> list[Finding]:
    """Judge criteria that were measured together; those of one role are adjusted together (Holm).

    A criterion holds at one-sided `alpha`: a claim needs all of them, so nothing is corrected. It is contradicted at
    `alpha` after Holm's correction: one of many easily lies outside by chance.
    """
    findings: dict[int, Finding] = {}
    for role in get_args(Role):
        family = [number for number, entry in enumerate(measurements) if entry.criterion.role == role]
        members = [measurements[number] for number in family]
        raw, adjusted = _test_family(members, drifting=False)
        _, adverse = _test_family(members, drifting=True)
        tested = sum(not math.isnan(p_value) for p_value in raw)
        for index, number in enumerate(family):
            findings[number] = _decide_one(members[index], adjusted[index], adverse[index], raw[index], tested, alpha)
    return [findings[number] for number in range(len(measurements))]


def _test_family(members: Sequence[Measurement], drifting: bool) -> tuple[list[float], list[PValues]]:
    """The p values that each is contradicted, and both p values with these adjusted over the family."""
    tested = [_test(measurement, drifting) for measurement in members]
    raw = [entry.contradicted for entry in tested]
    adjusted = []
    for entry, p_value in zip(tested, holm(raw).tolist(), strict=True):
        adjusted.append(PValues(entry.holds, p_value))
    return raw, adjusted


def _test(measurement: Measurement, drifting: bool) -> PValues:
    limits = measurement.limits
    if limits is None or any(map(math.isnan, limits.at(ALPHA))):
        return PValues(math.nan, math.nan)
    shift = _adverse_shift(measurement.drift) if drifting else (0.0, 0.0)
    return compare_with_range(measurement.criterion, limits, shift)


def _adverse_shift(drift: CriterionDrift | None) -> tuple[float, float]:
    """How far a value may still fall, and rise."""
    if drift is None:
        return 0.0, 0.0
    size = ADVERSE * abs(drift.value)
    if not drift.signed:
        return size, size
    return (size, 0.0) if drift.value < 0 else (0.0, size)


def _choose(p_values: PValues, alpha: float) -> Outcome:
    if p_values.holds <= alpha:
        return "holds"
    return "contradicted" if p_values.contradicted <= alpha else "open"


def _decide_one(
    measurement: Measurement, p_values: PValues, adverse: PValues, raw: float, family: int, alpha: float
) -> Finding:
    criterion = measurement.criterion
    sample = measurement.sample
    unit = measurement.unit
    if sample.missing is not None:
        return Finding(criterion, "not run", waiting=Waiting("runs", Obstacle.MISSING, missing=sample.missing))
    usable = sample.independent
    units = units_of(unit)
    if measurement.limits is None:
        too_few = Waiting(units, Obstacle.TOO_FEW, FEWEST, unit, usable)
        return Finding(criterion, "open", left_out=sample.left_out, waiting=too_few)
    low, high = measurement.limits.at(alpha)
    clusters = usable if sample.clusters else 0
    interval = Interval(low, high, 1 - 2 * alpha, sample.size, measurement.covers, clusters=clusters)
    finding = Finding(
        criterion,
        "open",
        Estimate(measurement.limits.value, interval),
        sample.left_out,
        drift=measurement.drift,
        learned=measurement.learned,
        reached=measurement.reached,
    )
    if math.isnan(p_values.holds):
        return replace(finding, waiting=Waiting("nothing", Obstacle.CONSTANT, unit=unit))
    finding = replace(finding, p_holds=p_values.holds, p_contradicted=p_values.contradicted)
    outcome = _choose(p_values, alpha)
    if outcome == "holds" and measurement.reached and not measurement.rival_learned:
        return replace(finding, waiting=Waiting("steps", Obstacle.NOT_LEARNED, unit=unit, usable=usable))
    not_reached = Waiting("steps", Obstacle.NOT_REACHED, unit=unit, usable=usable)
    if outcome == "open" and not measurement.reached:
        return replace(finding, waiting=not_reached)  # more units of runs that do not learn decide nothing
    if outcome == "open":
        return replace(finding, waiting=_wait_for_precision(measurement, interval, raw, family, alpha))
    if _choose(adverse, alpha) != outcome:
        steps = _estimate_steps(measurement, outcome, interval)
        return replace(finding, waiting=Waiting("steps", Obstacle.DRIFT, steps, unit, usable))
    return replace(finding, verdict=outcome, waiting=None if measurement.reached else not_reached)


def units_of(unit: str) -> Need:
    """Return what more units are called."""
    return "tasks" if unit == "task" else "seeds"


def _wait_for_precision(measurement: Measurement, interval: Interval, raw: float, family: int, alpha: float) -> Waiting:
    """Say how many units would push the interval off the bounds that it contains."""
    criterion = measurement.criterion
    sample = measurement.sample
    unit = measurement.unit
    usable = sample.independent
    chance = raw <= alpha
    reason = Obstacle.CHANCE if chance else Obstacle.BOUND_INSIDE
    open_ended = Waiting(units_of(unit), reason, unit=unit, usable=usable, criteria=family)
    values = criterion.quantity.value_per_unit(sample)
    if values is None:
        return open_ended
    value = float(values.mean())
    outside = not criterion.low < value < criterion.high
    # Outside its range a criterion is settled after the correction for its family, inside at the full level.
    level = 1 - 2 * (alpha / max(family, 1) if outside else alpha)
    counts = []
    for bound in (criterion.low, criterion.high):
        if math.isfinite(bound) and (chance or interval.low <= bound <= interval.high):
            count = seeds_to_settle(values, margin=bound, level=level)
            if count is None:
                return Waiting("nothing", Obstacle.ON_BOUND, unit=unit, usable=usable)
            counts.append(count)
    # Limits near the end of a scale and mixtures are wider than t: never fewer units than there are.
    count = max([*counts, usable + 1])
    if not criterion.quantity.limits_by_kinds(sample):
        return replace(open_ended, count=count)
    return replace(open_ended, reason=Obstacle.FAILING, count=_count_for_kinds(measurement, count, (1 - level) / 2))


def _count_for_kinds(measurement: Measurement, fewest: int, alpha: float) -> int | None:
    """How many units would settle a mean of seeds of which some fail, if the share that fails is as observed."""
    criterion = measurement.criterion
    bounds = [bound for bound in (criterion.low, criterion.high) if math.isfinite(bound)]
    for count in range(fewest, MOST_UNITS + 1):
        limits = [entry.at(alpha) for entry in criterion.quantity.limits_by_kinds(measurement.sample, count)]
        if not any(low <= bound <= high for low, high in limits for bound in bounds):
            return count
    return None


def _estimate_steps(measurement: Measurement, outcome: Outcome, interval: Interval) -> int | None:
    """Roughly how many further steps would bring the drift below the distance to the bound.

    A drift is taken to fall with the inverse of the number of steps.
    """
    criterion = measurement.criterion
    drift = measurement.drift
    steps = measurement.sample.steps
    if drift is None or not steps:
        return None
    inside = (interval.low - criterion.low, criterion.high - interval.high)
    outside = (criterion.low - interval.high, interval.low - criterion.high)
    slack = min(inside) if outcome == "holds" else max(outside)
    share = slack / (ADVERSE * abs(drift.value))
    return math.ceil(steps * (1 / share - 1)) if LEAST_SLACK < share < 1 else None


# -- verdicts ---------------------------------------------------------------------------------------------------------


def combine(findings: Sequence[Finding]) -> Verdict:
    """Combine the findings on the criteria of a claim to its verdict."""
    tallies: dict[Role, Counter[str]] = {"headline": Counter(), "detail": Counter()}
    for finding in findings:
        if finding.compared:
            unreached = not finding.reached and finding.verdict != "not run"
            tallies[finding.criterion.role]["not reached" if unreached else finding.verdict] += 1
    headline = tallies["headline"]
    detail = tallies["detail"]
    if headline["not run"] + detail["not run"] == headline.total() + detail.total():
        return "not run"
    if headline["contradicted"]:
        return "contradicted"
    if headline["not reached"]:
        return "not reached"
    details_run = detail.total() - detail["not run"]
    if not headline or headline["holds"] < headline.total() or 2 * details_run < detail.total():
        return "undecided"
    return "mixed" if detail["contradicted"] else "supported"


def combine_agreement(findings: Sequence[Finding]) -> Verdict:
    """Combine the findings on the numbers of a printed table; numbers that were not run are open."""
    counted = [finding for finding in findings if finding.compared]
    if all(finding.verdict == "not run" for finding in counted):
        return "not run"
    verdict = _count_agreement(counted)
    without: list[Finding] = []
    unreached = 0
    for finding in counted:
        counts = finding.reached or finding.verdict == "not run"
        unreached += not counts
        without.append(finding if counts else replace(finding, verdict="open"))
    rests_on_unreached = _count_agreement(without) != verdict or 2 * unreached > len(counted)
    return "not reached" if rests_on_unreached else verdict


def _count_agreement(counted: Sequence[Finding]) -> Verdict:
    tally = Counter(finding.verdict for finding in counted)
    total = len(counted)
    if tally["contradicted"] >= DIFFERING * total:
        return "contradicted"
    farthest = max((_distance(finding) for finding in counted if finding.verdict == "contradicted"), default=0.0)
    if tally["holds"] >= AGREEING * total and farthest <= FARTHEST:
        return "supported"
    return "undecided" if tally["open"] + tally["not run"] > DIFFERING * total else "mixed"


def _distance(finding: Finding) -> float:
    """How far our number is from the printed one."""
    criterion = finding.criterion
    if finding.estimate is None or not isinstance(criterion, PrintedNumber):
        return 0.0
    return abs(finding.estimate.value - criterion.value)

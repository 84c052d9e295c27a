"""How often verdicts on simulated claims are wrong, and how often they are reached: the tables of docs/statistics.md.

python -m unseen.stats.coverage        about ten minutes on one core

All repetitions of a simulated claim are judged at once, with the rules of `unseen.claims` written for arrays: limits
for `Limits`, moderated variances for `moderate`, and for Holm its first step, which alone decides whether any of the
criteria is contradicted. The tests prove that single claims come out as the rules themselves have them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import special

from unseen.randomness import Draws, stream
from unseen.stats.confidence_intervals import SpreadDifferenceLimits, SpreadLimits, bounded_limits, spread_error
from unseen.stats.intervals import FEWEST, INDICATIVE, Floats
from unseen.stats.moderation import FEWEST_VARIANCES, MOST_FREEDOM, REJECTED
from unseen.stats.resampling import bootstrap, resampled_counts
from unseen.stats.sequential import ALPHA, LOOKS

Flags = NDArray[np.bool_]
Limit = Callable[["Units", float], tuple[Floats, Floats]]
"""Maps units and a one-sided error to lower and upper limits (repetitions, criteria)."""
CRITERIA = (1, 4, 14, 34)
UNITS = (3, 5, 10, 25)
NEAR_BOUND = 0.5
"""The distance of a mean from its bound, in standard deviations of its units, where a criterion is hard to decide."""
FAR = 2.0
"""The distance at which a criterion is clear."""
FAILING = 0.2
"""The share of seeds that fail where seeds fail now and then."""
LEVEL = 0.65
"""What divides them from the others, where the paper tells that there are two kinds."""
RESAMPLES = 1_000


@dataclass(frozen=True)
class Units:
    """Values (repetitions, criteria, units) on a scale from 0 to 1, and which of them learned.

    Limits are remembered: several claims are made about the same units.
    """

    values: Floats
    learned: Flags
    _limits: dict[tuple[Limit, int, float], tuple[Floats, Floats]] = field(default_factory=dict, repr=False)

    def limit(self, limit: Limit, n: int, alpha: float) -> tuple[Floats, Floats]:
        """The limits of the first n units of each criterion."""
        key = (limit, n, alpha)
        if key not in self._limits:
            self._limits[key] = limit(Units(self.values[..., :n], self.learned[..., :n]), alpha)
        return self._limits[key]


@dataclass(frozen=True)
class Population:
    """A distribution of seeds for each of four kinds of criteria: how they are drawn, their means and spreads."""

    draw: Callable[[Draws, tuple[int, int, int]], Units]
    means: Floats
    spreads: Floats


# -- distributions of seeds -------------------------------------------------------------------------------------------


def _kinds(criteria: int) -> NDArray[np.int64]:
    return np.arange(criteria) % 4


def _draw_normal(spreads: Floats, draws: Draws, shape: tuple[int, int, int]) -> Units:
    values = 0.8 + spreads[_kinds(shape[1])][:, None] * draws.normal(shape)
    return Units(values, np.ones(shape, np.bool_))


def _draw_ceiling(a: Floats, draws: Draws, shape: tuple[int, int, int]) -> Units:
    uniform = draws.uniform(shape)
    values = np.empty(shape)
    for kind in range(4):
        chosen = _kinds(shape[1]) == kind
        values[:, chosen] = special.betaincinv(a[kind], 0.5, uniform[:, chosen])
    return Units(values, np.ones(shape, np.bool_))


def _draw_failing(spreads: Floats, draws: Draws, shape: tuple[int, int, int]) -> Units:
    learned = draws.uniform(shape) >= FAILING
    values = np.where(learned, 0.8, 0.5) + spreads[_kinds(shape[1])][:, None] * draws.normal(shape)
    return Units(values, learned)


def _make_populations() -> dict[tuple[str, str], Population]:
    populations = {}
    for name, factors in (("equal", np.ones(4)), ("unequal", 4.0 ** (np.arange(4) / 3 - 0.5))):
        spreads = 0.03 * factors
        populations["normal", name] = Population(partial(_draw_normal, spreads), np.full(4, 0.8), spreads)
        a = 9 / factors**2
        means = a / (a + 0.5)
        deviations = np.sqrt(means * (1 - means) / (a + 1.5))
        populations["ceiling-bound", name] = Population(partial(_draw_ceiling, a), means, deviations)
        within = 0.01 * factors
        mean = np.full(4, 0.8 - 0.3 * FAILING)
        total = np.sqrt(within**2 + 0.3**2 * FAILING * (1 - FAILING))
        populations["sometimes failing", name] = Population(partial(_draw_failing, within), mean, total)
    return populations


POPULATIONS = _make_populations()
"""By the name of the distribution and whether the criteria of a claim have equal spreads; these differ fourfold."""


# -- limits, for arrays -----------------------------------------------------------------------------------------------


def limits(units: Units, alpha: float) -> tuple[Floats, Floats]:
    """The limits that `unseen.claims` uses: moderated t, the end of the scale, and mixtures where a seed failed."""
    values = units.values
    n = values.shape[-1]
    variance = values.var(axis=-1, ddof=1)
    freedom: Floats = np.full(variance.shape, n - 1.0)
    if n < INDICATIVE:
        variance, freedom = moderate_all(variance, n - 1)
    low, high = bounded_limits(values.mean(axis=-1), variance, freedom, n, alpha)
    count = units.learned.sum(axis=-1)
    mixed = (count > 0) & (count < n)
    if mixed.any():
        low[mixed], high[mixed] = _mixture_limits(values[mixed], units.learned[mixed], alpha)
    return low, high


def limits_by_account(units: Units, alpha: float) -> tuple[Floats, Floats]:
    """The limits where the paper says itself that some seeds fail: the wider of those above and of a mixture.

    The mixture is that of the larger kind with the other one, which may lie anywhere on its side if none was seen.
    """
    everything = np.ones_like(units.learned)
    plain = limits(Units(units.values, everything), alpha)
    larger = np.where(
        2 * units.learned.sum(axis=-1, keepdims=True) >= everything.shape[-1], units.learned, ~units.learned
    )
    unseen = units.learned.all(axis=-1), (~units.learned).all(axis=-1)
    lowest = np.select(unseen, [0.0, LEVEL], np.nan)
    highest = np.select(unseen, [LEVEL, 1.0], np.nan)
    low, high = _mixture_limits(units.values, larger, alpha, lowest, highest)
    return np.minimum(plain[0], low), np.maximum(plain[1], high)


def _mixture_limits(
    values: Floats, chosen: Flags, alpha: float, lowest: Floats | float = np.nan, highest: Floats | float = np.nan
) -> tuple[Floats, Floats]:
    """Mixtures (…, n) of the chosen units, which have t limits, and the others: at the least favourable of their values.

    Where there are no others, these lie between `lowest` and `highest`.
    """
    n = values.shape[-1]
    count = chosen.sum(axis=-1)
    known = (count > 1) & (n > FEWEST)
    several = np.maximum(count, 2)
    mean = np.sum(values * chosen, axis=-1) / several
    variance = np.sum((values - mean[..., None]) ** 2 * chosen, axis=-1) / (several - 1)
    width = special.stdtrit(several - 1, 1 - alpha / 2) * np.sqrt(variance / several)
    others = np.where(chosen, np.nan, values)
    none = count == n
    lowest = np.where(none, lowest, np.fmin.reduce(others, axis=-1))
    highest = np.where(none, highest, np.fmax.reduce(others, axis=-1))
    shares = np.stack(
        [
            special.betaincinv(several, n - several + 1, alpha / 2),
            np.where(none, 1.0, special.betaincinv(several + 1, np.maximum(n - several, 1), 1 - alpha / 2)),
        ]
    )
    low = (shares * (mean - width) + (1 - shares) * lowest).min(axis=0)
    high = (shares * (mean + width) + (1 - shares) * highest).max(axis=0)
    return np.where(known, low, -np.inf), np.where(known, high, np.inf)


def moderate_all(variances: Floats, freedom: float) -> tuple[Floats, Floats]:
    """`moderate` for every row of variances with the same degrees of freedom."""
    unmoderated = np.full(variances.shape, float(freedom))
    criteria = variances.shape[-1]
    if criteria < FEWEST_VARIANCES:
        return variances, unmoderated
    bounded = np.maximum(variances, 1e-5 * np.median(variances, axis=-1, keepdims=True))
    pooled = bounded.mean(axis=-1)
    statistic = freedom * (criteria * np.log(pooled) - np.log(bounded).sum(axis=-1))
    correction = 1 + (criteria / freedom - 1 / (criteria * freedom)) / (3 * (criteria - 1))
    rejected = special.chdtrc(criteria - 1, np.maximum(statistic / correction, 0)) < REJECTED
    logs = np.log(bounded) - special.digamma(freedom / 2) + np.log(freedom / 2)
    excess = logs.var(axis=-1, ddof=1) - special.polygamma(1, freedom / 2)
    half = _invert_trigamma(np.maximum(excess, 1e-6))
    prior = np.exp(logs.mean(axis=-1) + special.digamma(half) - np.log(half))
    prior = np.maximum(np.where(excess > 0, prior, 0), variances.mean(axis=-1))
    weight = np.where(rejected, 0, np.minimum(np.where(excess > 0, 2 * half, np.inf), MOST_FREEDOM))[..., None]
    return (weight * prior[..., None] + freedom * variances) / (weight + freedom), unmoderated + weight


def _invert_trigamma(values: Floats) -> Floats:
    numbers = 0.5 + 1 / values
    for _ in range(50):
        trigamma = special.polygamma(1, numbers)
        numbers = numbers + trigamma * (1 - trigamma / values) / special.polygamma(2, numbers)
    return np.asarray(numbers, np.float64)


def percentile_limits(units: Units, alpha: float) -> tuple[Floats, Floats]:
    """The percentile bootstrap that verdicts were based on before."""
    values = units.values
    n = values.shape[-1]
    counts = np.concatenate(list(resampled_counts([n], stream("simulated bootstrap", n).block(), RESAMPLES)))
    low, high = np.quantile(values @ counts.T / n, (alpha, 1 - alpha), axis=-1)
    return low, high


# -- verdicts ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claims:
    """The bounds of simulated claims: each criterion wants a mean above (or below) its bound."""

    bounds: Floats
    above: Flags
    judged: Flags

    def hold(self, low: Floats, high: Floats) -> Flags:
        """Which criteria hold."""
        return np.where(self.above, low > self.bounds, high < self.bounds)

    def contradicted(self, low: Floats, high: Floats) -> Flags:
        """Which criteria are contradicted."""
        return np.where(self.above, high < self.bounds, low > self.bounds)


def make_claims(population: Population, inside: Sequence[float], above: bool, first: int = 0) -> Claims:
    """One criterion per number: its mean lies that many standard deviations inside its bound.

    Every other four criteria want a mean above their bound, the others one below. Those before `first` do not count.
    """
    criteria = len(inside)
    kinds = _kinds(criteria)
    directions = (np.arange(criteria) // 4 % 2 == 0) == above
    sign = np.where(directions, 1, -1)
    bounds = population.means[kinds] - sign * np.asarray(inside) * population.spreads[kinds]
    return Claims(bounds, directions, np.arange(criteria) >= first)


@dataclass(frozen=True)
class Rates:
    """How often all criteria hold, and how often one is contradicted."""

    supported: float
    contradicted: float


def judge_fixed(units: Units, claims: Claims, limit: Limit = limits, *, sided: float = 1.0) -> Rates:
    """Judge all repetitions once, at the full error; `sided` is 2 for the two-sided intervals of before."""
    n = units.values.shape[-1]
    hold, contradicted = _decide(units, claims, limit, n, ALPHA / sided)
    return Rates(float(hold.mean()), float(contradicted.mean()))


def judge_until_decided(units: Units, claims: Claims, limit: Limit = limits) -> Rates:
    """Judge all repetitions at each look, until they are decided."""
    repetitions, _, n = units.values.shape
    supported = np.zeros(repetitions, np.bool_)
    contradicted = np.zeros(repetitions, np.bool_)
    for look in LOOKS:
        if look.units <= n:
            undecided = ~(supported | contradicted)
            hold, outside = _decide(units, claims, limit, look.units, look.alpha)
            supported |= undecided & hold
            contradicted |= undecided & outside
    return Rates(float(supported.mean()), float(contradicted.mean()))


def _decide(units: Units, claims: Claims, limit: Limit, n: int, alpha: float) -> tuple[Flags, Flags]:
    """Whether all judged criteria hold, and whether one of them is contradicted."""
    judged = claims.judged
    hold = claims.hold(*units.limit(limit, n, alpha))[:, judged].all(axis=-1)
    family = int(judged.sum())
    outside = claims.contradicted(*units.limit(limit, n, alpha / family))[:, judged].any(axis=-1)
    return np.asarray(hold), np.asarray(outside & ~hold)


@dataclass(frozen=True)
class Errors:
    """Rates of wrong verdicts and of right ones (power); of both directions of the criteria the worse."""

    contradicted: float
    supported: float
    supported_on_bound: float
    mixed: float
    power: float
    refuted: float


def simulate(
    population: Population,
    criteria: int,
    n: int,
    repetitions: int,
    judge: Callable[[Units, Claims], Rates] = judge_fixed,
    *,
    seen: bool = False,
) -> Errors:
    """Simulate a true claim near its bounds, a false one, a true one with details, and clear ones.

    With `seen`, only repetitions count in which a seed of every criterion failed.
    """
    units = population.draw(
        stream("simulated claims", *map(float, population.spreads), criteria, n).block(), (repetitions, criteria, n)
    )
    if seen:
        chosen = (~units.learned).any(axis=-1).all(axis=-1)
        units = Units(units.values[chosen], units.learned[chosen])
    rates: dict[str, list[float]] = {}
    for above in (True, False):
        judged = partial(judge, units)
        others = [FAR] * (criteria - 1)
        true = judged(make_claims(population, [NEAR_BOUND] * criteria, above))
        rates.setdefault("contradicted", []).append(true.contradicted)
        rates.setdefault("supported", []).append(
            judged(make_claims(population, [-NEAR_BOUND, *others], above)).supported
        )
        rates.setdefault("on bound", []).append(judged(make_claims(population, [0.0, *others], above)).supported)
        rates.setdefault("power", []).append(judged(make_claims(population, [FAR] * criteria, above)).supported)
        rates.setdefault("refuted", []).append(judged(make_claims(population, [-FAR, *others], above)).contradicted)
        # A headline far inside, which is not judged here, and details near their bounds.
        if criteria > 1:
            details = judged(make_claims(population, [NEAR_BOUND] * criteria, above, first=1))
            rates.setdefault("mixed", []).append(details.contradicted)
    return Errors(
        max(rates["contradicted"]),
        max(rates["supported"]),
        max(rates["on bound"]),
        max(rates.get("mixed", [0.0])),
        min(rates["power"]),
        min(rates["refuted"]),
    )


# -- tables -----------------------------------------------------------------------------------------------------------

judge_as_before = partial(judge_fixed, limit=percentile_limits, sided=2.0)
METHODS: dict[str, Callable[[Units, Claims], Rates]] = {
    "fixed": judge_fixed,
    "until decided": judge_until_decided,
    "before (bootstrap)": judge_as_before,
}
BY_ACCOUNT: dict[str, Callable[[Units, Claims], Rates]] = {
    "fixed": partial(judge_fixed, limit=limits_by_account),
    "until decided": partial(judge_until_decided, limit=limits_by_account),
}
"""Where the paper says itself that some seeds fail."""
NAMES = ("contradicted", "supported (on the bound)", "mixed", "power")


def table(repetitions: int = 2_000, sizes: Sequence[int] = UNITS, counts: Sequence[int] = CRITERIA) -> Iterator[str]:
    """The tables of verdicts in Markdown, line by line: rates in %."""
    for seeds, spreads in POPULATIONS:
        title = f"**{seeds.capitalize()} seeds, {spreads} spreads**"
        yield from verdict_table(title, (seeds, spreads), METHODS, repetitions, sizes, counts)
    for spreads in ("equal", "unequal"):
        title = f"**Sometimes failing seeds by the paper's own account, {spreads} spreads**"
        yield from verdict_table(title, ("sometimes failing", spreads), BY_ACCOUNT, repetitions, sizes, counts)
    yield from ("", "**Sometimes failing seeds, one criterion, a failure seen** (fixed)", "")
    yield f"| units | {' | '.join(NAMES)} |"
    yield "|" + "---|" * (1 + len(NAMES))
    for n in sizes:
        errors = simulate(POPULATIONS["sometimes failing", "equal"], 1, n, 4 * repetitions, seen=True)
        yield f"| {n} | {' | '.join(_format(errors))} |"


def verdict_table(
    title: str,
    key: tuple[str, str],
    methods: Mapping[str, Callable[[Units, Claims], Rates]],
    repetitions: int,
    sizes: Sequence[int],
    counts: Sequence[int],
) -> Iterator[str]:
    """The rates of some methods for one population, one row per number of criteria and of units."""
    yield from ("", title, "")
    titles = []
    for mode in methods:
        titles += [f"{mode}: {NAMES[0]}", *NAMES[1:]]
    yield f"| criteria | units | {' | '.join(titles)} |"
    yield "|" + "---|" * (2 + len(methods) * len(NAMES))
    for criteria in counts:
        for n in sizes:
            fields = [str(criteria), str(n)]
            for judge in methods.values():
                fields += _format(simulate(POPULATIONS[key], criteria, n, repetitions, judge))
            yield f"| {' | '.join(fields)} |"


def _format(errors: Errors) -> list[str]:
    """The rates in %: of a true claim contradicted, a false one supported, a true one mixed, a clear one supported."""
    false = f"{100 * errors.supported:.1f} ({100 * errors.supported_on_bound:.1f})"
    return [f"{100 * errors.contradicted:.1f}", false, f"{100 * errors.mixed:.1f}", f"{100 * errors.power:.0f}"]


# -- single limits ----------------------------------------------------------------------------------------------------


def percentage_missed(low: Floats, high: Floats, truth: float) -> str:
    """How often the lower limit lies above the truth, and the upper one below it, in %."""
    return f"{100 * np.mean(low > truth):.1f} + {100 * np.mean(high < truth):.1f}"


def _spread_misses(values: Floats, others: Floats, truth: float) -> tuple[str, str]:
    """Misses of the limits of a spread, and how often one of two equal spreads is called wider."""
    lows = []
    highs = []
    wider = []
    for row, other in zip(values, others, strict=True):
        freedom = len(row) - 1
        first = float(row.std(ddof=1))
        second = float(other.std(ddof=1))
        errors = spread_error(row), spread_error(other)
        low, high = SpreadLimits(first, freedom, errors[0]).at(ALPHA)
        lows.append(low)
        highs.append(high)
        wider.append(SpreadDifferenceLimits(first, second, freedom, math.hypot(*errors)).at(ALPHA)[0] > 0)
    return percentage_missed(np.array(lows), np.array(highs), truth), f"{100 * np.mean(wider):.1f}"


def limit_table(repetitions: int = 2_000, sizes: Sequence[int] = (3, 5, 10, 20)) -> Iterator[str]:
    """One-sided limits at 5 % that miss the truth, from below + from above, in %."""
    yield "| limits | seeds | " + " | ".join(f"n = {n}" for n in sizes) + " |"
    yield "|---|---|" + "---|" * len(sizes)
    for seeds in ("normal", "ceiling-bound"):
        population = POPULATIONS[seeds, "equal"]
        mean = float(population.means[0])
        spread = float(population.spreads[0])
        texts_by_row: dict[str, list[str]] = {}
        for n in sizes:
            units = population.draw(stream("simulated limits", seeds, n).block(), (repetitions, 2, n))
            values = units.values[:, 0]
            others = units.values[:, 1]
            single = Units(values[:, None], units.learned[:, :1])
            plain = _student_limits(values)
            texts_by_row.setdefault("mean: Student's t", []).append(percentage_missed(*plain, mean))
            texts_by_row.setdefault("mean: t, with the end of the scale", []).append(
                percentage_missed(*limits(single, ALPHA), mean)
            )
            texts_by_row.setdefault("mean: percentile bootstrap", []).append(
                percentage_missed(*percentile_limits(single, ALPHA), mean)
            )
            texts_by_row.setdefault("mean: BCa", []).append(percentage_missed(*_bca_limits(values), mean))
            missed, wider = _spread_misses(values, others, spread)
            texts_by_row.setdefault("spread", []).append(missed)
            texts_by_row.setdefault("one of two equal spreads called wider", []).append(wider)
        for name, texts in texts_by_row.items():
            yield f"| {name} | {seeds} | {' | '.join(texts)} |"


def _student_limits(values: Floats) -> tuple[Floats, Floats]:
    n = values.shape[-1]
    width = float(special.stdtrit(n - 1, 1 - ALPHA)) * values.std(axis=-1, ddof=1) / math.sqrt(n)
    return values.mean(axis=-1) - width, values.mean(axis=-1) + width


def _bca_limits(values: Floats) -> tuple[Floats, Floats]:
    draws = stream("simulated BCa", values.shape[-1]).block()
    intervals = []
    for row in values:
        intervals.append(
            bootstrap(row, generator=draws, covers="simulation", method="bca", level=1 - 2 * ALPHA, resamples=RESAMPLES)
        )
    return np.array([entry.low for entry in intervals]), np.array([entry.high for entry in intervals])


if __name__ == "__main__":
    for line in (*limit_table(), "", *table()):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

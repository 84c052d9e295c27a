"""A coarse version of the simulation of docs/statistics.md: wrong verdicts in at most 5 % of cases."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from unseen.claims.mode import ALPHA, LOOKS
from unseen.randomness import stream
from unseen.stats import MixtureLimits, ShareLimits, Variance, WidestLimits, coverage, mean_limits, moderate
from unseen.stats.coverage import (
    BY_ACCOUNT,
    CRITERIA,
    LEVEL,
    METHODS,
    POPULATIONS,
    UNITS,
    Units,
    limits,
    limits_by_account,
    simulate,
)

REPETITIONS = 250
NOISE = 0.03
"""About two standard errors of a rate of 5 %."""
PROMISED = [key for key in POPULATIONS if key[0] != "sometimes failing"]
CASES = [
    (*PROMISED[(i + j + k) % len(PROMISED)], mode, criteria, units)
    for i, criteria in enumerate(CRITERIA)
    for j, units in enumerate(UNITS)
    for k, mode in enumerate(("fixed", "until decided"))
]
"""Every pair of a population, a mode, a number of criteria and one of units; the page has all combinations of them."""


def test_the_cases_cover_every_pair() -> None:
    factors = [PROMISED, ("fixed", "until decided"), CRITERIA, UNITS]
    rows = [(case[:2], *case[2:]) for case in CASES]
    for (a, first), (b, second) in combinations(enumerate(factors), 2):
        assert {(row[a], row[b]) for row in rows} == set(product(first, second))


def test_looks_spend_the_error_of_a_verdict() -> None:
    assert sum(look.alpha for look in LOOKS) == pytest.approx(ALPHA)


@pytest.mark.parametrize(("seeds", "spreads", "mode", "criteria", "units"), CASES)
def test_verdicts_are_rarely_wrong(seeds: str, spreads: str, mode: str, criteria: int, units: int) -> None:
    errors = simulate(POPULATIONS[seeds, spreads], criteria, units, REPETITIONS, METHODS[mode])
    assert errors.contradicted <= 0.05 + NOISE
    assert errors.supported <= 0.05 + NOISE
    assert errors.mixed <= 0.05 + NOISE


@pytest.mark.parametrize("spreads", ["equal", "unequal"])
@pytest.mark.parametrize("mode", ["fixed", "until decided"])
@pytest.mark.parametrize("criteria", CRITERIA)
def test_with_seeds_that_sometimes_fail_verdicts_are_rarely_wrong_from_five_units_on(
    spreads: str, mode: str, criteria: int
) -> None:
    errors = simulate(POPULATIONS["sometimes failing", spreads], criteria, 5, REPETITIONS, METHODS[mode])
    assert max(errors.contradicted, errors.supported, errors.mixed) <= 0.06 + NOISE


@pytest.mark.parametrize(
    ("seeds", "spreads", "criteria", "units"), [("normal", "equal", 14, 3), ("ceiling-bound", "unequal", 4, 10)]
)
def test_the_page_shows_what_the_program_gives(seeds: str, spreads: str, criteria: int, units: int) -> None:
    page = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text("utf-8")
    _, _, tables = page.partition(f"**{seeds.capitalize()} seeds, {spreads} spreads**")
    row = next(line for line in tables.splitlines() if line.startswith(f"| {criteria} | {units} |"))
    fields = [field.strip() for field in row.strip("|").split("|")][2:6]
    assert fields == coverage._format(simulate(POPULATIONS[seeds, spreads], criteria, units, 2_000))


def test_the_page_shows_the_rates_by_account() -> None:
    page = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text("utf-8")
    _, _, tables = page.partition("**Sometimes failing seeds by the paper's own account, unequal spreads**")
    row = next(line for line in tables.splitlines() if line.startswith("| 1 | 25 |"))
    fields = [field.strip() for field in row.strip("|").split("|")][2:]
    population = POPULATIONS["sometimes failing", "unequal"]
    expected = [coverage._format(simulate(population, 1, 25, 2_000, judge)) for judge in BY_ACCOUNT.values()]
    assert fields == [*expected[0], *expected[1]]


def test_what_was_wrong_before() -> None:
    before = simulate(POPULATIONS["normal", "equal"], 14, 3, REPETITIONS, METHODS["before (bootstrap)"])
    now = simulate(POPULATIONS["normal", "equal"], 14, 3, REPETITIONS)
    assert before.contradicted > 0.25 and now.contradicted < 0.05


def test_once_a_failure_has_been_seen_verdicts_are_rarely_wrong() -> None:
    for units in (3, 5, 10):
        errors = simulate(POPULATIONS["sometimes failing", "equal"], 1, units, 4 * REPETITIONS, seen=True)
        assert max(errors.contradicted, errors.supported) <= 0.05


@pytest.mark.parametrize("spreads", ["equal", "unequal"])
@pytest.mark.parametrize("mode", BY_ACCOUNT)
@pytest.mark.parametrize("criteria", CRITERIA)
def test_where_the_paper_tells_of_failing_seeds_verdicts_are_rarely_wrong(
    spreads: str, mode: str, criteria: int
) -> None:
    """At any number of units, and on the bound: there a claim is supported in up to half of all cases otherwise."""
    population = POPULATIONS["sometimes failing", spreads]
    for units in UNITS:
        errors = simulate(population, criteria, units, REPETITIONS, BY_ACCOUNT[mode])
        assert max(errors.contradicted, errors.supported, errors.supported_on_bound, errors.mixed) <= 0.05
        if units == 3:
            assert errors.power == errors.refuted == 0, "three seeds never decide"
    assert errors.power > 0.9
    assert simulate(population, 1, 3, REPETITIONS).supported_on_bound > 0.4, "what is repaired"


def test_limits_by_account_for_arrays_are_those_of_the_library() -> None:
    for n in (3, 4, 7):
        population = POPULATIONS["sometimes failing", "equal"]
        units = population.draw(stream("test account", n).block(), (30, 2, n))
        low, high = limits_by_account(units, 0.02)
        for repetition, number in np.ndindex(30, 2):
            row, flags = units.values[repetition, number], units.learned[repetition, number]
            larger = flags if 2 * flags.sum() >= n else ~flags
            others = row[~larger]
            if larger.all():
                others = np.array([0.0, LEVEL] if flags.all() else [LEVEL, 1.0])
            share = ShareLimits(int(larger.sum()), n)
            mixture = MixtureLimits(0, share, mean_limits(row[larger]), others.min(), others.max())
            widest = WidestLimits((mean_limits(row, lowest=0, highest=1), mixture))
            assert (low[repetition, number], high[repetition, number]) == pytest.approx(widest.at(0.02))


@pytest.mark.parametrize("key", POPULATIONS)
def test_limits_for_arrays_are_those_of_the_library(key: tuple[str, str]) -> None:
    for n in (3, 6):
        units = POPULATIONS[key].draw(stream("test", *key, n).block(), (8, 5, n))
        low, high = limits(units, 0.02)
        for repetition in range(8):
            values, learned = units.values[repetition], units.learned[repetition]
            variances = moderate([Variance(float(row.var(ddof=1)), n - 1) for row in values])
            for number, variance in enumerate(variances):
                row, flags = values[number], learned[number]
                single = mean_limits(row, variance=variance.value, freedom=variance.freedom, lowest=0, highest=1)
                expected = single.at(0.02)
                if flags.any() and not flags.all():
                    expected = (-np.inf, np.inf)
                    if flags.sum() > 1:
                        share = ShareLimits(int(flags.sum()), n)
                        others = row[~flags]
                        mixture = MixtureLimits(0, share, mean_limits(row[flags]), others.min(), others.max())
                        expected = mixture.at(0.02)
                assert (low[repetition, number], high[repetition, number]) == pytest.approx(expected)


def test_populations_have_the_means_and_spreads_that_they_name() -> None:
    for key, population in POPULATIONS.items():
        units = population.draw(stream("test", *key).block(), (20_000, 4, 1))
        assert isinstance(units, Units)
        assert units.values[..., 0].mean(axis=0) == pytest.approx(population.means, abs=0.004)
        assert units.values[..., 0].std(axis=0) == pytest.approx(population.spreads, rel=0.05)

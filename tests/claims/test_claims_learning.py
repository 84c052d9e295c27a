"""Runs that still drift, runs that did not learn, printed tables, modes, and registration."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import sem, t, ttest_ind_from_stats

from support.claim_records import frame, rows, spread_out
from unseen.claims import registration
from unseen.claims.claim import Claim, UnitProgress
from unseen.claims.criterion import Criterion, Obstacle, above, below, better, details, printed_number
from unseen.claims.evidence import SamplingDesign, group
from unseen.claims.judge import judge
from unseen.claims.learning import read_curves
from unseen.claims.mode import ALPHA, LOOKS, Fixed, UntilDecided, mode_data, read_mode
from unseen.claims.registration import Registration, fingerprint, is_registered
from unseen.claims.render import describe_coverage, describe_waiting, judged_data
from unseen.errors import UsageError

A = group(task="retrieval/T1", variant="A")
B = group(task="retrieval/T1", variant="B")
Table = list[dict[str, Any]]


def reduced_runs(runs: pd.DataFrame) -> pd.DataFrame:
    return runs.assign(reduced=True)


def whole_runs(runs: pd.DataFrame) -> pd.DataFrame:
    return runs


def claim(*criteria: Criterion, columns: Callable[[pd.DataFrame], pd.DataFrame] = whole_runs, **more: Any) -> Claim:
    texts = ("x/1", "p", "s", "n")
    return Claim(*texts, criteria, paper="P", study="y", split="ood/single", columns=columns, **more)


def a(mean: float, spread: float = 0.01, seeds: int = 5, **more: Any) -> Table:
    return rows("T1", "A", spread_out(mean, spread, seeds), **more)


def b(mean: float, spread: float = 0.01, seeds: int = 5, **more: Any) -> Table:
    return rows("T1", "B", spread_out(mean, spread, seeds, shift=7), **more)


def curves(
    table: Table, scores: Callable[[int], Sequence[float]], split: str = "iid", metric: str = "accuracy"
) -> pd.DataFrame:
    """The curve of every run, from its seed."""
    points = []
    for row in table:
        for number, score in enumerate(scores(row["seed"])):
            place = {"trial": row["trial"], "step": 10 * number, "split": split, "metric": metric}
            points.append({**place, "value": score})
    return pd.DataFrame(points)


def flat(seed: int) -> list[float]:
    return [0.5, 0.7, 0.8, *[0.9] * 6]


def stuck(seed: int) -> list[float]:
    return [0.5, 0.51, 0.49, 0.5, 0.51, 0.5, 0.49, 0.51, 0.5]


def rising(seed: int) -> list[float]:
    return [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9]


# -- drift ------------------------------------------------------------------------------------------------------------


def test_facts_of_a_curve() -> None:
    table = [*a(0.9, seeds=1), *b(0.5, seeds=1)]
    facts = read_curves(pd.concat([curves(table[:1], rising), curves(table[1:], stuck)]))
    assert [facts.left_start[row["trial"]] for row in table] == [True, False]
    assert facts.validation[table[0]["trial"]] == pytest.approx(0.05 * 8 / 3)
    assert facts.drifts[table[0]["trial"], "iid", "accuracy"] == facts.validation[table[0]["trial"]]
    facts = read_curves(curves(a(0.9)[:1], lambda seed: [2.0, 1.5, 1.0, 0.8, 0.6, 0.5, 0.45], metric="loss"))
    assert list(facts.left_start.values()) == [True]
    assert next(iter(facts.validation.values())) > 0, "a falling loss is a rising score"
    assert read_curves(pd.DataFrame()).drifts == {}


def test_a_drift_towards_the_bound_leaves_a_criterion_open_and_asks_for_steps() -> None:
    table = a(0.84)
    tested = claim(below(A, 0.9))
    converged = judge(tested, frame(table), curves=lambda: curves(table, flat))
    assert converged.verdict == "supported"
    found = judge(tested, frame(table), curves=lambda: curves(table, rising))
    (finding,) = found.findings
    assert (found.verdict, finding.verdict) == ("undecided", "open") and finding.p_holds is not None
    assert finding.p_holds < ALPHA and finding.estimate == converged.findings[0].estimate
    assert finding.drift is not None and not finding.drift.judged and finding.drift.signed
    assert finding.drift.value == pytest.approx(0.05 * 8 / 3) and finding.drift.standard_error == pytest.approx(0)
    waiting = finding.waiting
    assert waiting is not None and (waiting.kind, waiting.reason) == ("steps", Obstacle.DRIFT)
    # The interval ends 0.05 below the bound, and 1.5 × 0.133 may be to come: four times as many steps.
    assert waiting.count is not None and 250 < waiting.count < 350
    assert describe_waiting(finding).endswith(
        "more steps: the validation score moved by +0.133 ± 0.000 in the last third of training"
    )


def test_a_drift_away_from_the_bound_changes_nothing_and_no_seed_is_dropped() -> None:
    table = a(0.84)
    found = judge(claim(above(A, 0.8)), frame(table), curves=lambda: curves(table, rising))
    assert found.verdict == "supported" and found.left_out == []
    assert found.findings[0].estimate is not None and found.findings[0].estimate.n == 5


def test_the_drift_of_a_difference_is_the_difference_of_drifts() -> None:
    table = [*a(0.9), *b(0.8)]
    both = judge(claim(better(A, B)), frame(table), curves=lambda: curves(table, rising))
    assert both.verdict == "supported" and both.findings[0].drift is not None
    assert both.findings[0].drift.value == pytest.approx(0)

    def points() -> pd.DataFrame:
        return pd.concat([curves(table[:5], flat), curves(table[5:], rising)])

    rival = judge(claim(better(A, B)), frame(table), curves=points)
    assert rival.verdict == "undecided" and rival.findings[0].waiting is not None
    assert rival.findings[0].waiting.reason is Obstacle.DRIFT


def test_the_judged_score_goes_before_the_validation_score() -> None:
    table = a(0.84)

    def points() -> pd.DataFrame:
        return pd.concat([curves(table, rising), curves(table, flat, split="ood/single")])

    found = judge(claim(below(A, 0.9)), frame(table), curves=points)
    assert found.verdict == "supported" and found.findings[0].drift is not None and found.findings[0].drift.judged


# -- runs that did not learn ------------------------------------------------------------------------------------------


def never_learned() -> tuple[pd.DataFrame, pd.DataFrame]:
    """A learns, its rival never leaves chance."""
    table = [*a(0.9), *b(0.5)]
    return frame(table), pd.concat([curves(table[:5], flat), curves(table[5:], stuck)])


def test_a_rival_that_never_left_chance_never_leads_to_supported() -> None:
    records, points = never_learned()
    small = judge(claim(better(A, B), columns=reduced_runs), records, curves=lambda: points)
    assert small.verdict == "not reached" and not small.findings[0].reached and small.findings[0].learned == 0
    whole = judge(claim(better(A, B)), records, curves=lambda: points)
    assert whole.verdict == "undecided" and whole.findings[0].waiting is not None
    assert whole.findings[0].waiting.reason is Obstacle.NOT_LEARNED
    expected = replace(better(A, B), may_fail=True)
    assert judge(claim(expected, columns=reduced_runs), records, curves=lambda: points).verdict == "supported"


def test_a_contradiction_by_runs_that_did_not_learn_is_not_reached_unless_it_is_the_paper_s_own_setting() -> None:
    records, points = never_learned()
    learns = above(B, 0.9)
    assert judge(claim(learns, columns=reduced_runs), records, curves=lambda: points).verdict == "not reached"
    assert judge(claim(learns), records, curves=lambda: points).verdict == "contradicted"
    # Another headline criterion that is contradicted by runs that learned decides.
    other = claim(learns, below(A, 0.8), columns=reduced_runs)
    assert judge(other, records, curves=lambda: points).verdict == "contradicted"


def test_a_small_configuration_that_did_not_learn_counts_beside_a_worse_one_of_the_paper_s_size() -> None:
    def small_a(runs: pd.DataFrame) -> pd.DataFrame:
        return runs.assign(reduced=runs["variant"] == "A")

    def trained(variant: str, learned: int) -> Table:
        return rows("T1", variant, [0.95] * learned + [0.5] * (5 - learned), metric="trained")

    both = group(task="retrieval/T1", variant=("A", "B"))
    tested = claim(below(both, 0.95), columns=small_a, learning=("trained", 0.9))
    table = [*a(0.7), *b(0.7)]
    assert judge(tested, frame([*table, *trained("A", 2), *trained("B", 1)])).verdict == "not reached"
    assert judge(tested, frame([*table, *trained("A", 3), *trained("B", 1)])).verdict != "not reached"


def test_only_the_model_that_the_sentence_says_fails_may_fail() -> None:
    table = [*a(0.50), *b(0.55)]
    points = pd.concat([curves(table[:5], stuck), curves(table[5:], flat)])
    expected = claim(replace(better(A, B), may_fail=True), columns=reduced_runs)
    # A was to learn, and never did: that it is below B says nothing.
    assert judge(expected, frame(table), curves=lambda: points).verdict == "not reached"


def test_the_learning_level_of_a_claim_goes_before_the_curve() -> None:
    table = [*a(0.7), *rows("T1", "A", spread_out(0.6, 0.01), metric="trained")]
    records = frame(table)
    unreached = claim(above(A, 0.9), columns=reduced_runs, learning=("trained", 0.9))
    assert judge(unreached, records, curves=lambda: curves(table[:5], flat)).verdict == "not reached"
    reached = replace(unreached, learning=("trained", 0.5))
    assert judge(reached, records, curves=lambda: curves(table[:5], stuck)).verdict == "contradicted"


def test_three_seeds_never_support_a_mean_of_which_one_failed() -> None:
    def some(seed: int) -> list[float]:
        return stuck(seed) if seed == 0 else flat(seed)

    def outcome(seeds: int, bound: float) -> str:
        values = [0.5, *spread_out(0.98, 0.005, seeds - 1)]
        table = rows("T1", "A", values)
        return judge(claim(above(A, bound)), frame(table), curves=lambda: curves(table, some)).findings[0].verdict

    assert outcome(3, 0.6) == "open" and outcome(25, 0.6) == "holds"
    # Of 25 seeds one failed: of all, up to 20 % may.
    assert outcome(25, 0.93) == "open"


# -- roles and printed tables -----------------------------------------------------------------------------------------


def test_details_decide_between_supported_and_mixed() -> None:
    records = frame(a(0.9))
    holds, wrong, absent = above(A, 0.8), above(A, 0.95), above(B, 0.5)
    expected = [
        ([holds, *details(holds)], "supported"),
        ([holds, *details(wrong)], "mixed"),
        ([wrong, *details(holds)], "contradicted"),
        ([holds, *details(holds, absent)], "supported"),
        ([holds, *details(holds, absent, absent)], "undecided"),
        ([above(A, 0.9), *details(wrong)], "undecided"),
    ]
    for criteria, verdict in expected:
        assert judge(claim(*criteria), records).verdict == verdict
    found = judge(claim(holds, *details(wrong, absent)), records)
    assert (found.coverage.run, found.coverage.hold, found.coverage.total) == (2, 1, 3)
    assert describe_coverage(found) == "2 of 3 criteria run, 1 holds"


def numbers(*values: float, spread: float = 0.01) -> Claim:
    """A printed table of as many numbers; ours are 0.9."""
    criteria = []
    for number, value in enumerate(values):
        variant = group(task="retrieval/T1", variant=f"V{number}")
        criteria.append(printed_number(variant, value, spread, 5, tolerance=0.03))
    return claim(*criteria)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.9] * 10, "supported"),
        ([0.9] * 9 + [0.84], "supported"),
        ([0.9] * 9 + [0.75], "mixed"),
        ([0.9] * 8 + [0.84] * 2, "mixed"),
        ([0.9] * 7 + [0.84] * 3, "contradicted"),
        ([0.9] * 7 + [0.871] * 3, "undecided"),
    ],
)
def test_printed_tables(values: list[float], verdict: str) -> None:
    table: Table = []
    for number in range(len(values)):
        table += rows("T1", f"V{number}", spread_out(0.9, 0.005, shift=number))
    found = judge(numbers(*values), frame(table))
    assert found.verdict == verdict
    assert judge(numbers(*values), frame(a(0.9))).verdict == "not run"


@pytest.mark.parametrize(("learned", "verdict"), [(True, "contradicted"), (False, "not reached")])
def test_a_table_is_not_contradicted_by_numbers_that_were_not_reached(learned: bool, verdict: str) -> None:
    """Three of ten numbers differ; without them, too few are left to say anything."""
    table: Table = []
    points = []
    for number in range(10):
        differs = number >= 7
        new = rows("T1", f"V{number}", spread_out(0.7 if differs else 0.9, 0.005, shift=number))
        points.append(curves(new, stuck if differs and not learned else flat))
        table += new
    tested = replace(numbers(*[0.9] * 10), columns=reduced_runs)
    assert judge(tested, frame(table), curves=lambda: pd.concat(points)).verdict == verdict


def test_an_agreement_is_welch_s_interval() -> None:
    values = spread_out(0.9, 0.02)
    found = judge(numbers(0.85, spread=0.03), frame(rows("T1", "V0", values))).findings[0]
    assert found.estimate is not None
    low = 0.85 + 0.03
    reference = ttest_ind_from_stats(0.9, np.std(values, ddof=1), 5, low, 0.03, 5, equal_var=False)
    assert found.p_contradicted == pytest.approx(reference.pvalue, rel=1e-6), "two-sided: the range has two ends"


@pytest.mark.parametrize(("seeds", "moderated"), [(5, True), (9, True), (10, False), (25, False)])
def test_variances_are_moderated_below_ten_units_only(seeds: int, moderated: bool) -> None:
    table: Table = []
    criteria = []
    for number, spread in enumerate((0.020, 0.022, 0.024, 0.026)):
        task = f"T{number + 1}"
        table += rows(task, "A", spread_out(0.7, spread, seeds))
        criteria.append(above(group(task=f"retrieval/{task}", variant="A"), 0.6))
    estimate = judge(claim(*criteria), frame(table)).findings[0].estimate
    assert estimate is not None
    values = spread_out(0.7, 0.020, seeds)
    student = t.interval(0.9, seeds - 1, np.mean(values), sem(values))
    own = (estimate.interval.low, estimate.interval.high) == pytest.approx(student)
    assert own is not moderated


# -- modes ------------------------------------------------------------------------------------------------------------


def test_modes_are_stored_and_read() -> None:
    for mode in (Fixed(5), UntilDecided()):
        assert read_mode(json.loads(json.dumps(mode_data(mode)))) == mode
    assert sum(look.alpha for look in LOOKS) == pytest.approx(ALPHA)
    for wrong in ({"name": "fixde"}, {"name": "fixed"}, {"name": "fixed", "units": 0}):
        with pytest.raises(UsageError):
            read_mode(wrong)


def pending(table: Table, *seeds: int) -> Table:
    return [{**row, "status": "pending"} if row["seed"] in seeds else row for row in table]


def test_a_fixed_study_shows_progress_and_no_verdict_until_it_is_complete() -> None:
    tested = claim(above(A, 0.8))
    found = judge(tested, frame(pending(a(0.9), 3, 4)), mode=Fixed(5))
    assert found.verdict == "in progress" and found.progress == UnitProgress(3, 5)
    assert all(finding.estimate is None and finding.p_holds is None for finding in found.findings)
    assert describe_waiting(found.findings[0]) == "3 of 5 seeds complete"
    assert judged_data(found)["progress"] == {"complete": 3, "planned": 5}
    complete = judge(tested, frame(a(0.9)), mode=Fixed(5))
    assert complete.verdict == "supported" and complete.findings == judge(tested, frame(a(0.9))).findings
    assert judge(tested, frame(a(0.9, seeds=4)), mode=Fixed(5)).verdict == "in progress"


def test_looking_early_changes_nothing() -> None:
    """At every state of a study the verdict is that of the last look that was passed, whoever looked before."""
    tested = claim(above(A, 0.8))
    values = spread_out(0.83, 0.03, seeds=20, shift=1)
    by_state = {}
    for units in range(1, 21):
        table = rows("T1", "A", values)
        state = pending(table, *range(units, 20))
        by_state[units] = judge(tested, frame(state), mode=UntilDecided())
    assert [by_state[units].verdict for units in (1, 2)] == ["in progress"] * 2
    for units, judged in by_state.items():
        passed = [look for look in LOOKS if look.units <= units]
        if not passed:
            continue
        assert judged.look is not None and judged.look <= passed[-1].units
        assert judged.alpha == next(look.alpha for look in LOOKS if look.units == judged.look)
        assert judged == by_state[passed[-1].units], "between two looks nothing changes"
        first = judge(tested, frame(rows("T1", "A", values[: judged.look])))
        assert judged.findings[0].p_holds == first.findings[0].p_holds
    decided = [units for units, judged in by_state.items() if judged.verdict == "supported"]
    assert decided == list(range(min(decided), 21)) and by_state[20].look == min(decided)


def test_seeds_that_end_out_of_order_wait_for_those_before_them() -> None:
    found = judge(claim(above(A, 0.8)), frame(pending(a(0.9), 1)), mode=UntilDecided())
    assert found.verdict == "in progress" and found.progress == UnitProgress(1, 3)


def test_after_the_last_look_nothing_would_settle_it() -> None:
    found = judge(claim(above(A, 0.8)), frame(a(0.8, 0.05, seeds=20)), mode=UntilDecided())
    assert found.verdict == "undecided" and found.look == 20 and found.findings[0].waiting is not None
    assert found.findings[0].waiting.reason in (Obstacle.LAST_LOOK, Obstacle.ON_BOUND)


# -- registration -----------------------------------------------------------------------------------------------------


def test_one_changed_byte_of_a_registered_criterion_makes_it_exploratory(monkeypatch: pytest.MonkeyPatch) -> None:
    tested = claim(above(A, 0.8), below(A, 0.99), quote="All is well.")
    entry = Registration(fingerprint(tested), "2026-11-18", "2026-11-18T00:00:00+00:00", "a test")
    monkeypatch.setattr(registration, "read_registrations", lambda: {tested.name: entry})
    before, after = datetime(2026, 11, 17, tzinfo=UTC), datetime(2026, 11, 19, tzinfo=UTC)
    assert is_registered(tested, after) and not is_registered(tested, before)
    records = frame(a(0.9))
    assert judge(tested, records, first_run=after).registered
    assert not judge(tested, records, first_run=before).registered and not judge(tested, records).registered
    first, second = tested.criteria
    for changed in (
        replace(tested, criteria=(replace(first, low=0.8000000000000002), second)),
        replace(tested, criteria=(replace(first, key=first.key + "."), second)),
        replace(tested, criteria=(replace(first, role="detail"), second)),
        replace(tested, criteria=(first,)),
        replace(tested, quote="All is well!"),
    ):
        found = judge(changed, records, first_run=after)
        assert not found.registered and judged_data(found)["registered"] is False
    assert judge(replace(tested, statement="Other words"), records, first_run=after).registered
    # Units that were added to a fixed number of them make it exploratory, too.
    assert judge(tested, records, mode=Fixed(5), first_run=after).registered
    assert not judge(tested, records, mode=Fixed(4), first_run=after).registered


@pytest.mark.parametrize(
    ("taken", "mode", "registered"),
    [
        ([], Fixed(5), True),
        (range(5), Fixed(5), True),
        (range(3), Fixed(5), False),
        (range(3), None, False),
        ([], UntilDecided(), True),
        (range(3), UntilDecided(), False),
        (range(5), UntilDecided(), False),
    ],
)
def test_units_beside_those_that_were_taken_over_make_a_claim_exploratory(
    taken: Sequence[int], mode: Fixed | UntilDecided | None, registered: bool
) -> None:
    """Runs of another directory may have been judged there. Its seeds may be used again, but none added to them."""
    records = frame(a(0.9))
    trials = records["trial"][records["seed"].isin(list(taken))]
    found = judge(claim(above(A, 0.5)), records, mode=mode, registered=True, taken_over=set(trials))
    assert found.registered is registered


def test_where_experiments_vote_a_study_still_counts_its_tasks() -> None:
    """102 experiments on five tasks once were more than the five units that were planned, and so exploratory."""
    table: Table = []
    for experiment in range(4):
        for task in range(5):
            value = 0.8 + 0.01 * ((experiment + 2 * task) % 5)
            table += rows("T1", "A", [value], experiment=experiment, task_seed=task)
    design = SamplingDesign(("experiment", "task_seed"), "", "task", "experiments", ("task", "variant"))
    tested = claim(above(A, 0.5), design=design)
    found = judge(tested, frame(table), mode=Fixed(5), registered=True)
    assert found.registered and found.progress == UnitProgress(5, 5)
    assert found.findings[0].estimate is not None and found.findings[0].estimate.n == 20
    unfinished = [{**row, "status": "pending"} if row["task_seed"] == 3 else row for row in table]
    assert judge(tested, frame(unfinished), mode=Fixed(5)).progress == UnitProgress(3, 5)

"""Criteria: every verdict for every comparison, what is left out, and what would settle it."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.claim_records import frame, rows, spread_out
from unseen.claims.claim import Claim
from unseen.claims.criterion import (
    Criterion,
    Finding,
    Obstacle,
    Waiting,
    above,
    below,
    better,
    between,
    close,
    no_better,
    varies_more,
)
from unseen.claims.decide import decide, measure
from unseen.claims.evidence import Evidence, Exclusion, LeftOut, MissingReason, SamplingDesign, group
from unseen.claims.judge import AMBIGUOUS, judge
from unseen.claims.quantity import CORRELATION, POOLED, SPREAD, Quantity, Statistic
from unseen.claims.render import describe_left_out, describe_waiting

A = group(task="retrieval/T1", variant="A")
B = group(task="retrieval/T1", variant="B")
KEYS = ("task", "variant")


def examine(criterion: Criterion, evidence: Evidence) -> Finding:
    """Judge one criterion by itself."""
    return decide(measure([criterion], evidence))[0]


def look(criterion: Criterion, *tables: list[dict]) -> Finding:
    records = frame(*tables)
    records = records[(records.selection == "best") & (records.split == "ood/single")]
    evidence = Evidence(records, records.drop_duplicates("trial"), KEYS)
    return examine(criterion, evidence)


def a(mean: float, spread: float = 0.01, seeds: int = 5, **more: object) -> list[dict]:
    return rows("T1", "A", spread_out(mean, spread, seeds), **more)


def b(mean: float, spread: float = 0.01, seeds: int = 5, **more: object) -> list[dict]:
    return rows("T1", "B", spread_out(mean, spread, seeds, shift=7), **more)


VERDICTS = {
    "above, well above": (above(A, 0.8), (a(0.9),), "holds"),
    "above, well below": (above(A, 0.8), (a(0.7),), "contradicted"),
    "above, on the bound": (above(A, 0.8), (a(0.802),), "open"),
    "below, well below": (below(A, 0.8), (a(0.7),), "holds"),
    "below, well above": (below(A, 0.8), (a(0.9),), "contradicted"),
    "below, on the bound": (below(A, 0.8), (a(0.798),), "open"),
    "between, inside": (between(A, 0.7, 0.8), (a(0.75),), "holds"),
    "between, above": (between(A, 0.7, 0.8), (a(0.85),), "contradicted"),
    "between, below": (between(A, 0.7, 0.8), (a(0.65),), "contradicted"),
    "between, at an end": (between(A, 0.7, 0.8), (a(0.801),), "open"),
    "between, wider than the range": (between(A, 0.7, 0.8), (a(0.75, 0.2),), "open"),
    "close, there": (close(A, 0.9, 0.02), (a(0.905),), "holds"),
    "close, elsewhere": (close(A, 0.9, 0.02), (a(0.95),), "contradicted"),
    "close, too wide": (close(A, 0.9, 0.02), (a(0.905, 0.05),), "open"),
    "better": (better(A, B), (a(0.9), b(0.8)), "holds"),
    "worse": (better(A, B), (a(0.8), b(0.9)), "contradicted"),
    "alike": (better(A, B), (a(0.9), b(0.899)), "open"),
    "equal to the last bit": (better(A, B), (a(1.0, 0.0), b(1.0, 0.0)), "open"),
    "better by a margin": (better(A, B, by=0.08), (a(0.9), b(0.8)), "holds"),
    "better, not by the margin": (better(A, B, by=0.15), (a(0.9), b(0.8)), "contradicted"),
    "not worse by a margin": (better(A, B, by=-0.03), (a(0.89), b(0.9)), "holds"),
    "no better": (no_better(A, B, by=0.03), (a(0.9), b(0.9)), "holds"),
    "better after all": (no_better(A, B, by=0.03), (a(0.95), b(0.85)), "contradicted"),
    "wider": (varies_more(A, B), (a(0.1, 0.3), b(0.7, 0.01)), "holds"),
    "narrower": (varies_more(A, B), (a(0.1, 0.01), b(0.7, 0.3)), "contradicted"),
    "as wide": (varies_more(A, B), (a(0.1, 0.1), b(0.7, 0.1)), "open"),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_every_verdict_of_every_comparison(case: str) -> None:
    criterion, tables, verdict = VERDICTS[case]
    found = look(criterion, *tables)
    assert found.verdict == verdict
    assert found.estimate is not None and found.estimate.n == 5 and found.estimate.interval.indicative
    assert found.estimate.covers == "initialisation"
    assert (found.waiting is not None) == (verdict == "open")


def test_the_verdict_follows_the_interval_and_never_the_mean() -> None:
    wide, narrow = look(above(A, 0.8), a(0.85, 0.2)), look(above(A, 0.8), a(0.85, 0.02))
    assert wide.estimate is not None and narrow.estimate is not None
    assert wide.estimate.value == pytest.approx(narrow.estimate.value)
    assert (wide.verdict, narrow.verdict) == ("open", "holds")


def test_equal_spreads_at_the_ceiling_are_not_told_apart_by_the_test_set() -> None:
    at_ceiling, nearly = a(1.0, 0.0, seeds=3, n=1_000), rows("T1", "B", [0.999, 1.0, 1.0], n=1_000)
    for criterion in (varies_more(A, B), varies_more(B, A)):
        assert look(criterion, at_ceiling, nearly).verdict == "open"
    assert look(varies_more(B, A), a(1.0, 0.0), b(0.7, 0.1)).verdict == "holds"


def test_fewer_than_three_seeds_are_undecided_whatever_they_say() -> None:
    found = look(above(A, 0.5), a(0.99, 0.0, seeds=2))
    assert (found.verdict, found.estimate) == ("open", None)
    assert found.waiting == Waiting("seeds", Obstacle.TOO_FEW, 3, "seed", usable=2) and found.waiting.further == 1
    assert describe_waiting(found) == "needs at least 3 seeds, has 2"
    assert look(above(A, 0.5), a(0.99, 0.0, seeds=3)).verdict == "holds"


def test_runs_that_failed_are_left_out_and_reported_and_no_run_for_drifting() -> None:
    values = rows("T1", "A", [0.9, 0.1, 0.91, 0.92, 0.93], not_converged=[0, 1, 1, None, 0])
    values[1]["status"] = "diverged"
    found = look(above(A, 0.8), values)
    assert found.verdict == "holds" and found.estimate is not None
    assert (found.estimate.n, found.estimate.value) == (4, pytest.approx(0.915))
    configuration = (("task", "retrieval/T1"), ("variant", "A"))
    assert found.left_out == (LeftOut(configuration, Exclusion.DIVERGED, 1, 5),)
    assert describe_left_out(found.left_out) == ["1 of 5 runs diverged (A on T1)"]


def test_what_would_settle_it() -> None:
    seeds = look(better(A, B), a(0.9, 0.02), b(0.885, 0.02))
    assert seeds.verdict == "open" and seeds.waiting is not None
    count = seeds.waiting.count
    assert (seeds.waiting.kind, seeds.waiting.reason) == ("seeds", Obstacle.BOUND_INSIDE)
    assert count is not None and 5 < count < 100 and seeds.waiting.further == count - 5
    assert describe_waiting(seeds) == f"about {count} seeds would settle it"
    more = look(better(A, B), a(0.9, 0.02, seeds=3 * count), b(0.885, 0.02, seeds=3 * count))
    assert more.verdict == "holds"
    equal = look(better(A, B), a(1.0, 0.0), b(1.0, 0.0))
    assert equal.waiting == Waiting("nothing", Obstacle.ON_BOUND, usable=5)
    assert describe_waiting(equal) == "no number of seeds settles it: the mean lies on the bound"
    spreads = look(varies_more(A, B), a(0.1, 0.1), b(0.7, 0.1))
    assert spreads.waiting == Waiting("seeds", Obstacle.BOUND_INSIDE, usable=5)
    assert describe_waiting(spreads) == "more seeds would settle it"


def test_tasks_are_waited_for_where_tasks_are_the_unit() -> None:
    """Advice once said "more seeds" for claims whose unit is the task."""
    records = frame(a(0.9, seeds=2))
    records = records[(records.selection == "best") & (records.split == "ood/single")].assign(task_seed=records.seed)
    design = SamplingDesign(("task_seed", "seed"), "task_seed", "task", "tasks", KEYS)
    evidence = Evidence(records, records.drop_duplicates("trial"), KEYS, design)
    found = examine(above(A, 0.5), evidence)
    assert found.waiting == Waiting("tasks", Obstacle.TOO_FEW, 3, "task", usable=2)
    assert describe_waiting(found) == "needs at least 3 tasks, has 2"


@pytest.mark.parametrize(
    ("criterion", "tables", "reason", "text"),
    [
        (better(A, B), [a(0.9)], MissingReason.LEVELS, "B not run"),
        (above(group(task="retrieval/T2", variant="A"), 0.5), [a(0.9)], MissingReason.LEVELS, "T2 not run"),
        (
            above(group(task="retrieval/T2", variant="A"), 0.5),
            [a(0.9), rows("T2", "B", [0.5] * 3)],
            MissingReason.COMBINATION,
            "A on T2 not run",
        ),
        (
            above(group("R7/positive", task="retrieval/T1", variant="A"), 0.0),
            [a(0.9)],
            MissingReason.METRIC,
            "no R7/positive of A on T1 in these runs",
        ),
        (above(group(task="retrieval/T1", depth=3), 0.0), [a(0.9)], MissingReason.COLUMN, "the runs have no depth"),
    ],
)
def test_missing_runs_are_named(
    criterion: Criterion, tables: list[list[dict]], reason: MissingReason, text: str
) -> None:
    found = look(criterion, *tables)
    assert found.verdict == "not run" and found.waiting is not None and found.waiting.missing is not None
    assert (found.waiting.kind, found.waiting.missing.reason) == ("runs", reason)
    assert describe_waiting(found) == text


@pytest.mark.parametrize(
    ("status", "verdict", "text"),
    [
        ("pending", "not run", "no run of A on T1 has ended"),
        ("failed", "not run", "no run of A on T1 has ended"),
        ("diverged", "open", "needs at least 3 seeds, has 0: 5 of 5 runs diverged (A on T1)"),
    ],
)
def test_runs_without_records(status: str, verdict: str, text: str) -> None:
    records = frame(a(0.9))
    runs = records.drop_duplicates("trial").assign(status=status, not_converged=None)
    found = examine(above(A, 0.5), Evidence(records.iloc[:0], runs, KEYS))
    assert (found.verdict, describe_waiting(found)) == (verdict, text)


def test_a_seed_counts_only_where_it_is_whole() -> None:
    """Averages over two variants use the seeds that both have; pairs likewise."""
    both = group(task="retrieval/T1", variant=("A", "B"))
    found = look(
        above(both, 0.5),
        rows("T1", "A", [0.9, 0.8, 0.7, 0.6]),
        rows("T1", "B", [0.7, 0.6, 0.5]),
    )
    assert found.estimate is not None
    assert (found.estimate.n, found.estimate.value) == (3, pytest.approx(0.7))
    pair = look(
        better(A, B),
        rows("T1", "A", [0.9, 0.8, 0.7, 0.6]),
        rows("T1", "B", [0.7, 0.6, 0.6]),
    )
    assert pair.estimate is not None
    assert (pair.estimate.n, pair.estimate.value) == (3, pytest.approx((0.2 + 0.2 + 0.1) / 3))


def test_intervals_say_whether_the_data_varied() -> None:
    own = [{**row, "data_seed": row["seed"]} for row in a(0.9)]
    found = look(above(A, 0.5), own)
    assert found.estimate is not None and found.estimate.covers == "initialisation and data"


def one(statistic: Statistic, *parts: list[dict], metric: str = "accuracy", factor: str = "") -> float:
    found = look(Criterion("", Quantity(statistic, group(metric, factor, task="retrieval/T1", variant="A"))), *parts)
    assert found.estimate is not None
    return found.estimate.value


def test_statistics_against_numpy() -> None:
    values = [0.91, 0.85, 0.97, 0.88]
    assert one(SPREAD, rows("T1", "A", values)) == pytest.approx(np.std(values, ddof=1), rel=1e-9)
    points = [
        rows(
            "T1",
            "A",
            [0.9 - 0.01 * k + 0.02 * ((k * s) % 3) for s in range(4)],
            metric="R2/accuracy",
            factor="position",
            level=str(k),
        )
        for k in range(6)
    ]
    x = [k for k in range(6) for _ in range(4)]
    y = [row["value"] for part in points for row in part]
    found = one(CORRELATION, *points, metric="R2/accuracy", factor="position")
    assert found == pytest.approx(np.corrcoef(x, y)[0, 1], rel=1e-9)
    counts = [10, 1000, 3, 500]
    weighted = [{**row, "n": n} for row, n in zip(rows("T1", "A", values), counts, strict=True)]
    assert one(POOLED, weighted) == pytest.approx(np.average(values, weights=counts))


def test_a_correlation_of_what_does_not_vary_is_undecided() -> None:
    points = [rows("T1", "A", [1.0] * 4, metric="R2/accuracy", factor="position", level=str(k)) for k in range(5)]
    found = look(
        below(group("R2/accuracy", "position", task="retrieval/T1", variant="A"), 0.0, statistic=CORRELATION), *points
    )
    assert (found.verdict, found.waiting) == ("open", Waiting("nothing", Obstacle.CONSTANT))
    assert describe_waiting(found) == "it cannot be measured: the values do not vary"


@given(st.lists(st.floats(0, 1), min_size=3, max_size=8), st.floats(0, 1), st.permutations(range(8)))
@settings(derandomize=True, deadline=None, max_examples=40)
def test_the_interval_decides_in_any_order(values: list[float], bound: float, order: list[int]) -> None:
    records = frame(rows("T1", "A", values))
    records = records[(records.selection == "best") & (records.split == "ood/single")]
    criterion = above(A, bound)
    found = examine(criterion, Evidence(records, records, KEYS))
    mixed = records.iloc[[k for k in order if k < len(values)]]
    assert examine(criterion, Evidence(mixed, mixed, KEYS)) == found
    assert found.estimate is not None
    interval = found.estimate.interval
    assert found.verdict == ("holds" if interval.low > bound else "contradicted" if interval.high < bound else "open")


PLACES = st.tuples(st.sampled_from(["retrieval/T1", "retrieval/T3"]), st.sampled_from("AB"), st.sampled_from([5, 10]))


@given(
    st.lists(PLACES, min_size=1, max_size=9),
    st.sets(st.sampled_from(["retrieval/T1", "retrieval/T3"]), min_size=1),
    st.sets(st.sampled_from("ABC"), min_size=1),
    st.sets(st.sampled_from([5, 10.0]), min_size=1),
)
@settings(derandomize=True, deadline=None, max_examples=60)
def test_what_is_absent_against_plain_loops(
    places: list[tuple[str, str, int]], task: set[str], variant: set[str], length: set[float]
) -> None:
    evidence = Evidence(pd.DataFrame(), pd.DataFrame(places, columns=["task", "variant", "length"]), KEYS)
    wanted = group(task=tuple(task), variant=tuple(variant), length=tuple(length))
    everywhere = all((t, v, n) in places for t in task for v in variant for n in length)
    for _ in range(2):  # asked again, it remembers
        assert (evidence.find_absent(wanted) is None) == everywhere
        assert (evidence.find_absent(group(variant=tuple(variant))) is None) == (variant <= {v for _, v, _ in places})
    missing = evidence.find_absent(group(depth=3))
    assert missing is not None and (missing.reason, missing.levels) == (MissingReason.COLUMN, (("depth", ""),))
    assert evidence.find_absent(group()) is None


def claim(*criteria: Criterion, **more: object) -> Claim:
    def columns(runs: pd.DataFrame) -> pd.DataFrame:
        return runs.assign(length=runs["task.length"])

    fields = {
        "name": "x/1",
        "paper": "P",
        "source": "p",
        "statement": "s",
        "printed": "n",
        "study": "y",
        "split": "ood/single",
        "columns": columns,
        "printed_for": {"length": 10},
        **more,
    }
    return Claim(criteria=criteria, **fields)  # type: ignore[arg-type]


def test_the_verdict_on_a_claim_combines_those_on_its_criteria() -> None:
    good, bad, open_, absent = above(A, 0.8), above(A, 0.95), above(A, 0.9), above(B, 0.5)
    records = frame(a(0.9))
    expected = [
        ([good, good], "supported"),
        ([good, bad, absent], "contradicted"),
        ([good, open_], "undecided"),
        ([good, absent], "undecided"),
        ([absent], "not run"),
        ([], "not run"),
    ]
    for criteria, verdict in expected:
        assert judge(claim(*criteria), records).verdict == verdict


def test_printed_numbers_are_compared_only_where_they_were_printed() -> None:
    tested = claim(above(A, 0.5), close(A, 0.7, 0.01))
    here, there = judge(tested, frame(a(0.9))), judge(tested, frame(a(0.9, length=5)))
    assert (here.verdict, here.setting) == ("contradicted", "length 10")
    assert (there.verdict, there.setting) == ("supported", "length 5 (paper: 10)")
    assert describe_waiting(there.findings[1]) == "printed for length 10" and not there.findings[1].compared
    assert judge(tested, frame(a(0.9, length=5), a(0.9))).setting == "length 10"
    assert judge(claim(close(A, 0.7, 0.01)), frame(a(0.9, length=5))).verdict == "not run"


def test_one_of_many_criteria_outside_by_chance_does_not_contradict() -> None:
    """Of twenty 90 % intervals one lies outside by chance, but not far outside."""
    values = [0.815, 0.83, 0.85, 0.87, 0.885, 0.905]  # 0.859 ± 0.034: the 90 % interval is about [0.831, 0.887]
    criterion = above(A, 0.890)
    alone, one_of_many = (
        judge(claim(criterion, *others), frame(rows("T1", "A", values)))
        for others in ((), [above(A, 0.1 + 0.01 * k) for k in range(19)])
    )
    assert (alone.verdict, one_of_many.verdict) == ("contradicted", "undecided")
    first, other = alone.findings[0], one_of_many.findings[0]
    assert first.estimate == other.estimate and other.estimate is not None
    assert other.estimate.interval.high < 0.890 and other.estimate.interval.level == pytest.approx(0.9)
    assert other.waiting is not None and other.waiting.count is not None
    assert (other.waiting.kind, other.waiting.reason, other.waiting.criteria) == ("seeds", Obstacle.CHANCE, 20)
    assert describe_waiting(other).endswith(" seeds would settle it: with 20 criteria, one may lie outside by chance")
    assert (
        judge(
            claim(above(A, 0.95), *(above(A, 0.1 + 0.01 * k) for k in range(19))), frame(rows("T1", "A", values))
        ).verdict
        == "contradicted"
    )
    # Criteria that are not compared here do not count.
    printed = claim(criterion, *(close(A, 0.86, 0.01 * k) for k in range(1, 20)))
    assert judge(printed, frame(rows("T1", "A", values, length=5))).verdict == "contradicted"


def test_a_criterion_about_a_missing_column_does_not_disturb_the_others() -> None:
    found = judge(claim(above(A, 0.8), above(group(task="retrieval/T1", depth=3), 0.5)), frame(a(0.9)))
    assert [one.verdict for one in found.findings] == ["holds", "not run"] and found.verdict == "undecided"


def test_runs_that_cannot_be_told_apart_are_not_mixed() -> None:
    two = frame(a(0.9), a(0.5, recipe_options="steps=5"))
    found = judge(claim(above(A, 0.8)), two)
    assert (found.verdict, found.note) == ("not run", AMBIGUOUS)


def test_the_same_records_give_the_same_verdict() -> None:
    records = frame(a(0.9, 0.03), b(0.88, 0.03))
    tested = claim(better(A, B), above(A, 0.87), close(B, 0.9, 0.03))
    first = judge(tested, records)
    for seed in range(3):
        assert judge(tested, records.sample(frac=1, random_state=seed)) == first
    assert [found.verdict for found in first.findings].count("open") >= 1
    assert all(finding.waiting.count for finding in first.findings if finding.waiting is not None)


def test_only_the_best_weights_on_the_paper_s_split_are_read() -> None:
    """`frame` adds records of the last weights (0.5) and of another split (0.1)."""
    found = judge(claim(above(A, 0.5)), frame(a(0.9, 0.0))).findings[0].estimate
    assert found is not None and math.isclose(found.value, 0.9)

"""What claims wait for, and which runs were left out, in words."""

from __future__ import annotations

import pytest

from unseen.claims import CLAIMS
from unseen.claims.claim import JudgedClaim
from unseen.claims.criterion import Finding, Need, Obstacle, Waiting
from unseen.claims.evidence import Exclusion, LeftOut, Missing, MissingReason
from unseen.claims.planned import find_main_need
from unseen.claims.render import (
    describe_left_out,
    describe_needs,
    describe_undecided,
    format_table,
    short_name,
)


def count_waiting(count: int | None, unit: str = "seed", **more: object) -> Waiting:
    """Wait for a number of seeds or tasks."""
    kind: Need = "tasks" if unit == "task" else "seeds"
    return Waiting(kind, Obstacle.BOUND_INSIDE, count, unit, **more)  # type: ignore[arg-type]


def not_run(task: str) -> Waiting:
    """Wait for runs on a task."""
    group = CLAIMS.load("retrieval/C1").criteria[0].quantity.group
    missing = Missing(MissingReason.LEVELS, group, (("task", f"retrieval/{task}"),))
    return Waiting("runs", Obstacle.MISSING, missing=missing)


STEPS = Waiting("steps", Obstacle.DRIFT, usable=5)
COUNTED_STEPS = Waiting("steps", Obstacle.DRIFT, 12_000, usable=5)
TOO_FEW_SEEDS = Waiting("seeds", Obstacle.TOO_FEW, 3, usable=2)
TOO_FEW_TASKS = Waiting("tasks", Obstacle.TOO_FEW, 3, unit="task", usable=1)
NOT_LEARNED = Waiting("steps", Obstacle.NOT_LEARNED, usable=5)
LAST = Waiting("nothing", Obstacle.LAST_LOOK, usable=20)
ON_BOUND = Waiting("nothing", Obstacle.ON_BOUND)
CONSTANT = Waiting("nothing", Obstacle.CONSTANT)


def undecided(*waiting: Waiting, name: str = "retrieval/C1") -> JudgedClaim:
    claim = CLAIMS.load(name)
    findings = tuple(Finding(claim.criteria[0], "open", waiting=entry) for entry in waiting)
    return JudgedClaim(claim, "undecided", "mini", "", findings)


@pytest.mark.parametrize(
    ("waiting", "text"),
    [
        ([count_waiting(20, "task"), count_waiting(90, "task", criteria=8)], "about 90 tasks"),
        ([count_waiting(58522, "task"), not_run("T2")], "more than 1000 tasks: close to the bound; T2 not run"),
        ([STEPS, STEPS, count_waiting(None)], "more steps; more seeds"),
        ([STEPS, COUNTED_STEPS, count_waiting(9)], "about 12,000 more steps; about 9 seeds"),
        ([NOT_LEARNED], "more steps: no run of a group left its starting level"),
        ([LAST], "the last planned look is over"),
        ([TOO_FEW_TASKS], "at least 3 tasks (has 1)"),
        ([ON_BOUND], "no number of seeds settles it: the mean lies on the bound"),
        ([not_run(task) for task in "abcdef"], "a not run; b not run; c not run; d not run; and 2 more"),
    ],
)
def test_needs_of_a_claim(waiting: list[Waiting], text: str) -> None:
    judged = undecided(*waiting)
    assert describe_needs(judged) == text
    decided = JudgedClaim(judged.claim, "contradicted", "mini", "", judged.findings)
    assert describe_needs(decided) == ""


@pytest.mark.parametrize(
    ("waiting", "expected", "text"),
    [
        ([count_waiting(14), count_waiting(30)], ("seeds", 30), "C1 waits for about 30 seeds"),
        ([count_waiting(14), count_waiting(None)], ("seeds", None), "C1 waits for more seeds"),
        ([count_waiting(14), STEPS], ("steps", None), "C1 waits for more steps"),
        ([count_waiting(14), COUNTED_STEPS], ("steps", 12_000), "C1 waits for about 12,000 more steps"),
        ([TOO_FEW_SEEDS], ("seeds", None), "C1 waits for more seeds"),
        ([TOO_FEW_TASKS], ("tasks", None), "C1 waits for more tasks"),
        ([count_waiting(None, "task")], ("tasks", None), "C1 waits for more tasks"),
        ([not_run("T2")], ("runs", None), "C1 waits for criteria that were not run"),
        ([not_run("T2"), count_waiting(7, "task")], ("tasks", 7), "C1 waits for about 7 tasks"),
        ([ON_BOUND], ("nothing", None), "no number of runs settles C1"),
        ([CONSTANT, not_run("T2")], ("runs", None), "C1 waits for criteria that were not run"),
    ],
)
def test_main_need_of_an_undecided_claim(waiting: list[Waiting], expected: tuple[Need, int | None], text: str) -> None:
    judged = undecided(*waiting)
    need = find_main_need(judged)
    assert (need.kind, need.count) == expected
    assert describe_undecided([judged]) == text


def test_claims_with_the_same_need_are_named_together() -> None:
    def describe(*counts: int) -> str:
        claims = [undecided(count_waiting(count), name=f"retrieval/C{5 + i}") for i, count in enumerate(counts)]
        return describe_undecided(claims)

    assert describe(60, 14, 30) == "C5, C6 and C7 wait for about 14 to 60 seeds"
    assert describe(20, 58522) == "C5 and C6 wait for about 20 to more than 1000 seeds"
    assert describe(4000, 58522) == "C5 and C6 wait for more than 1000 seeds"
    assert describe(9, 9, 9, 9, 9) == "C5, C6, C7 and 2 more wait for about 9 seeds"
    assert describe_undecided([undecided(STEPS), undecided(ON_BOUND, name="retrieval/reading")]) == (
        "C1 waits for more steps, no number of runs settles ‘reading’"
    )
    assert short_name(CLAIMS.load("retrieval/C10")) == "C10"


def test_left_out_runs_are_grouped_by_reason() -> None:
    def entry(variant: str, reason: Exclusion, count: int) -> LeftOut:
        return LeftOut((("task", "retrieval/T6"), ("variant", variant)), reason, count, 5)

    entries = [entry(name, Exclusion.UNFINISHED, 2) for name in "abcde"]
    entries.append(entry("a", Exclusion.DIVERGED, 1))
    assert describe_left_out(entries) == [
        "10 of 25 runs not finished in 5 configurations",
        "1 of 5 runs diverged (a on T6)",
    ]
    assert describe_left_out(entries, most=3) == [
        "10 of 25 runs not finished (a on T6: 2 of 5; b on T6: 2 of 5; c on T6: 2 of 5; and 2 more configurations)",
        "1 of 5 runs diverged (a on T6)",
    ]
    assert describe_left_out(entries[:2], most=None) == ["4 of 10 runs not finished (a on T6: 2 of 5; b on T6: 2 of 5)"]


def test_lines_of_the_table_are_short_however_many_configurations_were_left_out() -> None:
    claim = CLAIMS.load("rules/F3")
    left_out = []
    for number in range(40):
        configuration = (("architecture", "mlp"), ("setting", "regression"), ("rules", number), ("width", 32))
        left_out.append(LeftOut(configuration, Exclusion.UNFINISHED, 1, 1))
    findings = tuple(
        Finding(criterion, "open", left_out=tuple(left_out), waiting=STEPS) for criterion in claim.criteria
    )
    judged = JudgedClaim(claim, "undecided", "smoke", "mlp: 2, 8, 32 rules; width 32", findings)
    for criteria in (False, True):
        text = format_table([judged], {"smoke": ["one seed"]}, criteria=criteria)
        assert max(len(line) for line in text.splitlines()) <= 110
        assert "40 of 40 runs not finished" in " ".join(text.split())

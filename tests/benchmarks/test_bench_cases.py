"""The tables of benchmarks: every model and task is in them, and what is aimed at is measured."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import pytest
from benchmarks.cases import CASES, case_of
from benchmarks.machine import COPIES, FUNCTIONS, Limits, machine
from benchmarks.operation_breakdown import ELEMENTWISE, KINDS, OUTSIDE
from benchmarks.rows import Asked, Row
from benchmarks.subprocesses import at_once, in_child
from benchmarks.targets import TARGETS, Target

from benchmarks import BENCHMARKS, generators, memory, start, steps
from unseen.errors import CheckFailed
from unseen.models import MODELS
from unseen.registry import Registry
from unseen.tasks import TASKS

SPENT = (*KINDS, ELEMENTWISE, OUTSIDE)


def _built_in(registry: Registry[Any]) -> set[str]:
    """Without what other tests have registered meanwhile."""
    return {entry.name for entry in registry if entry.target.startswith("unseen.")}


def test_every_model_has_a_case_and_every_case_a_name_of_its_own() -> None:
    assert {case.model for case in CASES} == _built_in(MODELS)
    assert len({case.name for case in CASES}) == len(CASES)


def test_every_task_is_drawn_from() -> None:
    left_out = {"ctl/graph"}  # the same generator as ctl/A, with a graph of one's own
    assert {one.task for one in generators.TABLE} == _built_in(TASKS) - left_out
    assert len({one.name for one in generators.TABLE}) == len(generators.TABLE)


@pytest.mark.parametrize("one", generators.TABLE, ids=lambda one: one.name)
def test_what_is_drawn_exists(one: generators.Drawn) -> None:
    assert one.split in (generators.WHOLE, *one.make().splits)


@pytest.mark.parametrize("name", [entry.name for entry in BENCHMARKS])
def test_benchmarks_can_be_loaded(name: str) -> None:
    assert callable(BENCHMARKS.load(name))


@pytest.mark.parametrize("target", [one for one in TARGETS if one.benchmark == "steps"], ids=lambda one: one.what)
def test_targets_of_steps_name_cases_and_figures_that_are_measured(target: Target) -> None:
    cases = [case for case in CASES if fnmatchcase(case.name, target.case)]
    figures = {"best product share"} | {
        f"speed-up S={size} over {loop.removesuffix(' loop')}"
        for case in cases
        for size in case.sizes
        for loop in case.published
    }
    assert cases and any(fnmatchcase(one, target.figure) for one in figures)


@pytest.mark.parametrize("target", [one for one in TARGETS if one.benchmark == "generators"], ids=lambda one: one.what)
def test_targets_of_generators_name_cases_that_are_measured(target: Target) -> None:
    assert any(fnmatchcase(one.name, target.case) for one in generators.TABLE)


def test_targets_name_benchmarks_that_there_are() -> None:
    assert {one.benchmark for one in TARGETS} <= {entry.name for entry in BENCHMARKS}


def test_bandwidth_is_that_of_the_largest_copy_that_moves_no_more() -> None:
    limits = Limits(1.0, {10: 3.0, 100: 2.0}, 1.0)
    assert [limits.bandwidth(moved) for moved in (1, 10, 99, 100, 10**9)] == [3.0, 3.0, 3.0, 2.0, 2.0]


def test_rows_of_the_machine() -> None:
    rows = list(machine(Asked(quick=True)))
    assert [row.figure for row in rows] == [
        "product of 1024 × 1024",
        "64 products of 128 × 128",
        *(f"copy {name}" for name in COPIES),
        "add",
        *FUNCTIONS,
    ]
    assert all(row.value > 0 and row.rounds == 2 for row in rows)
    assert not list(machine(Asked(only="else")))


def test_rows_of_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "COMMANDS", {"python -c pass": ("-c", "pass")})
    (row,) = start.start(Asked(quick=True))
    assert (row.case, row.figure, row.unit) == ("python -c pass", "seconds", "s") and row.value > 0


@pytest.mark.slow
def test_rows_of_generators() -> None:
    rows = list(generators.generators(Asked(quick=True)))
    assert {row.case for row in rows} == {one.name for one in generators.TABLE if one.quick}
    by_figure = {row.figure for row in rows if row.case.startswith("rules/mlp")}
    assert by_figure == {"examples per second", "share of a step gating=none", "share of a step gating=joint"}
    assert all(row.value > 0 for row in rows)
    (whole,) = [row for row in rows if row.figure == "seconds"]
    assert whole.case == "ctl/lengths preset=clean split=all"


@pytest.mark.slow
def test_rows_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of("retrieval-transformer batch=10")
    monkeypatch.setattr(steps, "CASES", (case,))
    said: list[str] = []
    rows = {row.figure: row for row in steps.steps(Asked(quick=True, say=said.append))}
    assert said == [f"1 of 1: {case.name}"]
    kinds = [
        "stacked S={}",
        "speed-up S={}",
        "speed-up S={} over published",
        "product share S={}",
        "roofline share S={}",
    ]
    assert set(rows) - {"two processes S=1", "two processes S=4"} == {
        "products",
        "plain loop",
        "published loop",
        "best product share",
        *(f"time in {kind}" for kind in SPENT),
        *(kind.format(size) for kind in kinds for size in (1, 4)),
    }
    for size in (1, 4):
        assert 0 < rows[f"product share S={size}"].value < rows[f"roofline share S={size}"].value
        assert rows[f"speed-up S={size}"].value > 0
    assert sum(rows[f"time in {kind}"].value for kind in SPENT) == pytest.approx(1)


@pytest.mark.slow
def test_a_stack_that_would_take_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "CASES", (case_of("rules-mlp gating=none width=32 rules=2 batch=256"),))
    monkeypatch.setattr(steps, "LONGEST", 1e-6)
    monkeypatch.setattr(steps, "_two", lambda row, *rest: row("two processes", 1.0, "×"))
    rows = {row.figure: row for row in steps.steps(Asked(quick=True))}
    assert "stacked S=1" in rows and "stacked S=4" not in rows
    assert rows["left out S=4"].unit == "s" and "a step would take" in rows["left out S=4"].note


def large(megabytes: int) -> float:
    before = memory.peak()
    held = bytearray(megabytes * 10**6)
    held[:: 2**12] = b"1" * len(held[:: 2**12])
    del held
    return memory.peak() - before


def meet_and_say(meet: object, place: int) -> int:
    meet()  # type: ignore[operator]
    return place


def fail() -> None:
    raise SystemExit(1)


def test_a_peak_is_that_of_the_child_alone() -> None:
    mine = bytearray(300 * 10**6)
    assert 60e6 <= in_child(large, 64) < 100e6
    assert len(mine)


def test_two_processes_meet_and_one_that_dies_is_noticed() -> None:
    assert at_once(meet_and_say, (3,), (4,)) == (3, 4)
    with pytest.raises(CheckFailed, match="died"):
        in_child(fail)


@pytest.mark.slow
def test_rows_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(quick=True, only="retrieval")
    rows: dict[tuple[str, str], Row] = {(row.case, row.figure): row for row in memory.memory(asked)}
    drawn, trained = "retrieval/T6 preset=clean length=10 split=train", "retrieval-transformer batch=10"
    assert set(rows) == {(drawn, "peak"), (drawn, "arrays"), (trained, "peak S=1"), (trained, "arrays S=1")}
    assert rows[drawn, "peak"].value > 0.5 * rows[drawn, "arrays"].value > 0

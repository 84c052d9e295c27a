"""`verify`: a clean task passes, and each planted fault fails exactly the check that is there to find it."""

from __future__ import annotations

import numpy as np
import pytest

from support import standins
from unseen.errors import UsageError
from unseen.tasks.base import Examples, Task
from unseen.tasks.verify import Check, Report, verify

EVERYWHERE = {"train", "iid", "ood/query", "ood/longer"}


def failures(report: Report) -> dict[str, set[str]]:
    """The failed checks by name, with the splits they failed on."""
    found: dict[str, set[str]] = {}
    for check in report:
        if check.status == "FAIL":
            found.setdefault(check.name, set()).add(check.split)
    return found


def row(report: Report, name: str, split: str = "train") -> Check:
    (found,) = [check for check in report if (check.name, check.split) == (name, split)]
    return found


def test_clean_task_passes_every_check_on_every_split() -> None:
    seen: list[Check] = []
    report = verify(standins.Clean(), 20_000, on_check=seen.append)
    assert failures(report) == {} and report.passed
    assert seen == list(report)
    alone = {
        "spec",
        "solver",
        "determinism",
        "streams",
        "duplicates",
        "labels",
        "process",
        "majority",
        "input-blind",
        "single-feature",
        "bag-of-tokens",
    }
    for split in EVERYWHERE:
        names = [check.name for check in report if check.split == split]
        assert set(names) == (alone if split == "train" else alone | {"unseen", "overlap", "equivalence", "coverage"})
        assert len(names) == len(set(names))
    assert row(report, "unseen", "ood/query").status == "ok"
    assert row(report, "unseen", "ood/longer").status == "shown"
    assert {check.status for check in report} == {"ok", "shown"}


PLANTED: list[tuple[Task, int, dict[str, set[str]]]] = [
    (standins.WrongLabel(), 2_000, {"solver": EVERYWHERE}),
    (standins.BatchDependent(), 2_000, {"determinism": EVERYWHERE}),
    (standins.ProcessDependent(), 2_000, {"process": EVERYWHERE}),
    (standins.SameForAllSeeds(), 2_000, {"streams": EVERYWHERE}),
    (standins.ShiftedSeeds(), 2_000, {"streams": EVERYWHERE}),
    (standins.TrainingAgain(), 2_000, {"overlap": {"iid"}}),
    (standins.Repeating(), 2_000, {"duplicates": EVERYWHERE}),
    (standins.SeenQuery(), 2_000, {"unseen": {"ood/query"}}),
    (standins.LeakyBit(), 20_000, {"single-feature": EVERYWHERE}),
    (standins.LeakyQuery(), 20_000, {"input-blind": EVERYWHERE}),
    (standins.LeakyCounts(), 20_000, {"bag-of-tokens": EVERYWHERE}),
    (standins.Unbalanced(), 20_000, {"labels": EVERYWHERE, "majority": EVERYWHERE}),
    (standins.Heavy(known=False), 2_000, {"artefact H1": EVERYWHERE}),
    (standins.Shortcuts(), 2_000, {"shortcut right": EVERYWHERE}),
    (standins.Tagging(leak=True), 20_000, {"single-feature": {"train", "iid"}}),
]


@pytest.mark.parametrize(("task", "n", "expected"), PLANTED, ids=[type(task).__name__ for task, _, _ in PLANTED])
def test_planted_fault_fails_its_check_and_no_other(task: Task, n: int, expected: dict[str, set[str]]) -> None:
    report = verify(task, n)
    assert failures(report) == expected
    assert not report.passed


def test_state_between_calls_is_found_in_this_and_in_another_process() -> None:
    # Such a task has no fixed data, so chance may fail a statistical check; these two must fail.
    assert failures(verify(standins.Stateful(), 2_000)).keys() >= {"determinism", "process"}


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("dtype", "input 'bits' is float32"),
        ("range", "input 'query' has values outside 0 … 7"),
        ("missing", "input 'query' is missing"),
        ("extra", "input 'hint' is not in the spec"),
        ("target", "the target has shape (200,), expected (200, 1)"),
        ("factor", "factor 'query' is not an array"),
    ],
)
def test_wrong_form_fails_the_spec_check_and_stops_there(fault: str, words: str) -> None:
    report = verify(standins.WrongForm(fault=fault), 200)
    assert [(check.name, check.split) for check in report] == [("spec", c) for c in standins.Clean().splits]
    assert failures(report) == {"spec": EVERYWHERE}
    assert words in report[0].detail


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("generate iid", {"sample": {"iid"}}),
        ("generate train", {"sample": {"train"}}),
        ("solve", {"solver": EVERYWHERE}),
        ("shortcuts", {"shortcuts": EVERYWHERE}),
        ("ceilings", {"baselines": EVERYWHERE}),
    ],
)
def test_crash_is_a_failed_row_with_its_message(part: str, expected: dict[str, set[str]]) -> None:
    report = verify(standins.Crashing(part=part), 500)
    assert failures(report) == expected
    detail = next(check.detail for check in report if check.status == "FAIL")
    assert detail == f"ZeroDivisionError: planted in {part}"


def test_wrong_label_is_shown_with_its_place() -> None:
    detail = row(verify(standins.WrongLabel(), 2_000), "solver").detail
    assert detail.startswith("2 of 2000 targets differ, first at 500")


def test_known_artefact_is_known_and_passes() -> None:
    report = verify(standins.Heavy(), 2_000)
    assert report.passed
    assert row(report, "artefact H1").status == "known"


def test_absent_artefact_is_ok_and_a_declared_one_that_is_absent_is_shown() -> None:
    declared = verify(standins.Heavy(heavy=False), 2_000)
    assert (declared.passed, row(declared, "artefact H1").status) == (True, "shown")
    undeclared = verify(standins.Heavy(heavy=False, known=False), 2_000)
    assert (undeclared.passed, row(undeclared, "artefact H1").status) == (True, "ok")


def test_declared_ceilings_are_allowed_for_the_stronger_baselines_too() -> None:
    assert failures(verify(standins.DeclaredLeakyQuery(), 10_000)) == {}
    unbalanced = verify(standins.DeclaredUnbalanced(), 10_000)
    assert failures(unbalanced) == {}
    assert row(unbalanced, "labels").status == "known"


def test_ceiling_of_an_unknown_baseline_fails() -> None:
    class Mistyped(standins.Clean):
        def ceilings(self, split: str) -> dict[str, float]:
            return {"single_feature": 0.6}

    report = verify(Mistyped(), 200)
    assert failures(report) == {"baselines": EVERYWHERE}
    assert "not a baseline. Did you mean 'single-feature'?" in row(report, "baselines").detail


def test_real_targets_may_differ_by_rounding_and_no_more() -> None:
    class Off(standins.Line):
        error: float

        def solve(self, examples: Examples) -> np.ndarray:
            return super().solve(examples) * (1 + self.error) + self.error

    assert row(verify(Off(error=5e-6), 200), "solver").status == "ok"
    assert row(verify(Off(error=5e-5), 200), "solver").status == "FAIL"


def test_own_shortcut_without_a_ceiling_is_only_shown() -> None:
    report = verify(standins.Shortcuts(), 500)
    assert row(report, "shortcut yes").status == "shown"
    assert row(report, "shortcut yes allowed").status == "ok"


def test_repeats_in_a_small_set_are_shown_and_not_failed() -> None:
    report = verify(standins.Clean(width=4, tokens=2), 2_000)
    for name in ("duplicates", "overlap"):
        assert row(report, name, "iid").status == "shown"
        assert "the set is small" in row(report, name, "iid").detail
    assert not {"duplicates", "overlap", "unseen", "streams"} & failures(report).keys()


def test_set_smaller_than_n_goes_on_with_further_data_seeds() -> None:
    report = verify(standins.Clean(evaluation_size=300), 2_000)
    assert failures(report) == {}
    assert row(report, "solver", "iid").detail == "2000 of 2000 targets agree"
    assert row(report, "process", "iid").detail.startswith("300 examples")


def test_empty_set_fails() -> None:
    assert failures(verify(standins.Clean(evaluation_size=0), 500)) == {"sample": EVERYWHERE - {"train"}}


def test_answers_per_token_and_real_targets() -> None:
    assert failures(verify(standins.Tagging(), 5_000)) == {}
    line = verify(standins.Line(), 500)
    # A line is a shortcut of its own, and it has declared nothing; all else about it is in order.
    assert failures(line) == {"single-feature": {"train"}, "bag-of-tokens": {"train"}}
    assert row(line, "labels").status == "shown"


def test_solver_gets_neither_targets_nor_factors() -> None:
    class Peeking(standins.Clean):
        def solve(self, examples: Examples) -> np.ndarray:
            return examples.targets

    class Prompted(standins.Clean):
        def solve(self, examples: Examples) -> np.ndarray:
            return examples.factors["query"]

    assert "solver" in failures(verify(Peeking(), 200))
    assert row(verify(Prompted(), 200), "solver").detail == "KeyError: 'query'"


def test_class_that_cannot_be_imported_is_not_tried_in_another_process() -> None:
    class Local(standins.Clean):
        pass

    assert row(verify(Local(), 200), "process").status == "shown"


def test_missing_train_and_tiny_n() -> None:
    class Trainless(standins.Clean):
        @property
        def splits(self):  # type: ignore[no-untyped-def]
            return {name: c for name, c in super().splits.items() if name != "train"}

    assert failures(verify(Trainless(), 200)) == {"sample": {"train"}}
    with pytest.raises(UsageError, match="at least 100"):
        verify(standins.Clean(), 99)

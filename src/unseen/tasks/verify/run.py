"""`verify`: every check on every split, collected in a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from unseen.errors import UsageError
from unseen.tasks.base import Task
from unseen.tasks.verify import checks
from unseen.tasks.verify.checks import SplitCase, Status, Verdict
from unseen.tasks.verify.coverage import Lack
from unseen.tasks.verify.determinism import count_compared, fingerprint_in_new_process, is_importable
from unseen.tasks.verify.equivalence import Familiarity


@dataclass(frozen=True)
class Check:
    """One row: `ok`; `known` for a declared artefact; `shown` for the reader to judge; or `FAIL`."""

    name: str
    split: str
    status: Status
    detail: str


class Report(list[Check]):
    """The checks of one task in the order in which they were made, and by split what training has of it.

    Attributes:
        familiarity: which examples of a split compute what training does, where the task says so.
        lacking: the values and combinations of a split that training lacks.
    """

    def __init__(self) -> None:
        super().__init__()
        self.familiarity: dict[str, Familiarity] = {}
        self.lacking: dict[str, list[Lack]] = {}

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return all(check.status != "FAIL" for check in self)


def verify(task: Task, n: int = 10_000, on_check: Callable[[Check], None] | None = None) -> Report:
    """Make every check on n examples of every split.

    A check that crashes has failed, with the message of the crash. A split whose examples cannot be drawn, or have the
    wrong form, is not examined further.

    Args:
        task: any task.
        n: the number of examples per split, at least 100.
        on_check: called with each check as it is made.
    """
    if n < 100:
        raise UsageError(f"verify needs at least 100 examples per split, got n = {n}")
    run = _Verification(task, n, on_check)
    train = run.check_split("train", None)
    for name in task.splits:
        if name != "train":
            run.check_split(name, train)
    return run.report


_SINGLE_CHECKS: dict[str, Callable[[SplitCase], Verdict]] = {
    "solver": checks.check_solver,
    "determinism": checks.check_determinism,
    "streams": checks.check_streams,
    "duplicates": checks.check_duplicates,
    "labels": checks.check_labels,
}
_COMPARISONS_WITH_TRAIN: dict[str, Callable[[SplitCase], Verdict]] = {
    "unseen": checks.check_unseen,
    "overlap": checks.check_overlap,
    "equivalence": checks.check_equivalence,
    "coverage": checks.check_coverage,
}
_MULTIPLE_CHECKS: dict[str, Callable[[SplitCase], Iterator[tuple[str, Verdict]]]] = {
    "baselines": checks.check_baselines,
    "shortcuts": checks.check_shortcuts,
    "artefacts": checks.check_artefacts,
}


class _Verification:
    """The checks of one task and the report they add to."""

    def __init__(self, task: Task, n: int, on_check: Callable[[Check], None] | None) -> None:
        self.task = task
        self.n = n
        self.on_check = on_check
        self.report = Report()

    def check_split(self, name: str, train: SplitCase | None) -> SplitCase | None:
        """Check one split; return its case if it has examples of the right form."""
        try:
            examples, seed = checks.draw_examples(self.task, name, self.n)
            twin, _ = checks.draw_examples(self.task, name, self.n, seed)
            case = SplitCase(self.task, self.task.get_split(name), examples, twin, train)
        except Exception as error:
            self._add_crash("sample", name, error)
            return None
        # Arrays of another form would make the checks below fail for reasons that have nothing to do with them.
        if self._make_check("spec", case, checks.check_spec) != "ok":
            return None
        for check, judge in _SINGLE_CHECKS.items():
            self._make_check(check, case, judge)
        if train is not None:
            statuses = {}
            for check, judge in _COMPARISONS_WITH_TRAIN.items():
                statuses[check] = self._make_check(check, case, judge)
            if statuses["equivalence"] == "shown" and case.familiarity is not None:
                self.report.familiarity[name] = case.familiarity
            if statuses["coverage"] == "shown":
                self.report.lacking[name] = case.lacking
        self._make_check("process", case, self._check_process)
        for check, judge_several in _MULTIPLE_CHECKS.items():
            try:
                for row, verdict in judge_several(case):
                    self._add(row, name, *verdict)
            except Exception as error:
                self._add_crash(check, name, error)
        return case

    def _make_check(self, check: str, case: SplitCase, judge: Callable[[SplitCase], Verdict]) -> Status:
        try:
            status, detail = judge(case)
        except Exception as error:
            return self._add_crash(check, case.split.name, error)
        return self._add(check, case.split.name, status, detail)

    def _add_crash(self, check: str, split: str, error: Exception) -> Status:
        # A task may crash in any way; that is a result about the task, not an error of `verify`.
        return self._add(check, split, "FAIL", f"{type(error).__name__}: {error}")

    def _add(self, check: str, split: str, status: Status, detail: str) -> Status:
        self.report.append(Check(check, split, status, detail))
        if self.on_check is not None:
            self.on_check(self.report[-1])
        return status

    def _check_process(self, case: SplitCase) -> Verdict:
        if not is_importable(self.task):
            return "shown", "not tried: another process cannot import the class of the task"
        return checks.check_process(case, self._other_fingerprints[case.split.name])

    @cached_property
    def _other_fingerprints(self) -> dict[str, str]:
        """The fingerprints of another process, which draws all splits."""
        counts = {name: count_compared(self.task, name) for name in self.task.splits}
        return fingerprint_in_new_process(self.task, counts)

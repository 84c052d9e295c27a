"""`verify`: every check on every condition, collected in a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from unseen.errors import UsageError
from unseen.tasks.base import Task
from unseen.tasks.verify import checks
from unseen.tasks.verify.checks import Case, Status, Verdict
from unseen.tasks.verify.purity import elsewhere, portable, reach


@dataclass(frozen=True)
class Check:
    """One row: `ok`; `known`, a declared artefact; `shown`, for the reader to judge; or `FAIL`."""

    name: str
    condition: str
    status: Status
    detail: str


class Report(list[Check]):
    """The checks of one task, in the order they were made."""

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return all(check.status != "FAIL" for check in self)


def verify(task: Task, n: int = 10_000, on_check: Callable[[Check], None] | None = None) -> Report:
    """Every check on n examples of every condition; `on_check` is called as each is made.

    A check that crashes has failed, with the message of the crash. A condition whose examples cannot be drawn,
    or have the wrong form, is not looked at further.
    """
    if n < 100:
        raise UsageError(f"verify needs at least 100 examples per condition, got n = {n}")
    run = _Run(task, n, on_check or (lambda check: None))
    train = run.condition("train", None)
    for name in task.conditions:
        if name != "train":
            run.condition(name, train)
    return run.report


_ALONE: dict[str, Callable[[Case], Verdict]] = {
    "solver": checks.check_solver,
    "purity": checks.check_purity,
    "streams": checks.check_streams,
    "duplicates": checks.check_duplicates,
    "labels": checks.check_labels,
}
_AGAINST_TRAIN: dict[str, Callable[[Case], Verdict]] = {
    "unseen": checks.check_unseen,
    "overlap": checks.check_overlap,
}
_SEVERAL: dict[str, Callable[[Case], Iterator[tuple[str, Verdict]]]] = {
    "baselines": checks.check_baselines,
    "shortcuts": checks.check_shortcuts,
    "artefacts": checks.check_artefacts,
}


class _Run:
    """A report in the making."""

    def __init__(self, task: Task, n: int, on_check: Callable[[Check], None]) -> None:
        self.task, self.n, self.on_check, self.report = task, n, on_check, Report()

    def condition(self, name: str, train: Case | None) -> Case | None:
        """Check one condition; its case, if it has examples of the right form."""
        try:
            examples, seed = checks.draw(self.task, name, self.n)
            twin, _ = checks.draw(self.task, name, self.n, seed)
            case = Case(self.task, self.task.condition(name), examples, twin, train)
        except Exception as error:
            self._failed("sample", name, error)
            return None
        if self._one("spec", case, checks.check_spec) != "ok":
            return None
        for check, judge in (_ALONE | (_AGAINST_TRAIN if train else {})).items():
            self._one(check, case, judge)
        self._one("process", case, self._process)
        for check, judges in _SEVERAL.items():
            try:
                for row, verdict in judges(case):
                    self._add(row, name, *verdict)
            except Exception as error:
                self._failed(check, name, error)
        return case

    def _one(self, check: str, case: Case, judge: Callable[[Case], Verdict]) -> Status:
        try:
            status, detail = judge(case)
        except Exception as error:
            return self._failed(check, case.condition.name, error)
        return self._add(check, case.condition.name, status, detail)

    def _failed(self, check: str, condition: str, error: Exception) -> Status:
        """A task may crash in any way: that is a finding about it, not about us."""
        return self._add(check, condition, "FAIL", f"{type(error).__name__}: {error}")

    def _add(self, check: str, condition: str, status: Status, detail: str) -> Status:
        self.report.append(Check(check, condition, status, detail))
        self.on_check(self.report[-1])
        return status

    def _process(self, case: Case) -> Verdict:
        if not portable(self.task):
            return "shown", "not tried: another process cannot import the task's class"
        return checks.check_process(case, self._elsewhere[case.condition.name])

    @cached_property
    def _elsewhere(self) -> dict[str, str]:
        """What another process draws: one process for all conditions."""
        return elsewhere(self.task, {name: reach(self.task, name) for name in self.task.conditions})

"""`check`: hold plug-ins to the contract of tasks, models and studies; one row per check."""

from __future__ import annotations

import json
import math
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unseen.errors import CheckFailed, UsageError
from unseen.kit.plugins import Plugin, find_plugins
from unseen.tasks import TASKS
from unseen.tasks import task as make_task
from unseen.tasks.base import Task
from unseen.tasks.verify import Check, fingerprint, verify
from unseen.tasks.verify.checks import Status, Verdict

if TYPE_CHECKING:
    from unseen.studies.study import Study
    from unseen.studies.trial import Entry

GOLDEN_EXAMPLES = 100
"""The number of examples of each split that a golden fingerprint covers."""
_SCALE = "smoke"
_WORKERS = 2


@dataclass(frozen=True)
class Row:
    """One check of a plug-in: `ok`; `known` or `shown`, for the reader to judge; or `FAIL`, with the reason."""

    plugin: Plugin
    check: str
    status: Status
    reason: str


class Rows(list[Row]):
    """All rows, in the order of the checks."""

    @property
    def failures(self) -> list[str]:
        """The failed checks, one line each."""
        return [f"{row.plugin.name}, {row.check}: {row.reason}" for row in self if row.status == "FAIL"]


def check(*names: str, n: int = 10_000, on_row: Callable[[Row], None] = lambda row: None) -> Rows:
    """Check the plug-ins of these packages or names; without any, all installed plug-ins.

    `n` is the number of examples of every split of a task that are verified; `on_row` is called with every row.
    """
    rows = Rows()
    for plugin in find_plugins(names):
        if plugin.kind == "task":
            checks = check_task(plugin.name, n)
        elif plugin.kind == "study":
            checks = check_study(plugin.name)
        else:
            from unseen.kit.model_checks import check_model  # imported here: checking a task must not load torch

            checks = check_model(plugin)
        for name, (status, reason) in checks:
            rows.append(Row(plugin, name, status, reason))
            on_row(rows[-1])
    return rows


def run_check(judge: Callable[[], Verdict]) -> Verdict:
    """The verdict of a check. A plug-in may crash in any way; that is a failed check, too.

    >>> run_check(lambda: ("ok", f"{1 / 0}"))[0]
    'FAIL'
    """
    try:
        return judge()
    except Exception as error:
        message = " ".join(str(error).split())
        if isinstance(error, CheckFailed | UsageError):
            return "FAIL", message
        last = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {message}".removesuffix(": ")
        return "FAIL", f"{text} ({Path(last.filename).name}, line {last.lineno})"


def golden_fingerprints(task: Task) -> dict[str, str]:
    """The fingerprint of the first examples of every split, as the `golden` of a task's class declares them.

    With golden fingerprints a change of a task's numbers is a decision, not an accident.
    """
    fingerprints = {}
    for split in task.splits:
        size = task.size(split)
        count = GOLDEN_EXAMPLES if size is None else min(GOLDEN_EXAMPLES, size)
        fingerprints[split] = fingerprint(task.sample(split, count))
    return fingerprints


# -- tasks --------------------------------------------------------------------------------------------------------


def check_task(name: str, n: int) -> Iterator[tuple[str, Verdict]]:
    """Every check of a task with its default options: all of `verify`, and whether its numbers are as declared."""
    loaded = run_check(lambda: _task_loads(name))
    yield "loads", loaded
    if loaded[0] == "FAIL":
        return
    task = make_task(name)
    yield "options", run_check(lambda: _task_options(task))
    yield "words", run_check(lambda: _task_descriptions(task))
    by_check: dict[str, list[Check]] = {}
    for result in verify(task, n):
        by_check.setdefault(result.name, []).append(result)
    for check_name, results in by_check.items():
        yield check_name, _worst_split(results)
    drawable = [*by_check.get("sample", []), *by_check.get("spec", [])]
    if all(result.status != "FAIL" for result in drawable):
        yield "golden", run_check(lambda: _task_golden(task))


def _task_loads(name: str) -> Verdict:
    cls = TASKS.load(name)
    if not (isinstance(cls, type) and issubclass(cls, Task)):
        raise CheckFailed(f"the entry point is {cls!r}; expected a subclass of unseen.tasks.base.Task")
    task = make_task(name)
    if task.name != name or "/" not in name:
        raise CheckFailed(f"it is registered as '{name}' and calls itself '{task.name}'; a task is called family/name")
    for split in ("train", task.validation):
        task.get_split(split)  # raises if there is none
    for key, described in task.splits.items():
        if described.name != key or not described.summary:
            raise CheckFailed(f"split '{key}' needs that name and a summary")
    return "ok", f"{cls.__module__}:{cls.__qualname__}, splits {', '.join(task.splits)}"


def _task_options(task: Task) -> Verdict:
    copy = type(task).parse(json.loads(json.dumps(task.model_dump(mode="json"))))
    if copy != task or copy.identity() != task.identity():
        raise CheckFailed("its options change when they are written as JSON and read again")
    return "ok", "unchanged by a round trip through JSON"


def _task_descriptions(task: Task) -> Verdict:
    for split in task.splits:
        if not task.describe(task.sample(split, 1), 0).strip():
            raise CheckFailed(f"describe returns an empty text for an example of {split}")
    return "ok", "an example of every split can be described"


def _worst_split(results: list[Check]) -> Verdict:
    """One verdict for a check on all splits: the first split with the worst status. `unseen verify` shows all."""
    order: tuple[Status, ...] = ("FAIL", "known", "ok", "shown")
    status = min((result.status for result in results), key=order.index)
    same = [result for result in results if result.status == status]
    return status, f"{same[0].split}: {same[0].detail} · {len(same)} of {len(results)} splits"


def _task_golden(task: Task) -> Verdict:
    """Compare the fingerprint of every split with the class's `golden`."""
    fingerprints = golden_fingerprints(task)
    declared = getattr(type(task), "golden", None)
    if declared is None:
        return "shown", f"none are declared; today's are golden = {json.dumps(fingerprints)}"
    if dict(declared) != fingerprints:
        changed = []
        for split in {**fingerprints, **declared}:
            if declared.get(split) != fingerprints.get(split):
                changed.append(split)
        raise CheckFailed(
            f"the examples of {', '.join(changed)} are not those declared. If the change is intended, raise version "
            f"and declare the new ones; with this version they are golden = {json.dumps(fingerprints)}"
        )
    return "ok", f"version {task.version}: the first examples of {len(fingerprints)} splits are those declared"


# -- studies ------------------------------------------------------------------------------------------------------


def check_study(name: str) -> Iterator[tuple[str, Verdict]]:
    """Every check of a study: it is valid at every scale, can be planned, and two trials of its smallest scale run."""
    from unseen.studies.study import study as find_study

    checks: dict[str, Callable[[], Verdict]] = {
        "loads": lambda: _study_loads(name),
        "claims": lambda: _study_claims(find_study(name)),
        "trials": lambda: _study_trials(find_study(name)),
        "plan": lambda: _study_plan(find_study(name)),
        "runs": lambda: _study_runs(find_study(name)),
    }
    for check_name, judge in checks.items():
        verdict = run_check(judge)
        yield check_name, verdict
        if verdict[0] == "FAIL" and check_name != "claims":
            return  # the checks that follow build on this one


def _study_loads(name: str) -> Verdict:
    from unseen.studies.catalog import STUDIES
    from unseen.studies.study import Study

    study = STUDIES.load(name)
    if not isinstance(study, Study):
        raise CheckFailed(f"the entry point is a {type(study).__name__}; expected a Study")
    if study.name != name:
        raise CheckFailed(f"it is registered as '{name}' and calls itself '{study.name}'")
    if _SCALE not in study.scales:
        raise CheckFailed(
            f"it has no scale {_SCALE}, which shows within about a minute that everything works; "
            f"it has {', '.join(study.scales)}"
        )
    return "ok", f"{study.name}@{study.version}, scales {', '.join(study.scales)}"


def _study_claims(study: Study) -> Verdict:
    from unseen.claims import CLAIMS

    for claim in study.claims:
        CLAIMS.entry(claim)  # raises if it is unknown
    return "ok", f"{len(study.claims) or 'none'} named"


def _study_trials(study: Study) -> Verdict:
    """`entries` refuses two configurations with one run, and two runs for one configuration; equal ones are merged."""
    counts = []
    for scale in study.scales:
        ids = {entry.trial.id for entry in study.entries(scale)}
        counts.append(f"{scale} {len(ids)}")
    return "ok", f"each with an id of its own: {', '.join(counts)}"


def _study_plan(study: Study) -> Verdict:
    from unseen.running.plan import plan

    planned = plan(study.entries(_SCALE), _WORKERS)
    return "ok", (
        f"{_SCALE}: {planned.whole.trials} trials in {planned.stacks} stacks, {planned.whole.steps} steps, "
        f"{planned.whole.flops:.2g} FLOPs"
    )


def _study_runs(study: Study) -> Verdict:
    """Run the first trial, and one that differs from it in as many levels as possible."""
    from unseen.running.chunk import Chunk, Worker

    entries = study.entries(_SCALE)
    first = entries[0]

    def count_different_levels(entry: Entry) -> int:
        return sum(entry.levels[axis] != level for axis, level in first.levels.items() if axis in entry.levels)

    other = max(entries, key=count_different_levels)
    chosen = [first] if other is first else [first, other]
    for entry in chosen:
        configuration = " ".join(f"{axis}={level}" for axis, level in entry.levels.items())
        outcome = Worker().do(Chunk(0, (entry.trial,), None, math.inf))
        if outcome.error:
            raise CheckFailed(f"the trial at {configuration} failed: {outcome.error.strip().splitlines()[-1]}")
        (ended,) = (outcome.finished or {}).values()
        complete = True
        for by_selection in ended.measures.values():
            complete &= all(by_selection.values())
        if ended.status == "diverged" or not complete:
            raise CheckFailed(
                f"the trial at {configuration} {ended.status} after {ended.step} steps and left no measures"
            )
    return "ok", f"{len(chosen)} trials of {_SCALE} to their end, with measures"

"""`unseen verify`: check a task, or judge examples of foreign files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from unseen.cli.settings import HELP, parse_settings
from unseen.errors import CheckFailed, UsageError, nearest

if TYPE_CHECKING:
    from unseen.tasks.base import Task
    from unseen.tasks.verify import Check

COLOURS = {"ok": "green", "known": "yellow", "shown": "dim", "FAIL": "bold red"}
MOST_MISMATCHES = 20
"""The number of mismatches of a file that are printed in full; of the others, only the line numbers."""


def verify(
    name: Annotated[str, typer.Argument(help="A task (retrieval/T4) or a family (retrieval).", metavar="TASK|FAMILY")],
    n: Annotated[int, typer.Option("-n", help="Number of examples per split.")] = 10_000,
    data: Annotated[
        list[Path] | None, typer.Option(help="A file of foreign examples to check: their form and their targets.")
    ] = None,
    mapping: Annotated[Path | None, typer.Option(help="Query table of the foreign examples (retrieval).")] = None,
    world: Annotated[Path | None, typer.Option(help="World of the foreign examples (ctl).")] = None,
    ties: Annotated[
        str | None,
        typer.Option(
            help="If several objects fit a foreign question: report an error, or take the smallest (x, y) (gcog).",
            metavar="error|smallest",
        ),
    ] = None,
    set: Annotated[list[str] | None, typer.Option("--set", help=HELP)] = None,
) -> None:
    """Check a task: labels against the solver, spec, determinism, unseen factors, balance, shortcuts, artefacts.

    With --data, check the examples of a file against the task's solver instead.

    Examples:

    unseen verify retrieval/T6 --set preset=released --set length=5 -n 20000

    unseen verify retrieval/T4 --data test.tsv --mapping q_vocab.txt

    unseen verify ctl/S --data examples.jsonl --world world.json

    unseen verify gcog --data examples.jsonl --ties smallest
    """
    assignments = [*(set or [])]
    if ties is not None:
        assignments.append(f"ties={ties}")
    tasks = _make_tasks(name, assignments)
    companions = {key: path for key, path in {"mapping": mapping, "world": world}.items() if path is not None}
    if (companions or ties) and not data:
        raise UsageError(f"--{next(iter([*companions, 'ties']))} goes with --data FILE")
    if data:
        # Where all tasks of the family have the same solver, one of them is enough.
        judges = tasks[:1] if tasks[0].alike else tasks
        passed = [_judge_file(task, path, companions) for path in data for task in judges]
    else:
        passed = [_check_task(task, n) for task in tasks]
    if not all(passed):
        raise CheckFailed(f"{passed.count(False)} of {len(passed)} {'files' if data else 'tasks'} failed")


def _make_tasks(name: str, assignments: list[str]) -> list[Task]:
    """The task of this name, or all tasks of a family."""
    from unseen.tasks import TASKS
    from unseen.tasks import task as make_task

    families = {entry.name.partition("/")[0] for entry in TASKS}
    if "/" not in name and name not in families:
        raise UsageError(f"unknown family '{name}'. {nearest(name, families | {entry.name for entry in TASKS})}")
    names = [name] if "/" in name else [entry.name for entry in TASKS if entry.name.startswith(f"{name}/")]
    tasks = []
    for task_name in names:
        options = parse_settings(assignments, {"task": TASKS.load(task_name)})["task"]
        tasks.append(make_task(task_name, **options))
    return tasks


def _judge_file(task: Task, path: Path, companions: dict[str, Path]) -> bool:
    judgement = task.judge(path, **companions)
    judge = task.family if task.alike else task.name
    for mismatch in judgement.mismatches[:MOST_MISMATCHES]:
        typer.echo(
            f"{path}, line {mismatch.line}: {mismatch.what} is {mismatch.given}, {judge} says {mismatch.expected}"
        )
    others = judgement.mismatches[MOST_MISMATCHES:]
    if others:
        lines = list(dict.fromkeys(mismatch.line for mismatch in others))
        typer.echo(f"… and {len(others)} more, line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}")
    typer.echo(f"{path}: {judgement.right} of {judgement.examples} answers agree with {judge}{judgement.note}")
    return not judgement.mismatches


def _check_task(task: Task, n: int) -> bool:
    from unseen.tasks.verify import verify as verify_task

    console = Console(highlight=False, soft_wrap=True)
    options = " ".join(f"{k}={v}" for k, v in task.options().items() if k not in ("name", "mapping", "world", "graph"))
    console.print(Text(f"{task.name} {options}".strip(), style="bold"))
    width = max(len(split) for split in task.splits)

    def print_check(check: Check) -> None:
        status = Text(f"  {check.status:<6}", style=COLOURS[check.status])
        console.print(status + Text(f"{check.split:<{width}} {check.name:<34} {check.detail}", style=""))

    report = verify_task(task, n, print_check)
    console.print(Text("  passed" if report.passed else "  FAILED", style=COLOURS["ok" if report.passed else "FAIL"]))
    return report.passed

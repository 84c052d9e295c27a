"""`unseen verify`: prove a task, or judge foreign examples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from unseen.cli.settings import HELP, settings
from unseen.errors import CheckFailed, UsageError, nearest

if TYPE_CHECKING:
    from unseen.tasks.base import Task
    from unseen.tasks.verify import Check

COLOURS = {"ok": "green", "known": "yellow", "shown": "dim", "FAIL": "bold red"}
MOST = 20
"""How many mismatches of a file are told in full; of the others the lines."""


def verify(
    name: Annotated[str, typer.Argument(help="A task (retrieval/T4) or a family (retrieval).", metavar="TASK|FAMILY")],
    n: Annotated[int, typer.Option("-n", help="Examples per condition.")] = 10_000,
    data: Annotated[list[Path] | None, typer.Option(help="Foreign examples to judge, on form and target.")] = None,
    mapping: Annotated[Path | None, typer.Option(help="The query table of the foreign examples (retrieval).")] = None,
    world: Annotated[Path | None, typer.Option(help="The world of the foreign examples (ctl).")] = None,
    ties: Annotated[
        str | None,
        typer.Option(
            help="Where several objects fit a foreign question: an error, or the smallest (x, y) counts (gcog).",
            metavar="error|smallest",
        ),
    ] = None,
    set: Annotated[list[str] | None, typer.Option("--set", help=HELP)] = None,
) -> None:
    """Check a task in every way: solver, spec, purity, what is unseen, balance, shortcuts, artefacts.

    Examples:

    unseen verify retrieval/T6 --set preset=released --set length=5 -n 20000

    unseen verify retrieval/T4 --data test.tsv --mapping q_vocab.txt

    unseen verify ctl/S --data examples.jsonl --world world.json

    unseen verify gcog --data examples.jsonl --ties smallest
    """
    tasks = _tasks(name, [*(set or []), *([] if ties is None else [f"ties={ties}"])])
    companions = {key: path for key, path in {"mapping": mapping, "world": world}.items() if path is not None}
    if (companions or ties) and not data:
        raise UsageError(f"--{next(iter([*companions, 'ties']))} goes with --data FILE")
    if data and tasks[0].alike:
        tasks = tasks[:1]
    passed = (
        [_judge(task, path, companions) for path in data for task in tasks]
        if data
        else [_check(task, n) for task in tasks]
    )
    if not all(passed):
        raise CheckFailed(f"{passed.count(False)} of {len(passed)} {'files' if data else 'tasks'} failed")


def _tasks(name: str, given: list[str]) -> list[Task]:
    from unseen.tasks import TASKS
    from unseen.tasks import task as make

    families = {e.name.partition("/")[0] for e in TASKS}
    if "/" not in name and name not in families:
        raise UsageError(f"unknown family '{name}'. {nearest(name, families | {e.name for e in TASKS})}")
    names = [name] if "/" in name else [e.name for e in TASKS if e.name.startswith(f"{name}/")]
    return [make(n, **settings(given, {"task": TASKS.load(n)})["task"]) for n in names]


def _judge(task: Task, path: Path, companions: dict[str, Path]) -> bool:
    judgement, judge = task.judge(path, **companions), task.family if task.alike else task.name
    for wrong in judgement.mismatches[:MOST]:
        typer.echo(f"{path}, line {wrong.line}: {wrong.what} is {wrong.given}, {judge} says {wrong.expected}")
    more = list(dict.fromkeys(wrong.line for wrong in judgement.mismatches[MOST:]))
    if more:
        count = len(judgement.mismatches) - MOST
        typer.echo(f"… and {count} more, line{'s' * (len(more) > 1)} {', '.join(map(str, more))}")
    typer.echo(f"{path}: {judgement.right} of {judgement.examples} answers agree with {judge}{judgement.note}")
    return not judgement.mismatches


def _check(task: Task, n: int) -> bool:
    from unseen.tasks.verify import verify as run

    console = Console(highlight=False, soft_wrap=True)
    options = " ".join(f"{k}={v}" for k, v in task.options().items() if k not in ("name", "mapping", "world", "graph"))
    console.print(Text(f"{task.name} {options}".strip(), style="bold"))

    width = max(len(condition) for condition in task.conditions)

    def say(check: Check) -> None:
        status = Text(f"  {check.status:<6}", style=COLOURS[check.status])
        console.print(status + Text(f"{check.condition:<{width}} {check.name:<34} {check.detail}", style=""))

    report = run(task, n, say)
    console.print(Text("  passed" if report.passed else "  FAILED", style=COLOURS["ok" if report.passed else "FAIL"]))
    return report.passed

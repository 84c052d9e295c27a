"""`unseen verify`: check a task, or judge examples of foreign files."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from unseen.cli.complete import complete_setting, complete_task_or_family
from unseen.cli.option_text import text_width, wrap
from unseen.cli.output import load_task
from unseen.cli.settings import HELP, parse_settings
from unseen.errors import CheckFailed, UsageError
from unseen.names import family_of

if TYPE_CHECKING:
    from unseen.tasks.base import Task
    from unseen.tasks.verify import Check, Report

STATUS_TITLES = {"ok": "checks hold", "known": "known artefacts", "shown": "only shown", "FAIL": "failed"}
COLOURS = {"ok": "green", "known": "yellow", "shown": "dim", "FAIL": "bold red"}
MOST_MISMATCHES = 20
"""The number of mismatches of a file that are printed in full; of the others, only the line numbers."""


def verify(
    name: Annotated[
        str,
        typer.Argument(
            help="A task (retrieval/T4) or a family (retrieval).",
            metavar="TASK|FAMILY",
            autocompletion=complete_task_or_family,
        ),
    ],
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
    every: Annotated[
        bool, typer.Option("--all", "--verbose", help="Print every check, not only those that failed.")
    ] = False,
    set: Annotated[list[str] | None, typer.Option("--set", help=HELP, autocompletion=complete_setting)] = None,
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
        judges = tasks[:1] if tasks[0].shares_file_format else tasks
        passed = [_judge_file(task, path, companions) for path, task in product(data, judges)]
    else:
        passed = [_check_task(task, n, every) for task in tasks]
    if not all(passed):
        raise CheckFailed(f"{passed.count(False)} of {len(passed)} {'files' if data else 'tasks'} failed")


def _make_tasks(name: str, assignments: list[str]) -> list[Task]:
    """The task of this name, or all tasks of a family."""
    from unseen.tasks import TASKS
    from unseen.tasks import task as make_task

    families = {family_of(entry.name) for entry in TASKS}
    names = [entry.name for entry in TASKS if family_of(entry.name) == name] if name in families else [name]
    tasks = []
    for task_name in names:
        options = parse_settings(assignments, {"task": load_task(task_name)})["task"]
        tasks.append(make_task(task_name, **options))
    return tasks


def _judge_file(task: Task, path: Path, companions: dict[str, Path]) -> bool:
    judgement = task.judge(path, **companions)
    judge = task.family if task.shares_file_format else task.name
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


def _check_task(task: Task, n: int, every: bool) -> bool:
    """Check a task and say the verdict first; then what is known or failed, or every check."""
    from unseen.memory import refuse_beyond
    from unseen.tasks.base import GENERATION
    from unseen.tasks.verify import verify as verify_task

    sizes = [task.size(split) for split in task.splits]
    drawn = max(n if size is None else min(n, size) for size in sizes)
    subject = f"{task.name} with {drawn:,} examples of a split"
    refuse_beyond(drawn * task.example_bytes() * GENERATION, subject, "Choose a smaller -n")
    console = Console(highlight=False, soft_wrap=True)
    options = " ".join(f"{k}={v}" for k, v in task.options().items() if k not in ("name", "mapping", "world", "graph"))
    title = f"{task.name} {options}".strip()
    progress = Console(stderr=True)
    with progress.status(f"checking {title} …") if progress.is_terminal else nullcontext():
        report = verify_task(task, n, lambda check: None)
    counts: Counter[str] = Counter(check.status for check in report)
    tally = ", ".join(f"{counts[status]} {title}" for status, title in STATUS_TITLES.items() if counts[status])
    verdict = Text("passed" if report.passed else "FAILED", style=COLOURS["ok" if report.passed else "FAIL"])
    console.print(Text(title, style="bold") + Text(": ") + verdict + Text(f" ({tally})"))
    width = max(map(len, task.splits))
    for check in report:
        if every or check.status in ("FAIL", "known"):
            _print_check(console, check, width)
    if not every:
        _print_summaries(console, report)
        console.print(Text(f"  every check: unseen verify {task.name} --all", style="dim"))
    return report.passed


def _print_summaries(console: Console, report: Report) -> None:
    """Two lines about all splits: what training already has in another form, and what it lacks."""
    from unseen.tasks.verify.coverage import summarize_coverage
    from unseen.tasks.verify.equivalence import summarize_equivalence

    summaries = {
        "equivalence": summarize_equivalence(report.familiarity),
        "coverage": summarize_coverage(report.lacking),
    }
    for name, sentence in summaries.items():
        lines = wrap(f"{name}: {sentence}", "        ")
        console.print(Text("  " + "\n".join(lines).strip()))


def _print_check(console: Console, check: Check, width: int) -> None:
    """A check on one line where the terminal is wide enough, else its detail below it."""
    status = Text(f"  {check.status:<6}", style=COLOURS[check.status])
    heading = f"{check.split:<{width}} {check.name:<34} "
    if 8 + len(heading) + len(check.detail) <= text_width():
        console.print(status + Text(f"{heading}{check.detail}", style=""))
        return
    console.print(status + Text(f"{check.split} {check.name}", style=""))
    for line in wrap(check.detail, "        ") if check.detail else []:
        console.print(Text(line))

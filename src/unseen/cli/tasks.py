"""`unseen tasks`: list the tasks, or describe one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from unseen.cli.complete import complete_setting, complete_task_or_family
from unseen.cli.output import load_task, print_registry
from unseen.cli.settings import HELP, parse_settings
from unseen.errors import UsageError
from unseen.names import family_of

if TYPE_CHECKING:
    from unseen.tasks.base import Task


def tasks(
    name: Annotated[
        str | None,
        typer.Argument(help="A task to describe (retrieval/T6), or a family.", autocompletion=complete_task_or_family),
    ] = None,
    set: Annotated[list[str] | None, typer.Option("--set", help=HELP, autocompletion=complete_setting)] = None,
) -> None:
    """List the tasks, one line each; or show the definition, options, splits, chance and shortcuts of one task.

    Examples:

    unseen tasks

    unseen tasks retrieval

    unseen tasks retrieval/T6 --set length=5
    """
    from unseen.tasks import TASKS
    from unseen.tasks import task as make_task

    hint = "unseen tasks NAME describes a task; unseen show NAME prints examples; unseen verify NAME checks it."
    families = {family_of(entry.name) for entry in TASKS}
    if name is None or name in families:
        if set:
            raise UsageError("--set goes with the name of a task, e.g. unseen tasks retrieval/T6 --set length=5")
        print_registry(TASKS, hint, "" if name is None else f"{name}/")
        return
    options = parse_settings(set or [], {"task": load_task(name)})["task"]
    typer.echo("\n".join(describe_task(make_task(name, **options))))


def describe_task(task: Task) -> list[str]:
    """The definition, options, splits, chance and ceilings of a task, as lines."""
    from unseen.cli.option_text import format_docstring, format_options, wrap, wrap_entry
    from unseen.tasks import TASKS

    changed = " ".join(f"{key}={value}" for key, value in task.options().items() if key != "name")
    lines = [f"{task.name} {changed}".strip(), *wrap(TASKS.entry(task.name).summary), "", *format_docstring(type(task))]
    lines += ["", "options (--set key=value)", *format_options(type(task)), ""]
    legend = task.legend()
    if legend:
        lines += [*wrap(legend), ""]
    lines.append("splits")
    width = max(map(len, task.splits))
    for name, split in task.splits.items():
        size = task.size(name)
        text = split.summary
        if split.unseen:
            text += f"; unseen: {' with '.join(split.unseen)}"
        text += f"; {'endless' if size is None else f'{size} examples'}"
        lines += wrap_entry(name, text, width)
    lines += ["", *wrap(_describe_chance(task)), "", "shortcuts: what is reached without doing the task"]
    listed = _list_ceilings(task)
    for text in listed:
        lines += wrap(text, "  ")
    if not listed:
        lines.append("  none does better than chance")
    return [
        *lines,
        "",
        *wrap(f"unseen show {task.name} prints examples; unseen verify {task.name} checks all of this."),
    ]


def _describe_chance(task: Task) -> str:
    if task.spec.target.kind != "real":
        return f"chance: {task.spec.target.chance:.3g} (guessing among {max(2, task.spec.target.width)} answers)"
    zero = task.zero_loss(task.validation)
    value = "" if zero is None else f"; always answering 0 has a mean absolute error of {zero:.4f} on {task.validation}"
    return f"chance: answers are numbers{value}"


def _list_ceilings(task: Task) -> list[str]:
    """The declared ceilings of shortcuts, a line for each with its splits."""
    by_ceiling: dict[tuple[str, float], list[str]] = {}
    for split in task.splits:
        ceilings = dict(task.ceilings(split))
        for shortcut in task.shortcuts(split):
            if shortcut.ceiling is not None:
                ceilings[shortcut.name] = shortcut.ceiling
        for name, ceiling in ceilings.items():
            by_ceiling.setdefault((name, round(ceiling, 4)), []).append(split)
    lines = []
    for (name, ceiling), splits in by_ceiling.items():
        where = "every split" if len(splits) == len(task.splits) else ", ".join(splits)
        lines.append(f"{name}: at most {ceiling:.3f} on {where}")
    return lines

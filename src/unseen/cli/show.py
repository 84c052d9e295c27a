"""`unseen show`: look at examples of a task."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unseen.cli.output import write
from unseen.cli.settings import HELP, settings
from unseen.errors import UsageError

if TYPE_CHECKING:
    from unseen.tasks.base import Examples, Task


class Format(StrEnum):
    """How to show examples."""

    text = "text"
    json = "json"
    svg = "svg"
    png = "png"
    html = "html"


def show(
    task: Annotated[str, typer.Argument(help="A task, e.g. retrieval/T6.")],
    condition: Annotated[str, typer.Option(help="Which distribution.")] = "train",
    n: Annotated[int, typer.Option("-n", help="How many examples.")] = 3,
    start: Annotated[int, typer.Option(help="The first example.")] = 0,
    data_seed: Annotated[int, typer.Option(help="Whose data.")] = 0,
    format: Annotated[Format, typer.Option(help="How to show them.")] = Format.text,
    out: Annotated[Path | None, typer.Option(help="A file to write; several pictures become NAME-0, NAME-1, …")] = None,
    set: Annotated[list[str] | None, typer.Option("--set", help=HELP)] = None,
) -> None:
    """Print examples: what is given, what is asked, the answer and why.

    Examples:

    unseen show retrieval/T6 --set length=5

    unseen show retrieval/T4 --condition ood/single --format svg -n 1 --out t4.svg
    """
    from unseen.tasks import TASKS
    from unseen.tasks import task as make

    options = settings(set or [], {"task": TASKS.load(task)})["task"]
    found = make(task, **options)
    if n < 1:
        raise UsageError(f"-n {n}: give a positive number of examples")
    examples = found.sample(condition, n, start, data_seed)
    writer = {Format.text: _text, Format.json: _json, Format.html: _html}.get(format)
    if writer is not None:
        write(writer(found, examples, condition), out)
        if format is Format.text and out is None:
            typer.echo(f"\n{_page(found)}", err=True)
    elif n > 1 or format is Format.png:
        _write_pictures(found, examples, format, out)
    else:
        write(found.picture(examples, 0), out)


def _text(task: Task, examples: Examples, condition: str) -> str:
    unseen = task.condition(condition).unseen
    head = f"{task.name} · {condition} · {task.condition(condition).summary}"
    head += f"\nunseen here: {', '.join(unseen)}" if unseen else ""
    zero_loss = task.zero_loss(condition)
    head += "" if zero_loss is None else f"\nalways answering 0 is off by {zero_loss:.4f} on average"
    return "\n\n".join([head, *(task.describe(examples, i) for i in range(len(examples)))])


def _page(task: Task) -> str:
    """Where more about a task stands."""
    return f"page: tasks/{task.name} of the documentation (make docs)"


def _json(task: Task, examples: Examples, condition: str) -> str:
    return "\n".join(json.dumps(task.record(examples, i)) for i in range(len(examples)))


def _html(task: Task, examples: Examples, condition: str) -> str:
    from html import escape

    parts = [
        f"<figure>{task.picture(examples, i)}<figcaption><pre>{escape(task.describe(examples, i))}</pre>"
        "</figcaption></figure>"
        for i in range(len(examples))
    ]
    title = escape(f"{task.name} · {condition}")
    style = "body{font:1rem system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}figure{margin:2rem 0}"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{style}</style></head><body><h1>{title}</h1>{''.join(parts)}<p>{escape(_page(task))}</p></body></html>"
    )


def _write_pictures(task: Task, examples: Examples, format: Format, out: Path | None) -> None:
    if out is None:
        raise UsageError(f"--format {format} with these options needs --out FILE")
    targets = [out] if len(examples) == 1 else [out.with_stem(f"{out.stem}-{i}") for i in range(len(examples))]
    for i, target in enumerate(targets):
        picture = task.picture(examples, i)
        write(_png(picture) if format is Format.png else picture, target)
    if len(targets) > 1:
        typer.echo(f"{len(targets)} pictures: {targets[0]} … {targets[-1]}", err=True)


def _png(svg: str) -> bytes:
    try:
        import vl_convert
    except ImportError:
        raise UsageError("PNG needs the extra 'report': pip install 'unseen[report]'") from None
    return bytes(vl_convert.svg_to_png(svg, scale=2))

"""`unseen show`: look at examples of a task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from unseen.cli.complete import complete_setting, complete_split, complete_task
from unseen.cli.output import check_output, load_task, write_output
from unseen.cli.settings import HELP, parse_settings
from unseen.errors import UsageError

if TYPE_CHECKING:
    from unseen.tasks.base import Examples, Task

Format = Literal["text", "json", "svg", "png", "html"]
MOST_SHOWN = 10**9
"""The bytes that may be used to draw examples that are shown."""


def show(
    task: Annotated[str, typer.Argument(help="A task, e.g. retrieval/T6.", autocompletion=complete_task)],
    split: Annotated[str, typer.Option(help="The split to show examples of.", autocompletion=complete_split)] = "train",
    n: Annotated[int, typer.Option("-n", help="Number of examples.")] = 3,
    start: Annotated[int, typer.Option(help="Index of the first example.")] = 0,
    data_seed: Annotated[int, typer.Option(help="Data seed.")] = 0,
    format: Annotated[Format, typer.Option(help="Output format.")] = "text",
    out: Annotated[Path | None, typer.Option(help="A file to write; several pictures become NAME-0, NAME-1, …")] = None,
    set: Annotated[list[str] | None, typer.Option("--set", help=HELP, autocompletion=complete_setting)] = None,
) -> None:
    """Print examples of a task: the inputs, the question, the answer and why.

    Examples:

    unseen show retrieval/T6 --set length=5

    unseen show retrieval/T4 --split ood/single --format svg -n 1 --out t4.svg
    """
    from unseen.tasks import task as make_task

    check_output(out, format)
    options = parse_settings(set or [], {"task": load_task(task)})["task"]
    made_task = make_task(task, **options)
    if n < 1:
        raise UsageError(f"-n {n}: give a positive number of examples")
    _check_size(made_task, n)
    examples = made_task.sample(split, n, start, data_seed)
    page = f"page: tasks/{made_task.name} of the documentation (make docs)"
    if format == "text":
        write_output(_as_text(made_task, examples, split), out)
        if out is None:
            typer.echo(f"\n{page}", err=True)
    elif format == "json":
        write_output("\n".join(json.dumps(made_task.record(examples, i)) for i in range(n)), out)
    elif format == "html":
        write_output(_as_html(made_task, examples, f"{made_task.name} · {split}", page), out)
    elif n > 1 or format == "png":
        _write_pictures(made_task, examples, format, out)
    else:
        write_output(made_task.picture(examples, 0), out)


def _check_size(task: Task, n: int) -> None:
    """Refuse a few examples that take too much memory: whole blocks are made, so that example i is always the same."""
    from unseen.memory import format_bytes
    from unseen.tasks.base import GENERATION

    generated = max(n, task.block)
    size = generated * task.example_bytes() * GENERATION
    if size > MOST_SHOWN:
        raise UsageError(
            f"{task.name}: to show examples of this size, {generated:,} are drawn at once, which takes about "
            f"{format_bytes(size)} of memory; at most {format_bytes(MOST_SHOWN)} are used for that. Choose shorter inputs "
            "or fewer examples; `unseen export` and `train` are bounded by the machine's memory alone"
        )


def _as_text(task: Task, examples: Examples, split: str) -> str:
    heading = f"{task.name} · {split} · {task.get_split(split).summary}"
    unseen = task.get_split(split).unseen
    if unseen:
        heading += f"\nunseen here: {', '.join(unseen)}"
    zero_loss = task.zero_loss(split)
    if zero_loss is not None:
        heading += f"\nmean absolute error of always predicting 0: {zero_loss:.4f}"
    return "\n\n".join([heading, *(task.describe(examples, i) for i in range(len(examples)))])


def _as_html(task: Task, examples: Examples, title: str, page: str) -> str:
    from html import escape

    figures = []
    for i in range(len(examples)):
        caption = f"<pre>{escape(task.describe(examples, i))}</pre>"
        figures.append(f"<figure>{task.picture(examples, i)}<figcaption>{caption}</figcaption></figure>")
    style = "body{font:1rem system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}figure{margin:2rem 0}"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{style}</style></head><body><h1>{escape(title)}</h1>{''.join(figures)}<p>{escape(page)}</p>"
        "</body></html>"
    )


def _write_pictures(task: Task, examples: Examples, format: Format, out: Path | None) -> None:
    """Write every example as SVG or PNG; several examples go to numbered files."""
    if out is None:
        raise UsageError(f"--format {format} with these options needs --out FILE")
    files = [out]
    if len(examples) > 1:
        files = [out.with_stem(f"{out.stem}-{i}") for i in range(len(examples))]
    for i, file in enumerate(files):
        picture = task.picture(examples, i)
        write_output(_to_png(picture) if format == "png" else picture, file)
    if len(files) > 1:
        typer.echo(f"{len(files)} pictures: {files[0]} … {files[-1]}", err=True)


def _to_png(svg: str) -> bytes:
    try:
        import vl_convert
    except ImportError:
        raise UsageError("PNG needs the extra 'report': pip install 'unseen[report]'") from None
    return bytes(vl_convert.svg_to_png(svg, scale=2))

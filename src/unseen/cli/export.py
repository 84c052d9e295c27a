"""`unseen export`: examples in the files that others read."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.console import Console

from unseen.cli.settings import HELP, settings

if TYPE_CHECKING:
    from unseen.export.parts import Part
    from unseen.tasks.base import DataSeed


class Format(StrEnum):
    """The files to write."""

    jsonl = "jsonl"
    npz = "npz"
    parquet = "parquet"
    hf = "hf"
    tsv = "tsv"


def export(
    task: Annotated[str, typer.Argument(help="A task, e.g. retrieval/T6.")],
    format: Annotated[
        Format,
        typer.Option(
            help="jsonl: as `verify --data` reads it; npz, parquet, hf (Hugging Face "
            "datasets): arrays; tsv: as published (retrieval)."
        ),
    ],
    out: Annotated[Path, typer.Option(help="A new or empty folder.")],
    condition: Annotated[
        list[str] | None,
        typer.Option(help="Which distribution; may be repeated. Default: all that are finite, with -n all."),
    ] = None,
    n: Annotated[int | None, typer.Option("-n", help="Examples per condition. Default: all of a finite one.")] = None,
    data_seed: Annotated[str, typer.Option(help="Whose data: 0, 1, … of a run, validation, test.")] = "0",
    set: Annotated[list[str] | None, typer.Option("--set", help=HELP)] = None,
) -> None:
    """Write examples to files: JSON lines, NPZ, Parquet, Hugging Face datasets with a data card, the retrieval TSV.

    Examples:

    unseen export ctl/A --condition iid --condition ood/transition --format jsonl --out ctl-a

    unseen export gcog/productive -n 10000 --data-seed test --format hf --out gcog-productive
    """
    from rich.progress import Progress, TaskID

    from unseen.export.write import write_export
    from unseen.tasks import TASKS
    from unseen.tasks import task as make

    found = make(task, **settings(set or [], {"task": TASKS.load(task)})["task"])
    # What is no data seed is refused where examples are drawn.
    seed = cast("DataSeed", int(data_seed) if data_seed.lstrip("-").isdecimal() else data_seed)
    console = Console(stderr=True, highlight=False)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bars:
        under_way: dict[str, TaskID] = {}

        def show(part: Part, more: int) -> None:
            name = part.condition.name
            if name not in under_way:
                under_way[name] = bars.add_task(name, total=part.examples)
            bars.update(under_way[name], advance=more)

        done = write_export(found, out, format.value, condition or (), n, seed, show)
    for part, file in zip(done.parts, done.files, strict=True):
        typer.echo(f"{part.condition.name}: {part.examples} examples in {file}")
    if done.verify is not None:
        typer.echo(f"to prove them: {done.verify}")

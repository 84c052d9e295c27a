"""`unseen export`: write examples to files that other programs read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer
from rich.console import Console

from unseen.cli.output import load_task
from unseen.cli.settings import HELP, parse_settings

if TYPE_CHECKING:
    from unseen.export.splits import ExportedSplit
    from unseen.tasks.base import DataSeed

Format = Literal["jsonl", "npz", "parquet", "hf", "tsv"]


def export(
    task: Annotated[str, typer.Argument(help="A task, e.g. retrieval/T6.")],
    format: Annotated[
        Format,
        typer.Option(
            help="jsonl: as `verify --data` reads it; npz, parquet, hf (Hugging Face datasets): arrays; "
            "tsv: as published (retrieval)."
        ),
    ],
    out: Annotated[Path, typer.Option(help="A new or empty folder.")],
    split: Annotated[
        list[str] | None,
        typer.Option(help="A split; may be repeated. Default: all finite splits, or all splits if -n is given."),
    ] = None,
    n: Annotated[int | None, typer.Option("-n", help="Examples per split. Default: all of a finite one.")] = None,
    data_seed: Annotated[str, typer.Option(help="Data seed: 0, 1, … as in a run, validation, or test.")] = "0",
    set: Annotated[list[str] | None, typer.Option("--set", help=HELP)] = None,
) -> None:
    """Write examples as JSON lines, NPZ, Parquet, Hugging Face datasets with a data card, or the retrieval TSV.

    Examples:

    unseen export ctl/A --split iid --split ood/transition --format jsonl --out ctl-a

    unseen export gcog/productive -n 10000 --data-seed test --format hf --out gcog-productive
    """
    from rich.progress import Progress, TaskID

    from unseen.export.write import write_export
    from unseen.tasks import task as make_task

    made_task = make_task(task, **parse_settings(set or [], {"task": load_task(task)})["task"])
    # A text that is no data seed is refused where examples are drawn.
    seed = cast("DataSeed", int(data_seed) if data_seed.lstrip("-").isdecimal() else data_seed)
    console = Console(stderr=True, highlight=False)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bars:
        bar_of_split: dict[str, TaskID] = {}

        def advance(part: ExportedSplit, examples: int) -> None:
            name = part.split.name
            if name not in bar_of_split:
                bar_of_split[name] = bars.add_task(name, total=part.examples)
            bars.update(bar_of_split[name], advance=examples)

        result = write_export(made_task, out, format, split or (), n, seed, advance)
    for exported, file in zip(result.parts, result.files, strict=True):
        typer.echo(f"{exported.split.name}: {exported.examples} examples in {file}")
    if result.verify is not None:
        typer.echo(f"to verify them: {result.verify}")

"""`unseen results`: the records of a directory."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unseen.cli.output import write
from unseen.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd


class Format(StrEnum):
    """How to print records."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"


def results(
    directory: Annotated[Path, typer.Argument(help="A directory that `train` or `run` wrote.")],
    format: Annotated[Format, typer.Option(help="table: a summary; the others: every record.")] = Format.table,
    curves: Annotated[bool, typer.Option("--curves", help="The learning curves instead of the records.")] = False,
    cells: Annotated[bool, typer.Option("--cells", help="One row per run: how far it is, how it ended.")] = False,
    failures: Annotated[bool, typer.Option("--failures", help="What failed and why, with tracebacks.")] = False,
    provenance: Annotated[bool, typer.Option("--provenance", help="Versions, machine and times of each run.")] = False,
    votes: Annotated[bool, typer.Option("--votes", help="In how many experiments each gating is the best.")] = False,
    success: Annotated[bool, typer.Option("--success", help="How many runs converge, how many solve.")] = False,
    grid: Annotated[str, typer.Option(metavar="ROWS,COLUMNS", help="Accuracies as a matrix over two axes.")] = "",
    out: Annotated[Path | None, typer.Option(help="A file to write instead of printing (needed for parquet).")] = None,
) -> None:
    """Print what runs left behind; it may be asked while they are going on.

    Examples:

    unseen results runs/t1

    unseen results runs/t1 --format csv --out t1.csv

    unseen results runs/table2 --failures

    unseen results runs/rules --votes

    unseen results runs/ctl --grid bridge,shared
    """
    asked = {
        "curves": curves,
        "cells": cells,
        "failures": failures,
        "provenance": provenance,
        "votes": votes,
        "success": success,
        "grid": bool(grid),
    }
    if sum(asked.values()) > 1:
        raise UsageError(f"{', '.join(f'--{name}' for name in asked)} are different tables; give one of them")
    what = next((name for name, chosen in asked.items() if chosen), "records")
    if grid and format is not Format.table:
        raise UsageError("--grid is a table for people; give --format without it for every record")
    for_people: dict[str, Callable[[], str]] = {
        "records": lambda: _summary(directory),
        "failures": lambda: _failures(directory),
        "success": lambda: _success(directory),
        "grid": lambda: _grid(directory, grid),
    }
    if format is Format.table and what in for_people:
        write(for_people[what](), out)
        return
    table = _frame(directory, what)
    if format is Format.parquet:
        _parquet(table, out)
        return
    texts = {
        Format.table: lambda: table.to_string(index=False),
        Format.csv: lambda: table.to_csv(index=False),
        Format.json: lambda: _json(table),
    }
    write(texts[format](), out)


def _summary(directory: Path) -> str:
    from unseen.cli.summary import summary

    return summary(directory)


def _success(directory: Path) -> str:
    from unseen.cli.analyses import success_text

    return success_text(_frame(directory, "success"))


def _grid(directory: Path, axes: str) -> str:
    from unseen.cli.analyses import grid
    from unseen.studies.store import Store

    with Store.read(directory) as store:
        return grid(store, axes)


def _frame(directory: Path, what: str) -> pd.DataFrame:
    from unseen.cli.analyses import success, votes
    from unseen.studies.store import Store
    from unseen.studies.tables import cells_table

    with Store.read(directory) as store:
        frames: dict[str, Callable[[], pd.DataFrame]] = {
            "records": store.records,
            "curves": store.curves,
            "failures": store.failures,
            "provenance": store.provenance,
            "cells": lambda: cells_table(store.entries()),
            "votes": lambda: votes(store),
            "success": lambda: success(store),
        }
        return frames[what]()


def _failures(directory: Path) -> str:
    from unseen.studies.store import Store
    from unseen.studies.tables import cells_table

    with Store.read(directory) as store:
        failures, cells = store.failures(), cells_table(store.entries()).set_index("cell")
    if not len(failures):
        return "no cell has failed"
    lines = []
    for row in failures.itertuples():
        cell = cells.loc[[row.cell]].iloc[0]
        lines += [
            f"{cell.task} {cell.task_options} · {cell.model} {cell.model_options} · seed {cell.seed}, "
            f"after step {row.step}: {row.cause}",
            str(row.traceback),
        ]
    return "\n".join(lines)


def _json(table: pd.DataFrame) -> str:
    """Every digit of every number; what is not a number is null."""
    whole = table.astype(object)
    return json.dumps(whole.where(table.notna(), None).to_dict("records"), indent=1, ensure_ascii=False)


def _parquet(table: pd.DataFrame, out: Path | None) -> None:
    if out is None:
        raise UsageError("--format parquet needs --out FILE")
    # A column of Parquet has one type: an axis with levels of several is written as text.
    texts = table.select_dtypes(object)
    mixed = [name for name in texts if texts[name].dropna().map(type).nunique() > 1]
    try:
        table.astype(dict.fromkeys(mixed, str)).to_parquet(out)
    except ImportError:
        raise UsageError("Parquet needs the extra 'parquet': pip install 'unseen[parquet]'") from None
    except OSError as error:
        raise UsageError(f"{out} can't be written: {error.strerror or error}") from error

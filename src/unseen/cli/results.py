"""`unseen results`: the records of a directory."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unseen.cli.output import write
from unseen.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd


class Format(StrEnum):
    """How to print records."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"


def results(
    directory: Annotated[Path, typer.Argument(help="A directory that `train` wrote.")],
    format: Annotated[Format, typer.Option(help="table: a summary; the others: every record.")] = Format.table,
    curves: Annotated[bool, typer.Option("--curves", help="The learning curves instead of the records.")] = False,
    out: Annotated[Path | None, typer.Option(help="A file to write instead of printing (needed for parquet).")] = None,
) -> None:
    """Print what finished runs left behind.

    Examples:

    unseen results runs/t1

    unseen results runs/t1 --format csv --out t1.csv
    """
    from unseen.studies.store import Store

    if format is Format.table and not curves:
        write(summary(directory), out)
        return
    with Store.read(directory) as store:
        table = store.curves() if curves else store.records()
    if format is Format.parquet:
        _parquet(table, out)
        return
    texts = {Format.table: lambda: table.to_string(index=False), Format.csv: lambda: table.to_csv(index=False),
             Format.json: lambda: table.to_json(orient="records", indent=1)}
    write(texts[format](), out)


def summary(directory: Path) -> str:
    """Accuracy (or loss) of every seed under both selection rules, with the mean and its interval."""
    from unseen.studies.cell import words
    from unseen.studies.store import Store

    with Store.read(directory) as store:
        records, cells, work = store.records(), store.cells(), store.work
    task, model = work.get("task", {}), work.get("model", {})
    lines = [f"{words(task)} · {words(model)} · recipe {words(work.get('recipe', {}))}"]
    metric = "accuracy" if (records.metric == "accuracy").any() else "loss"
    whole = records[(records.factor == "") & (records.metric == metric)]
    for (condition, selection), rows in whole.groupby(["condition", "selection"]):
        lines.append(_line(f"{condition} {metric}, {selection} weights", rows))
    pending = int((cells.status == "pending").sum())
    ended = cells.status.isin(["finished", "stopped"])
    covered = "initialisation and data" if work.get("data_seed") == "own" else "initialisation, on one data set"
    notes = [f"{pending} of {len(cells)} runs have not ended" if pending else "",
             _seeds(cells, cells.status == "diverged", "diverged"),
             _seeds(cells, cells.still_learning == 1, "still learning at the end"),
             _seeds(cells, ended & cells.still_learning.isna(), "too few validations to tell whether still learning"),
             f"intervals: 95 %, bootstrap over seeds ({covered})"
             + ("; indicative, fewer than 10 seeds" if ended.sum() < 10 else "") if ended.sum() >= 3 else ""]
    return "\n".join(lines + [note for note in notes if note])


def _line(title: str, rows: pd.DataFrame) -> str:
    import numpy as np

    from unseen.randomness import stream
    from unseen.stats import bootstrap

    rows = rows.sort_values(["seed", "data_seed"])
    values = rows.value.to_numpy(float)
    whole = values[np.isfinite(values)]
    interval = bootstrap(whole, generator=stream("interval", title).block(), covers="seeds")
    spread = f" [{interval.low:.3f}, {interval.high:.3f}]" if len(whole) >= 3 else ""
    each = " ".join(f"{v:.3f}" for v in values)
    mean = f"{whole.mean():.3f}" if len(whole) else "none"
    left_out = f" ({len(values) - len(whole)} not finite, left out)" if len(whole) < len(values) else ""
    return f"{title}: {mean}{spread} over {len(whole)} seeds{left_out}: {each}"


def _seeds(cells: pd.DataFrame, chosen: pd.Series, what: str) -> str:
    seeds = ", ".join(map(str, cells[chosen].seed))
    return f"{what}: seed {seeds}" if seeds else ""


def _parquet(table: pd.DataFrame, out: Path | None) -> None:
    if out is None:
        raise UsageError("--format parquet needs --out FILE")
    try:
        table.to_parquet(out)
    except ImportError:
        raise UsageError("Parquet needs the extra 'parquet': pip install 'unseen[parquet]'") from None
    except OSError as error:
        raise UsageError(f"{out} can't be written: {error.strerror or error}") from error

"""`unseen results`: the records of a directory."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
    out: Annotated[Path | None, typer.Option(help="A file to write instead of printing (needed for parquet).")] = None,
) -> None:
    """Print what finished runs left behind.

    Examples:

    unseen results runs/t1

    unseen results runs/t1 --format csv --out t1.csv
    """
    from unseen.api import results as read

    if format is Format.table:
        typer.echo(summary(directory))
        return
    table = read(directory)
    if format is Format.parquet:
        _parquet(table, out)
    else:
        text = table.to_csv(index=False) if format is Format.csv else table.to_json(orient="records", indent=1)
        if out is None:
            typer.echo(text, nl=False)
        else:
            out.write_text(text)


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
    notes = [f"{pending} of {len(cells)} runs have not ended" if pending else "",
             _seeds(cells, cells.status == "diverged", "diverged"),
             _seeds(cells, cells.still_learning == 1, "still learning at the end")]
    return "\n".join(lines + [note for note in notes if note])


def _line(title: str, rows: pd.DataFrame) -> str:
    from unseen.randomness import stream
    from unseen.stats import bootstrap

    values = rows.sort_values("seed").value.to_numpy()
    interval = bootstrap(values, generator=stream("interval", title).block(), covers="initialisation and data")
    spread = f" [{interval.low:.3f}, {interval.high:.3f}]" if len(values) >= 3 else ""
    each = " ".join(f"{v:.3f}" for v in values)
    return f"{title}: {values.mean():.3f}{spread} over {len(values)} seeds: {each}"


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

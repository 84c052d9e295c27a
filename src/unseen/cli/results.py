"""`unseen results`: the records of a directory, and analyses over its runs as tables."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from unseen.cli.option_text import wrap
from unseen.cli.output import check_output, csv_text, fit_table, rows_for_json, write_output
from unseen.cli.summary import WEIGHTS
from unseen.errors import UsageError, nearest
from unseen.files import replace_atomically
from unseen.names import format_level

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from unseen.store.store import Store

_OOD_SPLITS = "the splits on which they are cast (ood/amplitude=2, ood/length=30,amplitude=2)"

Format = Literal["table", "csv", "json", "parquet", "latex"]


def results(
    directory: Annotated[Path, typer.Argument(help="A directory that `train` or `run` wrote.")],
    format: Annotated[
        Format, typer.Option(help="table: a summary; latex: the same for a paper; else every record.")
    ] = "table",
    curves: Annotated[bool, typer.Option("--curves", help="The learning curves instead of the records.")] = False,
    trials: Annotated[bool, typer.Option("--trials", help="One row per trial: its progress and how it ended.")] = False,
    failures: Annotated[bool, typer.Option("--failures", help="The failed trials with their tracebacks.")] = False,
    provenance: Annotated[bool, typer.Option("--provenance", help="Versions, machine and times of each run.")] = False,
    votes: Annotated[bool, typer.Option("--votes", help="In how many experiments each gating is the best.")] = False,
    success: Annotated[
        bool, typer.Option("--success", help="How many runs converge, and how many of them solve each split.")
    ] = False,
    grid: Annotated[str, typer.Option(metavar="ROWS,COLUMNS", help="Accuracies as a matrix over two axes.")] = "",
    out: Annotated[Path | None, typer.Option(help="A file to write instead of printing (needed for parquet).")] = None,
) -> None:
    """Print the results of a directory. This also works while its runs are in progress.

    Examples:

    unseen results runs/t1

    unseen results runs/t1 --format csv --out t1.csv

    unseen results runs/table2 --format latex --out table2.tex

    unseen results runs/table2 --failures

    unseen results runs/rules --votes

    unseen results runs/ctl --grid bridge,shared
    """
    flags = {
        "curves": curves,
        "trials": trials,
        "failures": failures,
        "provenance": provenance,
        "votes": votes,
        "success": success,
        "grid": bool(grid),
    }
    chosen = [name for name, flag in flags.items() if flag]
    if len(chosen) > 1:
        raise UsageError(f"{', '.join(f'--{name}' for name in flags)} are different tables; give one of them")
    if grid and format != "table":
        raise UsageError("--grid prints a table; use --format without --grid to get every record")
    table_name = chosen[0] if chosen else "records"
    check_output(out, format)
    if format == "table":
        write_output(_read_text(directory, table_name, grid), out)
        return
    if format == "latex":
        from unseen.cli.latex import format_results, format_table

        whole = table_name == "records"
        write_output(format_results(directory) if whole else format_table(_read_table(directory, table_name)), out)
        return
    table = _read_table(directory, table_name)
    if format == "csv":
        write_output(csv_text(table), out)
    elif format == "json":
        write_output(json.dumps(rows_for_json(table), indent=1, ensure_ascii=False), out)
    else:
        _write_parquet(table, out)


def _read_text(directory: Path, table_name: str, grid: str) -> str:
    """A table as text; some tables have a form of their own for the terminal."""
    from unseen.cli.summary import summarize
    from unseen.store.store import Store

    if table_name == "records":
        return summarize(directory)
    if table_name == "failures":
        return _format_failures(directory)
    if table_name == "success":
        with Store.read(directory) as store:
            return _format_success(_success_table(store), _selection(store))
    if table_name == "grid":
        with Store.read(directory) as store:
            return _format_grid(store, grid)
    table = _read_table(directory, table_name)
    if table_name == "votes" and "ood" not in set(table["split"]):
        return f"{_format_frame(table)}\n\nNo votes out of distribution: no run was tested on {_OOD_SPLITS}"
    return _format_frame(table)


def _format_frame(table: pd.DataFrame) -> str:
    """A table that fits the terminal: its columns are wrapped into blocks where they are too many."""
    from unseen.cli.option_text import text_width

    if table.empty:
        return "no run has left a row for this table yet"
    return table.to_string(index=False, line_width=text_width(unbounded=True))


def _read_table(directory: Path, table_name: str) -> pd.DataFrame:
    from unseen.store.store import Store
    from unseen.store.tables import trials_table

    with Store.read(directory) as store:
        if table_name == "votes":
            return _votes_table(store)
        if table_name == "success":
            return _success_table(store)
        if table_name == "trials":
            return trials_table(store.entries())
        if table_name == "curves":
            return store.curves()
        if table_name == "failures":
            return store.failures()
        if table_name == "provenance":
            return store.provenance()
        return store.records()


def _format_failures(directory: Path) -> str:
    from unseen.store.store import Store
    from unseen.store.tables import trials_table

    with Store.read(directory) as store:
        failures = store.failures()
        trials = trials_table(store.entries()).set_index("trial")
    if not len(failures):
        return "no trial has failed"
    lines = []
    for failure in failures.itertuples():
        trial = trials.loc[[failure.trial]].iloc[0]  # a trial of several scales has several rows
        lines.append(
            f"{trial.task} {trial.task_options} · {trial.model} {trial.model_options} · seed {trial.seed}, "
            f"after step {failure.step}: {failure.cause}"
        )
        lines.append(str(failure.traceback))
    return "\n".join(lines)


def _write_parquet(table: pd.DataFrame, out: Path | None) -> None:
    if out is None:
        raise UsageError("--format parquet needs --out FILE")
    # A Parquet column has one type: an axis whose levels have several types is written as text.
    objects = table.select_dtypes(object)
    mixed = [name for name in objects if objects[name].dropna().map(type).nunique() > 1]
    try:
        with replace_atomically(out) as temporary:
            table.astype(dict.fromkeys(mixed, str)).to_parquet(temporary)
    except ImportError:
        raise UsageError("Parquet needs the extra 'parquet': pip install 'unseen[parquet]'") from None
    except OSError as error:
        raise UsageError(f"{out} can't be written: {error.strerror or error}") from error


# -- votes, success rates, matrices ---------------------------------------------------------------------------------


def _votes_table(store: Store) -> pd.DataFrame:
    """The votes at every scale, from the last weights as in the paper."""
    import pandas as pd

    from unseen.analysis.votes import vote_table

    records, entries = store.tables(overall=True)
    if "gating" not in _study_axes(entries):
        raise UsageError(
            f"votes are cast between gatings, and {store.work.get('study', 'a single train')} has no axis "
            "gating; studies of the rules family have one, e.g. rules-main"
        )
    tables = [vote_table(rows).assign(scale=scale) for scale, rows in records.groupby("scale", sort=False)]
    votes = pd.concat(tables or [vote_table(records).assign(scale="")], ignore_index=True)
    return votes[["scale", *votes.columns.drop("scale")]]


def _success_table(store: Store) -> pd.DataFrame:
    """How many runs of each configuration converged, and how many of these solve every other split."""
    import pandas as pd

    from unseen.analysis.accuracy import success_table

    records, entries = store.tables(overall=True)
    axes = _configuration_axes(records, entries)
    diverged = []
    for entry in entries[entries.status == "diverged"].to_dict("records"):
        names = {key: json.loads(entry[key])["name"] for key in ("task", "model")}
        diverged.append({"scale": entry["scale"], **names, **json.loads(entry["levels"])})
    return success_table(
        records, axes, selection=_selection(store), diverged=pd.DataFrame(diverged).reindex(columns=axes)
    )


def _format_success(table: pd.DataFrame, selection: str) -> str:
    """The success table as text: means with their spread over seeds, counts with intervals."""
    from unseen.analysis.accuracy import CONVERGED, SOLVED

    if not len(table):
        return "no run has an accuracy in and out of distribution yet"
    axes = list(table.columns[: table.columns.get_loc("split")])
    counts = ["runs", "diverged"] if table["diverged"].any() else ["runs"]
    columns: dict[str, Iterable[object]] = {name: table[name] for name in [*axes, "split", *counts]}
    columns["iid"] = _format_means(table, "inside")
    columns["converged"] = _format_counts(table, "converged", table["runs"])
    columns["all runs"] = _format_means(table, "accuracy")
    columns["converged runs"] = _format_means(table, "accuracy_converged")
    columns["of them solve it"] = _format_counts(table, "solved", table["converged"])
    note = (
        f"converged: iid accuracy of at least {CONVERGED:g}; solved: more than {SOLVED:g}. {WEIGHTS[selection].capitalize()}; ± one "
        "standard deviation over seeds; rates with 95 % Wilson intervals"
    )
    rows = [list(columns)]
    for values in zip(*columns.values(), strict=True):
        rows.append(list(map(str, values)))
    return "\n".join([*fit_table(rows, len(axes) + 1), "", *wrap(note)])


def _format_grid(store: Store, axes: str) -> str:
    """Mean ± standard deviation over seeds of the accuracy of the weights that the study shows, as matrices over two
    axes: one for each split and combination of the other axes."""
    records, entries = store.tables(overall=True)
    selection = _selection(store)
    rows = records[(records["metric"] == "accuracy") & (records["selection"] == selection)]
    available = _configuration_axes(records, entries)
    chosen = [name.strip() for name in axes.split(",")]
    if len(chosen) != 2 or len(set(chosen)) != 2:
        raise UsageError(f"--grid {axes}: name two axes, rows first, e.g. --grid {','.join(available[:2])}")
    for name in chosen:
        if name not in available:
            raise UsageError(f"--grid {axes}: no axis '{name}' here. {nearest(name, available)}")
    others = ["split", *(name for name in available if name not in chosen)]
    blocks = []
    for levels, group in rows.groupby(others, sort=False, dropna=False):
        means = group.groupby(chosen, sort=True)["value"].agg(["mean", "std"])
        matrix = means.apply(lambda row: _format_mean(row["mean"], row["std"]), axis=1).unstack().fillna("")
        title = "  ".join(filter(None, map(format_level, levels)))
        blocks += [title, matrix.to_string(), ""]
    if not blocks:
        return "no run has ended yet"
    return "\n".join([*blocks, f"{WEIGHTS[selection]}; ± one standard deviation over seeds"])


def _selection(store: Store) -> str:
    """The weights that the study shows; the last where nothing is known about it, as in the papers' tables."""
    from unseen.studies.description import find_description

    description = find_description(store.work, store.description)
    return "last" if description is None else description.selection


def _study_axes(entries: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(map(json.loads, entries.levels.unique()))))


def _configuration_axes(records: pd.DataFrame, entries: pd.DataFrame) -> list[str]:
    """The axes of the study, and before them scale, task and model where they differ."""
    axes = _study_axes(entries)
    columns = []
    for name in ("scale", "task", "model"):
        if name in records and (name in axes or records[name].nunique() > 1):
            columns.append(name)
    return list(dict.fromkeys([*columns, *axes])) or ["task", "model"]


def _format_mean(mean: float, spread: float) -> str:
    if mean != mean:
        return ""
    return f"{mean:.3f}" if spread != spread else f"{mean:.3f} ± {spread:.3f}"


def _format_means(table: pd.DataFrame, name: str) -> list[str]:
    return [_format_mean(*row) for row in zip(table[name], table[f"{name}_spread"], strict=True)]


def _format_counts(table: pd.DataFrame, name: str, totals: pd.Series) -> list[str]:
    texts = []
    for count, total, low, high in zip(table[name], totals, table[f"{name}_low"], table[f"{name}_high"], strict=True):
        interval = f" [{low:.2f}, {high:.2f}]" if low == low else ""
        texts.append(f"{count:g} of {total:g}{interval}")
    return texts

"""Analyses over the runs of a store, as tables: votes, success, grids of two axes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from unseen.errors import UsageError, nearest

if TYPE_CHECKING:
    import pandas as pd

    from unseen.studies.store import Store


def votes(store: Store) -> pd.DataFrame:
    """The votes of every scale, from the last weights as in the paper."""
    import pandas as pd

    from unseen.metrics.votes import vote_table

    records, entries = store.tables(overall=True)
    if "gating" not in _axes(entries):
        raise UsageError(
            f"votes are cast between gatings, and {store.work.get('study', 'a single train')} has no axis "
            "gating; studies of the rules family have one, e.g. rules-main"
        )
    tables = [vote_table(rows).assign(scale=scale) for scale, rows in records.groupby("scale", sort=False)]
    found = pd.concat(tables or [vote_table(records).assign(scale="")], ignore_index=True)
    return found[["scale", *found.columns.drop("scale")]]


def success(store: Store) -> pd.DataFrame:
    """How many runs of each place converged, and how many of these solve each other condition (last weights)."""
    import pandas as pd

    from unseen.metrics.success import success_table

    records, entries = store.tables(overall=True)
    by = _places(records, entries)
    lost = [
        {"scale": scale, "task": json.loads(task)["name"], "model": json.loads(model)["name"], **json.loads(levels)}
        for scale, task, model, levels, status in entries[["scale", "task", "model", "levels", "status"]].to_numpy()
        if status == "diverged"
    ]
    return success_table(records, by, diverged=pd.DataFrame(lost).reindex(columns=by))


def success_text(table: pd.DataFrame) -> str:
    """The table of `success` for people: means with their spread over seeds, counts with intervals."""
    import pandas as pd

    from unseen.metrics.success import CONVERGED, SOLVED

    if not len(table):
        return "no run has an accuracy in and out of distribution yet"
    by = list(table.columns[: table.columns.get_loc("condition")])
    counts = ["runs", "diverged"] if table["diverged"].any() else ["runs"]
    shown = pd.DataFrame(
        {
            **{column: table[column] for column in [*by, "condition", *counts]},
            "iid": [_mean(*pair) for pair in zip(table["inside"], table["inside_spread"], strict=True)],
            "converged": _counts(table, "converged", table["runs"]),
            "all runs": [_mean(*pair) for pair in zip(table["accuracy"], table["accuracy_spread"], strict=True)],
            "converged runs": [
                _mean(*pair)
                for pair in zip(table["accuracy_converged"], table["accuracy_converged_spread"], strict=True)
            ],
            "of them solve it": _counts(table, "solved", table["converged"]),
        }
    )
    note = (
        f"converged: iid accuracy of at least {CONVERGED:g}; solved: more than {SOLVED:g}. Last weights; ± one "
        "standard deviation over seeds; rates with 95 % Wilson intervals"
    )
    return f"{shown.to_string(index=False)}\n\n{note}"


def grid(store: Store, axes: str) -> str:
    """Mean ± spread over seeds of the last weights' accuracy, a matrix over two axes for each condition and for each
    combination of the other axes."""
    records, entries = store.tables(overall=True)
    rows = records[(records["metric"] == "accuracy") & (records["selection"] == "last")]
    known = _places(records, entries)
    named = [name.strip() for name in axes.split(",")]
    if len(named) != 2 or len(set(named)) != 2:
        raise UsageError(f"--grid {axes}: name two axes, rows first, e.g. --grid {','.join(known[:2])}")
    for name in named:
        if name not in known:
            raise UsageError(f"--grid {axes}: no axis '{name}' here. {nearest(name, known)}")
    others = ["condition", *(name for name in known if name not in named)]
    parts = []
    for place, found in rows.groupby(others, sort=False, dropna=False):
        cells = found.groupby(named, sort=True)["value"].agg(["mean", "std"])
        text = cells.apply(lambda one: _mean(one["mean"], one["std"], 3), axis=1).unstack().fillna("")
        parts += ["  ".join(str(level) for level in place if level == level), text.to_string(), ""]
    return "\n".join(parts) or "no run has ended yet"


def _axes(entries: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(axis for levels in entries.levels.unique() for axis in json.loads(levels)))


def _places(records: pd.DataFrame, entries: pd.DataFrame) -> list[str]:
    """Scale, task and model where they differ, and the axes."""
    axes = _axes(entries)
    shown = [
        name for name in ("scale", "task", "model") if name in records and (name in axes or records[name].nunique() > 1)
    ]
    return list(dict.fromkeys([*shown, *axes])) or ["task", "model"]


def _mean(value: float, spread: float, digits: int = 3) -> str:
    if value != value:
        return ""
    return f"{value:.{digits}f}" + (f" ± {spread:.{digits}f}" if spread == spread else "")


def _counts(table: pd.DataFrame, name: str, of: pd.Series) -> list[str]:
    numbers = zip(table[name], of, table[f"{name}_low"], table[f"{name}_high"], strict=True)
    return [
        f"{count:g} of {n:g}" + (f" [{low:.2f}, {high:.2f}]" if low == low else "") for count, n, low, high in numbers
    ]

"""The tidy tables users get, from the rows a store keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import pandas as pd

from unseen.studies.cell import words

T = TypeVar("T")
_RECORD = ["selection", "condition", "factor", "level", "metric", "value", "standard_error", "n"]
_CELL = ["seed", "data_seed", "status", "step", "still_learning"]
_PARTS = ["task", "task_options", "model", "model_options", "recipe", "recipe_options"]


def records_table(records: pd.DataFrame, entries: pd.DataFrame) -> pd.DataFrame:
    """Records with the place of their cell in the study, in the order of the study."""
    placed, place = labelled(entries)
    return _joined(placed[[*place, *_PARTS, *_CELL, "cell"]], records)[[*place, *_PARTS, *_CELL, *_RECORD, "cell"]]


def curves_table(curves: pd.DataFrame, entries: pd.DataFrame) -> pd.DataFrame:
    """Points of learning curves with the place of their cell in the study."""
    placed, place = labelled(entries)
    shown = [*place, "task", "model", "seed", "data_seed"]
    return _joined(placed[[*shown, "cell"]], curves)[[*shown, "step", "condition", "metric", "value", "cell"]]


def cells_table(entries: pd.DataFrame) -> pd.DataFrame:
    """One row per cell and scale: its place in the study, how far it is, how it ended, and why if it failed."""
    placed, place = labelled(entries)
    return placed[[*place, *_PARTS, *_CELL, "best_step", "note", "cause", "cell"]]


def _joined(placed: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of every cell beside its place: cells in the order of the study, the rows of each as they came."""
    placed, rows = placed.assign(_place=range(len(placed))), rows.assign(_row=range(len(rows)))
    joined = placed.merge(rows, on="cell", how="inner", sort=False)
    return joined.sort_values(["_place", "_row"], ignore_index=True)


def labelled(entries: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Entries with columns for scale and axes and for the parts of the cell; and the names of the former."""
    levels = _each(entries.levels, json.loads)
    axes = list(dict.fromkeys(axis for found in levels for axis in found if axis not in ("task", "model")))
    columns: dict[str, Any] = {axis: _levels([found.get(axis) for found in levels]) for axis in axes}
    for part in ("task", "model", "recipe"):
        said = _each(entries[part], lambda text: words(json.loads(text)).partition(" "))
        columns |= {part: [name for name, _, _ in said], f"{part}_options": [rest for _, _, rest in said]}
    scaled = ["scale"] if (entries.scale != "").any() else []
    return entries.assign(**columns), scaled + axes


def _levels(levels: list[Any]) -> Any:
    """A column of levels, each of its own type: where some cells have none, pandas would make 5 of them 5.0."""
    return levels if None not in levels else pd.Series(levels, dtype=object)


def _each(column: pd.Series, function: Callable[[str], T]) -> list[T]:
    """A function of every text in a column. Thousands of cells share few texts, so it is asked once for each."""
    texts = column.tolist()
    known = {text: function(text) for text in set(texts)}
    return [known[text] for text in texts]

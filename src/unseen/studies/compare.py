"""Stores side by side: at every place that two have in common, the difference between their runs and a paired test."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from unseen.errors import UsageError, nearest
from unseen.randomness import stream
from unseen.stats import FEWEST, Estimate, benjamini_hochberg, paired, permutation_test
from unseen.studies.compare_notes import Beside, alarms, footnotes, heading
from unseen.studies.same import Same, same_cells
from unseen.studies.sides import Place, Run, Side, matched

METRICS = ("accuracy", "relative_loss", "loss")
"""What is compared if nobody says: the first that both sides have at a place."""
SELECTIONS = ("best", "last")
FIRST = ("pair", "a", "b", "scale_a", "scale_b")
"""The columns before the place: task, model and axes."""
COLUMNS = (
    "condition",
    "metric",
    "mean_a",
    "mean_b",
    "difference",
    "low",
    "high",
    "p",
    "p_adjusted",
    "test",
    "pairs",
    "runs_a",
    "runs_b",
    "alone_a",
    "alone_b",
    "lost_a",
    "lost_b",
    "still_learning_a",
    "still_learning_b",
    "indicative",
    "covers",
    "identical",
    "changed",
    "cells",
)
"""The columns behind them. `runs` were compared, `alone` had no partner on the other side, `lost` have no number;
`identical` and `changed` count the pairs that are one cell, with the same numbers or with others."""
Scores = Mapping[tuple[str, str], Mapping[str, float]]
"""(condition, metric) → cell → value."""


@dataclass(frozen=True)
class Comparison:
    """One row per pair of directories, place and condition; `axes` are the columns that say which place.

    `heading` has a line about each directory, `alarms` what must not be overlooked (the same cell with other numbers),
    `notes` what the numbers are and how the directories differ.
    """

    table: pd.DataFrame
    axes: tuple[str, ...]
    heading: tuple[str, ...]
    alarms: tuple[str, ...]
    notes: tuple[str, ...]


class Value(NamedTuple):
    """The score of a run."""

    run: Run
    score: float


Values = Mapping[tuple[Any, ...], Value]
"""By the key of the run."""


def compare(
    sides: Sequence[Side], *, metric: str | None = None, condition: str | None = None, selection: str = "best"
) -> Comparison:
    """Each side against the first. A positive difference says that the other side's numbers are higher."""
    if len(sides) < 2:
        raise UsageError(f"a comparison needs two directories or more, got {len(sides)}")
    if selection not in SELECTIONS:
        raise UsageError(f"unknown selection '{selection}'. {nearest(selection, SELECTIONS)}")
    letters = [chr(ord("A") + i) if i < 26 else f"D{i + 1}" for i in range(len(sides))]
    scores = [_scores(side.records, selection) for side in sides]
    rows: list[dict[str, Any]] = []
    beside = []
    for i in range(1, len(sides)):
        a, b = sides[0], sides[i]
        places, both = list(matched(a, b)), (scores[0], scores[i])
        _check(a, b, places, both, metric, condition)
        same = same_cells(a, b)
        found = [list(_rows(*pair, both, same, METRICS if metric is None else (metric,), condition)) for pair in places]
        if not any(found):
            raise UsageError(
                f"nothing to compare yet: {len(places)} places are in {a.name} and in {b.name}, but at "
                "none of them have runs of both ended with a condition and a metric in common"
            )
        rows += [
            {"pair": f"{letters[i]} − A", "a": a.name, "b": b.name, **_place(*pair), **row}
            for pair, of_pair in zip(places, found, strict=True)
            for row in of_pair
        ]
        beside.append(Beside(letters[i], a, b, places, sum(not one for one in found), same))
    table, axes = _table(rows, sides)
    return Comparison(
        table,
        axes,
        tuple(map(heading, letters, sides)),
        tuple(line for one in beside for line in alarms(one)),
        tuple(footnotes(table, beside, selection)),
    )


def _table(rows: Sequence[Mapping[str, Any]], sides: Sequence[Side]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The rows with their p values adjusted, and the columns that say which place it is."""
    known = dict.fromkeys(_column(axis) for side in sides for axis in side.axes)
    axes = ("task", "model", *(axis for axis in known if any(axis in row for row in rows)))
    adjusted = benjamini_hochberg([row["p"] for row in rows])
    whole = [{**row, "p_adjusted": p} for row, p in zip(rows, adjusted.tolist(), strict=True)]
    names = (*FIRST, *axes, *COLUMNS)
    return pd.DataFrame({name: _series([row.get(name) for row in whole]) for name in names}), axes


def _scores(records: pd.DataFrame, selection: str) -> Scores:
    whole = records[(records["selection"] == selection) & (records["factor"] == "")]
    found: dict[tuple[str, str], dict[str, float]] = {}
    for cell, condition, metric, value in zip(
        *(whole[name].tolist() for name in ("cell", "condition", "metric", "value")), strict=True
    ):
        found.setdefault((condition, metric), {})[cell] = value
    return found


def _check(
    a: Side,
    b: Side,
    places: Sequence[tuple[Place, Place]],
    scores: Sequence[Scores],
    metric: str | None,
    condition: str | None,
) -> None:
    """Refuse what has nothing in common, and names that are not known on both sides."""
    if not places:
        raise UsageError(
            f"nothing to compare: no place is in both.\n  {a.holds()}\n  {b.holds()}\nPlaces are matched "
            "on task, model and the levels of the axes that both have"
        )
    for what, asked, position in (("condition", condition, 0), ("metric", metric, 1)):
        known = [{key[position] for key in one} for one in scores]
        if asked is not None and asked not in known[0] & known[1]:
            where = " and ".join(one.name for one, names in zip((a, b), known, strict=True) if asked not in names)
            raise UsageError(f"{what} '{asked}' is not in {where}. {nearest(asked, known[0] & known[1])}")


def _rows(
    a: Place, b: Place, scores: Sequence[Scores], same: Same, metrics: Iterable[str], condition: str | None
) -> Iterable[dict[str, Any]]:
    """A row for every condition that runs of both sides have been evaluated on."""
    for name in [condition] if condition is not None else list(dict.fromkeys(key[0] for key in scores[0])):
        for metric in metrics:
            values = [_values(place, one.get((name, metric), {})) for place, one in zip((a, b), scores, strict=True)]
            if all(values):
                lost = [_lost(place, found) for place, found in zip((a, b), values, strict=True)]
                yield {
                    "condition": name,
                    "metric": metric,
                    "lost_a": lost[0],
                    "lost_b": lost[1],
                    **_row(values[0], values[1], same),
                }
                break


def _values(place: Place, scores: Mapping[str, float]) -> Values:
    """The runs of a place that have a number."""
    found = {run.key: Value(run, scores.get(run.cell, math.nan)) for run in place.runs}
    return {key: one for key, one in found.items() if math.isfinite(one.score)}


def _lost(place: Place, found: Values) -> int:
    """The runs of a place that ended without a number: diverged, failed, or not finite."""
    return sum(run.status != "pending" and run.key not in found for run in place.runs)


def _row(a: Values, b: Values, same: Same) -> dict[str, Any]:
    shared = sorted(a.keys() & b.keys(), key=repr)
    left, right = ([side[key] for key in shared] or list(side.values()) for side in (a, b))
    cells = [one.run.cell for one, other in zip(left, right, strict=False) if shared and one.run.cell == other.run.cell]
    identical, changed = (sum(cell in held for cell in cells) for held in (same.identical, same.changed))
    units, covers = [_units(side) for side in (left, right)], _covers([*left, *right])
    means = [float(np.mean(list(side.values()))) for side in units]
    # The same runs twice are no test of anything.
    tested = None if shared and identical == len(shared) else _test(units[0], units[1], bool(shared), covers)
    enough = tested is not None and tested.interval.fewest >= FEWEST
    return {
        "mean_a": means[0],
        "mean_b": means[1],
        "difference": means[1] - means[0],
        "low": tested.interval.low if tested else math.nan,
        "high": tested.interval.high if tested else math.nan,
        "p": tested.p_value if tested and enough else math.nan,
        "test": "paired" if shared else "unpaired",
        "pairs": len(units[0]) if shared else 0,
        "runs_a": len(left),
        "runs_b": len(right),
        "alone_a": len(a) - len(left),
        "alone_b": len(b) - len(right),
        "still_learning_a": sum(one.run.still_learning is True for one in left),
        "still_learning_b": sum(one.run.still_learning is True for one in right),
        "indicative": bool(enough and tested and tested.interval.indicative),
        "covers": covers,
        "identical": identical,
        "changed": changed,
        "cells": _sameness(len(shared), identical, changed),
    }


def _units(values: Sequence[Value]) -> dict[str, float]:
    """What is resampled: runs; or tasks, with the mean of their runs, where several were drawn."""
    tasks = {repr(one.run.key[0]) for one in values}
    groups: dict[str, list[float]] = {}
    for one in values:
        groups.setdefault(repr(one.run.key[0]) if len(tasks) > 1 else repr(one.run.key), []).append(one.score)
    return {name: float(np.mean(group)) for name, group in groups.items()}


def _test(a: Mapping[str, float], b: Mapping[str, float], pairs: bool, covers: str) -> Estimate:
    draws = stream("interval", "compare").block()
    if pairs:
        return paired(b, a, generator=draws, covers=covers)
    return permutation_test(list(b.values()), list(a.values()), generator=draws, covers=covers)


def _covers(values: Sequence[Value]) -> str:
    """What varies between the runs compared."""
    keys = {one.run.key for one in values}
    several = len({repr(task) for task, _, _ in keys}) > 1
    data = "initialisation and data" if len({data for _, _, data in keys}) > 1 else "initialisation, on one data set"
    return f"task instance, {data}" if several else data


def _sameness(pairs: int, identical: int, changed: int) -> str:
    if changed:
        return f"same cell, other numbers: {changed} of {pairs}"
    return "" if not identical else "identical" if identical == pairs else f"identical: {identical} of {pairs}"


def _place(a: Place, b: Place) -> dict[str, Any]:
    """The columns that say which place it is: an axis of one side only is that side's."""
    levels = {_column(axis): level for axis, level in {**b.levels, **a.levels}.items()}
    models = dict.fromkeys(str(place.levels["model"]) for place in (a, b))
    return {"scale_a": a.scale, "scale_b": b.scale, **levels, "model": " | ".join(models)}


def _column(axis: str) -> str:
    """The column of an axis: its name, unless that says something else here."""
    return f"{axis} (axis)" if axis in (*FIRST, *COLUMNS) else axis


def _series(values: list[Any]) -> pd.Series:
    """A column in which levels keep their types."""
    kinds = {type(value) for value in values}
    return pd.Series(values, dtype=object if len(kinds) > 1 else None)

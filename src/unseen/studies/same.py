"""Cells that two stores share: the same numbers in both, as promised, or not."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from unseen.studies.sides import Side

_KEY = ["cell", "selection", "condition", "factor", "level", "metric"]
_NUMBERS = ["value", "standard_error", "n"]
_ENDING = ["status", "step", "best_step", "still_learning"]
_COSTS = ("cell", "seconds", "cpu_seconds", "parameters")
"""What differs between any two runs of a cell, or says nothing about where it was run."""


@dataclass(frozen=True)
class Same:
    """Cells that have ended on both sides: those with the same numbers and those with others.

    `numbers` is how many records differ, `largest` the largest difference between two values (NaN where none can be
    given), `alone` how many records only one side has.
    """

    identical: frozenset[str]
    changed: frozenset[str]
    numbers: int
    largest: float
    alone: int


def same_cells(a: Side, b: Side) -> Same:
    """Compare every record, and how each run ended, of the cells that have ended on both sides: to the bit."""
    shared = set(a.ended["cell"]) & set(b.ended["cell"])
    left, right = (_of(side.records, shared, [*_KEY, *_NUMBERS]) for side in (a, b))
    both = left.merge(right, on=_KEY, how="outer", suffixes=("_a", "_b"), indicator="_side")
    paired = both[both["_side"] == "both"]
    off = _differ(paired, _NUMBERS)
    gap = (paired["value_a"] - paired["value_b"]).abs()[off]
    ends = _of(a.ended, shared, ["cell", *_ENDING]).merge(
        _of(b.ended, shared, ["cell", *_ENDING]), on="cell", suffixes=("_a", "_b")
    )
    changed = frozenset(paired["cell"][off]) | frozenset(ends["cell"][_differ(ends, _ENDING)])
    return Same(
        frozenset(shared) - changed,
        changed,
        int(off.sum()),
        float(gap.max()) if gap.notna().any() else np.nan,
        len(both) - len(paired),
    )


def facts(side: Side, cells: Collection[str]) -> dict[str, str]:
    """Versions and machines behind cells: every fact with its values, as text."""
    rows = side.provenance[side.provenance["cell"].isin(cells)]
    found = {str(name): sorted({str(value) for value in rows[name].dropna()}) for name in rows if name not in _COSTS}
    return {name: " or ".join(values) for name, values in found.items() if values}


def _of(table: pd.DataFrame, cells: Collection[str], columns: list[str]) -> pd.DataFrame:
    """The rows of cells, once: a cell may belong to several scales."""
    return table.loc[table["cell"].isin(cells), columns].drop_duplicates([c for c in columns if c in _KEY])


def _differ(both: pd.DataFrame, columns: list[str]) -> pd.Series:
    """Where a column differs between the sides; what is missing on both agrees."""
    off = pd.Series(False, index=both.index)
    for column in columns:
        x, y = both[f"{column}_a"], both[f"{column}_b"]
        off |= (x != y) & ~(x.isna() & y.isna())
    return off

"""The claims of the four papers, and what they measure. Here: what the measures of all papers share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd


def option_column(runs: pd.DataFrame, name: str, default: Any = None) -> pd.Series:
    """Return an option of the runs (`task.length`), with a default where their task or model does not have it."""
    values = runs[name] if name in runs else pd.Series(None, runs.index, dtype=object)
    return values.where(values.notna(), default)


def label_extremes(numbers: pd.Series, highest: str, lowest: str) -> Any:
    """Label each number as the highest, the lowest or between.

    >>> label_extremes(pd.Series([4, 8, 16]), "most", "least").tolist()
    ['least', 'between', 'most']
    """
    return np.select([numbers == numbers.max(), numbers == numbers.min()], [highest, lowest], "between")


def stack_metrics(tables: Mapping[str, pd.DataFrame], columns: Sequence[str] = ()) -> pd.DataFrame:
    """Put tables below each other, each under the name of its metric; without any, an empty one with `columns`."""
    named = [rows.assign(metric=name) for name, rows in tables.items()]
    return pd.concat(named, ignore_index=True) if named else pd.DataFrame(columns=list(columns))

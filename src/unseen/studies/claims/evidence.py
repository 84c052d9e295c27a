"""Which runs a claim is judged from, which are left out, and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, TypeVar

import pandas as pd

T = TypeVar("T")
ENDED = ("finished", "stopped")
SEED = ("seed", "data_seed")


@dataclass(frozen=True)
class Design:
    """What counts as one draw of chance, and which runs are compared with each other.

    Runs with equal values in the columns `unit` are one draw: it is resampled as a whole. Draws that share a value of
    `cluster` are resampled together first; `noun` is what there must be enough of. Without `places` a draw counts
    where it has a run at every place of a group, and groups are compared draw by draw. With them every run counts, and
    the runs of two groups are compared that agree in all these columns but those in which the groups differ;
    `made_from` names the place behind a column that is made from it.
    """

    unit: tuple[str, ...] = SEED
    cluster: str = ""
    noun: str = "seed"
    covers: str = ""
    places: tuple[str, ...] = ()
    made_from: Mapping[str, str] = field(default_factory=dict)

    def shared_by(self, groups: Sequence[Group]) -> list[str]:
        """The columns in which runs of these groups agree if they are compared."""
        named = {column for one in groups for column in one.columns}
        differing = {
            self.made_from.get(column, column)
            for column in named
            if len({one.columns.get(column) for one in groups}) > 1
        }
        return [*(place for place in self.places if place not in differing), *self.unit]


SEEDS = Design()


@dataclass(frozen=True)
class Group:
    """Runs with these values in these columns, and the metric read from them.

    A group of several values (two variants, three tasks) counts a seed only where all of them have ended with it.
    `label` is for people, where the values do not speak for themselves.
    """

    columns: Mapping[str, tuple[Hashable, ...]]
    metric: str = "accuracy"
    factor: str = ""
    label: str = ""

    def __str__(self) -> str:
        """In words, the task last.

        >>> print(group(task="retrieval/T6", variant=("T−Pos+Att", "T+Pos+Att"), metric="R7/positive"))
        R7/positive of T−Pos+Att and T+Pos+Att on T6
        """
        tasks = " and ".join(_words("task", task) for task in self.columns.get("task", ()))
        values = [
            " and ".join(_words(column, value) for value in values)
            for column, values in self.columns.items()
            if column != "task"
        ]
        return self.measured + (self.label or ", ".join(filter(None, values))) + (f" on {tasks}" if tasks else "")

    @property
    def measured(self) -> str:
        """What is measured, in words; nothing where it is plainly the accuracy."""
        if self.factor:
            return f"{self.factor} and {self.metric.rpartition('/')[2]} of "
        return "" if self.metric == "accuracy" else f"{self.metric} of "

    @property
    def who(self) -> Group:
        """The same runs, whatever is measured of them."""
        return replace(self, metric="accuracy", factor="")


def group(metric: str = "accuracy", factor: str = "", label: str = "", **columns: Any) -> Group:
    """A group; a single value may stand for itself."""
    listed = {name: value if isinstance(value, tuple) else (value,) for name, value in columns.items()}
    return Group(listed, metric, factor, label)


@dataclass(frozen=True)
class Chosen:
    """The records of a group's usable runs, of seeds that are whole, and what was left out.

    `missing` says why there is nothing to measure, if nothing was run that could be.
    """

    rows: pd.DataFrame
    left_out: tuple[str, ...] = ()
    missing: str = ""


@dataclass(frozen=True)
class Evidence:
    """Records and runs of one scale and setting. `runs` has one row per run, whether it left records or not.

    `keys` are the columns that tell the runs of one seed apart.
    """

    records: pd.DataFrame
    runs: pd.DataFrame
    keys: tuple[str, ...]
    design: Design = SEEDS
    _kept: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def covers(self) -> str:
        """What varies between draws."""
        if self.design.covers:
            return self.design.covers
        return "initialisation" if self.runs["data_seed"].nunique() <= 1 else "initialisation and data"

    @property
    def ambiguous(self) -> bool:
        """Whether some seed has two runs that the claim can't tell apart."""
        apart = list(dict.fromkeys([*self.keys, *self.design.unit, *SEED]))
        return set(apart) <= set(self.runs) and bool(self.runs.duplicated(apart).any())

    @property
    def _places(self) -> list[str]:
        """The keys that the runs have."""
        return [key for key in self.keys if key in self.runs]

    def choose(self, wanted: Group) -> Chosen:
        """The records of a group that may be used."""
        runs = _select(self.runs, wanted.columns)
        rows = self._measures(wanted.metric, wanted.factor)
        rows = rows[rows["cell"].isin(runs["cell"])]
        missing = self._missing(wanted, runs, rows)
        if missing:
            return Chosen(rows.iloc[:0], (), missing)
        judged = runs.assign(why=why_not(runs))
        return Chosen(rows[rows["cell"].isin(self._whole(judged))], tuple(self._said(judged)))

    def absent(self, wanted: Group) -> str:
        """What of a group was not run at all, ended or not; empty if nothing."""
        unknown = next((column for column in wanted.columns if column not in self.runs), "")
        if unknown:
            return f"the runs have no {unknown}"
        there = {column: self._values((column,)) for column in wanted.columns}
        absent = [
            _words(column, value)
            for column, values in wanted.columns.items()
            for value in values
            if (value,) not in there[column]
        ]
        if absent:
            return f"{' and '.join(absent)} not run"
        found = self._values(tuple(wanted.columns)) & set(product(*wanted.columns.values()))
        return f"{wanted.who} not run" if len(found) < math.prod(map(len, wanted.columns.values())) else ""

    def _values(self, columns: tuple[str, ...]) -> set[tuple[Hashable, ...]]:
        """What the runs have in these columns."""
        return self._once(("values", columns), lambda: set(map(tuple, self.runs[list(columns)].to_numpy())))

    def _measures(self, metric: str, factor: str) -> pd.DataFrame:
        """The records of a metric that have a value."""
        records = self.records
        return self._once(
            ("records", metric, factor),
            lambda: records[(records["metric"] == metric) & (records["factor"] == factor) & records["value"].notna()],
        )

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Worked out at the first asking: hundreds of groups ask for the same few columns and metrics."""
        if key not in self._kept:
            self._kept[key] = make()
        found: T = self._kept[key]
        return found

    def _missing(self, wanted: Group, runs: pd.DataFrame, rows: pd.DataFrame) -> str:
        absent = self.absent(wanted)
        if absent:
            return absent
        if not runs["status"].isin([*ENDED, "diverged"]).any():
            return f"no run of {wanted.who} has ended"
        if rows.empty and runs["status"].isin(ENDED).any():
            return f"no {wanted.metric} of {wanted.who} in these runs"
        return ""

    def _whole(self, runs: pd.DataFrame) -> pd.Series:
        """The usable cells; without places to compare at, of the draws that have one at every place of the group."""
        usable = runs[runs["why"] == ""]
        if self.design.places:
            return usable["cell"]
        places = len(runs[self._places].drop_duplicates())
        return usable["cell"][usable.groupby(list(self.design.unit))["cell"].transform("size") == places]

    def _said(self, runs: pd.DataFrame) -> list[str]:
        """`T−Pos+Att on T6: 3 of 5 still learning`, place by place."""
        if (runs["why"] == "").all():
            return []  # as mostly; grouping thousands of runs takes its time
        said = []
        for place, found in runs.groupby(self._places, sort=False, dropna=False):
            counts = found["why"].value_counts().sort_index()
            reasons = [f"{count} of {len(found)} {reason}" for reason, count in counts.items() if reason != ""]
            if reasons:
                where = Group({key: (value,) for key, value in zip(self._places, place, strict=True)})
                said.append(f"{where}: {', '.join(reasons)}")
        return sorted(said)


def why_not(runs: pd.DataFrame) -> list[str]:
    """For each run why it can't be used; empty if it can."""
    return [_why_not(status, still) for status, still in zip(runs["status"], runs["still_learning"], strict=True)]


def _why_not(status: str, still_learning: Any) -> str:
    """Why a run can't be used; empty if it can."""
    if status not in ENDED:
        return {"pending": "not finished"}.get(status, status)
    if pd.isna(still_learning):
        return "too short to tell whether still learning"
    return "still learning" if still_learning else ""


def _select(frame: pd.DataFrame, columns: Mapping[str, Sequence[Hashable]]) -> pd.DataFrame:
    """The rows with these values; none where a column is missing."""
    chosen = pd.Series(True, frame.index)
    for column, values in columns.items():
        chosen &= frame[column].isin(list(values)) if column in frame else False
    return frame[chosen]


def _words(column: str, value: Hashable) -> str:
    """A value in words: a name speaks for itself, a task without its family, a number with its column."""
    return value.rpartition("/")[2] if isinstance(value, str) else f"{column} {value}"

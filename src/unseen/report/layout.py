"""How any study is laid out in figures: which number is shown of a run, what is a series, a panel, a repetition."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from unseen.engine.recipe import Recipe
from unseen.report.means import RESAMPLES, means
from unseen.report.source import Source
from unseen.report.theme import title_of

INSTANCES = ("task_seed",)
"""Axes that repeat a place on another instance of its task: never a panel; intervals count them as chance."""
PANELS, WITH_CONDITIONS = 24, 12
"""More panels than these nobody compares; conditions have panels of their own only up to fewer."""
DRAWS = 5_000_000
"""Runs times resamples behind the intervals of a figure: about half a second."""
CONDITION = "condition"
UNSEEN = "ood/"


@dataclass(frozen=True)
class Metric:
    """A number of a run, its name on an axis, and which way is better."""

    name: str
    title: str
    rising: bool = True

    @property
    def word(self) -> str:
        """Its name alone."""
        return self.title.partition(" (")[0]

    @property
    def format(self) -> str:
        """How it is written: a share in per cent."""
        return "%" if self.name == "accuracy" else ".2~f"


METRICS = (
    Metric("accuracy", "accuracy"),
    Metric("relative_loss", "relative loss (lower is better)", rising=False),
    Metric("loss", "loss (lower is better)", rising=False),
)
"""What is shown of a run: the first it has. A real target has no accuracy."""
RELATIVE = "Relative loss: the loss as a share of that of always answering 0."


@dataclass(frozen=True)
class Layout:
    """Scores of the weights that are shown, laid out.

    `rows` has one row per run and condition shown: `series`, `panel`, `place` (a number for each combination of all
    other axes), `condition`, `instance` (the task seed, where several were run), `seed`, `value`, `still_learning`,
    `cell`. `series` and `panels` are the labels in their order, `axis` names what the series are, `pooled` the axes
    whose runs stand together in a panel, `averaged` says that a run's value is its mean over `conditions`.
    """

    metric: Metric
    rows: pd.DataFrame
    axis: str
    series: tuple[str, ...]
    panels: tuple[str, ...]
    pooled: tuple[str, ...]
    conditions: tuple[str, ...]
    averaged: bool

    @property
    def clusters(self) -> str | None:
        """The column whose values an interval counts as chance, if there is one."""
        return "instance" if self.rows["instance"].nunique() > 1 else None

    def means(self, *by: str) -> pd.DataFrame:
        """Means with their intervals by some columns."""
        return means(self.rows, by, self.clusters, resamples=self.resamples)

    @property
    def resamples(self) -> int:
        """How often to resample: less where there are very many runs, whose intervals are narrow."""
        return min(RESAMPLES, max(200, DRAWS // len(self.rows)))

    @property
    def notes(self) -> list[str]:
        """What must be said of it."""
        found = [RELATIVE] if self.metric.name == "relative_loss" else []
        if self.pooled:
            found.append(f"Runs of all {_and(self.pooled)} stand together: one panel each would be too many.")
        if self.averaged:
            several = _and(self.conditions) if len(self.conditions) <= 4 else f"its {len(self.conditions)} conditions"
            found.append(f"A run's value is its mean over {several}.")
        return found


def layouts(source: Source, *, every_condition: bool = False, panels: bool = True) -> list[Layout]:
    """The layouts of a source, one per metric that some run is judged by; empty where no run has left a number.

    Conditions are the telling ones: those out of distribution, or where there are none the one on which models are
    selected; each has panels of its own where there is room, else a run counts by its mean. `every_condition` keeps
    them all, as rows; without `panels` all places stand together.
    """
    found = []
    for metric, rows in _judged(source):
        shown = tuple(ordered_conditions(rows[CONDITION])) if every_condition else telling(source, rows)
        found.append(lay_out(source, metric, rows[rows[CONDITION].isin(shown)], shown, every_condition, panels))
    return found


def telling(source: Source, rows: pd.DataFrame) -> tuple[str, ...]:
    """The conditions of records that say most: out of distribution, or else the one on which models are selected."""
    held = ordered_conditions(rows[CONDITION])
    outside = [name for name in held if name.startswith(UNSEEN)]
    task = source.task(rows["cell"].iloc[0])
    wanted = [task.validation] if task is not None else []
    inside = [name for name in (*wanted, "iid", *held) if name in held]
    return tuple(outside or inside[:1])


def ordered_conditions(names: Iterable[str]) -> list[str]:
    """Conditions from the familiar to the strange, numbers in their order.

    >>> ordered_conditions(["ood/length=30", "iid", "ood/length=5", "train", "ood/length=5"])
    ['train', 'iid', 'ood/length=5', 'ood/length=30']
    """

    def key(name: str) -> tuple[object, ...]:
        parts = re.split(r"(\d+)", name)
        rank = next((k for k, begin in enumerate(("train", "iid", "")) if name.startswith(begin)), 0)
        return rank, [(int(part), "") if part.isdigit() else (-1, part) for part in parts]

    return sorted(set(names), key=key)


def batch_of(options: str) -> int:
    """The batch size in the words of a recipe, which leave out what is the default.

    >>> batch_of("batch=128 clip=1.0"), batch_of("clip=1.0")
    (128, 100)
    """
    said = re.search(r"(?:^| )batch=(\d+)", options)
    return int(said[1]) if said else int(Recipe.model_fields["batch"].default)


def _judged(source: Source) -> list[tuple[Metric, pd.DataFrame]]:
    """The overall numbers of the weights that are shown, by the metric each run is judged by."""
    held = source.records
    rows = held[(held["selection"] == source.selection) & (held["factor"] == "") & held["value"].notna()]
    found = []
    for metric in METRICS:
        own = rows[rows["metric"] == metric.name]
        if len(own):
            found.append((metric, own))
            rows = rows[~rows["cell"].isin(own["cell"].unique())]
    return found


def lay_out(
    source: Source,
    metric: Metric,
    rows: pd.DataFrame,
    conditions: tuple[str, ...],
    every_condition: bool = False,
    panels: bool = True,
) -> Layout:
    """The layout of rows with the columns of records, of these conditions."""
    axes = _varying(rows, [axis for axis in source.axes if axis not in INSTANCES])
    axis = source.series if source.series in axes or not axes else _most_telling(rows, axes)[0]
    others = [one for one in axes if one != axis]
    instances = [one for one in INSTANCES if one in source.axes]
    shown = others if panels else []
    averaged = len(conditions) > 1 and not every_condition
    if averaged and panels and _count(rows, [*shown, CONDITION]) <= WITH_CONDITIONS:
        shown, averaged = [*shown, CONDITION], False
    if averaged:
        first = rows.drop_duplicates("cell").set_index("cell")
        rows = first.assign(value=rows.groupby("cell", sort=False)["value"].mean(), condition="").reset_index()
    if _count(rows, shown) > PANELS:
        shown = _fitting(rows, _most_telling(rows, shown))
    labels = _labels(rows, shown)
    table = pd.DataFrame(
        {
            "series": rows[axis].map({level: title_of(level) for level in rows[axis].unique()}),
            "panel": labels,
            "place": _numbers(rows, others),
            "condition": rows[CONDITION],
            "instance": _numbers(rows, instances),
            "seed": rows["seed"],
            "value": rows["value"],
            "still_learning": rows["still_learning"] == 1,
            "cell": rows["cell"],
        }
    ).reset_index(drop=True)
    order = table.drop_duplicates("panel")
    if CONDITION in shown:  # conditions within places, in their order
        rank = {name: place for place, name in enumerate(conditions)}
        order = order.assign(rank=order["condition"].map(rank)).sort_values(["place", "rank"])
    return Layout(
        metric,
        table,
        axis,
        tuple(dict.fromkeys(table["series"])),
        tuple(order["panel"]),
        tuple(one for one in others if one not in shown) if panels else (),
        conditions,
        averaged,
    )


def _varying(rows: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    """The axes that have several levels; not one that some places lack, if the others tell these places apart."""
    several = [axis for axis in axes if rows[axis].nunique(dropna=False) > 1]
    lacking = [axis for axis in several if rows[axis].nunique() == 1]
    for axis in lacking:
        rest = [one for one in several if one != axis]
        if _count(rows, rest) == _count(rows, several):
            several = rest
    return several


def _most_telling(rows: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    """Axes by how much of the differences between scores they explain, the most first."""
    spread = {
        axis: rows.groupby(axis, dropna=False, sort=False)["value"].transform("mean").var(ddof=0) for axis in axes
    }
    return sorted(axes, key=lambda axis: -float(spread[axis]))


def _fitting(rows: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    """As many of the axes as there is room for, the first first."""
    shown: list[str] = []
    for axis in axes:
        if _count(rows, [*shown, axis]) <= PANELS:
            shown.append(axis)
    return shown


def _count(rows: pd.DataFrame, axes: Sequence[str]) -> int:
    return len(rows[list(axes)].drop_duplicates()) if axes else 1


def _numbers(rows: pd.DataFrame, axes: Sequence[str]) -> pd.Series:
    """A number for each combination of levels, in the order of the study."""
    if not axes:
        return pd.Series(0, index=rows.index)
    return rows.groupby(list(axes), dropna=False, sort=False).ngroup()


def _labels(rows: pd.DataFrame, axes: Sequence[str]) -> pd.Series:
    """What stands over each row's panel; '' where there is one panel."""
    numbers = _numbers(rows, axes)
    places = rows[list(axes)].assign(number_=numbers).drop_duplicates("number_")
    words = {axis: _words(axis, places[axis].tolist()) for axis in axes}
    found = {
        number: " · ".join(words[axis][k] for axis in axes if words[axis][k])
        for k, number in enumerate(places["number_"])
    }
    return numbers.map(found)


def _words(axis: str, levels: Sequence[object]) -> list[str]:
    """Levels that say what they are stand alone; where some are numbers or truth values, their axis is named."""
    words = [level for level in levels if level is not None]
    bare = all(isinstance(level, str) and not re.fullmatch(r"[\d.,\-]*", level) for level in words)
    return [
        "" if level is None or level != level else title_of(level) if bare else f"{axis}={title_of(level)}"
        for level in levels
    ]


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"

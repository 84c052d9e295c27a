"""How the runs of any study are arranged in a figure: which score is shown, and what is a series, panel or repeat."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from unseen.claims.render import join_names
from unseen.names import is_ood, parse_split
from unseen.report.data import RESAMPLES, Source, means
from unseen.report.theme import title_of

INSTANCES = ("task_seed",)
"""Axes that repeat a configuration on another instance of its task: never a panel, but clusters of the intervals."""
MAX_PANELS = 24
MAX_SPLIT_PANELS = 12
"""Splits get panels of their own only if there are at most this many."""
MAX_DRAWS = 5_000_000
"""Runs times resamples behind the intervals of one figure: about half a second."""
SPLIT = "split"
SEPARATOR = " · "
"""Between the parts of a panel's heading; a long heading is broken into lines there."""


@dataclass(frozen=True)
class ChartMetric:
    """A score as figures show it: its title on an axis, and whether higher is better."""

    name: str
    short_title: str
    rising: bool = True

    @property
    def title(self) -> str:
        """The title of an axis, which says so where a lower value is better."""
        return self.short_title if self.rising else f"{self.short_title} (lower is better)"

    @property
    def format(self) -> str:
        """The format of axis labels."""
        return "%" if self.name == "accuracy" else ".2~f"

    def text(self, value: float) -> str:
        """A value as text in a figure.

        >>> METRICS[0].text(0.8125), METRICS[1].text(0.8125)
        ('81.2 %', '0.812')
        """
        if self.format == "%":
            return f"{100 * value:.1f} %"
        return f"{value:.3f}" if abs(value) < 10 else f"{value:.3g}"


METRICS = (
    ChartMetric("accuracy", "accuracy"),
    ChartMetric("relative_loss", "relative loss", rising=False),
    ChartMetric("loss", "loss", rising=False),
)
"""A run is shown by the first of these that it has; real-valued targets have no accuracy."""
RELATIVE_LOSS_NOTE = "Relative loss: the loss divided by that of always predicting 0."


@dataclass(frozen=True)
class ChartLayout:
    """Scores of the weights that are shown, arranged for a figure.

    `rows` has one row per run and shown split: `series`, `panel`, `configuration` (a number for each combination of the
    other axes), `split`, `instance` (a number for each task seed), `seed`, `value`, `not_converged`, `trial`. `series`
    and `panels` are labels in order, `axis` is the axis of the series, `pooled` are axes whose runs share a panel, and
    `averaged` tells that the value of a run is its mean over `splits`.
    """

    metric: ChartMetric
    rows: pd.DataFrame
    axis: str
    series: tuple[str, ...]
    panels: tuple[str, ...]
    pooled: tuple[str, ...]
    splits: tuple[str, ...]
    averaged: bool
    header_lines: int = 1
    """The most lines that the label of a panel may be broken into."""

    @property
    def clusters(self) -> str | None:
        """The column of clusters for intervals, if there is more than one cluster."""
        return "instance" if self.rows["instance"].nunique() > 1 else None

    @property
    def resamples(self) -> int:
        """The number of resamples of profiles and probabilities: fewer for very many runs, whose bands are narrow."""
        return min(RESAMPLES, max(200, MAX_DRAWS // len(self.rows)))

    def means(self, *by: str) -> pd.DataFrame:
        """Means with intervals, grouped by some columns of `rows`."""
        return means(self.rows, by, self.clusters)

    @property
    def notes(self) -> list[str]:
        """Remarks that belong under a figure of this layout."""
        notes = []
        if self.metric.name == "relative_loss":
            notes.append(RELATIVE_LOSS_NOTE)
        if self.pooled:
            notes.append(f"Runs of all {join_names(self.pooled)} share a panel: separate panels would be too many.")
        if self.averaged:
            splits = join_names(self.splits) if len(self.splits) <= 4 else f"its {len(self.splits)} splits"
            notes.append(f"The value of a run is its mean over {splits}.")
        return notes


def layouts(source: Source, *, every_split: bool = False, panels: bool = True) -> list[ChartLayout]:
    """The layouts of a source, one per metric by which some run is judged; empty if no run has left a number.

    By default the splits are `informative_splits`: each has its own panels if there is room, otherwise a run is shown
    by its mean. `every_split` keeps all splits as rows. Without `panels`, all configurations share one panel.
    """
    records = source.records
    rows = records[(records["selection"] == source.selection) & (records["factor"] == "") & records["value"].notna()]
    result = []
    for metric in METRICS:
        scores = rows[rows["metric"] == metric.name]
        if scores.empty:
            continue
        rows = rows[~rows["trial"].isin(scores["trial"].unique())]
        splits = tuple(sort_splits(scores[SPLIT])) if every_split else informative_splits(source, scores)
        result.append(arrange(source, metric, scores[scores[SPLIT].isin(splits)], splits, every_split, panels))
    return result


def informative_splits(source: Source, rows: pd.DataFrame) -> tuple[str, ...]:
    """The splits out of distribution, or if there is none the split on which models are selected."""
    splits = sort_splits(rows[SPLIT])
    outside = [name for name in splits if is_ood(name)]
    if outside:
        return tuple(outside)
    task = source.task(rows["trial"].iloc[0])
    preferred = [] if task is None else [task.validation]
    return tuple(name for name in (*preferred, "iid", *splits) if name in splits)[:1]


def sort_splits(names: Iterable[str]) -> list[str]:
    """Distinct splits from the most familiar to the least, with numbers in numerical order.

    >>> sort_splits(["ood/length=30", "iid", "ood/length=5", "train", "ood/length=5"])
    ['train', 'iid', 'ood/length=5', 'ood/length=30']
    """

    def sort_key(name: str) -> tuple[object, ...]:
        pieces = re.split(r"(\d+)", name)
        return parse_split(name).kind, [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in pieces]

    return sorted(set(names), key=sort_key)


def arrange(
    source: Source,
    metric: ChartMetric,
    rows: pd.DataFrame,
    splits: tuple[str, ...],
    every_split: bool = False,
    panels: bool = True,
) -> ChartLayout:
    """Arrange rows with the columns of records, all of them on `splits`."""
    axes = _informative_axes(rows, [axis for axis in source.axes if axis not in INSTANCES])
    series_axis = source.series if source.series in axes or not axes else _sort_by_effect(rows, axes)[0]
    other_axes = [axis for axis in axes if axis != series_axis]
    panel_axes = other_axes if panels else []
    averaged = len(splits) > 1 and not every_split
    if averaged and panels and _count_combinations(rows, [*panel_axes, SPLIT]) <= MAX_SPLIT_PANELS:
        panel_axes = [*panel_axes, SPLIT]
        averaged = False
    if averaged:
        # One row per run: the mean over its splits, with everything else from its first row.
        first = rows.drop_duplicates("trial").set_index("trial")
        rows = first.assign(value=rows.groupby("trial", sort=False)["value"].mean(), split="").reset_index()
    if _count_combinations(rows, panel_axes) > MAX_PANELS:
        # Keep the axes with the largest effect on the score, as long as there is room.
        candidates = _sort_by_effect(rows, panel_axes)
        panel_axes = []
        for axis in candidates:
            if _count_combinations(rows, [*panel_axes, axis]) <= MAX_PANELS:
                panel_axes.append(axis)
    panel_labels, header_lines = _panel_labels(rows, panel_axes)
    levels = rows[series_axis].unique().tolist()
    series_texts = [
        text or title_of(level, series_axis)
        for level, text in zip(levels, _level_texts(series_axis, levels), strict=True)
    ]
    table = pd.DataFrame(
        {
            "series": rows[series_axis].map(dict(zip(levels, series_texts, strict=True))),
            "panel": panel_labels,
            "configuration": _number_combinations(rows, other_axes),
            "split": rows[SPLIT],
            "instance": _number_combinations(rows, [axis for axis in INSTANCES if axis in source.axes]),
            "seed": rows["seed"],
            "value": rows["value"],
            "not_converged": rows["not_converged"] == 1,
            "trial": rows["trial"],
        }
    ).reset_index(drop=True)
    panel_order = table.drop_duplicates("panel")
    if SPLIT in panel_axes:  # splits in their order within each configuration
        rank = {name: position for position, name in enumerate(splits)}
        panel_order = panel_order.assign(rank=panel_order["split"].map(rank))
        panel_order = panel_order.sort_values(["configuration", "rank"])
    pooled = tuple(axis for axis in other_axes if axis not in panel_axes) if panels else ()
    series = tuple(dict.fromkeys(table["series"]))
    panel_names = tuple(panel_order["panel"])
    return ChartLayout(metric, table, series_axis, series, panel_names, pooled, splits, averaged, header_lines)


def _informative_axes(rows: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    """The axes with several levels, without those that are missing in some rows and tell no configurations apart."""
    varied = [axis for axis in axes if rows[axis].nunique(dropna=False) > 1]
    # With one level besides "missing", an axis only marks the configurations that have it.
    for axis in [axis for axis in varied if rows[axis].nunique() == 1]:
        others = [other for other in varied if other != axis]
        if _count_combinations(rows, others) == _count_combinations(rows, varied):
            varied = others
    return varied


def _sort_by_effect(rows: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    """Axes by how much of the variance between scores they explain, the most first."""

    def explained(axis: str) -> float:
        return float(rows.groupby(axis, dropna=False, sort=False)["value"].transform("mean").var(ddof=0))

    return sorted(axes, key=explained, reverse=True)


def _count_combinations(rows: pd.DataFrame, axes: Sequence[str]) -> int:
    return len(rows[list(axes)].drop_duplicates()) if axes else 1


def _number_combinations(rows: pd.DataFrame, axes: Sequence[str]) -> pd.Series:
    """A number for each combination of levels, in the order of the study."""
    if not axes:
        return pd.Series(0, index=rows.index)
    return rows.groupby(list(axes), dropna=False, sort=False).ngroup()


def _panel_labels(rows: pd.DataFrame, axes: Sequence[str]) -> tuple[pd.Series, int]:
    """The heading of the panel of each row ('' if there is one panel), and the most lines that one may be broken into."""
    numbers = _number_combinations(rows, axes)
    combinations = rows[list(axes)].assign(number_=numbers).drop_duplicates("number_")
    texts = [_level_texts(axis, combinations[axis].tolist()) for axis in axes]
    labels = {}
    most_lines = 1
    for position, number in enumerate(combinations["number_"]):
        label_lines = [levels[position] for levels in texts if levels[position]]
        labels[number] = SEPARATOR.join(label_lines)
        most_lines = max(most_lines, len(label_lines))
    return numbers.map(labels), most_lines


def _level_texts(axis: str, levels: Sequence[object]) -> list[str]:
    """Levels as text: words alone, but numbers and truth values with the name of their axis."""
    are_words = True
    for level in levels:
        if level is not None and (not isinstance(level, str) or re.fullmatch(r"[\d.,\-]*", level)):
            are_words = False
    texts = []
    for level in levels:
        missing = level is None or level != level  # NaN differs from itself
        text = title_of(level, axis) if are_words else f"{axis}={title_of(level, axis)}"
        texts.append("" if missing else text)
    return texts

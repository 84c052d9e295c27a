"""The scores behind an answer: a row per configuration and split, beside chance, the best shortcut and the oracle."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from unseen.claims.render import join_names
from unseen.report.baselines import ALWAYS_0, CHANCE, ORACLE, mean_baselines, shortcut_accuracies
from unseen.report.data import SCORES, Source, means
from unseen.report.layout import INSTANCES, informative_splits, sort_splits
from unseen.report.theme import title_of

MAX_ROWS = 24
"""More configurations than this are not listed one by one: then each axis is listed on its own."""
MAX_NAMED = 6
"""The number of configurations that a sentence names."""
IID = "iid"


@dataclass(frozen=True)
class Standing:
    """The mean score of runs on a split; `low` and `high` are NaN if there are too few for an interval.

    `levels` are the levels of the runs on the axes that vary. `baselines` are the scores that need no learning, by
    name: chance, shortcuts and the oracle, or those of always predicting 0. `inside` is the mean in distribution.
    """

    levels: Mapping[str, str]
    split: str
    metric: str
    mean: float
    low: float
    high: float
    runs: int
    baselines: Mapping[str, float]
    inside: float = math.nan

    @property
    def name(self) -> str:
        """The levels in words: `T+Pos, length 5`. Numbers are named by their axis, words are not."""
        texts = []
        for axis, level in self.levels.items():
            is_number = level.replace(".", "").replace("-", "").isdigit() or level in ("True", "False")
            texts.append(f"{axis} {level}" if is_number else level)
        return ", ".join(texts)

    @property
    def score(self) -> str:
        """The mean with its interval."""
        if self.runs == 1:
            return f"{self.mean:.3f} (a single run)"
        if not math.isfinite(self.low):
            return f"{self.mean:.3f} ({self.runs} runs, too few for an interval)"
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"

    @property
    def shortcut(self) -> tuple[str, float] | None:
        """The best shortcut and its score, if the task has one that beats chance."""
        shortcuts = shortcut_accuracies(self.baselines)
        shortcuts.pop(ALWAYS_0, None)
        if not shortcuts:
            return None
        best = max(shortcuts, key=shortcuts.__getitem__)
        return (best, shortcuts[best]) if shortcuts[best] > self.baselines.get(CHANCE, -math.inf) else None

    @property
    def exceeds_shortcut(self) -> bool | None:
        """Whether the whole interval lies above chance and every shortcut; None if that is unknown."""
        bar = [value for name, value in self.baselines.items() if name != ORACLE]
        if self.metric != "accuracy" or not bar or not math.isfinite(self.low):
            return None
        return self.low > max(bar)


@dataclass(frozen=True)
class ScoreTable:
    """Standings in the order of the study. `split` is the one that the answer is about.

    `axes` are the columns that tell rows apart; `pooled` tells that there are too many configurations to list, so that
    each row has one level of one axis, and is a mean over all others. `subject` names the model if nothing varies.
    """

    axes: Sequence[str]
    rows: Sequence[Standing]
    split: str
    pooled: bool = False
    subject: str = ""

    @property
    def has_inside(self) -> bool:
        """Whether scores in distribution were measured, and are not rows of their own."""
        return any(math.isfinite(row.inside) for row in self.rows)

    @property
    def has_shortcut(self) -> bool:
        """Whether some task has a shortcut that beats chance."""
        return any(row.shortcut for row in self.rows)

    @property
    def main(self) -> list[Standing]:
        """The rows of the split that the answer is about."""
        return [row for row in self.rows if row.split == self.split]


def tabulate_scores(source: Source) -> ScoreTable | None:
    """The scores of a source per configuration, never averaged over an axis that a table has room for.

    Accuracies if some run has them, else relative losses or losses; None if no run has left a number.
    """
    scores = source.scores(source.selection)
    scores = scores[scores["value"].notna()]
    if scores.empty:
        return None
    metric = min(scores["metric"].unique(), key=SCORES.index)
    scores = scores[scores["metric"] == metric]
    splits = informative_splits(source, scores)
    inside = scores[scores["split"] == IID].set_index("trial")["value"] if IID not in splits else pd.Series(dtype=float)
    selected = scores[scores["split"].isin(splits)]
    # The split on which most runs were measured.
    main = str(selected["split"].value_counts(sort=False).idxmax())
    axes = []
    for axis in source.axes:
        if axis not in INSTANCES and selected[axis].nunique(dropna=False) > 1:
            axes.append(axis)
    configurations = len(selected[axes].drop_duplicates()) if axes else 1
    if configurations * len(splits) > MAX_ROWS:
        selected = selected[selected["split"] == main]
    if configurations <= MAX_ROWS:
        subject = "" if axes else title_of(source.runs[source.series].iloc[0], source.series)
        return ScoreTable(axes, _list_standings(source, selected, axes, metric, inside), main, subject=subject)
    rows: list[Standing] = []
    for axis in axes:
        rows += _list_standings(source, selected, [axis], metric, inside)
    return ScoreTable(axes, rows, main, pooled=True)


def _list_standings(
    source: Source, rows: pd.DataFrame, axes: Sequence[str], metric: str, inside: pd.Series
) -> list[Standing]:
    by = [*axes, "split"]
    clusters = next((axis for axis in INSTANCES if axis in source.axes and rows[axis].nunique() > 1), None)
    averages = means(rows, by, clusters)
    trials = rows.groupby(by, sort=False, dropna=False)["trial"].unique()
    standings = []
    for row, run_ids in zip(averages.to_dict("records"), trials, strict=True):
        levels = {}
        for axis in axes:
            if row[axis] is not None and row[axis] == row[axis]:  # a run may have no level on an axis
                levels[axis] = title_of(row[axis], axis)
        split = str(row["split"])
        if metric == "accuracy":
            baselines = mean_baselines(source, run_ids, [split])
        else:
            baselines = {ALWAYS_0: 1.0, ORACLE: 0.0} if metric == "relative_loss" else {}
        familiar = float(inside.reindex(run_ids).mean()) if len(inside) else math.nan
        standings.append(
            Standing(levels, split, metric, row["mean"], row["low"], row["high"], int(row["runs"]), baselines, familiar)
        )
    order = {name: position for position, name in enumerate(sort_splits(rows["split"]))}
    return sorted(standings, key=lambda standing: order[standing.split])


# -- in words ---------------------------------------------------------------------------------------------------------


def describe_scores(table: ScoreTable | None) -> str:
    """Describe the scores, beside those that need no learning: per configuration, or the best and the worst of many."""
    if table is None:
        return "No score was measured that could be compared."
    rows = table.main
    falling = rows[0].metric != "accuracy"
    score = f"{rows[0].metric.replace('_', ' ')} on {table.split}"
    ranked = sorted(rows, key=lambda row: row.mean, reverse=not falling)
    if len(rows) == 1:
        text = f"{table.subject or 'The model'} has a mean {score} of {rows[0].score}."
    elif len(rows) <= MAX_NAMED and not table.pooled:
        text = f"The mean {score} is {_list_scores(ranked)}."
    else:
        best = ranked[0]
        worst = ranked[-1]
        first, last = ("lowest", "highest") if falling else ("highest", "lowest")
        average = " (each a mean over the other axes)" if table.pooled else ""
        text = f"The {first} mean {score} is that of {best.name}, {best.score}; the {last} that of {worst.name}, {worst.score}{average}."
    return " ".join(filter(None, [text, _describe_baselines(rows), _describe_exceeding(rows)]))


def _list_scores(rows: Sequence[Standing]) -> str:
    """`0.900 [0.850, 0.950] for wide and 0.500 [0.450, 0.550] for narrow`; too few runs for an interval are told once."""
    counts = {row.runs for row in rows}
    if len(counts) > 1 or any(math.isfinite(row.low) for row in rows):
        return join_names([f"{row.score} for {row.name}" for row in rows])
    runs = "a single run" if counts == {1} else f"{rows[0].runs} runs"
    return f"{join_names([f'{row.mean:.3f} for {row.name}' for row in rows])} ({runs} each, too few for intervals)"


def _describe_baselines(rows: Sequence[Standing]) -> str:
    """`Chance is 0.500, the best shortcut (position of one feature) 0.800, the oracle 1.000.`"""
    phrases = []
    chance = [row.baselines[CHANCE] for row in rows if CHANCE in row.baselines]
    if chance:
        phrases.append(f"chance is {format_extremes(chance)}")
    shortcuts = [row.shortcut for row in rows if row.shortcut is not None]
    if shortcuts:
        names = list(dict.fromkeys(name for name, _ in shortcuts))
        name = f" ({names[0]})" if len(names) == 1 else ""
        phrases.append(f"the best shortcut{name} {format_extremes([value for _, value in shortcuts])}")
    elif chance:
        phrases.append("no known shortcut does better")
    if any(ALWAYS_0 in row.baselines for row in rows):
        phrases.append("always predicting 0 gives 1")
    oracle = [row.baselines[ORACLE] for row in rows if ORACLE in row.baselines]
    if oracle:
        phrases.append(f"the oracle {'' if shortcuts else 'has '}{format_extremes(oracle)}")
    text = ", ".join(phrases)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _describe_exceeding(rows: Sequence[Standing]) -> str:
    """Which rows lie above chance and every shortcut with their whole interval."""
    told = [row for row in rows if row.exceeds_shortcut is not None]
    if not told:
        return ""
    bar = "chance and every known shortcut" if any(row.shortcut for row in told) else "chance"
    above = [row.name for row in told if row.exceeds_shortcut]
    if len(told) == 1:
        return f"The interval {'lies' if above else 'does not lie'} entirely above {bar}."
    if not above:
        return f"None of these intervals lies entirely above {bar}."
    if len(above) == len(told):
        return f"All {len(told)} intervals lie above {bar}."
    names = join_names(above) if len(above) <= MAX_NAMED else f"{len(above)} of {len(told)} configurations"
    return f"Entirely above {bar}: {names}."


def format_extremes(values: Sequence[float]) -> str:
    low = f"{min(values):.3f}"
    high = f"{max(values):.3f}"
    return low if low == high else f"{low} to {high}, depending on the configuration"

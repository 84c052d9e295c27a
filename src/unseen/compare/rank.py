"""A leaderboard over any number of result directories and records files, in significance groups instead of ranks."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unseen.errors import UsageError, nearest
from unseen.names import is_ood
from unseen.stats import mean_interval
from unseen.stats.intervals import FEWEST
from unseen.stats.ranking import pooled_deviation, rank, smallest_difference
from unseen.store.records import load
from unseen.store.store import ENDED, Store
from unseen.studies.trial import format_options

METRICS = ("accuracy", "relative_loss", "loss")
"""Ranked by the first that a split has."""
WEIGHTS = ("last", "best", "oracle")
"""Rules for choosing weights: the last ones, the best on validation, and, where the learning curve has the split itself,
those that were best on it. The last rule looks at the test: it is a bound, not a result."""
COLUMNS = (
    *("task", "split", "metric", "weights", "group", "model", "mean", "low", "high", "runs"),
    *("above", "level", "below", "smallest_difference"),
)


@dataclass(frozen=True)
class Leaderboard:
    """A line per task, split, rule for choosing weights and model. `above`, `level` and `below` count other models."""

    table: pd.DataFrame
    heading: tuple[str, ...]
    notes: tuple[str, ...]


def build_leaderboard(paths: Sequence[Path], *, metric: str | None = None, split: str | None = None) -> Leaderboard:
    """Rank all models on every task and split. A trial that several of the sources hold counts once."""
    tables = []
    heading = []
    for path in paths:
        scores = _read_scores(path)
        if scores.empty:
            raise UsageError(f"{path}: no run has ended there yet; leave it out or run it first")
        heading.append(f"{path}: {scores['trial'].nunique()} runs")
        tables.append(scores)
    scores = pd.concat(tables, ignore_index=True).drop_duplicates(["trial", "split", "metric", "weights"])
    for name, value in (("split", split), ("metric", metric)):
        if value is not None:
            if value not in set(scores[name]):
                raise UsageError(
                    f"{name} '{value}' is in none of these directories. {nearest(value, set(scores[name]))}"
                )
            scores = scores[scores[name] == value]
    rows = []
    for (task, of_split), board in scores.groupby(["task", "split"], sort=False):
        ranked_by = next((name for name in METRICS if name in set(board["metric"])), None) if metric is None else metric
        if ranked_by is None:
            continue
        for weights in WEIGHTS:
            chosen = board[(board["metric"] == ranked_by) & (board["weights"] == weights)]
            for row in _rank_models(chosen, ranked_by):
                rows.append({"task": task, "split": of_split, "metric": ranked_by, "weights": weights, **row})
    if not rows:
        raise UsageError(f"nothing to rank: these directories have none of {', '.join(METRICS)}; name a --metric")
    return Leaderboard(pd.DataFrame(rows, columns=list(COLUMNS)), tuple(heading), _NOTES)


_NOTES = (
    "group 1: the best mean and all models that are not below it; group 2: the best of the others, and so on. Below and above: "
    "Welch's test, 5 %, Holm over all pairs of a task, split and rule; without a group: fewer than three runs",
    "smallest difference: this number of seeds shows it with probability 0.8, at the pooled standard deviation of these models",
    "weights: last; best on validation; oracle, best on the very split that is ranked (where the curve has it): a bound and not a result",
    "intervals: 95 %, Student's t, over runs",
)


def _read_scores(path: Path) -> pd.DataFrame:
    """A line per ended trial, split, metric and rule: `task`, `model`, `value`."""
    if path.suffix == ".zip":
        records = load(path)
        entries = records.entries
        measures = records.measures
        points = records.points()
    else:
        with Store.read(path) as store:
            measures, entries = store.measures(overall=True)
            points = store.points()
    ended = entries[entries["status"].isin(ENDED)].drop_duplicates("trial").set_index("trial")
    overall = measures[(measures["factor"] == "") & measures["selection"].isin(WEIGHTS[:2])]
    tables = [overall.rename(columns={"selection": "weights"})[["trial", "split", "metric", "weights", "value"]]]
    # Higher is better for accuracies alone; of losses the lowest is the oracle's.
    on_curve = points[points["split"].map(is_ood).astype(bool) & points["value"].notna()]
    for metric, curve in on_curve.groupby("metric", sort=False):
        best = curve.groupby(["trial", "split"], sort=False)["value"].agg("max" if metric == "accuracy" else "min")
        tables.append(best.reset_index().assign(metric=metric, weights="oracle"))
    scores = pd.concat(tables, ignore_index=True)
    scores = scores[scores["trial"].isin(ended.index) & np.isfinite(scores["value"].astype(float))]
    facts = ended.loc[scores["trial"]]
    names = {}
    for column in ("task", "model", "recipe"):
        texts = {text: format_options(json.loads(text)) for text in facts[column].unique()}
        names[column] = facts[column].map(texts).to_numpy()
    return scores.assign(**names)


def _rank_models(scores: pd.DataFrame, metric: str) -> Iterator[dict[str, Any]]:
    """The models of one task, split and rule, the best first; a model under several recipes counts once for each."""
    recipes = scores.groupby("model")["recipe"].nunique()
    several = scores["model"].map(recipes) > 1
    labels = scores["model"].where(~several, scores["model"] + ", " + scores["recipe"])
    values = {str(label): rows["value"].to_numpy(float) for label, rows in scores.groupby(labels, sort=False)}
    sign = 1.0 if metric == "accuracy" else -1.0  # the lowest loss is the best
    standings = rank({label: (sign * numbers).tolist() for label, numbers in values.items()})
    repeated = [numbers for label, numbers in values.items() if standings[label].group is not None]
    spread = pooled_deviation(repeated) if repeated else math.nan

    def order(label: str) -> tuple[Hashable, ...]:
        return (standings[label].group is None, -sign * float(values[label].mean()))

    for label in sorted(values, key=order):
        numbers = values[label]
        standing = standings[label]
        interval = mean_interval(numbers.tolist(), covers="seeds")
        low = interval.low
        high = interval.high
        if metric == "accuracy" and len(numbers) >= FEWEST:
            low = max(0.0, low)
            high = min(1.0, high)
        yield {
            "group": standing.group,
            "model": label,
            "mean": float(numbers.mean()),
            "low": low,
            "high": high,
            "runs": len(numbers),
            "above": len(standing.above),
            "level": len(standing.level),
            "below": len(standing.below),
            "smallest_difference": smallest_difference(len(numbers), spread=spread) if standing.group else math.nan,
        }

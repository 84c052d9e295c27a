"""The scores of probes, interchange interventions and ablations, as tables and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from unseen.analysis.rank_correlation import RankCorrelation, correlate_ranks
from unseen.errors import UsageError
from unseen.randomness import stream
from unseen.stats import mean_interval
from unseen.stats.intervals import Interval

FACTOR = "variable,site,position"
"""The factor of these records; a level has the three, joined by commas."""
MEASURES = {
    "probes/accuracy": "read off by a linear probe",
    "probes/selectivity": "probe above its control",
    "interchange/accuracy": "answers follow an exchange",
    "interchange/unchanged": "answers stay",
    "interchange/moved": "own answers move, right or wrong",
}
PROBE = "probes/accuracy"
EXCHANGE = "interchange/accuracy"
MOVED = "interchange/moved"
MEAN_DROP = "ablation/mean_drop"
ALIGNMENT = "specialization/alignment"
WHOLE = "all"
UNIT = "task_seed"
"""The axis whose levels are tasks, the units in which ablation is related to specialization."""


@dataclass(frozen=True)
class AblationRelation:
    """How ablation is related to specialization on a split, with the task as the unit.

    `paired` has by pair of levels of `gating` the mean difference over tasks of the drop, with its interval; `ranks` is
    the correlation of alignment (0: perfect) and drop within levels, without those whose alignment is given.
    """

    split: str
    paired: dict[tuple[str, str], Interval]
    means: dict[tuple[str, str], float]
    ranks: RankCorrelation | None


def tabulate_inside(records: pd.DataFrame, labels: Sequence[str], selection: str) -> pd.DataFrame:
    """A row per configuration, split, measure, variable, site and position: the mean over runs and its 95 % interval.

    Columns: the labels, `split`, `measure`, `variable`, `site`, `position`, `mean`, `low`, `high` (NaN below three runs),
    `runs` and `values`, those of every run.
    """
    columns = [*labels, "split", "measure", "variable", "site", "position"]
    chosen = records[(records["selection"] == selection) & (records["factor"] == FACTOR)]
    chosen = chosen[chosen["metric"].isin(MEASURES)].rename(columns={"metric": "measure"})
    if chosen.empty:
        return pd.DataFrame(columns=[*columns, "mean", "low", "high", "runs", "values"])
    # From the right: a variable may have a comma in its name, a site and a position have none.
    chosen[FACTOR.split(",")] = chosen["level"].str.rsplit(",", n=2, expand=True)
    rows = []
    for key, group in chosen.groupby(columns, sort=False, dropna=False):
        values = group.sort_values(["seed", "data_seed"])["value"]
        # A selectivity is a difference of shares; the other measures are shares.
        lowest = -1.0 if key[len(labels) + 1] == "probes/selectivity" else 0.0
        interval = mean_interval(values, covers="initialisation").within(lowest, 1.0)
        rows.append((*key, float(values.mean()), interval.low, interval.high, len(values), tuple(values)))
    return pd.DataFrame(rows, columns=[*columns, "mean", "low", "high", "runs", "values"])


def tabulate_ablation(records: pd.DataFrame, labels: Sequence[str], selection: str) -> pd.DataFrame:
    """A row per configuration and split: the mean loss of accuracy without one module, with its interval over runs."""
    chosen = records[(records["selection"] == selection) & (records["metric"] == MEAN_DROP)]
    rows = []
    for key, group in chosen.groupby([*labels, "split"], sort=False, dropna=False):
        values = group.sort_values(["seed", "data_seed"])["value"]
        interval = mean_interval(values, covers="initialisation")
        rows.append((*key, float(values.mean()), interval.low, interval.high, len(values), tuple(values)))
    return pd.DataFrame(rows, columns=[*labels, "split", "mean", "low", "high", "runs", "values"])


def describe_inside(table: pd.DataFrame, labels: Sequence[str], split: str) -> list[str]:
    """A sentence per configuration: where a variable is read off best, and where the answers follow it best.

    The exchange of a whole site is left out: it brings everything that is in it.
    """
    sentences = []
    rows = table[table["split"] == split]
    groups: Iterable[tuple[tuple[Any, ...], pd.DataFrame]] = [((), rows)]
    if labels:
        groups = rows.groupby(list(labels), sort=False, dropna=False)
    for key, group in groups:
        probes = group[group["measure"] == PROBE]
        exchanges = group[(group["measure"] == EXCHANGE) & (group["position"] != WHOLE)]
        clauses = []
        if len(probes):
            best = probes.iloc[int(probes["mean"].argmax())]
            clauses.append(f"{best['variable']} is read off best at {_name_position(best)}: {_score(best)}")
        if len(exchanges):
            best = exchanges.iloc[int(exchanges["mean"].argmax())]
            clauses.append(f"answers follow its exchange most often at {_name_position(best)}: {_score(best)}")
        if clauses:
            name = ", ".join(str(level) for level in key if pd.notna(level))
            sentences.append(f"{name + ': ' if name else ''}on {split}, {'; '.join(clauses)}.")
    if sentences:
        sentences.append(
            "Each is the highest of all sites and positions, and its interval does not allow for that choice."
        )
    return sentences


def relate_ablation(records: pd.DataFrame, selection: str, split: str, axes: Sequence[str]) -> AblationRelation | None:
    """How much more is lost under one gating than under another, and whether alignment predicts it.

    None if the records have no ablations of tasks under several gatings.
    """
    if UNIT not in records or "gating" not in records:
        return None
    strata = [axis for axis in axes if axis not in (UNIT, "gating") and axis in records]
    chosen = records[(records["selection"] == selection) & (records["split"] == split) & (records["factor"] == "")]
    chosen = chosen[chosen["metric"].isin([MEAN_DROP, ALIGNMENT])]
    by_unit = chosen.pivot_table(index=["gating", *strata, UNIT], columns="metric", values="value", aggfunc="mean")
    if MEAN_DROP not in by_unit or by_unit.index.get_level_values("gating").nunique() < 2:
        return None
    drops = by_unit[MEAN_DROP].unstack("gating").dropna()
    paired = {}
    means = {}
    gatings = list(drops.columns)
    for i, first in enumerate(gatings):
        for second in gatings[:i]:
            differences = drops[first] - drops[second]
            paired[first, second] = mean_interval(differences, covers="tasks")
            means[first, second] = float(differences.mean())
    return AblationRelation(split, paired, means, _correlate(by_unit, ["gating", *strata]))


def _correlate(by_unit: pd.DataFrame, strata: Sequence[str]) -> RankCorrelation | None:
    if ALIGNMENT not in by_unit:
        return None
    groups = []
    for _, group in by_unit.dropna().groupby(list(strata), sort=True):
        groups.append((group[ALIGNMENT].tolist(), group[MEAN_DROP].tolist()))
    try:
        return correlate_ranks(groups, stream("report", "ablation").block())
    except UsageError:  # too few tasks, or alignment is given everywhere
        return None


def describe_relation(relation: AblationRelation | None) -> list[str]:
    """The relation in sentences."""
    if relation is None:
        return []
    sentences = []
    for (first, second), interval in relation.paired.items():
        mean = relation.means[first, second]
        sentences.append(
            f"Without one module, models with gating {first} lose {mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}] "
            f"more accuracy on {relation.split} than those with gating {second} (paired by task, n = {interval.n})."
        )
    ranks = relation.ranks
    if ranks is not None:
        sentences.append(
            f"Within configurations, Spearman's ρ of alignment (0: perfect) and this loss over tasks is {ranks.rho:+.2f} on "
            f"average ({ranks.units} tasks, one-sided p = {ranks.p_below:.3f} for a negative one, by permutation)."
        )
    return sentences


def _name_position(row: pd.Series) -> str:
    return f"{row['site']}" if row["position"] == WHOLE else f"{row['site']}, {row['position']}"


def _score(row: pd.Series) -> str:
    interval = "" if row["low"] != row["low"] else f" [{row['low']:.3f}, {row['high']:.3f}]"
    return f"{row['mean']:.3f}{interval}"

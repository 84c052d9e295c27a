"""Where models are right: accuracy by position (R2), by scenario (R3) and by length (R8)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from unseen.errors import UsageError
from unseen.metrics.accuracy import accuracy_by, right
from unseen.metrics.traces import (
    Array,
    Factors,
    Mean,
    Trace,
    Traces,
    factor,
    forced_positions,
    mean,
    require,
    tabulate,
    yes,
)


def accuracy_by_position(traces: Traces, targets: Array, factors: Factors) -> pd.DataFrame:
    """The points behind R2: accuracy on T1's positives by the queried feature's token.

    Columns: variant, seed, position, value, n; one row per run and position that occurs.

    >>> trace = {"prediction": np.array([[1.0], [-1.0], [1.0]])}
    >>> factors = {"positions": np.array([[0, -1], [1, -1], [1, -1]]), "occurrences": np.ones((3, 1), int)}
    >>> accuracy_by_position({("T+Pos+Att", 0): trace}, np.array([[1], [1], [1]]), factors)["value"].tolist()
    [1.0, 0.5]
    """
    require(traces, targets, ["prediction"])
    positive, place = yes(targets), forced_positions(factors)[:, 0]
    parts = []
    for (variant, seed), trace in traces.items():
        found = accuracy_by(trace["prediction"][positive], targets[positive], "binary", place[positive])
        parts.append(found.rename(columns={"level": "position"}).assign(variant=variant, seed=seed))
    return pd.concat(parts, ignore_index=True)[["variant", "seed", "position", "value", "n"]]


def position_effect(traces: Traces, targets: Array, factors: Factors) -> pd.DataFrame:
    """R2: Pearson correlation of the queried feature's position with the accuracy there.

    Points are runs × positions (T1, positives): all runs of the variants with self-attention (`+Att`)
    together, the same for those without (`-Att`), then each variant, then each seed; variants named otherwise
    have no pooled row. Columns: scope, variant, seed, r, p (two-sided, as if points of one run were
    independent), n points. NaN below three points or where the accuracy does not vary. Published: r = −0.51,
    highly significant, for +Att; not significant for −Att.

    >>> trace = {"prediction": np.array([[1.0], [1.0], [1.0], [-1.0], [-1.0], [-1.0]])}
    >>> factors = {"positions": np.array([[0], [0], [1], [1], [2], [2]]), "occurrences": np.ones((6, 1), int)}
    >>> table = position_effect({("T-Pos+Att", 0): trace}, np.ones((6, 1), int), factors)
    >>> table[["scope", "variant", "r", "n"]].round(3).to_numpy().tolist()[0]
    ['pooled', '+Att', -1.0, 3]
    """
    points = accuracy_by_position(traces, targets, factors)
    ending = points["variant"].str.replace("−", "-").str[-4:]
    rows: list[tuple[Any, ...]]
    rows = [
        ("pooled", name, None, *_correlate(points[ending == name]))
        for name in ("+Att", "-Att")
        if (ending == name).any()
    ]
    rows += [("variant", variant, None, *_correlate(group)) for variant, group in points.groupby("variant", sort=False)]
    rows += [
        ("seed", variant, seed, *_correlate(group))
        for (variant, seed), group in points.groupby(["variant", "seed"], sort=False)
    ]
    return pd.DataFrame(rows, columns=["scope", "variant", "seed", "r", "p", "n"]).astype({"seed": "Int64"})


def error_profile(traces: Traces, targets: Array, factors: Factors) -> pd.DataFrame:
    """R3: accuracy in the four scenarios of T2, and the two comparisons.

    Means over the examples of a scenario: `yes/same`, `yes/diff`, `no/none`, `no/one` (either feature alone);
    then `yes/diff - yes/same` and `no/one - no/none`. Published: about −0.25 (misses across tokens) and about
    −0.40 (false alarms on one feature).

    >>> scenario = np.array(["yes/same", "yes/diff", "no/none", "no/a-only", "no/b-only"])
    >>> trace = {"prediction": np.array([[1.0], [-1.0], [-1.0], [-1.0], [1.0]])}
    >>> targets = np.array([[1], [1], [0], [0], [0]])
    >>> table = error_profile({("T-Pos-Att", 0): trace}, targets, {"scenario": scenario})
    >>> from unseen.metrics import pooled
    >>> pooled(table)  # doctest: +NORMALIZE_WHITESPACE
    {'yes/same': 1.0, 'yes/diff': 0.0, 'no/none': 1.0, 'no/one': 0.5,
     'yes/diff - yes/same': -1.0, 'no/one - no/none': -0.5}
    """
    scenario = factor(factors, "scenario")
    member = {name: scenario == name for name in ("yes/same", "yes/diff", "no/none")}
    member["no/one"] = np.isin(scenario, ["no/a-only", "no/b-only"])

    def measure(trace: Trace) -> Mapping[str, Mean]:
        share = right(trace["prediction"], targets, "binary")
        found = {name: mean(share[chosen]) for name, chosen in member.items()}
        for hard, easy in (("yes/diff", "yes/same"), ("no/one", "no/none")):
            found[f"{hard} - {easy}"] = _difference(found[hard], found[easy])
        return found

    return tabulate(traces, targets, ["prediction"], measure)


def length_curves(records: pd.DataFrame) -> pd.DataFrame:
    """R8: accuracy against sequence length, over seeds.

    `records` has the columns variant, seed, length, accuracy, one row per run of one task; the result has
    variant, length, value (mean over seeds), spread (their sample standard deviation), runs. The paper prints
    the curves without numbers.

    >>> records = pd.DataFrame({"variant": "LSTM", "seed": [0, 1], "length": 5, "accuracy": [0.5, 1.0]})
    >>> length_curves(records)[["variant", "length", "value", "runs"]].to_numpy().tolist()
    [['LSTM', 5, 0.75, 2]]
    """
    missing = {"variant", "seed", "length", "accuracy"} - set(records.columns)
    if missing:
        raise UsageError(
            f"length curves need the columns variant, seed, length, accuracy; missing: {', '.join(sorted(missing))}"
        )
    repeated = records.duplicated(["variant", "seed", "length"])
    if repeated.any():
        first = records[repeated].iloc[0]
        raise UsageError(
            f"{first['variant']}, seed {first['seed']}, length {first['length']} has more than "
            "one record; select one task, one condition and one recipe"
        )
    by = records.sort_values("length", kind="stable").groupby(["variant", "length"], sort=False)["accuracy"]
    curves = by.agg(value="mean", spread="std", runs="count").reset_index()
    order = records["variant"].unique().tolist()
    return curves.sort_values("variant", key=lambda v: v.map(order.index), kind="stable", ignore_index=True)


def _correlate(points: pd.DataFrame) -> tuple[float, float, int]:
    position, value = points["position"].to_numpy(np.float64), points["value"].to_numpy(np.float64)
    if len(points) < 3 or np.ptp(position) == 0 or np.ptp(value) == 0:
        return math.nan, math.nan, len(points)
    from scipy.stats import pearsonr  # inside, because importing it takes most of a second

    found = pearsonr(position, value)
    return float(found.statistic), float(found.pvalue), len(points)


def _difference(one: Mean, other: Mean) -> Mean:
    return Mean(one.value - other.value, one.n + other.n) if one.n and other.n else Mean(math.nan, 0)

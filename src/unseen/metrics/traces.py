"""What trained models did on one set of examples, measured run by run and then pooled.

A *trace* is what one run kept: `prediction` (N, 1), the logits, and named intermediates such as
`decoder.attention` (N, n). Traces are keyed by (variant, seed) and share their examples, whose targets (N, 1)
and factors go beside them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import stdev
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unseen.errors import UsageError, nearest

Array = NDArray[Any]
Bools = NDArray[np.bool_]
Trace = Mapping[str, Array]
Traces = Mapping[tuple[str, int], Trace]
Factors = Mapping[str, Array]


class Mean(NamedTuple):
    """A mean over n things; NaN over none."""

    value: float
    n: int


def mean(values: Array) -> Mean:
    """The mean of an array, and over how many.

    >>> mean(np.array([1.0, 2.0])), mean(np.array([]))
    (Mean(value=1.5, n=2), Mean(value=nan, n=0))
    """
    return Mean(float(values.mean(dtype=np.float64)), len(values)) if len(values) else Mean(math.nan, 0)


def tabulate(
    traces: Traces, targets: Array, needs: Collection[str], measure: Callable[[Trace], Mapping[str, Mean]]
) -> pd.DataFrame:
    """Measure every run, then pool: one row per measure for all runs, for each variant, and for each seed.

    Columns: scope (`pooled`, `variant` or `seed`), variant (`all` where pooled), seed (missing unless the
    scope is `seed`), measure, value, spread, runs, n. `value` is the mean over all n things of all runs of
    the row; `spread` is the sample standard deviation of the runs' own values, NaN for a single run. A run
    with nothing to measure has the value NaN and n = 0, and is not among the `runs` of a pooled row.

    >>> traces = {("A", 0): {"prediction": np.array([[1.0], [3.0]])},
    ...           ("A", 1): {"prediction": np.array([[4.0], [4.0]])}}
    >>> table = tabulate(traces, np.array([[1], [1]]), ["prediction"],
    ...                  lambda trace: {"logit": mean(trace["prediction"][:, 0])})
    >>> table["scope"].tolist(), table["value"].tolist()
    (['pooled', 'variant', 'seed', 'seed'], [3.0, 3.0, 2.0, 4.0])
    """
    require(traces, targets, needs)
    measured = {run: measure(trace) for run, trace in traces.items()}
    groups: dict[tuple[str, str, int | None, str], list[Mean]] = defaultdict(list)
    for scope in ("pooled", "variant", "seed"):
        for (variant, seed), found in measured.items():
            for name, value in found.items():
                key = ("all" if scope == "pooled" else variant, seed if scope == "seed" else None, name)
                groups[scope, *key].append(value)
    columns = ["scope", "variant", "seed", "measure", "value", "spread", "runs", "n"]
    rows = [(*key, *_pool(means)) for key, means in groups.items()]
    return pd.DataFrame(rows, columns=columns).astype({"seed": "Int64"})


def pooled(table: pd.DataFrame) -> dict[str, float]:
    """The values pooled over all runs, by measure."""
    rows = table[table["scope"] == "pooled"]
    return dict(zip(rows["measure"].tolist(), rows["value"].tolist(), strict=True))


def require(traces: Traces, targets: Array, needs: Collection[str]) -> None:
    """Refuse traces that are empty, lack an intermediate, or are of other examples than the targets."""
    if not traces:
        raise UsageError("there are no traces to measure; trace at least one finished run")
    if targets.ndim != 2 or targets.shape[1] != 1:
        raise UsageError(f"expected binary targets of shape (N, 1), got {targets.shape}")
    for (variant, seed), trace in traces.items():
        for name in needs:
            if name not in trace:
                raise UsageError(
                    f"{variant}, seed {seed}: no '{name}' in the trace. {nearest(name, trace)}\n"
                    "Ask for it when tracing, or leave out models that do not have it"
                )
            if len(trace[name]) != len(targets):
                raise UsageError(
                    f"'{name}' of {variant}, seed {seed}, has {len(trace[name])} examples, the "
                    f"targets have {len(targets)}; trace all runs on the same examples"
                )


def factor(factors: Factors, name: str) -> Array:
    """One factor of the examples."""
    if name not in factors:
        raise UsageError(
            f"the examples have no factor '{name}'. {nearest(name, factors)} "
            "Recipes read the factors of the retrieval tasks"
        )
    return factors[name]


def forced_positions(factors: Factors) -> NDArray[np.int64]:
    """The token of the first and second feature of the chosen pair (N, 2), −1 where absent.

    This says where a feature *is* only if it occurs once, as in the condition `ood/single`: other data are
    refused.
    """
    positions, occurrences = factor(factors, "positions"), factor(factors, "occurrences")
    if occurrences.shape[1] > 2:
        first = 2 * factor(factors, "chosen")[:, None]
        occurrences = np.take_along_axis(occurrences, first + np.arange(2), axis=1)
    repeated = np.count_nonzero((occurrences > 1).any(axis=1))
    if repeated:
        raise UsageError(
            f"expected queried features that occur once, but they repeat in {repeated} of "
            f"{len(positions)} examples; trace the condition ood/single"
        )
    return positions


def yes(targets: Array) -> Bools:
    """Which examples have the answer yes (N,)."""
    found: Bools = targets[:, 0] == 1
    return found


def _pool(means: Sequence[Mean]) -> tuple[float, float, int, int]:
    """Value, spread, runs and n of the means of several runs."""
    found = [one for one in means if one.n]
    n = sum(one.n for one in found)
    value = math.fsum(one.value * (one.n / n) for one in found) if found else math.nan
    spread = stdev(one.value for one in found) if len(found) > 1 else math.nan
    return value, spread, len(found), n

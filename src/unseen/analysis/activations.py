"""Activations of trained models on one set of examples, measured run by run and then pooled.

The activations of one run are `prediction` (N, 1), the logits, and named intermediates such as `decoder.attention`
(N, n). `RunActivations` are keyed by (variant, seed) and share their examples, whose targets (N, 1) and factors are
passed separately.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import stdev
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unseen.errors import UsageError, nearest

Array = NDArray[Any]
Bools = NDArray[np.bool_]
Activations = Mapping[str, Array]
RunActivations = Mapping[tuple[str, int], Activations]
Factors = Mapping[str, Array]


class Mean(NamedTuple):
    """A mean over n values; NaN if there are none."""

    value: float
    n: int


def mean_of(values: Array) -> Mean:
    """The mean of an array with the number of its values.

    >>> mean_of(np.array([1.0, 2.0])), mean_of(np.array([]))
    (Mean(value=1.5, n=2), Mean(value=nan, n=0))
    """
    return Mean(float(values.mean(dtype=np.float64)), len(values)) if len(values) else Mean(math.nan, 0)


def tabulate(
    run_activations: RunActivations,
    targets: Array,
    needs: Collection[str],
    measure: Callable[[Activations], Mapping[str, Mean]],
) -> pd.DataFrame:
    """Measure every run, then pool: one row per measure for all runs, for each variant, and for each seed.

    Columns: scope (`pooled`, `variant` or `seed`), variant (`all` where pooled), seed (missing unless the scope is
    `seed`), measure, value, spread, runs, n. `value` is the mean over all n values of all runs of the row; `spread` is
    the sample standard deviation over runs, NaN for a single run. A run without anything to measure has the value NaN
    and n = 0, and is not among the `runs` of a pooled row.

    >>> run_activations = {("A", 0): {"prediction": np.array([[1.0], [3.0]])},
    ...                    ("A", 1): {"prediction": np.array([[4.0], [4.0]])}}
    >>> table = tabulate(run_activations, np.array([[1], [1]]), ["prediction"],
    ...                  lambda activations: {"logit": mean_of(activations["prediction"][:, 0])})
    >>> table["scope"].tolist(), table["value"].tolist()
    (['pooled', 'variant', 'seed', 'seed'], [3.0, 3.0, 2.0, 4.0])
    """
    check_activations(run_activations, targets, needs)
    measured = {run: measure(activations) for run, activations in run_activations.items()}
    groups: dict[tuple[str, str, int | None, str], list[Mean]] = {}
    for scope in ("pooled", "variant", "seed"):
        for (variant, seed), means in measured.items():
            for name, mean in means.items():
                key = (scope, "all" if scope == "pooled" else variant, seed if scope == "seed" else None, name)
                groups.setdefault(key, []).append(mean)
    rows = [(*key, *_pool(means)) for key, means in groups.items()]
    columns = ["scope", "variant", "seed", "measure", "value", "spread", "runs", "n"]
    return pd.DataFrame(rows, columns=columns).astype({"seed": "Int64"})


def _pool(means: Sequence[Mean]) -> tuple[float, float, int, int]:
    """Value, spread, runs and n of the means of several runs."""
    measured = [mean for mean in means if mean.n]
    if not measured:
        return math.nan, math.nan, 0, 0
    n = sum(mean.n for mean in measured)
    # `fsum` rounds once, so that the value does not depend on the order of the runs.
    value = math.fsum(mean.value * (mean.n / n) for mean in measured)
    spread = stdev(mean.value for mean in measured) if len(measured) > 1 else math.nan
    return value, spread, len(measured), n


def pooled_values(table: pd.DataFrame) -> dict[str, float]:
    """The values pooled over all runs, by measure."""
    rows = table[table["scope"] == "pooled"]
    return dict(zip(rows["measure"].tolist(), rows["value"].tolist(), strict=True))


def check_activations(run_activations: RunActivations, targets: Array, needs: Collection[str]) -> None:
    """Refuse activations that are empty, lack an intermediate, or belong to other examples than the targets."""
    if not run_activations:
        raise UsageError("there are no activations to measure; capture those of at least one finished run")
    if targets.ndim != 2 or targets.shape[1] != 1:
        raise UsageError(f"expected binary targets of shape (N, 1), got {targets.shape}")
    for (variant, seed), activations in run_activations.items():
        for name in needs:
            if name not in activations:
                raise UsageError(
                    f"{variant}, seed {seed}: no '{name}' in the activations. {nearest(name, activations)}\n"
                    "Capture it, or leave out models that do not have it"
                )
            if len(activations[name]) != len(targets):
                raise UsageError(
                    f"'{name}' of {variant}, seed {seed}, has {len(activations[name])} examples, the "
                    f"targets have {len(targets)}; capture all runs on the same examples"
                )


def get_factor(factors: Factors, name: str) -> Array:
    """One factor of the examples; an error if they do not have it."""
    if name not in factors:
        raise UsageError(
            f"the examples have no factor '{name}'. {nearest(name, factors)} "
            "The analyses need the factors of the retrieval tasks"
        )
    return factors[name]


def forced_positions(factors: Factors) -> NDArray[np.int64]:
    """The token of the first and second feature of the chosen pair (N, 2), −1 where it is absent.

    A feature has a single position only if it occurs once, as in the split `ood/single`; other data are refused.
    """
    positions = get_factor(factors, "positions")
    occurrences = get_factor(factors, "occurrences")
    if occurrences.shape[1] > 2:
        # Several pairs are queried: the columns 2k and 2k + 1 belong to pair k.
        first = 2 * get_factor(factors, "chosen")[:, None]
        occurrences = np.take_along_axis(occurrences, first + np.arange(2), axis=1)
    repeated = np.count_nonzero((occurrences > 1).any(axis=1))
    if repeated:
        raise UsageError(
            f"expected queried features that occur once, but they repeat in {repeated} of "
            f"{len(positions)} examples; use the split ood/single"
        )
    return positions


def positives(targets: Array) -> Bools:
    """Which examples have the answer yes (N,)."""
    answers: Bools = targets[:, 0] == 1
    return answers

"""Collapse: do modules lie idle that should carry load?"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from unseen.errors import UsageError, nearest
from unseen.metrics.activation import Floats, read_matrix
from unseen.metrics.demand import demand

Target = Literal["demand", "uniform"]
"""What a module should carry: its load in the ideal system but no more than 1/M; or 1/M, spare modules too."""


def collapse_avg(activation: ArrayLike, pi: ArrayLike | None = None, *, target: Target = "demand") -> float:
    """The load that modules lack, over all modules: 0 none, 1 if everything goes to one module.

    `activation` is p(module | rule), (R, M); `pi` the probabilities of the rules, uniform unless given. Loads and
    targets are compared in ascending order. For M = R and uniform rules it is R / (R − 1) · Σ max(0, 1/R − p(m)).

    >>> round(collapse_avg([[0.95, 0, 0, 0.05], [0, 0, 0, 1], [0.35, 0.10, 0, 0.55], [0, 1, 0, 0]]), 4)
    0.3333
    """
    wanted, loads = _ascending(activation, pi, target)
    most = wanted[:-1].sum()
    return float(np.maximum(0, wanted - loads).sum() / most) if most > 0 else 0.0


def collapse_worst(activation: ArrayLike, pi: ArrayLike | None = None, *, target: Target = "demand") -> float:
    """The share of its load that the worst-off module lacks: 1 as soon as one module that is needed lies idle.

    The arguments are those of `collapse_avg`. For M = R and uniform rules it is 1 − R · min p(m).

    >>> collapse_worst([[1, 0], [0.5, 0.5]])
    0.5
    """
    wanted, loads = _ascending(activation, pi, target)
    needed = wanted > 0
    return float(1 - np.minimum(1, loads[needed] / wanted[needed]).min())


def _ascending(activation: ArrayLike, pi: ArrayLike | None, target: Target) -> tuple[Floats, Floats]:
    """What modules should carry and what they carry, both sorted."""
    if target not in get_args(Target):
        raise UsageError(f"there is no target {target!r}. {nearest(str(target), get_args(Target))}")
    rows, prior = read_matrix(activation, pi)
    even = np.full(rows.shape[1], 1 / rows.shape[1])
    wanted = even if target == "uniform" else np.minimum(demand(prior, len(even)), even)
    return np.sort(wanted), np.sort(prior @ rows)

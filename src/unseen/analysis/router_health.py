"""The health of a router, from its weights alone: loads, dead experts, entropy and percentiles, layer by layer.

These need no rules; how experts and rules belong together is what `specialization_metrics` measures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from unseen.analysis.routing import TOLERANCE, Floats
from unseen.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

PERCENTILES = (5, 25, 50, 75, 95)
DEAD = 0.01
"""An expert is dead if its load is below this share of an even load."""


@dataclass(frozen=True)
class RouterHealth:
    """How a router uses the experts of one layer.

    Attributes:
        loads: the mean weight of each expert; they add up to 1.
        dead: the experts with next to no load, by number.
        load_entropy: the entropy of the loads as a share of its maximum: 1 if they are even, 0 if one expert has all.
        token_entropy: the same of the weights of a token, on average: 0 if every token has one expert.
        largest: percentiles of the largest weight of a token, by percentage.
        tokens: the number of tokens.
    """

    loads: Floats
    dead: tuple[int, ...]
    load_entropy: float
    token_entropy: float
    largest: Mapping[int, float]
    tokens: int


def measure_router_health(weights: ArrayLike, dead: float = DEAD) -> RouterHealth:
    """The health of a router whose `weights` (…, experts) have one distribution per token.

    Capture `gating.weights`, and of earlier layers `gating.0.weights`, …, for all of them.

    >>> health = measure_router_health([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    >>> health.loads.tolist(), health.dead
    ([0.75, 0.25, 0.0], (2,))
    >>> round(health.load_entropy, 4), round(health.token_entropy, 4), health.largest[50]
    (0.5119, 0.3155, 0.75)
    """
    values = np.asarray(weights, dtype=np.float64)
    if values.ndim < 2 or values.size == 0:
        raise UsageError(f"router weights are (…, experts), one distribution per token; got shape {values.shape}")
    tokens = values.reshape(-1, values.shape[-1])
    if not (tokens >= -TOLERANCE).all() or not (np.abs(tokens.sum(1) - 1) <= TOLERANCE).all():
        raise UsageError(
            "router weights must be at least 0 and add up to 1 for each token; capture them after the softmax"
        )
    loads: Floats = tokens.mean(0)
    experts = len(loads)
    percentiles = np.percentile(tokens.max(1), PERCENTILES)
    return RouterHealth(
        loads=loads,
        dead=tuple(np.flatnonzero(loads < dead / experts).tolist()),
        load_entropy=float(_relative_entropy(loads[None])[0]),
        token_entropy=float(_relative_entropy(tokens).mean()),
        largest={percent: float(value) for percent, value in zip(PERCENTILES, percentiles, strict=True)},
        tokens=len(tokens),
    )


def router_health_table(weights_by_layer: Mapping[str, ArrayLike], dead: float = DEAD) -> pd.DataFrame:
    """A row for each layer: experts, dead ones, the smallest and largest load, entropies and percentiles.

    >>> table = router_health_table({"gating.0.weights": [[1.0, 0.0], [0.0, 1.0]], "gating.weights": [[0.9, 0.1]]})
    >>> table[["layer", "dead", "largest load", "load entropy"]].round(2).values.tolist()
    [['gating.0.weights', 0, 0.5, 1.0], ['gating.weights', 0, 0.9, 0.47]]
    """
    import pandas as pd

    rows = []
    for layer, weights in weights_by_layer.items():
        health = measure_router_health(weights, dead)
        rows.append(
            {
                "layer": layer,
                "experts": len(health.loads),
                "dead": len(health.dead),
                "smallest load": float(health.loads.min()),
                "largest load": float(health.loads.max()),
                "load entropy": health.load_entropy,
                "token entropy": health.token_entropy,
                **{f"largest weight, {percent} %": value for percent, value in health.largest.items()},
            }
        )
    return pd.DataFrame(rows)


def _relative_entropy(distributions: Floats) -> Floats:
    """The entropy of each row as a share of that of an even distribution; 0 for a single expert."""
    experts = distributions.shape[1]
    if experts == 1:
        return np.zeros(len(distributions))
    positive = np.where(distributions > 0, distributions, 1.0)
    # Adding 0 turns the −0 of a one-hot row into 0.
    entropy: Floats = -(positive * np.log(positive)).sum(1) / np.log(experts) + 0.0
    return entropy

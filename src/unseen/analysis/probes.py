"""Linear probes: can a variable be read off an activation by a linear map?

A probe that reads a variable shows that it is there, not that the model uses it: that is what `interchange` is for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unseen.errors import UsageError
from unseen.randomness import Draws

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEWEST = 20
"""The smallest number of examples that is probed."""
_RIDGES = 10.0 ** np.arange(-4, 3)
"""Penalties to choose from, as multiples of the number of examples."""


@dataclass(frozen=True)
class ProbeScore:
    """The scores of a probe on examples that it was not fitted to.

    Attributes:
        accuracy: of the probe.
        control: of a probe of equal form for random labels that depend on the same causes (Hewitt & Liang, 2019). If it
            is as accurate, the probe has learned the variable itself instead of finding it.
        chance: of always answering the commonest value.
        n: the number of examples it is tested on.
    """

    accuracy: float
    control: float
    chance: float
    n: int

    @property
    def selectivity(self) -> float:
        """How far the probe is above its control."""
        return self.accuracy - self.control


def probe(
    activations: NDArray[np.floating], values: Ints, draws: Draws, *, count: int, causes: Ints | None = None
) -> ProbeScore:
    """Fit a linear map from activations (n, d) to values (n,) on half of the examples, and test it on the others.

    The map is a ridge regression on one-hot values, with the penalty chosen on a quarter of the first half. `causes`
    (n, K) is what the value is a function of: the control labels are random, but equal for equal causes. Without causes
    every example has its own random label. Examples whose value is −1 are left out.

    >>> from unseen.randomness import stream
    >>> values = np.arange(200) % 4
    >>> score = probe(np.eye(4)[values], values, stream("doctest").block(), count=4)
    >>> score.accuracy, score.n
    (1.0, 100)
    """
    if activations.ndim != 2 or len(activations) != len(values):
        raise UsageError(
            f"probe expects activations (n, d) and values (n,), got {activations.shape} and {values.shape}"
        )
    present = np.flatnonzero(values >= 0)
    if len(present) < FEWEST:
        raise UsageError(f"probe needs at least {FEWEST} examples that have the variable, got {len(present)}")
    order = present[draws.permutation(len(present))]
    x = activations[order].astype(np.float64)
    labels = values[order]
    control = _draw_control(len(order) if causes is None else causes[order], count, draws)
    half = len(order) // 2
    commonest = np.bincount(labels[:half], minlength=count).argmax()
    return ProbeScore(
        accuracy=_held_out_accuracy(x, labels, half, count),
        control=_held_out_accuracy(x, control, half, count),
        chance=float((labels[half:] == commonest).mean()),
        n=len(order) - half,
    )


def _draw_control(causes: int | Ints, count: int, draws: Draws) -> Ints:
    """A random value for every different row of causes, or for each of this many examples."""
    if isinstance(causes, int):
        return draws.integers(count, causes)
    # Equal rows of causes are one type, with one random value.
    _, types = np.unique(causes, axis=0, return_inverse=True)
    types = types.reshape(-1)
    return draws.integers(count, int(types.max()) + 1)[types]


def _held_out_accuracy(x: Floats, labels: Ints, half: int, count: int) -> float:
    """Choose the penalty within the first half, fit to all of it, and test on the second."""
    quarter = half * 3 // 4  # the fourth quarter of the first half chooses the penalty
    scores = []
    for ridge in _RIDGES:
        fitted = _fit(x[:quarter], labels[:quarter], count, ridge)
        scores.append(_accuracy(fitted, x[quarter:half], labels[quarter:half]))
    best = _RIDGES[int(np.argmax(scores))]
    return _accuracy(_fit(x[:half], labels[:half], count, best), x[half:], labels[half:])


@dataclass(frozen=True)
class _Fitted:
    mean: Floats
    scale: Floats
    weight: Floats
    bias: Floats


def _fit(x: Floats, labels: Ints, count: int, ridge: float) -> _Fitted:
    mean = x.mean(0)
    spread = x.std(0)
    scale = np.where(spread > 1e-9 * (1 + np.abs(mean)), spread, np.inf)  # a constant column says nothing
    z = (x - mean) / scale
    y = np.eye(count)[labels]
    bias = y.mean(0)
    # Columns and targets are centred, so that the penalty does not shrink the bias.
    gram = z.T @ z + ridge * len(z) * np.eye(z.shape[1])
    return _Fitted(mean, scale, np.linalg.solve(gram, z.T @ (y - bias)), bias)


def _accuracy(fitted: _Fitted, x: Floats, labels: Ints) -> float:
    scores = (x - fitted.mean) / fitted.scale @ fitted.weight + fitted.bias
    return float((scores.argmax(1) == labels).mean())

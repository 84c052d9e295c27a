"""Alignment: has every rule a module of its own, or, with fewer modules, every module rules of its own?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unseen.metrics.activation import Floats, Ints, read_matrix


def alignment(activation: ArrayLike, pi: ArrayLike | None = None, *, normalised: bool = False) -> float:
    """The weight that falls outside the best map of rules to modules: 0 for a perfect one.

    `activation` is p(module | rule), (R, M); `pi` the probabilities of the rules, uniform unless given. The map gives
    rules different modules if M ≥ R and leaves no module out if M ≤ R. Its largest value is 1 − 1/M; `normalised`
    multiplies by M / (M − 1). For M < R every map that leaves no module out is perfect, however unbalanced: read it
    beside the collapse.

    >>> matrix = [[0.95, 0, 0, 0.05], [0, 0, 0, 1], [0.35, 0.10, 0, 0.55], [0, 1, 0, 0]]
    >>> round(alignment(matrix), 4), round(alignment(matrix, normalised=True), 4)
    (0.2625, 0.35)
    """
    rows, prior = read_matrix(activation, pi)
    modules = rows.shape[1]
    if modules == 1:
        return 0.0
    joint = prior[:, None] * rows
    # With fewer modules than rules, every rule has its best one but for those that other modules must be given.
    before = joint.max(axis=1, keepdims=True) if modules < len(joint) else np.zeros((len(joint), 1))
    cost = (before - joint).T  # with rules for rows it takes 20 times as long where all are treated alike
    found = 1 - float(before.sum()) + float(cost[_assignment(cost)].sum())
    # Rounding may put the best map a last bit above 1.
    return max(0.0, found) * (modules / (modules - 1) if normalised else 1)


def best_map(gain: Floats) -> Ints:
    """The module of each rule with the largest sum of gains: all different if M ≥ R, none left out if M ≤ R.

    With fewer modules than rules there are R − M free places, where a rule takes the best module whoever else has it.

    >>> best_map(np.array([[3.0, 1.0], [3.0, 2.0], [3.0, 0.0]])).tolist()
    [0, 1, 0]
    """
    rules, modules = gain.shape
    free = np.repeat(gain.max(axis=1, keepdims=True), max(0, rules - modules), axis=1)
    _, place = _assignment(-np.hstack([gain, free]))
    return np.where(place < modules, place, gain.argmax(axis=1))


def _assignment(cost: Floats) -> tuple[Ints, Ints]:
    """Pairs of a row and a column, none twice, of the least cost."""
    from scipy.optimize import linear_sum_assignment  # inside, because importing it takes a third of a second

    rows, columns = linear_sum_assignment(cost)
    return rows, columns

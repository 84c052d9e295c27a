"""The best assignment of modules to rules: the Hungarian method, also for fewer modules than rules."""

from __future__ import annotations

import numpy as np

from unseen.analysis.routing import Floats, Ints


def best_map(gain: Floats) -> Ints:
    """The module of each rule with the largest sum of gains (R, M): all different if M ≥ R, all used if M ≤ R.

    >>> best_map(np.array([[3.0, 1.0], [3.0, 2.0], [3.0, 0.0]])).tolist()
    [0, 1, 0]
    """
    rules, modules = gain.shape
    # With fewer modules than rules, R − M free columns let a rule share its best module with other rules.
    free = np.repeat(gain.max(axis=1, keepdims=True), max(0, rules - modules), axis=1)
    _, column = solve_assignment(-np.hstack([gain, free]))
    return np.where(column < modules, column, gain.argmax(axis=1))


def solve_assignment(cost: Floats) -> tuple[Ints, Ints]:
    """The pairs of rows and columns with the least total cost, no row or column twice (the Hungarian method)."""
    from scipy.optimize import linear_sum_assignment  # inside, because importing it takes a third of a second

    rows, columns = linear_sum_assignment(cost)
    return rows, columns

"""What an ideal specialised system would load on its modules, for any rule prior and any number of modules."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unseen.errors import UsageError
from unseen.metrics.activation import Floats, Ints, read_prior

_DIGITS = 12
"""Probabilities and loads that agree to so many decimals are equal: sums in another order round differently."""


def demand_partition(pi: ArrayLike, modules: int) -> Ints:
    """The module of every rule in the ideal system.

    With at least as many modules as rules, rule r has module r. With fewer, rules are placed in order of decreasing
    probability, each on the module that is lightest so far; ties go to the lower rule and the lower module, and
    rules of probability 0 come last. A uniform prior gives r mod M.

    >>> demand_partition([0.5, 0.3, 0.2], 2).tolist(), demand_partition([0.2] * 5, 2).tolist()
    ([0, 1, 1], [0, 1, 0, 1, 0])
    """
    if modules < 1:
        raise UsageError(f"expected at least one module, got {modules}")
    prior = read_prior(pi, np.size(pi))
    if modules >= len(prior):
        return np.arange(len(prior))
    found = np.empty(len(prior), np.int64)
    loads = np.zeros(modules)
    for rule in np.argsort(-prior.round(_DIGITS), kind="stable"):
        found[rule] = module = int((loads <= loads.min() + 10.0**-_DIGITS).argmax())
        loads[module] += prior[rule]
    return found


def demand(pi: Floats, modules: int) -> Floats:
    """The probability that the ideal system loads on each module; spare modules get none.

    >>> demand(np.array([0.5, 0.25, 0.25]), 2).tolist(), demand(np.array([0.75, 0.25]), 3).tolist()
    ([0.5, 0.5], [0.75, 0.25, 0.0])
    """
    loads: Floats = np.zeros(modules)
    np.add.at(loads, demand_partition(pi, modules), pi)
    return loads

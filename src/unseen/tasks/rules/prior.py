"""How often each rule occurs: uniformly, by a power law, by a Dirichlet draw, or as told."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from unseen.randomness import Draws, Floats, Ints, Shape

Prior = str | tuple[float, ...]

_SLACK = 1e-6


def _normalised(weights: Floats) -> Floats:
    shares: Floats = weights / weights.sum()
    return shares


def _uniform(rules: int) -> Floats:
    return np.full(rules, 1 / rules)


def _zipf(rules: int, exponent: float) -> Floats:
    return _normalised(np.arange(1.0, rules + 1) ** -exponent)


def _dirichlet(rules: int, concentration: float, seed: float) -> Floats:
    return np.random.RandomState(int(seed)).dirichlet(np.full(rules, concentration))


_NUMBER = r"(\d+(?:\.\d+)?(?:[eE]-?\d+)?)"
_FORMS: dict[str, Callable[..., Floats]] = {
    "uniform": _uniform,
    rf"zipf\({_NUMBER}\)": _zipf,
    rf"dirichlet\({_NUMBER}, ?(\d+)\)": _dirichlet,
}


def rule_prior(prior: Prior, rules: int) -> Floats:
    """The probability of each rule, (R,). A prior that cannot be read is a ValueError.

    >>> rule_prior("zipf(1)", 3).round(4).tolist()
    [0.5455, 0.2727, 0.1818]
    >>> rule_prior((0.5, 0.25, 0.25), 3).tolist()
    [0.5, 0.25, 0.25]
    """
    found: Floats = _named(prior, rules) if isinstance(prior, str) else np.array(prior, np.float64)
    if found.shape != (rules,):
        raise ValueError(f"the prior must have a probability for each of the {rules} rules; got {len(found)}")
    if not (np.isfinite(found).all() and (found >= 0).all() and abs(found.sum() - 1) <= _SLACK):
        raise ValueError(f"the prior must be probabilities that add up to 1; got {found.tolist()}")
    return _normalised(found)


def _named(prior: str, rules: int) -> Floats:
    for form, make in _FORMS.items():
        found = re.fullmatch(form, prior)
        if found:
            return make(rules, *map(float, found.groups()))
    raise ValueError(f"expected uniform, zipf(s), dirichlet(kappa, seed) or the probabilities; got '{prior}'")


def draw_rules(pi: Floats, shape: Shape, draws: Draws) -> Ints:
    """Independent rules, each with its probability to 2**-32; a rule of probability 0 never occurs."""
    if (pi == pi[0]).all():
        return draws.integers(len(pi), shape)
    ends = np.round(np.cumsum(pi)[:-1] * 2.0**32).astype(np.uint64)
    return np.searchsorted(ends, draws.lanes(shape, np.uint32).astype(np.uint64), side="right")

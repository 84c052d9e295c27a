"""Entropies: what modules tell about rules and tokens, and how many modules are in use."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from unseen.metrics.activation import (
    AT_ONCE,
    Array,
    Floats,
    Ints,
    read_matrix,
    read_prior,
    read_tokens,
    refuse_empty,
    rule_count,
)
from unseen.metrics.demand import demand


def mutual_information(activation: ArrayLike, pi: ArrayLike | None = None) -> float:
    """I(module; rule) in nats. `activation` is p(module | rule), (R, M); `pi` the rule probabilities (None: uniform).

    >>> round(mutual_information([[0.95, 0, 0, 0.05], [0, 0, 0, 1], [0.35, 0.10, 0, 0.55], [0, 1, 0, 0]]), 4)
    0.8056
    """
    rows, prior = read_matrix(activation, pi)
    return _information(rows, prior)


def inverse_mutual_information(activation: ArrayLike, pi: ArrayLike | None = None) -> float:
    """1 − I(module; rule) / H(demand): 0 if the module tells the rule as well as it could, 1 if it tells nothing.

    The arguments are those of `mutual_information`. H(demand) is the entropy of the modules in the ideal system (ln R
    for M = R and uniform rules). With M < R another map may tell more than that one: the value is clipped to [0, 1].

    >>> round(inverse_mutual_information([[0.95, 0, 0, 0.05], [0, 0, 0, 1], [0.35, 0.10, 0, 0.55], [0, 1, 0, 0]]), 4)
    0.4189
    """
    rows, prior = read_matrix(activation, pi)
    most = float(entropy(demand(prior, rows.shape[1])))
    if most < 1e-9:
        return 0.0
    return min(1.0, max(0.0, 1 - _information(rows, prior) / most))


def effective_modules(activation: ArrayLike, pi: ArrayLike | None = None) -> float:
    """exp H(module): how many modules are in use, from 1 to M. The arguments are those of `mutual_information`.

    >>> effective_modules([[1, 0, 0], [1, 0, 0]]), round(effective_modules([[1, 0, 0], [0, 1, 0]]), 6)
    (1.0, 2.0)
    """
    rows, prior = read_matrix(activation, pi)
    return math.exp(entropy(prior @ rows))


def token_entropy(weights: ArrayLike, rules: ArrayLike | None = None, pi: ArrayLike | None = None) -> float:
    """The mean over tokens of H(module | token) / ln M: 0 if every token is routed decisively, 1 if it is mixed evenly.

    An even activation matrix may come from either; this tells the two apart. `weights` are (…, M). With `rules` (…)
    every rule counts by its probability `pi` (None: equally), as in the metrics of the matrix; without, every token
    equally.

    >>> token_entropy([[1.0, 0.0], [0.0, 1.0]]), token_entropy([[0.5, 0.5], [0.5, 0.5]])
    (0.0, 1.0)
    """
    tokens, share = _shares(weights, rules, pi)
    return normalised(float(share @ entropies(tokens)), tokens.shape[1])


def token_information(weights: ArrayLike, rules: ArrayLike | None = None, pi: ArrayLike | None = None) -> float:
    """I(module; token) in nats: high if tokens are routed decisively to different modules, at least I(module; rule).

    The arguments are those of `token_entropy`.

    >>> round(token_information([[1.0, 0.0], [0.0, 1.0]]), 4), token_information([[0.5, 0.5], [0.5, 0.5]])
    (0.6931, 0.0)
    """
    tokens, share = _shares(weights, rules, pi)
    return max(0.0, float(entropy(share @ tokens) - share @ entropies(tokens)))


def entropy(shares: Array) -> Floats:
    """H in nats along the last axis, with 0 ln 0 = 0.

    >>> entropy(np.array([[1.0, 0.0], [0.5, 0.5]])).round(4).tolist()
    [0.0, 0.6931]
    """
    logarithms = np.log(np.where(shares > 0, shares, 1))
    return np.asarray(0 - (shares * logarithms).sum(axis=-1, dtype=np.float64))


def entropies(tokens: Array) -> Floats:
    """H(module | token) of every row of (T, M), in nats, piece by piece."""
    step = max(1, AT_ONCE // tokens.shape[1])
    return np.concatenate([entropy(tokens[start : start + step]) for start in range(0, len(tokens), step)])


def normalised(nats: float, modules: int) -> float:
    """An entropy over its largest value, ln M; 0 for a single module."""
    return nats / math.log(modules) if modules > 1 else 0.0


def _information(rows: Floats, prior: Floats) -> float:
    return max(0.0, float(entropy(prior @ rows) - prior @ entropy(rows)))


def _shares(weights: ArrayLike, rules: ArrayLike | None, pi: ArrayLike | None) -> tuple[Array, Floats]:
    """The tokens (T, M), and how much each counts."""
    given = np.asarray(weights)
    of: Ints | ArrayLike = np.zeros(given.shape[:-1], np.int64) if rules is None else rules
    number = 1 if rules is None else rule_count(rules) if pi is None else np.size(pi)
    tokens, label = read_tokens(given, of, number)
    every = np.bincount(label, minlength=number)
    prior = read_prior(None if rules is None else pi, number)
    refuse_empty(np.flatnonzero((every == 0) & (prior > 0)))
    return tokens, (prior / np.maximum(every, 1))[label]

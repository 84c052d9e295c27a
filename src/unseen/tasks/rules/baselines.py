"""How far one gets without the rule: by always answering 0, and with a straight line that all rules share.

The lines are what the generic baselines of `verify` may find. All rules are linear and all inputs normal. So, the
rules of an example given (a *case*), its answer and any column of numbers that a baseline reads are jointly normal, and
how often a threshold on one tells the sign of the other is known.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri, owens_t

from unseen.randomness import Floats, Ints
from unseen.tasks.rules.labels import rnn_states
from unseen.tasks.rules.parameters import Coefficients, Matrices

_THRESHOLDS = ndtri(np.arange(8, 16) / 16)
"""The quantiles that the baseline single-feature tries, those above the median; the others mirror them."""


def zero_loss(rules: Coefficients, pi: Floats) -> float:
    """The mean absolute answer of rules/mlp and rules/mha: what always answering 0 is off by.

    >>> round(zero_loss(Coefficients(np.array([3.0]), np.array([4.0])), np.ones(1)), 4)
    3.9894
    """
    return math.sqrt(2 / math.pi) * float(pi @ np.hypot(rules.alpha, rules.beta))


def class_ceilings(weight: Floats, single: Floats, bag: Floats) -> dict[str, float]:
    """Accuracies from the correlations of the answer with each column, (cases, columns); `weight` (cases,).

    The bag's line is the one that least squares finds: its direction is the mean correlation.
    """
    steepness = single / np.sqrt(np.maximum(1 - single**2, 1e-12))
    gains = [np.abs(weight @ owens_t(threshold, steepness)).max() for threshold in _THRESHOLDS]
    direction = weight @ bag
    along = bag @ direction / max(float(np.linalg.norm(direction)), 1e-12)
    told = weight @ np.arcsin(np.clip(along, -1, 1)) / math.pi
    return {"single-feature": 0.5 + 2 * max(gains), "bag-of-tokens": 0.5 + float(told)}


def real_ceilings(variance: float, single: Floats, bag: Floats) -> dict[str, float]:
    """Shares of the variance (summed over outputs) from the covariances with each column, (columns, outputs).

    Two levels, one on either side of the median, explain 2/π of what a line explains.
    """
    best = (single**2).max(axis=0).sum() * 2 / math.pi
    return {"single-feature": float(best / variance), "bag-of-tokens": float((bag**2).sum() / variance)}


def sum_ceilings(rules: Coefficients, pi: Floats, length: int, classification: bool) -> dict[str, float]:
    """Ceilings of rules/mlp (`length` 0) and rules/mha. A case is a rule.

    The columns that tell something are, of mlp, the two inputs and their sum; of mha the sums over all tokens of a
    rule's v and of its v′ (among which are those that the token finds), and the total of everything.
    """
    pairs = np.stack([rules.alpha, rules.beta], axis=1)
    deviation = np.linalg.norm(pairs, axis=1)
    if length:
        spread = np.einsum("rj,rs->rsj", pairs, np.eye(len(pairs))).reshape(len(pairs), -1) / math.sqrt(length)
        total = pairs.sum(axis=1, keepdims=True) / math.sqrt(4 * len(pairs) * length)
    else:
        spread, total = pairs, pairs.sum(axis=1, keepdims=True) / math.sqrt(2)
    single = np.hstack([spread, total])
    if classification:
        return class_ceilings(pi, single / deviation[:, None], spread / deviation[:, None])
    return real_ceilings(float(pi @ deviation**2), (pi @ single)[:, None], (pi @ spread)[:, None])


def read_out_ceilings(rules: Matrices, c: Ints) -> dict[str, float]:
    """Ceilings of rules/rnn for classes, from examples of its rules (S, N). A case is a token of a sequence.

    Going back from each token, `effect` is what a state, and `pull` what an input, adds to the token's read-out.
    The columns are the token's own input, the sum of all inputs, and its total.
    """
    sequences, length = c.shape
    order, dimension = rules.A.shape[1], len(rules.w)
    effect = np.zeros((length + order, sequences, length, dimension))
    own, pooled = np.zeros((2, sequences, length, dimension))
    variance = np.zeros((sequences, length))
    for j in reversed(range(length)):
        for back in range(1, min(order, length - 1 - j) + 1):
            effect[j] += effect[j + back] @ rules.A[c[:, j + back], back - 1].transpose(0, 2, 1)
        effect[j, :, j] = rules.w
        pull = effect[j] @ rules.B[c[:, j]].transpose(0, 2, 1)
        own[:, j] = pull[:, j]
        pooled += pull / math.sqrt(length)
        variance += (pull**2).sum(axis=2)
    total = pooled.sum(axis=2, keepdims=True) / math.sqrt(dimension)
    single = np.concatenate([own, pooled, total], axis=2) / np.sqrt(variance)[..., None]
    single = single.reshape(sequences * length, -1)
    weight = np.full(len(single), 1 / len(single))
    return class_ceilings(weight, single, single[:, dimension : 2 * dimension])


def state_ceilings(rules: Matrices, pi: Floats, length: int, variance: float, readout: bool) -> dict[str, float]:
    """Ceilings of rules/rnn for states or read-outs; `variance` is that of the answers, summed over outputs.

    Rules are independent of what came before, so the mean effect of an input is that of the mean matrices.
    """
    mean = Matrices(np.tensordot(pi, rules.A, 1)[None], np.tensordot(pi, rules.B, 1)[None], rules.w)
    dimension = len(rules.w)
    always = np.repeat(np.eye(dimension)[:, None], length, axis=1)
    pooled = rnn_states(mean, always, np.zeros((dimension, length), np.int64)).mean(axis=1) / math.sqrt(length)
    single = np.vstack([mean.B[0], pooled, pooled.sum(axis=0) / math.sqrt(dimension)])
    if readout:
        single, pooled = single @ rules.w[:, None], pooled @ rules.w[:, None]
    return real_ceilings(variance, single, pooled)

"""p(module | rule): the R × M matrix that the specialization metrics read, and the checks on what users bring."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unseen.errors import UsageError

Array = NDArray[Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TOLERANCE = 1e-4
"""How far the sum of a distribution may be from 1."""
AT_ONCE = 2**22
"""How many weights are added up at a time: bounds the memory, whatever the number of tokens."""


def activation_matrix(weights: ArrayLike, rules: ArrayLike, count: int | None = None) -> Floats:
    """The mean weight of every module over the tokens of every rule: (R, M), rows = rules.

    `weights` (…, M) are what multiplies the outputs of the modules, one distribution per token; `rules` (…) is the rule
    of each token, 0 … R − 1. `count` is R; None: the largest rule + 1. A rule without tokens is an error.

    >>> activation_matrix([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], [0, 0, 1])
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    """
    tokens, of = read_tokens(weights, rules, count)
    number = int(of.max()) + 1 if count is None else count
    every = np.bincount(of, minlength=number)
    check_occurring(every, np.arange(number))
    return sums(tokens, of, number) / every[:, None]


def uniform_activation(rules: int, modules: int | None = None) -> Floats:
    """The *Random* baseline: every rule spreads evenly over all modules (no simulation). M defaults to R.

    >>> uniform_activation(1, 4)
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    modules = rules if modules is None else modules
    return np.full((rules, modules), 1 / modules)


def collapsed_activation(rules: int, modules: int | None = None) -> Floats:
    """The *Collapsed* baseline: every rule goes to the first module. M defaults to R.

    >>> collapsed_activation(2)
    array([[1., 0.],
           [1., 0.]])
    """
    found = np.zeros((rules, rules if modules is None else modules))
    found[:, 0] = 1
    return found


def sums(values: Array, labels: Ints, count: int) -> Floats:
    """The sum of the rows (T, K) that have each label 0 … count − 1: (count, K).

    >>> sums(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([1, 0, 1]), 2).tolist()
    [[3.0, 4.0], [6.0, 8.0]]
    """
    width, total = values.shape[1], np.zeros(count * values.shape[1])
    step = max(1, AT_ONCE // width)
    for start in range(0, len(values), step):
        cells = labels[start : start + step, None] * width + np.arange(width)
        total += np.bincount(cells.ravel(), values[start : start + step].ravel(), len(total))
    return total.reshape(count, width)


def read_matrix(activation: ArrayLike, pi: ArrayLike | None) -> tuple[Floats, Floats]:
    """The rows of the rules that occur, rescaled to sum to 1 exactly, and the probabilities of these rules.

    A rule of probability 0 is dropped before anything is checked: it has no tokens, so its row is undefined.
    """
    given = _numbers(activation, "an activation matrix")
    if given.ndim != 2 or 0 in given.shape:
        raise UsageError(f"expected an activation matrix p(module | rule) with a row per rule and a column per module, "
                         f"got an array of shape {given.shape}")
    prior = read_prior(pi, len(given))
    rows = given[prior > 0].astype(np.float64)
    check_distributions(rows, "every row of an activation matrix p(module | rule)",
                        "rows are rules; a rule without tokens has no row: draw more, or give it probability 0 in pi")
    return rows / rows.sum(axis=1, keepdims=True), prior[prior > 0]


def read_prior(pi: ArrayLike | None, rules: int) -> Floats:
    """The probabilities of the rules, summing to 1 exactly; None: uniform."""
    if pi is None:
        return np.full(rules, 1 / rules)
    given = _numbers(pi, "rule probabilities pi").astype(np.float64)
    if given.shape != (rules,):
        raise UsageError(f"expected one probability per rule, an array ({rules},), got pi of shape {given.shape}")
    check_distributions(given, "rule probabilities pi", "divide them by their sum")
    prior: Floats = given / given.sum()
    return prior


def read_tokens(weights: ArrayLike, rules: ArrayLike, count: int | None = None) -> tuple[Array, Ints]:
    """Weights (T, M) and rules (T,) of all tokens, whatever axes they came with; each row is a distribution."""
    given, of = _numbers(weights, "module weights"), np.asarray(rules)
    if given.ndim < 2 or of.shape != given.shape[:-1]:
        raise UsageError("expected module weights (tokens, M) and the rule of every token (tokens,), got shapes "
                         f"{given.shape} and {of.shape}")
    check_distributions(given, "module weights of every token", "give what multiplies the module outputs, not scores")
    if of.dtype.kind not in "iu":
        raise UsageError(f"rules are whole numbers 0 … R − 1, one per token, got {of.dtype}")
    if of.min() < 0 or (count is not None and of.max() >= count):
        top = "R − 1" if count is None else count - 1
        raise UsageError(f"rules are numbered 0 … {top}, got {int(of.min())} … {int(of.max())}")
    return given.reshape(-1, given.shape[-1]), of.reshape(-1).astype(np.int64, copy=False)


def check_occurring(every: Ints, needed: Ints) -> None:
    """Refuse a rule without tokens; `every` counts the tokens of each rule."""
    empty = [str(rule) for rule in needed if every[rule] == 0]
    if empty:
        named = ", ".join(empty[:5]) + (", …" if len(empty) > 5 else "")
        raise UsageError(f"no token has rule {named}: its row of the activation matrix is undefined; draw more tokens")


def check_distributions(given: Array, what: str, advice: str) -> None:
    """Refuse what is no array of distributions along its last axis."""
    if given.size == 0:
        raise UsageError(f"{what}: there is nothing to measure in an array of shape {given.shape}")
    low = given.min()
    if not low >= 0:  # as a NaN is not, either
        found = "NaN" if np.isnan(low) else f"{low:g}"
        raise UsageError(f"expected probabilities in {what}, got {found}; {advice}")
    off = float(np.abs(given.sum(axis=-1, dtype=np.float64) - 1).max())
    if not off <= TOLERANCE:
        raise UsageError(f"{what} must sum to 1 within {TOLERANCE:g}, got a sum that is off by {off:.3g}; {advice}")


def _numbers(values: ArrayLike, what: str) -> Array:
    """The values as an array of real numbers, in their own precision."""
    try:
        given = np.asarray(values)
    except ValueError:
        raise UsageError(f"expected {what} as an array of numbers, got rows of different lengths") from None
    if given.dtype.kind not in "biuf":
        raise UsageError(f"expected {what} as an array of numbers, got {given.dtype}")
    return given

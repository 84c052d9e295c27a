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
    number = rule_count(rules) if count is None else count
    tokens, of = read_tokens(weights, rules, number)
    every = np.bincount(of, minlength=number)
    refuse_empty(np.flatnonzero(every == 0))
    return sums(tokens, of, number) / every[:, None]


def uniform_activation(rules: int, modules: int | None = None) -> Floats:
    """The *Random* baseline: every rule spreads evenly over all modules (no simulation). M defaults to R.

    >>> uniform_activation(1, 4)
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    shape = _shape(rules, modules)
    return np.full(shape, 1 / shape[1])


def collapsed_activation(rules: int, modules: int | None = None) -> Floats:
    """The *Collapsed* baseline: every rule goes to the first module. M defaults to R.

    >>> collapsed_activation(2)
    array([[1., 0.],
           [1., 0.]])
    """
    found = np.zeros(_shape(rules, modules))
    found[:, 0] = 1
    return found


def _shape(rules: int, modules: int | None) -> tuple[int, int]:
    shape = rules, rules if modules is None else modules
    if min(shape) < 1:
        raise UsageError(f"expected at least one rule and one module, got {shape[0]} and {shape[1]}")
    return shape


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
        raise UsageError(
            f"expected an activation matrix p(module | rule) with a row per rule and a column per module, "
            f"got an array of shape {given.shape}"
        )
    prior = read_prior(pi, len(given))
    rows = given[prior > 0].astype(np.float64)
    check_distributions(
        rows,
        "every row of an activation matrix p(module | rule)",
        "rows are rules; a rule without tokens has no row: draw more, or give it probability 0 in pi",
    )
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


def read_tokens(weights: ArrayLike, rules: ArrayLike, count: int) -> tuple[Array, Ints]:
    """Weights (T, M) and rules (T,) of all tokens, whatever axes they came with; each row is a distribution."""
    given, of = _numbers(weights, "module weights"), _read_rules(rules)
    if given.ndim < 2 or of.shape != given.shape[:-1]:
        raise UsageError(
            "expected module weights (tokens, M) and the rule of every token (tokens,), got shapes "
            f"{given.shape} and {of.shape}"
        )
    check_distributions(given, "module weights of every token", "give what multiplies the module outputs, not scores")
    if of.max() >= count:
        raise UsageError(f"rules are numbered 0 … {count - 1}, got {of.min()} … {of.max()}")
    return given.reshape(-1, given.shape[-1]), of.reshape(-1)


def rule_count(rules: ArrayLike) -> int:
    """How many rules there are if they are numbered 0 … the largest."""
    of = _read_rules(rules)
    number = int(of.max(initial=-1)) + 1
    if number > of.size:  # said before anything of that size is made
        refuse_empty(np.setdiff1d(np.arange(of.size + 1), of))
    return number


def _read_rules(rules: ArrayLike) -> Ints:
    given = _numbers(rules, "the rule of every token")
    if given.dtype.kind not in "iu" and given.size:
        raise UsageError(f"rules are whole numbers 0 … R − 1, one per token, got {given.dtype}")
    of = given.astype(np.int64, copy=False)
    if of.min(initial=0) < 0:
        raise UsageError(f"rules are numbered 0 … R − 1, got {of.min()} … {of.max()}")
    return of


def refuse_empty(rules: Ints) -> None:
    """An error that names the rules without tokens, if there are any."""
    if len(rules):
        named = ", ".join(map(str, rules[:5])) + (", …" if len(rules) > 5 else "")
        raise UsageError(f"no token has rule {named}: its row of the activation matrix is undefined; draw more tokens")


def check_distributions(given: Array, what: str, advice: str) -> None:
    """Refuse what is no array of distributions along its last axis."""
    if given.size == 0:
        raise UsageError(f"{what}: there is nothing to measure in an array of shape {given.shape}")
    low = given.min()
    if not low >= 0:  # as a NaN is not, either
        found = "NaN" if np.isnan(low) else f"{low:g}"
        raise UsageError(f"expected probabilities in {what}, got {found}; {advice}")
    sums = given.sum(axis=-1, dtype=np.float64).reshape(-1)
    worst = float(sums[np.abs(sums - 1).argmax()])
    if not abs(worst - 1) <= TOLERANCE:
        raise UsageError(f"{what} must sum to 1 within {TOLERANCE:g}, got a sum of {worst:.6g}; {advice}")


def _numbers(values: ArrayLike, what: str) -> Array:
    """The values as an array of real numbers, in their own precision."""
    try:
        given = np.asarray(values)
    except ValueError:
        raise UsageError(f"expected {what} as an array of numbers, got rows of different lengths") from None
    if given.dtype.kind not in "biuf":
        raise UsageError(f"expected {what} as an array of numbers, got {given.dtype}")
    return given

"""The activation matrix p(module | rule), which all specialization metrics read, and the ideal system behind them.

A router weights the outputs of M modules for every token; every token has one of R rules. The matrix (R, M) has the
mean weights of the tokens of each rule.
"""

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
"""How many weights are summed at a time; this bounds the memory for any number of tokens."""
_DIGITS = 12
"""Probabilities and loads that agree to 12 decimals are equal: sums in another order round differently."""


def activation_matrix(weights: ArrayLike, rules: ArrayLike, count: int | None = None) -> Floats:
    """The mean weight of every module over the tokens of every rule: (R, M), rows are rules.

    `weights` (…, M) are the factors of the module outputs, one distribution per token; `rules` (…) is the rule of each
    token, 0 … R − 1. `count` is R; by default the largest rule plus 1. A rule without tokens is an error.

    >>> activation_matrix([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], [0, 0, 1])
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    """
    rule_number = rule_count(rules) if count is None else count
    tokens, token_rules = read_tokens(weights, rules, rule_number)
    tokens_per_rule = np.bincount(token_rules, minlength=rule_number)
    refuse_empty(np.flatnonzero(tokens_per_rule == 0))
    return sum_by_label(tokens, token_rules, rule_number) / tokens_per_rule[:, None]


def uniform_activation(rules: int, modules: int | None = None) -> Floats:
    """The *Random* baseline: every rule spreads evenly over all modules (no simulation). M defaults to R.

    >>> uniform_activation(1, 4)
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    shape = _matrix_shape(rules, modules)
    return np.full(shape, 1 / shape[1])


def collapsed_activation(rules: int, modules: int | None = None) -> Floats:
    """The *Collapsed* baseline: every rule goes to the first module. M defaults to R.

    >>> collapsed_activation(2)
    array([[1., 0.],
           [1., 0.]])
    """
    matrix = np.zeros(_matrix_shape(rules, modules))
    matrix[:, 0] = 1
    return matrix


def _matrix_shape(rules: int, modules: int | None) -> tuple[int, int]:
    shape = rules, rules if modules is None else modules
    if min(shape) < 1:
        raise UsageError(f"expected at least one rule and one module, got {shape[0]} and {shape[1]}")
    return shape


# The ideal system, and the best assignment of rules to modules.


def ideal_partition(pi: ArrayLike, modules: int) -> Ints:
    """The module of every rule in the ideal specialised system.

    With at least as many modules as rules, rule r has module r. With fewer, rules are assigned in order of decreasing
    probability, each to the module with the least load so far; ties go to the lower rule and the lower module, and
    rules of probability 0 come last. A uniform prior yields r mod M.

    >>> ideal_partition([0.5, 0.3, 0.2], 2).tolist(), ideal_partition([0.2] * 5, 2).tolist()
    ([0, 1, 1], [0, 1, 0, 1, 0])
    """
    if modules < 1:
        raise UsageError(f"expected at least one module, got {modules}")
    prior = read_prior(pi, np.size(pi))
    if modules >= len(prior):
        return np.arange(len(prior))
    partition = np.empty(len(prior), np.int64)
    loads = np.zeros(modules)
    for rule in np.argsort(-prior.round(_DIGITS), kind="stable"):
        # argmax of a Boolean array is the first module whose load equals the least one up to rounding.
        module = int((loads <= loads.min() + 10.0**-_DIGITS).argmax())
        partition[rule] = module
        loads[module] += prior[rule]
    return partition


def ideal_load(pi: Floats, modules: int) -> Floats:
    """The probability that falls on each module in the ideal system; spare modules have none.

    >>> ideal_load(np.array([0.5, 0.25, 0.25]), 2).tolist(), ideal_load(np.array([0.75, 0.25]), 3).tolist()
    ([0.5, 0.5], [0.75, 0.25, 0.0])
    """
    loads: Floats = np.zeros(modules)
    np.add.at(loads, ideal_partition(pi, modules), pi)
    return loads


# Reading and checking matrices, priors and tokens.


def sum_by_label(values: Array, labels: Ints, count: int) -> Floats:
    """The sum of the rows (T, K) that have each label 0 … count − 1: (count, K).

    >>> sum_by_label(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([1, 0, 1]), 2).tolist()
    [[3.0, 4.0], [6.0, 8.0]]
    """
    width = values.shape[1]
    total = np.zeros(count * width)
    step = max(1, AT_ONCE // width)
    for start in range(0, len(values), step):
        # One bincount for all columns: entry (label, column) has the index label · width + column.
        index = labels[start : start + step, None] * width + np.arange(width)
        total += np.bincount(index.ravel(), values[start : start + step].ravel(), len(total))
    return total.reshape(count, width)


def read_matrix(activation: ArrayLike, pi: ArrayLike | None) -> tuple[Floats, Floats]:
    """The rows of the rules that occur, rescaled to sum to 1 exactly, and the probabilities of these rules.

    A rule of probability 0 is dropped before anything is checked: it has no tokens, so its row is undefined.
    """
    matrix = _read_numbers(activation, "an activation matrix")
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise UsageError(
            f"expected an activation matrix p(module | rule) with a row per rule and a column per module, "
            f"got an array of shape {matrix.shape}"
        )
    prior = read_prior(pi, len(matrix))
    rows = matrix[prior > 0].astype(np.float64)
    _check_distributions(
        rows,
        "every row of an activation matrix p(module | rule)",
        "rows are rules; a rule without tokens has no row: draw more, or give it probability 0 in pi",
    )
    return rows / rows.sum(axis=1, keepdims=True), prior[prior > 0]


def read_prior(pi: ArrayLike | None, rules: int) -> Floats:
    """The probabilities of the rules, summing to 1 exactly; None means uniform."""
    if pi is None:
        return np.full(rules, 1 / rules)
    probabilities = _read_numbers(pi, "rule probabilities pi").astype(np.float64)
    if probabilities.shape != (rules,):
        raise UsageError(
            f"expected one probability per rule, an array ({rules},), got pi of shape {probabilities.shape}"
        )
    _check_distributions(probabilities, "rule probabilities pi", "divide them by their sum")
    prior: Floats = probabilities / probabilities.sum()
    return prior


def read_tokens(weights: ArrayLike, rules: ArrayLike, count: int) -> tuple[Array, Ints]:
    """Weights (T, M) and rules (T,) of all tokens, with all leading axes flattened; each row is a distribution."""
    tokens = _read_numbers(weights, "module weights")
    token_rules = _read_rules(rules)
    if tokens.ndim < 2 or token_rules.shape != tokens.shape[:-1]:
        raise UsageError(
            "expected module weights (tokens, M) and the rule of every token (tokens,), got shapes "
            f"{tokens.shape} and {token_rules.shape}"
        )
    _check_distributions(
        tokens, "module weights of every token", "give the factors of the module outputs, not their scores"
    )
    if token_rules.max() >= count:
        raise UsageError(f"rules are numbered 0 … {count - 1}, got {token_rules.min()} … {token_rules.max()}")
    return tokens.reshape(-1, tokens.shape[-1]), token_rules.reshape(-1)


def rule_count(rules: ArrayLike) -> int:
    """The number of rules if they are numbered from 0 to the largest."""
    token_rules = _read_rules(rules)
    number = int(token_rules.max(initial=-1)) + 1
    if number > token_rules.size:  # refused here, before an array of that size is allocated
        refuse_empty(np.setdiff1d(np.arange(token_rules.size + 1), token_rules))
    return number


def refuse_empty(rules: Ints) -> None:
    """Raise an error that names the rules without tokens, if there are any."""
    if len(rules):
        names = ", ".join(map(str, rules[:5])) + (", …" if len(rules) > 5 else "")
        raise UsageError(f"no token has rule {names}: its row of the activation matrix is undefined; draw more tokens")


def _read_rules(rules: ArrayLike) -> Ints:
    numbers = _read_numbers(rules, "the rule of every token")
    if numbers.dtype.kind not in "iu" and numbers.size:
        raise UsageError(f"rules are whole numbers 0 … R − 1, one per token, got {numbers.dtype}")
    token_rules = numbers.astype(np.int64, copy=False)
    if token_rules.min(initial=0) < 0:
        raise UsageError(f"rules are numbered 0 … R − 1, got {token_rules.min()} … {token_rules.max()}")
    return token_rules


def _check_distributions(values: Array, description: str, advice: str) -> None:
    """Refuse an array that does not hold distributions along its last axis."""
    if values.size == 0:
        raise UsageError(f"{description}: there is nothing to measure in an array of shape {values.shape}")
    low = values.min()
    if not low >= 0:  # also true of NaN
        lowest = "NaN" if np.isnan(low) else f"{low:g}"
        raise UsageError(f"expected probabilities in {description}, got {lowest}; {advice}")
    totals = values.sum(axis=-1, dtype=np.float64).reshape(-1)
    worst = float(totals[np.abs(totals - 1).argmax()])
    if not abs(worst - 1) <= TOLERANCE:
        raise UsageError(f"{description} must sum to 1 within {TOLERANCE:g}, got a sum of {worst:.6g}; {advice}")


def _read_numbers(values: ArrayLike, description: str) -> Array:
    """The values as an array of real numbers, in their original precision."""
    try:
        numbers = np.asarray(values)
    except ValueError:
        raise UsageError(f"expected {description} as an array of numbers, got rows of different lengths") from None
    if numbers.dtype.kind not in "biuf":
        raise UsageError(f"expected {description} as an array of numbers, got {numbers.dtype}")
    return numbers

"""The generator: the numbers of the rules, drawn from a task seed, and the answers to whole arrays of inputs.

Answers are computed in double precision, and without any work for rules that do not count. The plain counterpart is
`solver.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from unseen.errors import UsageError, nearest
from unseen.randomness import Floats, Ints

Array = NDArray[Any]
Process = Literal["mlp", "mha", "rnn"]
AnswerKind = Literal["regression", "classification", "readout"]
Spread = Literal["deviation", "variance"]
"""How the paper's 1/√32 for the entries of A and B is read (D5). As a variance it makes states grow 2.4-fold a step."""

PROCESSES: tuple[Process, ...] = ("mlp", "mha", "rnn")

_PAIRS = 2**14
"""Pairs of tokens that are compared at a time, few enough for the processor's cache."""


# The numbers of the rules.


@dataclass(frozen=True)
class Coefficients:
    """Rules of mlp and mha: y = alpha[r] · first + beta[r] · second. Both (R,)."""

    alpha: Floats
    beta: Floats


@dataclass(frozen=True)
class Matrices:
    """Rules of rnn, for row vectors: s_n = Σ_o s_(n−o) · A[r, o − 1] + x_n · B[r]; the read-out is s_n · w.

    `A` is (R, order, D, D), `B` (R, D, D), `w` (D,).
    """

    A: Floats
    B: Floats
    w: Floats


@overload
def task_parameters(process: Literal["mlp", "mha"], rules: int, task_seed: int) -> Coefficients: ...
@overload
def task_parameters(
    process: Literal["rnn"], rules: int, task_seed: int, *, dimension: int = ..., order: int = ..., spread: Spread = ...
) -> Matrices: ...
def task_parameters(
    process: Process, rules: int, task_seed: int, *, dimension: int = 32, order: int = 1, spread: Spread = "deviation"
) -> Coefficients | Matrices:
    """The rules of a task seed, drawn as the authors draw them; their five tasks are the seeds 0 … 4.

    They come from NumPy's legacy generator, whose numbers are frozen, because no other reproduces these tasks. Nothing
    else is drawn from it.

    >>> task_parameters("mlp", 2, 0).alpha.round(4).tolist()
    [1.7641, 0.4002]
    """
    generator = np.random.RandomState(task_seed)
    if process in ("mlp", "mha"):
        alpha = generator.standard_normal(rules)
        beta = generator.standard_normal(rules)
        return Coefficients(alpha, beta)
    if process == "rnn":
        power = {"deviation": 0.5, "variance": 0.25}[spread]
        # The order of the draws is the authors': A, B, w.
        carry = generator.standard_normal((rules, order, dimension, dimension)) / (order * dimension) ** power
        take = generator.standard_normal((rules, dimension, dimension)) / dimension**power
        return Matrices(carry, take, generator.standard_normal(dimension))
    raise UsageError(f"unknown process '{process}'. {nearest(process, PROCESSES)}")


# Answers.


def make_labels(
    process: str, parameters: Coefficients | Matrices, x: Array, c: Array, kind: AnswerKind, *, nearest: bool = True
) -> Array:
    """The answers to inputs `x` under rules `c`.

    | process | x | c | regression | classification |
    |---|---|---|---|---|
    | mlp | (B, 2) | (B,) | (B,) | (B,) |
    | mha | (B, N, R, 4) search 1, (B, N, R, 6) search 2 | (B, N) | (B, N) | (B, N) |
    | rnn | (B, N, D) | (B, N) | states (B, N, D), `readout` (B, N) | (B, N) |

    A class is 1 where the real-valued answer (rnn: the read-out) is ≥ 0, else 0. Search 2 of mha finds the token at
    the smallest angle or, if `nearest` is false (the paper's formula to the letter), the one with the least product.

    >>> two = Coefficients(np.array([1.0, 2.0]), np.array([0.5, -1.0]))
    >>> make_labels("mlp", two, np.array([[1.0, 4.0], [1.0, 4.0]]), np.array([0, 1]), "regression").tolist()
    [3.0, -2.0]
    """
    if isinstance(parameters, Matrices):
        answers = rnn_states(parameters, x, c) if kind == "regression" else rnn_readouts(parameters, x, c)
    elif kind == "readout":
        raise UsageError(f"a readout is an answer of rnn, not of {process}; ask for regression")
    elif process == "mlp":
        answers = mlp_sums(parameters, x, c)
    elif process == "mha":
        answers = mha_sums(parameters, x, c, nearest)
    else:
        raise UsageError(f"the parameters are coefficients, which belong to mlp and mha; got process '{process}'")
    return (answers >= 0).astype(np.uint8) if kind == "classification" else answers


def mlp_sums(rules: Coefficients, x: Array, c: Array) -> Floats:
    """alpha · x1 + beta · x2 under each example's rule."""
    first, second = x.astype(np.float64).T
    sums: Floats = rules.alpha[c] * first + rules.beta[c] * second
    return sums


def mha_sums(rules: Coefficients, features: Array, c: Array, nearest: bool = True) -> Floats:
    """alpha · v + beta · v′ under each token's rule, where v and v′ belong to the tokens that its two searches find."""
    _, length, number, width = features.shape
    # All reads go through flat indices: example, then partner, then the token's rule, then v or v′ (the last two).
    flat = features.reshape(-1)
    start = np.arange(len(c))[:, None] * (length * number * width) + c * width
    partner, second_partner = mha_partners(features, c, nearest)
    first = flat.take(start + (partner * (number * width) + width - 2)).astype(np.float64)
    second = flat.take(start + (second_partner * (number * width) + width - 1)).astype(np.float64)
    sums: Floats = rules.alpha[c] * first + rules.beta[c] * second
    return sums


def mha_partners(features: Array, c: Array, nearest: bool = True) -> tuple[Ints, Ints]:
    """The other token that each token finds by q, and the one by q′: two arrays (B, N)."""
    step = max(1, _PAIRS // c.shape[1] ** 2)
    by_q = []
    by_q_prime = []
    for start in range(0, max(1, len(c)), step):
        first, second = _find_partners(features[start : start + step], c[start : start + step], nearest)
        by_q.append(first)
        by_q_prime.append(second)
    return np.concatenate(by_q), np.concatenate(by_q_prime)


def _find_partners(features: Array, c: Array, nearest: bool) -> tuple[Ints, Ints]:
    count, length, number, width = features.shape
    query_width = width // 2 - 1  # 1 (search 1) or 2 (search 2)
    flat = features.reshape(-1)
    # [example, token n, token i]: where the numbers of token i for the rule of token n begin. No other rule is read.
    begin = np.arange(count * length).reshape(count, 1, length) * (number * width) + (c * width)[:, :, None]
    queries = [flat[k:].take(begin).astype(np.float64) for k in range(2 * query_width)]
    return _search(queries[:query_width], nearest), _search(queries[query_width:], nearest)


def _search(queries: list[Floats], nearest: bool) -> Ints:
    """The other token that each token finds, the first in a tie, from queries [example, token n, token i]."""
    itself = np.arange(queries[0].shape[1])
    asking = [query[:, itself, itself, None] for query in queries]
    if len(queries) == 1:
        distance = np.abs(asking[0] - queries[0])
    else:
        # On a circle the smallest angle is the largest product.
        distance = asking[0] * queries[0] + asking[1] * queries[1]
        if nearest:
            np.negative(distance, out=distance)
    # No token finds itself; argmin takes the first of equal distances, which is the tie rule of the solver.
    distance[:, itself, itself] = np.inf
    partner: Ints = distance.argmin(axis=2)
    return partner


def rnn_states(rules: Matrices, x: Array, c: Array) -> Floats:
    """The states after each token, (B, N, D).

    Matrix products add up in an order that depends on the processor: states may differ in the last bits of double
    precision between kinds of processor, which the rounding to single precision hides but for one number in 10**8.
    """
    states = np.empty((x.shape[1], len(x), x.shape[2]))
    for step, (order, state) in enumerate(_run_rnn(rules, x, c)):
        states[step, order] = state
    return states.transpose(1, 0, 2)


def rnn_readouts(rules: Matrices, x: Array, c: Array) -> Floats:
    """The states after each token times w, (B, N), without storing the states."""
    readouts = np.empty((x.shape[1], len(x)))
    for step, (order, state) in enumerate(_run_rnn(rules, x, c)):
        # Product and sum, because a matrix product adds up in an order that depends on the machine.
        readouts[step, order] = (state * rules.w).sum(axis=1)
    return readouts.T


def _run_rnn(rules: Matrices, x: Array, c: Array) -> Iterator[tuple[Ints, Floats]]:
    """For each step, the examples sorted by rule, and their states in that order (valid until the next step).

    Sorted examples with the same rule share one matrix product. States stay in the order of their step: a later step
    gathers them by rank instead of bringing them back to the order of the examples.
    """
    count, _, dimension = x.shape
    number, order = rules.A.shape[:2]
    # [last state, …, input] · maps[rule] is the new state.
    maps = np.concatenate([rules.A.reshape(number, -1, dimension), rules.B], axis=1)
    sorts = c.T.astype(np.min_scalar_type(number)).argsort(axis=1, kind="stable")  # radix sort for small integers
    ranks = np.empty_like(sorts)  # the position of each example in the order of a step
    np.put_along_axis(ranks, sorts, np.arange(count)[None], axis=1)
    rows = np.zeros((count, (order + 1) * dimension))
    columns = rows.reshape(count, order + 1, dimension)  # a view: the last states, the latest first, then the input
    states = np.empty((order, count, dimension))  # of the last steps; the newest overwrites the oldest
    for n, sort in enumerate(sorts):
        for back in range(min(order, n)):
            earlier = n - 1 - back
            columns[:, back] = states[earlier % order].take(ranks[earlier].take(sort), axis=0)
        columns[:, order] = x[sort, n]
        start = 0
        for rule, stop in enumerate(np.bincount(c[:, n], minlength=number).cumsum().tolist()):
            np.matmul(rows[start:stop], maps[rule], out=states[n % order, start:stop])
            start = stop
        yield sort, states[n % order]

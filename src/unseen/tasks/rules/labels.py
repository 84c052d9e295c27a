"""The right answers, for whole arrays at once and with no work done for rules that are not asked for.

All in double precision, and from the numbers given alone. The plain counterpart is `solver.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unseen.errors import UsageError
from unseen.randomness import Floats, Ints
from unseen.tasks.rules.parameters import Coefficients, Matrices

Array = NDArray[Any]
Kind = Literal["regression", "classification", "readout"]

_PAIRS = 2**14
"""Pairs of tokens that are compared at a time: few enough to stay near the processor."""


def labels(
    process: str, parameters: Coefficients | Matrices, x: Array, c: Array, kind: Kind, *, nearest: bool = True
) -> Array:
    """The answers to inputs `x` under rules `c`.

    | process | x | c | regression | classification |
    |---|---|---|---|---|
    | mlp | (B, 2) | (B,) | (B,) | (B,) |
    | mha | (B, N, R, 4) search 1, (B, N, R, 6) search 2 | (B, N) | (B, N) | (B, N) |
    | rnn | (B, N, D) | (B, N) | states (B, N, D), `readout` (B, N) | (B, N) |

    A class is 1 where the real-valued answer (rnn: the read-out) is ≥ 0, else 0. Search 2 of mha finds the token at
    the smallest angle or (`nearest` false, the paper's formula to the letter) the one with the least product.

    >>> two = Coefficients(np.array([1.0, 2.0]), np.array([0.5, -1.0]))
    >>> labels("mlp", two, np.array([[1.0, 4.0], [1.0, 4.0]]), np.array([0, 1]), "regression").tolist()
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
    """alpha · x1 + beta · x2 of each example's rule."""
    first, second = x.astype(np.float64).T
    sums: Floats = rules.alpha[c] * first + rules.beta[c] * second
    return sums


def mha_sums(rules: Coefficients, features: Array, c: Array, nearest: bool = True) -> Floats:
    """alpha · v + beta · v′ of each token's rule, v and v′ read from the tokens that its two searches find."""
    _, length, number, width = features.shape
    flat, own = features.reshape(-1), np.arange(len(c))[:, None] * (length * number * width) + c * width
    first, second = (
        flat.take(own + (partner * (number * width) + width - 2 + side)).astype(np.float64)
        for side, partner in enumerate(mha_partners(features, c, nearest))
    )
    sums: Floats = rules.alpha[c] * first + rules.beta[c] * second
    return sums


def mha_partners(features: Array, c: Array, nearest: bool = True) -> tuple[Ints, Ints]:
    """Which other token each token finds by q, and which by q′: two arrays (B, N)."""
    step = max(1, _PAIRS // c.shape[1] ** 2)
    parts = [_partners(features[i : i + step], c[i : i + step], nearest) for i in range(0, max(1, len(c)), step)]
    return np.concatenate([first for first, _ in parts]), np.concatenate([second for _, second in parts])


def _partners(features: Array, c: Array, nearest: bool) -> tuple[Ints, Ints]:
    count, length, number, width = features.shape
    wide = width // 2 - 1  # numbers of a query: 1 (search 1) or 2 (search 2)
    flat = features.reshape(-1)
    # [example, token n, token i]: where the numbers of token i for the rule of token n begin. No other rule is read.
    begin = np.arange(count * length).reshape(count, 1, length) * (number * width) + (c * width)[:, :, None]
    queries = [flat[k:].take(begin).astype(np.float64) for k in range(2 * wide)]
    return _search(queries[:wide], nearest), _search(queries[wide:], nearest)


def _search(queries: list[Floats], nearest: bool) -> Ints:
    """The other token that each token finds, the first of equals, from queries [example, token n, token i]."""
    itself = np.arange(queries[0].shape[1])
    own = [query[:, itself, itself, None] for query in queries]
    if len(queries) == 1:
        distance = np.abs(own[0] - queries[0])
    else:
        distance = own[0] * queries[0] + own[1] * queries[1]
        if nearest:
            np.negative(distance, out=distance)
    distance[:, itself, itself] = np.inf
    found: Ints = distance.argmin(axis=2)
    return found


def rnn_states(rules: Matrices, x: Array, c: Array) -> Floats:
    """The states after each token, (B, N, D).

    The processor's library adds up products in an order of its own: between kinds of processor states may differ in
    the last bits of double precision, which the rounding to single precision hides but for one number in 10**8.
    """
    states = np.empty((x.shape[1], len(x), x.shape[2]))
    for step, (order, found) in enumerate(_walk(rules, x, c)):
        states[step, order] = found
    return states.transpose(1, 0, 2)


def rnn_readouts(rules: Matrices, x: Array, c: Array) -> Floats:
    """The states after each token times w, (B, N), without keeping the states."""
    read = np.empty((x.shape[1], len(x)))
    for step, (order, found) in enumerate(_walk(rules, x, c)):
        # Product and sum: a product of matrices adds up in an order of its own on every machine.
        read[step, order] = (found * rules.w).sum(axis=1)
    return read.T


def _walk(rules: Matrices, x: Array, c: Array) -> Iterator[tuple[Ints, Floats]]:
    """Step by step an order of the examples, by rule, and their states in that order, to be used before the next step.

    Examples that meet the same rule share one product. Nothing is brought back to the examples' own order on the way.
    """
    count, _, dimension = x.shape
    number, order = rules.A.shape[:2]
    maps = np.concatenate([rules.A.reshape(number, -1, dimension), rules.B], axis=1)
    sorts = c.T.astype(np.min_scalar_type(number)).argsort(axis=1, kind="stable")  # small integers sort in no time
    ends = [np.bincount(step, minlength=number).cumsum().tolist() for step in c.T]
    places = np.empty_like(sorts)  # where each example stands in a step's order
    np.put_along_axis(places, sorts, np.arange(count)[None], axis=1)
    rows = np.zeros((count, (order + 1) * dimension))
    parts = rows.reshape(count, order + 1, dimension)  # a view: the last states, the latest first, then the input
    states = np.empty((order, count, dimension))  # of the last steps; the oldest makes room for the newest
    for n, sort in enumerate(sorts):
        for back in range(min(order, n)):
            before = n - 1 - back
            parts[:, back] = states[before % order].take(places[before].take(sort), axis=0)
        parts[:, order] = x[sort, n]
        for rule, (start, end) in enumerate(pairwise([0, *ends[n]])):
            np.matmul(rows[start:end], maps[rule], out=states[n % order, start:end])
        yield sort, states[n % order]

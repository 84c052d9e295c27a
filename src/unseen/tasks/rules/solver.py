"""The plain solver: one example after the other, token by token, independent of the generator.

It takes the inputs and the numbers of the rules as plain data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Numbers = Sequence[float]


def solve_mlp(alpha: Numbers, beta: Numbers, x: Numbers, rule: int) -> float:
    """The weighted sum of two numbers under one rule.

    >>> solve_mlp([1.0, 2.0], [0.5, -1.0], [1.0, 4.0], rule=1)
    -2.0
    """
    return alpha[rule] * x[0] + beta[rule] * x[1]


def solve_mha(
    alpha: Numbers, beta: Numbers, tokens: Sequence[Sequence[Numbers]], rules: Sequence[int], nearest: bool = True
) -> list[float]:
    """The answer at every token. `tokens[n][r]` is q, q′, v, v′ (or, of two numbers each, q and q′; then v, v′).

    Token 1 lies nearer to token 0 by q and token 2 by q′, so token 0 reads v = 10 and v′ = 7:

    >>> tokens = [[[0.0, 0.0, 1.0, 2.0]], [[0.1, 5.0, 10.0, 20.0]], [[3.0, 0.2, 6.0, 7.0]]]
    >>> solve_mha([1.0], [2.0], tokens, [0, 0, 0])[0]
    24.0
    """
    answers = []
    for n, rule in enumerate(rules):
        blocks = [token[rule] for token in tokens]
        first, second = find_tokens(blocks, n, nearest)
        answers.append(alpha[rule] * blocks[first][-2] + beta[rule] * blocks[second][-1])
    return answers


def find_tokens(blocks: Sequence[Numbers], n: int, nearest: bool) -> tuple[int, int]:
    """The two tokens that token n finds, from the queries and values of all tokens for its rule."""
    width = 1 if len(blocks[n]) == 4 else 2
    first = look_up([block[:width] for block in blocks], n, nearest)
    return first, look_up([block[width : 2 * width] for block in blocks], n, nearest)


def look_up(queries: Sequence[Numbers], n: int, nearest: bool) -> int:
    """The other token that token n finds; in a tie, the first."""
    best = -1
    least = float("inf")
    for i, query in enumerate(queries):
        if len(query) == 1:
            distance = abs(queries[n][0] - query[0])
        else:
            product = queries[n][0] * query[0] + queries[n][1] * query[1]
            distance = -product if nearest else product
        if i != n and distance < least:
            best = i
            least = distance
    return best


def solve_rnn(carry: Vector, take: Vector, x: Vector, rules: Sequence[int]) -> list[Vector]:
    """The state after every token; `carry` is (R, order, D, D), `take` (R, D, D), and states are row vectors.

    >>> halve_or_keep = np.array([[[[0.5]]], [[[1.0]]]])
    >>> states = solve_rnn(halve_or_keep, np.array([[[1.0]], [[1.0]]]), np.array([[4.0], [1.0], [0.0]]), [1, 0, 1])
    >>> [state.tolist() for state in states]
    [[4.0], [3.0], [3.0]]
    """
    states: list[Vector] = []
    for n, rule in enumerate(rules):
        state = x[n] @ take[rule]
        for back, matrix in enumerate(carry[rule], start=1):
            if n >= back:
                state = state + states[n - back] @ matrix
        states.append(state)
    return states


def classify(answers: NDArray[Any]) -> NDArray[np.uint8]:
    """1 where an answer is at least 0."""
    return np.where(answers >= 0, np.uint8(1), np.uint8(0))

"""The variables of a rules example: the rule, the tokens that are looked up, the sign of the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unseen.tasks.rules.solver import find_tokens
from unseen.tasks.variables import NONE, Ints, Variable

SolveAll = Callable[[NDArray[Any]], NDArray[Any]]
"""From the rules (B,) or (B, N) to the targets of all examples."""


def list_rules(rule: NDArray[Any], rules: int) -> dict[str, Variable]:
    """`rule`, or along a stream `rule[n]` of the n-th token from 0."""
    if rule.ndim == 1:
        return {"rule": _rule_variable(rule, rules)}
    return {f"rule[{n}]": _rule_variable(rule[:, n], rules) for n in range(rule.shape[1])}


def _rule_variable(rule: NDArray[Any], rules: int) -> Variable:
    values = rule.astype(np.int64)
    return Variable(values, rules, causes=values[:, None])


def list_looked_up(blocks: NDArray[Any], rule: NDArray[Any], nearest: bool) -> dict[str, Variable]:
    """`first_token[n]` and `second_token[n]`: the tokens that the n-th token finds by its two queries.

    `blocks` (B, N, R, numbers) has the queries and values of every token for every rule.
    """
    count, tokens = rule.shape
    first_tokens = np.full((count, tokens), NONE, np.int64)
    second_tokens = np.full((count, tokens), NONE, np.int64)
    for b in range(count):
        for n in range(tokens):
            block = blocks[b, :, rule[b, n]].tolist()
            first_tokens[b, n], second_tokens[b, n] = find_tokens(block, n, nearest)
    variables = {}
    for name, partners in (("first_token", first_tokens), ("second_token", second_tokens)):
        for n in range(tokens):
            variables[f"{name}[{n}]"] = Variable(partners[:, n], tokens, positions=True)
    return variables


def list_signs(read_out: NDArray[Any]) -> dict[str, Variable]:
    """`state[n]`: whether the read-out of the state after the n-th token, (B, N), is at least 0."""
    signs = (read_out >= 0).astype(np.int64)
    return {f"state[{n}]": Variable(signs[:, n], 2, causal=False) for n in range(signs.shape[1])}


def answer_with_rule(solve: SolveAll, rule: NDArray[Any], n: int, values: Ints) -> NDArray[Any]:
    """The targets if the rule (of the n-th token) were another."""
    changed = rule.copy()
    column = changed if rule.ndim == 1 else changed[:, n]
    column[:] = np.where(values == NONE, column, values)
    return solve(changed)

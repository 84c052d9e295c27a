"""One example in numbers a person can follow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unseen.tasks.base import Examples
from unseen.tasks.rules.labels import Kind, mha_partners
from unseen.tasks.rules.parameters import Coefficients, Matrices

_SHOWN = 3
"""How many numbers of a vector are printed."""


def describe_mlp(name: str, rules: Coefficients, examples: Examples, index: int) -> str:
    """The two numbers, the rule's weights, the sum."""
    x, rule = examples.inputs["x"][index].tolist(), int(examples.inputs["rule"][index])
    target = examples.targets[index, 0]
    return "\n".join(
        [
            f"{name}, rule {rule} of {len(rules.alpha)}: alpha = {_number(rules.alpha[rule])}, "
            f"beta = {_number(rules.beta[rule])}",
            f"  x = ({_number(x[0])}, {_number(x[1])})",
            f"  y = alpha · x1 + beta · x2 = {_sum(rules, rule, x)}",
            f"answer: {_answer(target)}",
        ]
    )


def describe_mha(name: str, rules: Coefficients, examples: Examples, index: int, nearest: bool) -> str:
    """Token by token: which other tokens its two queries find, what it reads there, the sum."""
    rule = examples.inputs["rule"][index]
    blocks = examples.inputs["features"][index].reshape(len(rule), len(rules.alpha), -1)
    found = [partners[0].tolist() for partners in mha_partners(blocks[None], rule[None], nearest)]
    word = "nearest" if nearest or blocks.shape[2] == 4 else "least product"
    lines = [
        f"{name}, {len(rule)} tokens, {len(rules.alpha)} rules; a token looks at the others with the queries of "
        "its rule, q for v and q′ for v′"
    ]
    for n, r in enumerate(rule.tolist()):
        values, parts = [], []
        for side, mark in enumerate(("", "′")):
            i = found[side][n]
            values.append(float(blocks[i, r, side - 2]))
            own, other = (_query(blocks[token, r], side) for token in (n, i))
            parts.append(f"q{mark} = {own}, {word} token {i} ({other}), v{mark} = {_number(values[-1])}")
        answer = _answer(examples.targets[index, n, 0])
        lines += [
            f"  token {n}, rule {r}: {'; '.join(parts)}",
            f"      y = alpha · v + beta · v′ = {_sum(rules, r, values)}; answer: {answer}",
        ]
    return "\n".join(lines)


def describe_rnn(name: str, rules: Matrices, examples: Examples, index: int, kind: Kind) -> str:
    """Token by token: what is carried over, what the input adds, the new state and what is read from it."""
    x, rule = examples.inputs["x"][index].astype(np.float64), examples.inputs["rule"][index].tolist()
    order, dimension = rules.A.shape[1], len(rules.w)
    shown = f"the first {_SHOWN} of {dimension} numbers of each" if dimension > _SHOWN else "all numbers"
    asked = {"classification": "1 if s · w ≥ 0, else 0", "readout": "s · w", "regression": "the new state"}[kind]
    past = "s" if order == 1 else f"the last {order} states"
    lines = [
        f"{name}, {len(rule)} tokens, {len(rules.B)} rules; the state s starts at 0",
        f"  each token: new s = {past} · A[rule] + x · B[rule]; answer: {asked}; below, {shown}",
    ]
    if dimension <= _SHOWN:
        for r in sorted(set(rule)):
            carry = rules.A[r, 0] if order == 1 else rules.A[r]
            lines.append(f"  rule {r}: A = {np.round(carry, 3).tolist()}, B = {np.round(rules.B[r], 3).tolist()}")
        lines.append(f"  w = {_vector(rules.w)}")
    table = [("token", "rule", "x", "carried over", "+ from x", "= new s", "length of s", "s · w", "answer")]
    states: list[NDArray[np.float64]] = []
    for n, r in enumerate(rule):
        carried = sum((states[n - o] @ rules.A[r, o - 1] for o in range(1, min(order, n) + 1)), np.zeros(dimension))
        added = x[n] @ rules.B[r]
        states.append(carried + added)
        target = examples.targets[index, n]
        answer = _vector(target) if kind == "regression" else _answer(target[0])
        table.append(
            (
                str(n),
                str(r),
                _vector(x[n]),
                _vector(carried),
                _vector(added),
                _vector(states[n]),
                _number(float(np.linalg.norm(states[n]))),
                _number(float(states[n] @ rules.w)),
                answer,
            )
        )
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines += ["  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
    if dimension > _SHOWN:
        lines.append("  (--set dimension=2 makes a task whose numbers are all shown)")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def _vector(values: NDArray[Any]) -> str:
    shown = " ".join(_number(float(value)).rjust(7) for value in values[:_SHOWN])
    return shown + (" …" if len(values) > _SHOWN else "")


def _sum(rules: Coefficients, rule: int, values: Sequence[float]) -> str:
    alpha, beta = float(rules.alpha[rule]), float(rules.beta[rule])
    first, second = (_number(value) if value >= 0 else f"({_number(value)})" for value in values)
    result = _number(alpha * values[0] + beta * values[1])
    return f"{_number(alpha)} · {first} {'−' if beta < 0 else '+'} {_number(abs(beta))} · {second} = {result}"


def _answer(target: Any) -> str:
    """A class is an integer, the answer of a regression is not."""
    return str(int(target)) if isinstance(target, np.integer) else _number(float(target))


def _query(block: NDArray[Any], side: int) -> str:
    """A query: a number, or the angle of a point on the circle."""
    if len(block) == 4:
        return _number(float(block[side]))
    first, second = block[2 * side : 2 * side + 2].tolist()
    return f"{math.degrees(math.atan2(second, first)):.1f}°".replace("-", "−")

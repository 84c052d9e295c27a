"""Foreign examples against the plain solver: JSON lines that carry the numbers of their rules.

    {"process": "mlp", "parameters": {"alpha": [R], "beta": [R]}, "x": [2], "c": rule, …}
    {"process": "mha", "search": 1, "parameters": {"alpha": [R], "beta": [R]}, "x": [N][R][4], "c": [N], …}
    {"process": "rnn", "parameters": {"A": [R][D][D], "B": [R][D][D], "w": [D]}, "x": [N][D], "c": [N], …}

and "y_regression", "y_classification" or both, with an answer for each rule in "c" (the regression of rnn: the state,
or the read-out s · w). A line may hold a batch: one more axis in front of x, c and the answers. Search 2 has 6 numbers
in place of 4; a token's numbers may stand in one row, R · 4 or R · 6. A of order k is [R][k][D][D]. Rules count from 0.
Other keys are not read, which is said.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unseen.errors import CheckFailed
from unseen.tasks.base import Judgement, Mismatch
from unseen.tasks.rules.solver import classes, solve_mha, solve_mlp, solve_rnn
from unseen.tasks.text import read_lines

Array = NDArray[Any]
Line = dict[str, Any]
Shape = tuple[int, ...]

_KEYS = {"process", "search", "parameters", "x", "c", "y_regression", "y_classification"}
_TOLERANCE = 1e-5


def judge_file(path: Path, nearest: bool = True) -> Judgement:
    """Compare every answer in a file; lines may be of different processes.

    Every example of a batch counts. A line that can't be read counts as one example that is wrong.
    """
    lines = read_lines(path)
    if not lines:
        raise CheckFailed(f"{path}, line 1: the file is empty")
    mismatches: list[Mismatch] = []
    judged, unread, malformed = Counter[str](), set[str](), 0
    for number, text in enumerate(lines, 1):
        try:
            line = _parse(text)
            count, wrong = _judge(line, nearest)
            mismatches += [replace(one, line=number) for one in wrong]
            judged[line["process"]] += count
            unread |= line.keys() - _KEYS
        except ValueError as error:
            malformed += 1
            mismatches.append(Mismatch(number, "no example", str(error), "the line"))
    notes = [", ".join(f"{count} of {process}" for process, count in sorted(judged.items()))] if judged else []
    notes += [f"not read: {', '.join(sorted(unread))}"] if unread else []
    return Judgement(judged.total() + malformed, tuple(mismatches), "".join(f"; {note}" for note in notes))


def _parse(text: bytes) -> Line:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("expected one JSON object per line") from None
    if not isinstance(found, dict):
        raise ValueError("expected one JSON object per line")
    if found.get("process") not in ("mlp", "mha", "rnn"):
        raise ValueError(f"'process' must be mlp, mha or rnn; got {found.get('process')!r}")
    if not isinstance(found.get("parameters"), dict):
        raise ValueError("expected an object 'parameters' with the numbers of the rules")
    return found


def _judge(line: Line, nearest: bool) -> tuple[int, list[Mismatch]]:
    """How many examples a line holds, and of each that is wrong the first wrong answer."""
    c = _numbers(line, "c")
    alone = c.ndim == (0 if line["process"] == "mlp" else 1)
    whole = c.size > 0 and (c == np.floor(c)).all() and np.abs(c).max() < 2**31
    if c.ndim != (1 if line["process"] == "mlp" else 2) - alone or not whole:
        raise ValueError(f"'c' must be the rules of an example or a batch, whole numbers; got shape {c.shape}")
    # From here on everything has the axis of a batch.
    rules = c.astype(np.int64)[None] if alone else c.astype(np.int64)
    solved = {"mlp": _solve_mlp, "mha": _solve_mha, "rnn": _solve_rnn}[line["process"]](line, rules, alone, nearest)
    given = [key for key in ("y_regression", "y_classification") if key in line]
    if not given:
        raise ValueError("expected 'y_regression', 'y_classification' or both")
    wrong: dict[int, Mismatch] = {}
    for key in given:
        expected = [real for real in solved if key == "y_regression" or real.shape == rules.shape]
        if not expected:
            raise ValueError("'w' is missing; classes are read out with it")
        if key == "y_classification":
            expected = [classes(real) for real in expected]
        # One number for each rule may also stand in a list of its own.
        shapes = [answers.shape for answers in expected] + [(*rules.shape, 1)] * (expected[-1].shape == rules.shape)
        answers = _shaped(line, key, alone, *shapes)
        right = next((real for real in expected if real.shape == answers.shape), expected[-1])
        for example, at, mismatch in _differences(answers.reshape(right.shape), right, real=key == "y_regression"):
            where = ", ".join(map(str, at if alone else (example, *at)))
            wrong.setdefault(example, replace(mismatch, what=f"{key} at {where}" if where else key, example=example))
    return len(rules), list(wrong.values())


def _differences(given: Array, right: Array, real: bool) -> Iterator[tuple[int, tuple[int, ...], Mismatch]]:
    """The wrong answers: the example each belongs to, its place there, and itself."""
    equal = np.isclose(given, right, _TOLERANCE, _TOLERANCE) if real else given == right
    for example, *place in np.argwhere(~equal).tolist():
        at = (example, *place)
        yield example, tuple(place), Mismatch(0, f"{given[at]:.6g}", f"{right[at]:.6g}")


def _solve_mlp(line: Line, c: Array, alone: bool, nearest: bool) -> list[Array]:
    alpha, beta = _coefficients(line, c)
    x = _shaped(line, "x", alone, (*c.shape, 2)).tolist()
    return [np.array([solve_mlp(alpha, beta, pair, rule) for pair, rule in zip(x, c.tolist(), strict=True)])]


def _solve_mha(line: Line, c: Array, alone: bool, nearest: bool) -> list[Array]:
    alpha, beta = _coefficients(line, c)
    if line.get("search") not in (1, 2):
        raise ValueError(f"'search' must be 1 or 2; got {line.get('search')!r}")
    if c.shape[1] < 2:
        raise ValueError("an example of mha has at least two tokens")
    wide = 2 + 2 * int(line["search"])
    x = _shaped(line, "x", alone, (*c.shape, len(alpha), wide), (*c.shape, len(alpha) * wide))
    tokens = x.reshape(*c.shape, len(alpha), wide).tolist()
    return [np.array([solve_mha(alpha, beta, t, r, nearest) for t, r in zip(tokens, c.tolist(), strict=True)])]


def _solve_rnn(line: Line, c: Array, alone: bool, nearest: bool) -> list[Array]:
    """The states and, where w is given, the read-outs."""
    parameters = line["parameters"]
    take = _numbers(parameters, "B")
    if take.ndim != 3 or take.shape[1] != take.shape[2]:
        raise ValueError(f"'B' must have shape (rules, D, D); got {take.shape}")
    carry = _numbers(parameters, "A")
    carry = carry[:, None] if carry.ndim == 3 else carry
    if carry.ndim != 4 or carry.shape[:1] + carry.shape[2:] != take.shape:
        raise ValueError(
            f"'A' must have shape {take.shape}, or an axis for its order after the first; got "
            f"{_numbers(parameters, 'A').shape}"
        )
    _check_rules(c, len(take))
    x = _shaped(line, "x", alone, (*c.shape, take.shape[1]))
    states = np.array([solve_rnn(carry, take, one, rules) for one, rules in zip(x, c.tolist(), strict=True)])
    return [states, states @ _shaped(parameters, "w", False, take.shape[1:2])] if "w" in parameters else [states]


def _coefficients(line: Line, c: Array) -> tuple[list[float], list[float]]:
    alpha, beta = (_numbers(line["parameters"], key) for key in ("alpha", "beta"))
    if alpha.ndim != 1 or alpha.shape != beta.shape:
        raise ValueError(f"'alpha' and 'beta' must be one number for each rule; got shapes {alpha.shape}, {beta.shape}")
    _check_rules(c, len(alpha))
    return alpha.tolist(), beta.tolist()


def _check_rules(c: Array, rules: int) -> None:
    if c.min() < 0 or c.max() >= rules:
        raise ValueError(f"'c' must be within 0 … {rules - 1}; got {c.min()} … {c.max()}")


def _numbers(place: dict[str, Any], key: str) -> Array:
    if key not in place:
        raise ValueError(f"'{key}' is missing")
    try:
        found = np.array(place[key])
    except ValueError:
        found = np.array(None)
    if found.dtype.kind not in "iuf" or not np.isfinite(found).all():
        raise ValueError(f"'{key}' must be finite numbers, in lists of equal lengths")
    return found.astype(np.float64)


def _shaped(place: dict[str, Any], key: str, alone: bool, *shapes: Shape) -> Array:
    """An array of one of these shapes; `alone`: it comes without the axis of a batch, and gets it."""
    found = _numbers(place, key)
    wanted = [shape[1:] if alone else shape for shape in shapes]
    if found.shape not in wanted:
        raise ValueError(f"'{key}' has shape {found.shape}, expected {' or '.join(map(str, wanted))}")
    return found[None] if alone else found

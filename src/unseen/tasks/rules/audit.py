"""Checks of rules data: foreign examples against the plain solver, and how far shortcuts get by the definition.

Foreign examples are JSON lines that carry the numbers of their rules:

    {"process": "mlp", "parameters": {"alpha": [R], "beta": [R]}, "x": [2], "c": rule, …}
    {"process": "mha", "search": 1, "parameters": {"alpha": [R], "beta": [R]}, "x": [N][R][4], "c": [N], …}
    {"process": "rnn", "parameters": {"A": [R][D][D], "B": [R][D][D], "w": [D]}, "x": [N][D], "c": [N], …}

and "y_regression", "y_classification" or both, with an answer for each rule in "c" (the regression of rnn: the state,
or the read-out s · w). A line may hold a batch, with one more axis in front of x, c and the answers. Search 2 has 6
numbers instead of 4; the numbers of a token may be flattened, R · 4 or R · 6. A of order k is [R][k][D][D]. Rules count
from 0. Other keys are ignored, and the result names them.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, owens_t

from unseen.errors import CheckFailed
from unseen.randomness import Floats, Ints
from unseen.tasks.base import ForeignFileReport, Mismatch, read_lines
from unseen.tasks.rules.generate import Coefficients, Matrices, rnn_states
from unseen.tasks.rules.solver import classify, solve_mha, solve_mlp, solve_rnn

Array = NDArray[Any]
Line = dict[str, Any]
Shape = tuple[int, ...]

_KEYS = {"process", "search", "parameters", "x", "c", "y_regression", "y_classification"}
_TOLERANCE = 1e-5


# Foreign examples.


def judge_file(path: Path, nearest: bool = True) -> ForeignFileReport:
    """Compare every answer in a file with the solver's; lines may belong to different processes.

    Every example of a batch counts. A line that can't be read counts as one wrong example.
    """
    lines = read_lines(path)
    if not lines:
        raise CheckFailed(f"{path}, line 1: the file is empty")
    mismatches: list[Mismatch] = []
    judged = Counter[str]()
    ignored = set[str]()
    malformed = 0
    for number, text in enumerate(lines, 1):
        try:
            line = _parse(text)
            count, wrong = _judge_line(line, nearest)
        except ValueError as error:
            malformed += 1
            mismatches.append(Mismatch(number, "no example", str(error), "the line"))
            continue
        mismatches += [replace(mismatch, line=number) for mismatch in wrong]
        judged[line["process"]] += count
        ignored |= line.keys() - _KEYS
    note = ""
    if judged:
        note += "; " + ", ".join(f"{count} of {process}" for process, count in sorted(judged.items()))
    if ignored:
        note += f"; not read: {', '.join(sorted(ignored))}"
    return ForeignFileReport(judged.total() + malformed, tuple(mismatches), note)


def _parse(text: bytes) -> Line:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("expected one JSON object per line") from None
    if not isinstance(line, dict):
        raise ValueError("expected one JSON object per line")
    if line.get("process") not in ("mlp", "mha", "rnn"):
        raise ValueError(f"'process' must be mlp, mha or rnn; got {line.get('process')!r}")
    if not isinstance(line.get("parameters"), dict):
        raise ValueError("expected an object 'parameters' with the numbers of the rules")
    return line


def _judge_line(line: Line, nearest: bool) -> tuple[int, list[Mismatch]]:
    """The number of examples of a line, and the first wrong answer of each wrong example."""
    process = line["process"]
    c = _read_array(line, "c")
    axes = 0 if process == "mlp" else 1  # of the rules of a single example
    single = c.ndim == axes
    whole = c.size > 0 and (c == np.floor(c)).all() and np.abs(c).max() < 2**31
    if c.ndim not in (axes, axes + 1) or not whole:
        raise ValueError(f"'c' must be the rules of an example or a batch, whole numbers; got shape {c.shape}")
    # From here on every array has the axis of a batch.
    rules = c.astype(np.int64)[None] if single else c.astype(np.int64)
    solve = {"mlp": _solve_mlp, "mha": _solve_mha, "rnn": _solve_rnn}[process]
    solutions = solve(line, rules, single, nearest)
    keys = [key for key in ("y_regression", "y_classification") if key in line]
    if not keys:
        raise ValueError("expected 'y_regression', 'y_classification' or both")
    wrong: dict[int, Mismatch] = {}
    for key in keys:
        expected = solutions
        if key == "y_classification":
            # Of rnn only the read-outs have classes, and they have the shape of the rules.
            expected = [classify(answers) for answers in solutions if answers.shape == rules.shape]
            if not expected:
                raise ValueError("'w' is missing; classes are read out with it")
        shapes = [answers.shape for answers in expected]
        if expected[-1].shape == rules.shape:
            shapes.append((*rules.shape, 1))  # a number per rule may also come as a list of length 1
        answers = _read_shaped(line, key, single, *shapes)
        solution = next((array for array in expected if array.shape == answers.shape), expected[-1])
        answers = answers.reshape(solution.shape)
        tolerance = _TOLERANCE if key == "y_regression" else 0
        equal = np.isclose(answers, solution, tolerance, tolerance)
        for index in map(tuple, np.argwhere(~equal).tolist()):
            position = ", ".join(map(str, index[1:] if single else index))
            mismatch = Mismatch(0, f"{answers[index]:.6g}", f"{solution[index]:.6g}")
            subject = f"{key} at {position}" if position else key
            wrong.setdefault(index[0], replace(mismatch, what=subject, example=index[0]))
    return len(rules), list(wrong.values())


def _solve_mlp(line: Line, c: Array, single: bool, nearest: bool) -> list[Array]:
    alpha, beta = _read_coefficients(line, c)
    x = _read_shaped(line, "x", single, (*c.shape, 2)).tolist()
    return [np.array([solve_mlp(alpha, beta, pair, rule) for pair, rule in zip(x, c.tolist(), strict=True)])]


def _solve_mha(line: Line, c: Array, single: bool, nearest: bool) -> list[Array]:
    alpha, beta = _read_coefficients(line, c)
    if line.get("search") not in (1, 2):
        raise ValueError(f"'search' must be 1 or 2; got {line.get('search')!r}")
    if c.shape[1] < 2:
        raise ValueError("an example of mha has at least two tokens")
    width = 2 + 2 * int(line["search"])
    x = _read_shaped(line, "x", single, (*c.shape, len(alpha), width), (*c.shape, len(alpha) * width))
    tokens = x.reshape(*c.shape, len(alpha), width).tolist()
    return [np.array([solve_mha(alpha, beta, t, r, nearest) for t, r in zip(tokens, c.tolist(), strict=True)])]


def _solve_rnn(line: Line, c: Array, single: bool, nearest: bool) -> list[Array]:
    """The states and, if the line has w, the read-outs."""
    parameters = line["parameters"]
    take = _read_array(parameters, "B")
    if take.ndim != 3 or take.shape[1] != take.shape[2]:
        raise ValueError(f"'B' must have shape (rules, D, D); got {take.shape}")
    carry = _read_array(parameters, "A")
    shape = carry.shape
    carry = carry[:, None] if carry.ndim == 3 else carry
    if carry.ndim != 4 or carry.shape[:1] + carry.shape[2:] != take.shape:
        raise ValueError(f"'A' must have shape {take.shape}, or an axis for its order after the first; got {shape}")
    _check_rules(c, len(take))
    x = _read_shaped(line, "x", single, (*c.shape, take.shape[1]))
    states = np.array([solve_rnn(carry, take, numbers, rules) for numbers, rules in zip(x, c.tolist(), strict=True)])
    if "w" not in parameters:
        return [states]
    return [states, states @ _read_shaped(parameters, "w", False, take.shape[1:2])]


def _read_coefficients(line: Line, c: Array) -> tuple[list[float], list[float]]:
    alpha = _read_array(line["parameters"], "alpha")
    beta = _read_array(line["parameters"], "beta")
    if alpha.ndim != 1 or alpha.shape != beta.shape:
        raise ValueError(f"'alpha' and 'beta' must be one number for each rule; got shapes {alpha.shape}, {beta.shape}")
    _check_rules(c, len(alpha))
    return alpha.tolist(), beta.tolist()


def _check_rules(c: Array, rules: int) -> None:
    if c.min() < 0 or c.max() >= rules:
        raise ValueError(f"'c' must be within 0 … {rules - 1}; got {c.min()} … {c.max()}")


def _read_array(record: dict[str, Any], key: str) -> Array:
    if key not in record:
        raise ValueError(f"'{key}' is missing")
    try:
        array = np.array(record[key])
    except ValueError:
        array = np.array(None)  # lists of different lengths: refused below
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise ValueError(f"'{key}' must be finite numbers, in lists of equal lengths")
    return array.astype(np.float64)


def _read_shaped(record: dict[str, Any], key: str, single: bool, *shapes: Shape) -> Array:
    """An array of one of these shapes; that of a single example comes without the axis of a batch, and gets it."""
    array = _read_array(record, key)
    allowed = [shape[1:] if single else shape for shape in shapes]
    if array.shape not in allowed:
        raise ValueError(f"'{key}' has shape {array.shape}, expected {' or '.join(map(str, allowed))}")
    return array[None] if single else array


# Ceilings of shortcuts: always answering 0, and a line that all rules share, as the baselines of `verify` fit it.
#
# All rules are linear and all inputs normal. Given the rules of an example (a *case*), its answer and any column of
# numbers that a baseline reads are jointly normal, and it is known how often a threshold on one tells the sign of the
# other.

_THRESHOLDS = ndtri(np.arange(8, 16) / 16)
"""The quantiles that the baseline single-feature tries, from the median up; the others mirror them."""


def zero_loss(rules: Coefficients, pi: Floats) -> float:
    """The mean absolute answer of rules/mlp and rules/mha, which is the error of always answering 0.

    >>> round(zero_loss(Coefficients(np.array([3.0]), np.array([4.0])), np.ones(1)), 4)
    3.9894
    """
    return math.sqrt(2 / math.pi) * float(pi @ np.hypot(rules.alpha, rules.beta))


def class_ceilings(weight: Floats, single: Floats, bag: Floats) -> dict[str, float]:
    """Accuracies from the correlations of the answer with each column, (cases, columns); `weight` (cases,).

    The line of the bag of tokens is that of least squares: its direction is the mean correlation.
    """
    # A threshold h on a column gains 2 T(h, a) over a coin; Owen's T is the probability of X > h and 0 < Y < a X.
    steepness = single / np.sqrt(np.maximum(1 - single**2, 1e-12))
    gains = [np.abs(weight @ owens_t(threshold, steepness)).max() for threshold in _THRESHOLDS]
    direction = weight @ bag
    along = bag @ direction / max(float(np.linalg.norm(direction)), 1e-12)
    # Sheppard's formula: signs of two normal numbers of correlation r agree with probability ½ + arcsin(r) / π.
    gain = weight @ np.arcsin(np.clip(along, -1, 1)) / math.pi
    return {"single-feature": 0.5 + 2 * max(gains), "bag-of-tokens": 0.5 + float(gain)}


def real_ceilings(variance: float, single: Floats, bag: Floats) -> dict[str, float]:
    """Shares of the variance (summed over outputs) from the covariances with each column, (columns, outputs).

    Two levels, one on either side of the median, explain 2/π of what a line explains.
    """
    best = (single**2).max(axis=0).sum() * 2 / math.pi
    return {"single-feature": float(best / variance), "bag-of-tokens": float((bag**2).sum() / variance)}


def sum_ceilings(rules: Coefficients, pi: Floats, length: int, classification: bool) -> dict[str, float]:
    """Ceilings of rules/mlp (`length` 0) and rules/mha. A case is a rule.

    The informative columns of mlp are the two inputs and their sum; those of mha are the sums over all tokens of a
    rule's v and of its v′ (which include the values that the token finds), and the total of everything.
    """
    pairs = np.stack([rules.alpha, rules.beta], axis=1)
    deviation = np.linalg.norm(pairs, axis=1)
    if length:
        spread = np.einsum("rj,rs->rsj", pairs, np.eye(len(pairs))).reshape(len(pairs), -1) / math.sqrt(length)
        total = pairs.sum(axis=1, keepdims=True) / math.sqrt(4 * len(pairs) * length)
    else:
        spread = pairs
        total = pairs.sum(axis=1, keepdims=True) / math.sqrt(2)
    single = np.hstack([spread, total])
    if classification:
        return class_ceilings(pi, single / deviation[:, None], spread / deviation[:, None])
    return real_ceilings(float(pi @ deviation**2), (pi @ single)[:, None], (pi @ spread)[:, None])


def read_out_ceilings(rules: Matrices, c: Ints) -> dict[str, float]:
    """Ceilings of rules/rnn for classes, from sampled sequences of rules (S, N). A case is a token of a sequence.

    Going back from each token, `effect` is the contribution of a state, and `pull` that of an input, to the token's
    read-out. The columns are the token's own input, the sum of all inputs, and its total.
    """
    sequences, length = c.shape
    order = rules.A.shape[1]
    dimension = len(rules.w)
    effect = np.zeros((length + order, sequences, length, dimension))
    from_input, pooled = np.zeros((2, sequences, length, dimension))
    variance = np.zeros((sequences, length))
    for j in reversed(range(length)):
        for back in range(1, min(order, length - 1 - j) + 1):
            effect[j] += effect[j + back] @ rules.A[c[:, j + back], back - 1].transpose(0, 2, 1)
        effect[j, :, j] = rules.w
        pull = effect[j] @ rules.B[c[:, j]].transpose(0, 2, 1)
        from_input[:, j] = pull[:, j]
        pooled += pull / math.sqrt(length)
        variance += (pull**2).sum(axis=2)
    total = pooled.sum(axis=2, keepdims=True) / math.sqrt(dimension)
    single = np.concatenate([from_input, pooled, total], axis=2) / np.sqrt(variance)[..., None]
    single = single.reshape(sequences * length, -1)
    weight = np.full(len(single), 1 / len(single))
    return class_ceilings(weight, single, single[:, dimension : 2 * dimension])


def state_ceilings(rules: Matrices, pi: Floats, length: int, variance: float, readout: bool) -> dict[str, float]:
    """Ceilings of rules/rnn for states or read-outs; `variance` is that of the answers, summed over outputs.

    Rules are independent of what came before, so the mean effect of an input is that of the mean matrices.
    """
    mean = Matrices(np.tensordot(pi, rules.A, 1)[None], np.tensordot(pi, rules.B, 1)[None], rules.w)
    dimension = len(rules.w)
    unit_inputs = np.repeat(np.eye(dimension)[:, None], length, axis=1)
    pooled = rnn_states(mean, unit_inputs, np.zeros((dimension, length), np.int64)).mean(axis=1) / math.sqrt(length)
    single = np.vstack([mean.B[0], pooled, pooled.sum(axis=0) / math.sqrt(dimension)])
    if readout:
        single = single @ rules.w[:, None]
        pooled = pooled @ rules.w[:, None]
    return real_ceilings(variance, single, pooled)

"""Audits of a lookup task for `unseen verify`: foreign examples, declared artefacts, and ceilings of baselines.

Foreign examples are JSON lines, `{"functions": [names, outermost first], "symbol": s, "target": t, "condition": name}`.
Symbols are given by name or number. `condition`, the name of a split, may also be called `split`, or be missing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from unseen.errors import CheckFailed, nearest
from unseen.randomness import Bools, Floats
from unseen.tasks.base import Artefact, Examples, ForeignFileReport, Mismatch, read_lines
from unseen.tasks.ctl.encode import Order
from unseen.tasks.ctl.sampling import Sampling, SplitSource
from unseen.tasks.ctl.solver import solve
from unseen.tasks.ctl.unranking import Enumeration
from unseen.tasks.ctl.world import World

_REQUIRED_KEYS = {"functions", "symbol", "target"}
_OPTIONAL_KEYS = {"condition", "split"}


# Files of examples


@dataclass(frozen=True)
class FileExample:
    """One example of a file: its line (from 1), functions in order of application, numbers of symbols, and split."""

    line: int
    functions: tuple[str, ...]
    symbol: int
    target: int
    split: str | None


def read_examples(path: str | Path, world: World) -> list[FileExample]:
    """Read the examples of a file and check their form; an error names the file and the line."""
    lines = read_lines(Path(path))
    examples = [_parse_line(path, number, line, world) for number, line in enumerate(lines, 1) if line.strip()]
    if not examples:
        raise CheckFailed(f"{path}, line 1: the file is empty")
    return examples


def format_json_lines(examples: Examples, world: World, split: str) -> bytes:
    """Examples of a split as JSON lines."""
    factors = examples.factors
    rows = zip(factors["functions"].tolist(), factors["start"].tolist(), examples.targets.tolist(), strict=True)
    lines = []
    for functions, start, target in rows:
        names = [world.names[f] for f in reversed(functions) if f >= 0]
        record = {"functions": names, "symbol": start, "target": target, "condition": split}
        lines.append(json.dumps(record, ensure_ascii=False).encode() + b"\n")
    return b"".join(lines)


def write_json_lines(examples: Examples, world: World, split: str, path: str | Path) -> None:
    """Write examples of a split as JSON lines."""
    Path(path).write_bytes(format_json_lines(examples, world, split))


def _parse_line(path: str | Path, number: int, line: bytes, world: World) -> FileExample:
    def fail(expected: str) -> NoReturn:
        raise CheckFailed(f"{path}, line {number}: {expected}; got {line[:60].decode('utf-8', 'replace')!r}")

    def parse_symbol(value: Any) -> int:
        if isinstance(value, str) and value in world.symbols:
            return world.symbols.index(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(world.symbols):
            return value
        raise CheckFailed(
            f"{path}, line {number}: expected a symbol, 0 … {len(world.symbols) - 1} or its name; got {value!r}"
        )

    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        fail("expected one JSON object per line")
    if not isinstance(record, dict) or not _REQUIRED_KEYS <= set(record) <= _REQUIRED_KEYS | _OPTIONAL_KEYS:
        fail("expected an object with the keys functions, symbol, target and perhaps condition")
    functions = record["functions"]
    if not isinstance(functions, list) or not all(isinstance(name, str) for name in functions):
        fail("'functions' must be a list of names")
    for name in functions:
        if name not in world.functions:
            raise CheckFailed(f"{path}, line {number}: the world has no function '{name}'")
    key = "split" if "split" in record else "condition"
    split = record.get(key)
    if split is not None and not isinstance(split, str):
        fail(f"'{key}' must be a name")
    symbol = parse_symbol(record["symbol"])
    target = parse_symbol(record["target"])
    return FileExample(number, tuple(reversed(functions)), symbol, target, split)


def judge_file(path: str | Path, world: World, sources: Mapping[str, SplitSource]) -> ForeignFileReport:
    """Compare the targets of a file with the plain solver, and its examples with the rules of their splits."""
    examples = read_examples(path, world)
    tables = list(world.functions.values())
    mismatches: list[Mismatch] = []
    for example in examples:
        functions = example.functions
        target = solve(tables, [world.names.index(name) for name in functions], example.symbol)
        if target != example.target:
            mismatches.append(Mismatch(example.line, world.symbols[example.target], world.symbols[target]))
        if example.split is None:
            continue
        if example.split not in sources:
            raise CheckFailed(
                f"{path}, line {example.line}: unknown split '{example.split}'. {nearest(example.split, sources)}"
            )
        source = sources[example.split]
        if len(functions) in source.lengths:
            fault = source.rule(world, functions, example.symbol)
        else:
            fault = f"its length is {len(functions)}; this split has the lengths {', '.join(map(str, source.lengths))}"
        if fault is not None:
            mismatches.append(Mismatch(example.line, example.split, fault, "the split"))
    return ForeignFileReport(len(examples), tuple(mismatches))


# Artefacts


def forbidden_transitions(trained: Bools) -> Artefact:
    """Transitions that training must not have, at any step; `trained` (groups, functions, symbols) are those it may."""

    def measure(examples: Examples) -> float:
        groups = examples.factors["groups"][:, :-1]
        functions = examples.factors["functions"][:, 1:]
        symbols = examples.factors["symbols"][:, 1:-1]
        forbidden = (functions >= 0) & ~trained[groups, functions, symbols]
        return float(forbidden.any(1).mean())

    summary = "share of examples with a transition that training must not have"
    return Artefact("forbidden", summary, measure, absent=0, tolerance=0, known=False)


def included_examples(lengths: Collection[int], known: bool) -> Artefact:
    """Examples that are in every training set, because training includes all examples of their lengths."""

    def measure(examples: Examples) -> float:
        return float(np.isin(examples.factors["length"], list(lengths)).mean())

    summary = "share of examples that every training set has"
    return Artefact("included", summary, measure, absent=0, tolerance=0, known=known)


# Ceilings of the generic baselines


def token_ceilings(
    language: Enumeration, counts: Mapping[int, int], sampling: Sampling, order: Order
) -> dict[str, float]:
    """The best accuracies of baselines that know nothing, one binary feature, or the token in one column.

    They are worked out from the language. Drawing an example is a Markov chain over positions (state and symbol):
    uniform sampling chooses a function in proportion to the examples that continue with it, step-wise sampling chooses
    all viable functions alike. From the chain follows how often each token occurs in each column, or anywhere, together
    with each answer. `counts` are the numbers of examples of each length.
    """
    symbols = language.symbols
    functions = len(language.tables)
    after = language.after
    positions = len(after)
    shares = {length: count / sum(counts.values()) for length, count in counts.items() if count}
    # Joint probabilities of tokens (symbols, then functions) and answers: per column behind SOS, and anywhere.
    in_column = np.zeros((max(shares) + 1, symbols + functions, symbols))
    anywhere = np.zeros((symbols + functions, symbols))
    answers = np.zeros(symbols)
    for length, share in shares.items():
        choices = [_choice_probabilities(language, length - step, sampling) for step in range(length)]
        starts = language.start_counts(length)
        starts = starts if sampling == "uniform" else (starts > 0).astype(object)
        start_probability: Floats = (starts / starts.sum()).astype(np.float64)
        # The probability of each answer from each position, before each step and after the last, computed backwards.
        answer = [np.tile(np.eye(symbols), (positions // symbols, 1))]
        for choice in reversed(choices):
            answer.insert(0, np.einsum("pf,pft->pt", choice, answer[0][after]))

        joint = share * (start_probability[:, None] * answer[0][:symbols])  # start symbol and answer
        answers += joint.sum(0)
        in_column[length if order == "backward" else 0, :symbols] += joint
        anywhere[:symbols] += joint
        # Forward: the probability of each position before each step.
        start = np.zeros(positions)
        start[:symbols] = start_probability
        position = start
        for step, choice in enumerate(choices):
            step_probability = position[:, None] * choice
            column = length - 1 - step if order == "backward" else 1 + step
            with_answer = np.einsum("pf,pft->ft", step_probability, answer[step + 1][after])
            in_column[column, symbols:] += share * with_answer
            position = _next_positions(language, step_probability)
        # A function occurs anywhere except in the walks that never choose it.
        for function in range(functions):
            position = start
            for choice in choices:
                step_probability = position[:, None] * choice
                step_probability[:, function] = 0
                position = _next_positions(language, step_probability)
            without = position.reshape(-1, symbols).sum(0)
            anywhere[symbols + function] += joint.sum(0) - share * without
    # A binary feature: the best answer where it is on, plus the best answer where it is off.
    features = np.concatenate([in_column.reshape(-1, symbols), anywhere])
    one_feature = features.max(1) + (answers - features).max(1)
    # A column: the best answer for each of its tokens, plus the best where the column is behind the end.
    one_column = in_column.max(2).sum(1) + (answers - in_column.sum(1)).max(1)
    return {
        "majority": float(answers.max()),
        "single-feature": float(one_feature.max()),
        "bag-of-tokens": float(one_column.max()),
    }


def _choice_probabilities(language: Enumeration, remaining: int, sampling: Sampling) -> Floats:
    """The probability of each function at each position, (positions, functions), with `remaining` functions to go."""
    uniform = sampling == "uniform"
    weights = language.continuations(remaining) if uniform else language.viable(remaining).astype(object)
    probabilities: Floats = (weights / np.maximum(weights.sum(1, keepdims=True), 1)).astype(np.float64)
    return probabilities


def _next_positions(language: Enumeration, step_probability: Floats) -> Floats:
    """The probability of each position after a step, given that of each function at each position."""
    after = language.after
    probability: Floats = np.bincount(after.reshape(-1), step_probability.reshape(-1), len(after)).astype(np.float64)
    return probability

"""Examples in files: the published three-line TSV, and JSON lines; and comparing them with the plain solver.

TSV, three lines per datapoint: `sequence` and n fields of F characters 0/1; `query` and `have you seen X` (T2: `have
you seen X and Y`); `answer` and `yes` or `no`. JSON lines: `{"sequence": [[active features], …], "query": [ids],
"answer": true}`. Features and ids count from 0. The length is read from the file. T2 queries are sets; the order in
which the text names the two features is kept in the factor `named`, for writing only.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from unseen.errors import CheckFailed
from unseen.tasks.base import Examples, ForeignFileReport, Mismatch, read_lines
from unseen.tasks.retrieval.mapping import Table
from unseen.tasks.retrieval.solver import solve_all

_QUERY = re.compile(rb"query\thave you seen ([0-9]{1,9})(?: and ([0-9]{1,9}))?")
_ANSWERS = {b"answer\tyes": 1, b"answer\tno": 0}
_PREFIX = len("sequence")


def judge_file(path: str | Path, kind: str, table: Table, features: int = 36) -> ForeignFileReport:
    """Read a file of examples and compare every answer with that of the plain solver."""
    examples = read_examples(path, kind, features)
    answers = examples.targets[:, 0]
    expected = solve_all(kind, examples.inputs["sequence"], examples.inputs["query"], table)
    text = ("no", "yes")
    mismatches = []
    for row in np.flatnonzero(answers != expected):
        mismatches.append(Mismatch(int(examples.factors["line"][row]), text[answers[row]], text[expected[row]]))
    return ForeignFileReport(len(examples), tuple(mismatches))


def query_numbers(examples: Examples) -> list[list[int]]:
    """The names in each query: its id, or the two features of a T2 query in the order of its text."""
    if "named" in examples.factors:
        named_features: list[list[int]] = examples.factors["named"].tolist()
        return named_features
    return [np.flatnonzero(query).tolist() for query in examples.inputs["query"]]


# Writing


def format_tsv(examples: Examples) -> bytes:
    """Examples in the published form."""
    sequence = examples.inputs["sequence"]
    count, length, features = sequence.shape
    # The fields of all sequences as one text, each with a tab in front.
    text = np.full((count, length, features + 1), ord("\t"), np.uint8)
    text[:, :, 1:] = sequence + ord("0")
    fields = text.tobytes()
    width = length * (features + 1)
    lines = []
    for row, (query, answer) in enumerate(zip(query_numbers(examples), examples.targets[:, 0], strict=True)):
        numbers = " and ".join(map(str, query))
        lines.append(b"sequence%b\n" % fields[row * width : (row + 1) * width])
        lines.append(f"query\thave you seen {numbers}\nanswer\t{'yes' if answer else 'no'}\n".encode())
    return b"".join(lines)


def write_tsv(examples: Examples, path: str | Path) -> None:
    """Write examples in the published form."""
    Path(path).write_bytes(format_tsv(examples))


def format_json_lines(examples: Examples) -> bytes:
    """Examples as JSON lines."""
    sequence = examples.inputs["sequence"]
    # All active features one after the other, and where those of each token end.
    active = np.nonzero(sequence)[2].tolist()
    boundaries = np.cumsum(sequence.sum(axis=2, dtype=np.int64)).reshape(sequence.shape[:2]).tolist()
    start = 0
    lines = []
    for row, query, answer in zip(boundaries, query_numbers(examples), examples.targets[:, 0], strict=True):
        tokens = []
        for stop in row:
            tokens.append(active[start:stop])
            start = stop
        record = {"sequence": tokens, "query": query, "answer": bool(answer)}
        lines.append(json.dumps(record, separators=(",", ":")).encode() + b"\n")
    return b"".join(lines)


def write_json_lines(examples: Examples, path: str | Path) -> None:
    """Write examples as JSON lines."""
    Path(path).write_bytes(format_json_lines(examples))


# Reading


def read_examples(path: str | Path, kind: str, features: int = 36) -> Examples:
    """Read the examples of a file in either form and check them; an error names the file and the line.

    The factor `line` is the line of each answer (counted from 1).
    """
    path = Path(path)
    lines = read_lines(path)
    if not lines:
        raise CheckFailed(f"{path}, line 1: the file is empty")
    read = _read_json if lines[0].lstrip().startswith(b"{") else _read_tsv
    return read(path, lines, kind, features)


def _read_tsv(path: Path, lines: list[bytes], task: str, features: int) -> Examples:
    length, remainder = divmod(len(lines[0]) - _PREFIX, features + 1)
    if lines[0].startswith(b"sequence\t") and (remainder or not length):
        _fail(path, 1, f"expected tokens of {features} characters, tabs between them", lines[0])
    parsed: dict[bytes, tuple[int, ...]] = {}  # there are few different queries
    queries = []
    answers = []
    for number, line in enumerate(lines, 1):
        if number % 3 == 1:
            _check_sequence(path, number, line, length, features)
        elif number % 3 == 2:
            if line not in parsed:
                parsed[line] = _parse_query(path, number, line, task, features)
            queries.append(parsed[line])
        else:
            answer = _ANSWERS.get(line)
            if answer is None:
                _fail(path, number, "expected 'answer', tab, 'yes' or 'no'", line)
            answers.append(answer)
    if len(lines) % 3:
        message = f"the last datapoint is cut; a datapoint has three lines, the file has {len(lines)}"
        raise _error(path, len(lines), message)
    text = np.frombuffer(b"".join(line[_PREFIX:] for line in lines[::3]), np.uint8)
    bits = text.reshape(len(answers), length, features + 1)[:, :, 1:] - np.uint8(ord("0"))
    return _make_examples(bits, queries, answers, 3 * np.arange(len(answers)) + 3, task)


def _check_sequence(path: Path, number: int, line: bytes, length: int, features: int) -> None:
    if not line.startswith(b"sequence\t"):
        _fail(path, number, "expected 'sequence', tab, the tokens", line)
    expected = _PREFIX + length * (features + 1)
    if len(line) != expected:
        shape = f"{length} tokens of {features} characters as in line 1 ({expected} characters in all)"
        raise _error(path, number, f"expected {shape}; the line has {len(line)}")
    if line[_PREFIX :: features + 1] != b"\t" * length or line.count(b"\t") != length:
        raise _error(path, number, f"expected tokens of {features} characters, tabs between them")
    odd_characters = line[_PREFIX:].translate(None, b"01\t")
    if odd_characters:
        first = odd_characters[:1].decode("latin-1")
        raise _error(path, number, f"tokens are written with 0 and 1; got {first!r}")


def _parse_query(path: Path, number: int, line: bytes, task: str, features: int) -> tuple[int, ...]:
    match = _QUERY.fullmatch(line)
    if not match or (match[2] is None) == (task == "T2"):
        form = "'have you seen X and Y'" if task == "T2" else "'have you seen X'"
        _fail(path, number, f"expected 'query', tab, {form}", line)
    query = tuple(int(group) for group in match.groups() if group is not None)
    _check_query(path, number, query, task, features)
    return query


def _check_query(path: Path, number: int, query: Sequence[int], task: str, features: int) -> None:
    expected = 2 if task == "T2" else 1
    if len(query) != expected:
        raise _error(path, number, f"a {task} query names {expected} number(s); got {list(query)}")
    for value in query:
        if not 0 <= value < features:
            raise _error(path, number, f"the query must be within 0 … {features - 1}; got {value}")
    if len(set(query)) != expected:
        raise _error(path, number, f"the two features of a query must differ; got {list(query)}")


def _read_json(path: Path, lines: list[bytes], task: str, features: int) -> Examples:
    length = 0
    active = array("l")  # all active features one after the other
    sizes = array("l")  # how many of them each token has
    queries = []
    answers = []
    for number, line in enumerate(lines, 1):
        tokens, query, answer = _parse_record(path, number, line)
        _check_query(path, number, query, task, features)
        length = length or len(tokens)
        if len(tokens) != length or not tokens:
            expected = f"{length} tokens as in line 1" if length else "at least one token"
            raise _error(path, number, f"expected {expected}; got {len(tokens)}")
        flat = list(chain.from_iterable(tokens))
        if set(map(type, flat)) - {int} or (flat and not 0 <= min(flat) <= max(flat) < features):
            _fail(path, number, f"features are numbers 0 … {features - 1}", line)
        active.extend(flat)
        sizes.extend(map(len, tokens))
        queries.append(tuple(query))
        answers.append(int(answer))
    token_bits = np.zeros((len(sizes), features), np.uint8)
    token_bits[np.repeat(np.arange(len(sizes)), sizes), active] = 1
    # A token that names a feature twice has fewer bits than names.
    repeats = token_bits.sum(axis=1) != np.asarray(sizes)
    if repeats.any():
        number = int(repeats.argmax()) // length + 1
        _fail(path, number, "a token names each of its features once", lines[number - 1])
    bits = token_bits.reshape(len(lines), length, features)
    return _make_examples(bits, queries, answers, np.arange(len(lines)) + 1, task)


def _parse_record(path: Path, number: int, line: bytes) -> tuple[list[list[int]], list[int], bool]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        _fail(path, number, "expected one JSON object per line", line)
    if not isinstance(record, dict) or set(record) != {"sequence", "query", "answer"}:
        _fail(path, number, "expected an object with the keys sequence, query, answer", line)
    tokens, query, answer = record["sequence"], record["query"], record["answer"]
    # `type`, not `isinstance`: True is an int, but not a feature.
    if not isinstance(tokens, list) or set(map(type, tokens)) - {list}:
        _fail(path, number, "'sequence' must be a list of lists of features", line)
    if not isinstance(query, list) or set(map(type, query)) - {int}:
        _fail(path, number, "'query' must be a list of ids", line)
    if not isinstance(answer, bool):
        _fail(path, number, "'answer' must be true or false", line)
    return tokens, query, answer


def _make_examples(
    bits: NDArray[np.uint8],
    queries: Sequence[Sequence[int]],
    answers: Sequence[int],
    lines: NDArray[np.int64],
    task: str,
) -> Examples:
    numbers = np.array(queries, np.int64)
    query = np.zeros((len(answers), bits.shape[2]), np.uint8)
    np.put_along_axis(query, numbers, 1, axis=1)
    factors = {"line": lines, "named": numbers} if task == "T2" else {"line": lines}
    return Examples({"sequence": bits, "query": query}, np.array(answers, np.uint8)[:, None], factors)


def _error(path: Path, number: int, message: str) -> CheckFailed:
    return CheckFailed(f"{path}, line {number}: {message}")


def _fail(path: Path, number: int, expected: str, line: bytes) -> NoReturn:
    raise _error(path, number, f"{expected}; got {line[:60].decode('utf-8', 'replace')!r}")

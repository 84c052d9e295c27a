"""Examples in files: the published three-line TSV, and JSON lines.

TSV, three lines per datapoint: `sequence` and n fields of F characters 0/1; `query` and `have you seen X` (T2: `have
you seen X and Y`); `answer` and `yes` or `no`. JSON lines: `{"sequence": [[active features], …], "query": [ids],
"answer": true}`. Features and ids count from 0. The length is read from the file. T2 queries are sets; the order in
which the text names the two features is kept in the factor `named`, for writing alone.
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
from unseen.tasks.base import Examples
from unseen.tasks.text import read_lines

_QUERY = re.compile(rb"query\thave you seen ([0-9]{1,9})(?: and ([0-9]{1,9}))?")
_ANSWERS = {b"answer\tyes": 1, b"answer\tno": 0}


def read_examples(path: str | Path, kind: str, features: int = 36) -> Examples:
    """The examples of a file in either form, checked; an error names the file and the line.

    The factor `line` is where each answer stands (counted from 1).
    """
    path = Path(path)
    lines = read_lines(path)
    if not lines:
        raise CheckFailed(f"{path}, line 1: the file is empty")
    read = _read_json if lines[0].lstrip().startswith(b"{") else _read_tsv
    return read(path, lines, kind, features)


def write_tsv(examples: Examples, path: str | Path) -> None:
    """Write examples in the published form."""
    sequence = examples.inputs["sequence"]
    count, length, features = sequence.shape
    text = np.full((count, length, features + 1), ord("\t"), np.uint8)
    text[:, :, 1:] = sequence + ord("0")
    fields = text.tobytes()
    width = length * (features + 1)
    with Path(path).open("wb") as file:
        for i, (query, answer) in enumerate(zip(named_features(examples), examples.targets[:, 0], strict=True)):
            asked = " and ".join(str(feature) for feature in query)
            verdict = "yes" if answer else "no"
            file.write(b"sequence%b\n" % fields[i * width : (i + 1) * width])
            file.write(f"query\thave you seen {asked}\nanswer\t{verdict}\n".encode())


def write_json_lines(examples: Examples, path: str | Path) -> None:
    """Write examples as JSON lines."""
    sequence = examples.inputs["sequence"]
    ends = np.cumsum(sequence.sum(axis=2, dtype=np.int64)).reshape(sequence.shape[:2])
    active = np.nonzero(sequence)[2].tolist()
    start = 0
    with Path(path).open("wb") as file:
        for row, query, answer in zip(ends.tolist(), named_features(examples), examples.targets[:, 0], strict=True):
            tokens = [active[a:b] for a, b in zip([start, *row], row, strict=False)]
            start = row[-1]
            record = {"sequence": tokens, "query": query, "answer": bool(answer)}
            file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")


def named_features(examples: Examples) -> list[list[int]]:
    """What each query names: its id, or the two features of a T2 query in the order of its text."""
    if "named" in examples.factors:
        named: list[list[int]] = examples.factors["named"].tolist()
        return named
    return [np.flatnonzero(query).tolist() for query in examples.inputs["query"]]


def _read_tsv(path: Path, lines: list[bytes], kind: str, features: int) -> Examples:
    length, rest = divmod(len(lines[0]) - len("sequence"), features + 1)
    if lines[0].startswith(b"sequence\t") and (rest or not length):
        _fail(path, 1, f"expected tokens of {features} characters, tabs between them", lines[0])
    asked: dict[bytes, tuple[int, ...]] = {}
    queries, answers = [], []
    for number, line in enumerate(lines, 1):
        part = number % 3
        if part == 1:
            _check_sequence(path, number, line, length, features)
        elif part == 2:
            if line not in asked:
                asked[line] = _parse_query(path, number, line, kind, features)
            queries.append(asked[line])
        else:
            answer = _ANSWERS.get(line)
            if answer is None:
                _fail(path, number, "expected 'answer', tab, 'yes' or 'no'", line)
            answers.append(answer)
    if len(lines) % 3:
        raise CheckFailed(
            f"{path}, line {len(lines)}: the last datapoint is cut; a datapoint has three lines, "
            f"the file has {len(lines)}"
        )
    text = np.frombuffer(b"".join(line[8:] for line in lines[::3]), np.uint8)
    bits = text.reshape(len(answers), length, features + 1)[:, :, 1:] - np.uint8(ord("0"))
    return _examples(bits, queries, answers, 3 * np.arange(len(answers)) + 3, kind, features)


def _check_sequence(path: Path, number: int, line: bytes, length: int, features: int) -> None:
    if not line.startswith(b"sequence\t"):
        _fail(path, number, "expected 'sequence', tab, the tokens", line)
    if len(line) != 8 + length * (features + 1):
        raise CheckFailed(
            f"{path}, line {number}: expected {length} tokens of {features} characters as in line 1 "
            f"({8 + length * (features + 1)} characters in all); the line has {len(line)}"
        )
    if line[8 :: features + 1] != b"\t" * length or line.count(b"\t") != length:
        raise CheckFailed(f"{path}, line {number}: expected tokens of {features} characters, tabs between them")
    if line[8:].translate(None, b"01\t"):
        wrong = line[8:].translate(None, b"01\t")[:1].decode("latin-1")
        raise CheckFailed(f"{path}, line {number}: tokens are written with 0 and 1; got {wrong!r}")


def _parse_query(path: Path, number: int, line: bytes, kind: str, features: int) -> tuple[int, ...]:
    found = _QUERY.fullmatch(line)
    if not found or (found[2] is None) == (kind == "T2"):
        form = "'have you seen X and Y'" if kind == "T2" else "'have you seen X'"
        _fail(path, number, f"expected 'query', tab, {form}", line)
    query = tuple(int(part) for part in found.groups() if part is not None)
    _check_query(path, number, query, kind, features)
    return query


def _check_query(path: Path, number: int, query: Sequence[int], kind: str, features: int) -> None:
    wanted = 2 if kind == "T2" else 1
    if len(query) != wanted:
        raise CheckFailed(f"{path}, line {number}: a {kind} query names {wanted} number(s); got {list(query)}")
    for value in query:
        if not 0 <= value < features:
            raise CheckFailed(f"{path}, line {number}: the query must be within 0 … {features - 1}; got {value}")
    if len(set(query)) != wanted:
        raise CheckFailed(f"{path}, line {number}: the two features of a query must differ; got {list(query)}")


def _read_json(path: Path, lines: list[bytes], kind: str, features: int) -> Examples:
    length = 0
    active, sizes = array("l"), array("l")  # all active features one after the other; how many each token has
    queries, answers = [], []
    for number, line in enumerate(lines, 1):
        tokens, query, answer = _parse_record(path, number, line)
        _check_query(path, number, query, kind, features)
        length = length or len(tokens)
        if len(tokens) != length or not tokens:
            expected = f"{length} tokens as in line 1" if length else "at least one token"
            raise CheckFailed(f"{path}, line {number}: expected {expected}; got {len(tokens)}")
        flat = list(chain.from_iterable(tokens))
        if set(map(type, flat)) - {int} or (flat and not 0 <= min(flat) <= max(flat) < features):
            _fail(path, number, f"features are numbers 0 … {features - 1}", line)
        active.extend(flat)
        sizes.extend(map(len, tokens))
        queries.append(tuple(query))
        answers.append(int(answer))
    tokens_bits = np.zeros((len(sizes), features), np.uint8)
    tokens_bits[np.repeat(np.arange(len(sizes)), sizes), active] = 1
    repeats = tokens_bits.sum(axis=1) != np.asarray(sizes)
    if repeats.any():
        number = int(repeats.argmax()) // length + 1
        _fail(path, number, "a token names each of its features once", lines[number - 1])
    bits = tokens_bits.reshape(len(lines), length, features)
    return _examples(bits, queries, answers, np.arange(len(lines)) + 1, kind, features)


def _parse_record(path: Path, number: int, line: bytes) -> tuple[list[list[int]], list[int], bool]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        _fail(path, number, "expected one JSON object per line", line)
    if not isinstance(record, dict) or set(record) != {"sequence", "query", "answer"}:
        _fail(path, number, "expected an object with the keys sequence, query, answer", line)
    tokens, query, answer = record["sequence"], record["query"], record["answer"]
    if not isinstance(tokens, list) or set(map(type, tokens)) - {list}:
        _fail(path, number, "'sequence' must be a list of lists of features", line)
    if not isinstance(query, list) or set(map(type, query)) - {int}:
        _fail(path, number, "'query' must be a list of ids", line)
    if not isinstance(answer, bool):
        _fail(path, number, "'answer' must be true or false", line)
    return tokens, query, answer


def _examples(
    bits: NDArray[np.uint8],
    queries: Sequence[Sequence[int]],
    answers: Sequence[int],
    line: NDArray[np.int64],
    kind: str,
    features: int,
) -> Examples:
    named = np.array(queries, np.int64)
    query = np.zeros((len(answers), features), np.uint8)
    np.put_along_axis(query, named, 1, axis=1)
    factors = {"line": line, "named": named} if kind == "T2" else {"line": line}
    return Examples({"sequence": bits, "query": query}, np.array(answers, np.uint8)[:, None], factors)


def _fail(path: Path, number: int, expected: str, line: bytes) -> NoReturn:
    got = line[:60].decode("utf-8", "replace")
    raise CheckFailed(f"{path}, line {number}: {expected}; got {got!r}")

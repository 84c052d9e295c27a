"""The published mapping files: one line per query, `id`, tab, `a b`, and for T5 and T7 a second tab and `c d`."""

from __future__ import annotations

import re
from pathlib import Path

from unseen.errors import UsageError
from unseen.tasks.retrieval.mapping import PAIRS, Table, query_fault, use_fault
from unseen.tasks.retrieval.pairs import Pair
from unseen.tasks.text import read_lines

_LINE = re.compile(r"([0-9]{1,9})((?:\t[0-9]{1,9} [0-9]{1,9})+)")


def load_mapping(path: str | Path, kind: str, features: int = 36) -> Table:
    """The query table in a published mapping file, checked; an error names the line.

    `kind` is T3 … T7; the result is what the option `mapping` of a task takes.
    """
    if kind not in PAIRS:
        raise UsageError(f"{kind} has no query table; a mapping belongs to {', '.join(PAIRS)}")
    path = Path(path)
    rows: dict[int, tuple[Pair, ...]] = {}
    for number, raw in enumerate(read_lines(path), 1):
        line = raw.decode("utf-8", "replace").rstrip()
        place = f"{path}, line {number}"
        found = _LINE.fullmatch(line)
        if not found:
            form = "id, tab, 'a b'" + (", tab, 'c d'" if PAIRS[kind] == 2 else "")
            raise UsageError(f"{place}: expected {form}; got {line[:60]!r}")
        query = int(found[1])
        pairs = tuple((int(a), int(b)) for a, b in (pair.split(" ") for pair in found[2].split("\t")[1:]))
        if query >= features:
            raise UsageError(f"{place}: query ids are 0 … {features - 1}; got {query}")
        if query in rows:
            raise UsageError(f"{place}: query {query} is given twice")
        fault = query_fault(kind, query, pairs, features)
        if fault:
            raise UsageError(f"{place}: {fault}")
        rows[query] = pairs
    if len(rows) != features:
        missing = min(set(range(features)) - set(rows))
        raise UsageError(
            f"{path}, line {len(rows)}: the file ends with {len(rows)} of {features} queries; "
            f"query {missing} is missing"
        )
    table = tuple(rows[query] for query in range(features))
    fault = use_fault(kind, table, features)
    if fault:
        raise UsageError(f"{path}: {fault}")
    return table


def write_mapping(table: Table, path: str | Path) -> None:
    """Write a query table as a published mapping file."""
    lines = ("\t".join([str(query), *(f"{a} {b}" for a, b in pairs)]) for query, pairs in enumerate(table))
    Path(path).write_bytes("".join(f"{line}\n" for line in lines).encode())

"""The CSV tables of a records file: written the same everywhere, read strictly, every value as it was.

Numbers are written with all their digits, missing ones as empty cells. A text that a spreadsheet would take for a
formula is written with an apostrophe before it, and so is one that begins with an apostrophe; reading removes it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

ColumnType = Literal["text", "optional text", "number", "integer", "optional integer"]
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
_LARGEST = 2**63
"""Whole numbers from here on do not fit into a column of SQLite."""
_LONGEST = 100_000
"""Characters of a cell; longer ones, which no column of ours needs, are cut when they are written."""


class TableError(ValueError):
    """A table that is not as it should be; the message does not name the file."""


def write_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """A table as the bytes of a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")  # only then are carriage returns in cells quoted
    writer.writerow(list(map(escape, columns)))
    for row in rows:
        writer.writerow(list(map(_format, row)))
    return text.getvalue().encode()


def read_table(data: bytes, types: Mapping[str, ColumnType]) -> dict[str, list[Any]]:
    """The values of these columns; others may be there, and are not read."""
    try:
        # Line ends inside cells stay as they are (newline=""), and a quote out of place is an error (strict).
        reader = csv.reader(io.StringIO(data.decode(), newline=""), strict=True)
        header = list(map(unescape, next(reader, [])))
        rows = list(reader)
    except (UnicodeDecodeError, csv.Error) as error:
        raise TableError(str(error)) from error
    missing = [name for name in types if name not in header]
    if missing:
        raise TableError(f"there is no column '{missing[0]}'")
    if len(set(header)) < len(header):
        raise TableError("two columns have the same name")
    for number, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise TableError(f"line {number} has {len(row)} cells, not {len(header)}")
    columns: dict[str, list[Any]] = {}
    for name, column_type in types.items():
        index = header.index(name)
        columns[name] = [_parse(row[index], name, column_type) for row in rows]
    return columns


def escape(text: str) -> str:
    """A text as a cell that no spreadsheet takes for a formula.

    >>> escape("=1+1"), escape("'tis"), escape("-0.5"), escape("ood/single")
    ("'=1+1", "''tis", '-0.5', 'ood/single')
    """
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def unescape(text: str) -> str:
    """The text of a cell.

    >>> unescape(escape("=1+1")), unescape(escape("'tis")), unescape("-0.5")
    ('=1+1', "'tis", '-0.5')
    """
    return text.removeprefix("'")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and text == text.strip()  # Python also reads other scripts' digits and spaces around them


def _format(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, bool | int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False)
    return escape(value[:_LONGEST])


def _parse(text: str, name: str, column_type: ColumnType) -> Any:
    if column_type == "text":
        return unescape(text)
    if column_type == "optional text":
        return unescape(text) or None
    if not text and column_type != "integer":
        return None
    try:
        if column_type == "number":
            return float(text)
        value = int(text)
        if abs(value) < _LARGEST:
            return value
    except ValueError:
        pass
    expected = "a number" if column_type == "number" else "a whole number"
    raise TableError(f"column '{name}' has {text[:40]!r} where {expected} is expected")

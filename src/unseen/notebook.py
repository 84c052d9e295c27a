"""How objects show themselves in a notebook: small tables and pictures as HTML, and one-line texts elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

LONGEST_VALUE = 40
"""Longer values of options are cut: a query table has hundreds of numbers."""


def format_call(function: str, name: str, options: dict[str, Any]) -> str:
    """How an object is made, on one line.

    >>> format_call("task", "retrieval/T6", {"length": 5})
    "task('retrieval/T6', length=5)"
    """
    arguments = [repr(name)]
    for option, value in options.items():
        text = repr(value)
        arguments.append(f"{option}={text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + '…'}")
    return f"{function}({', '.join(arguments)})"


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """A table; every text is escaped."""
    title = f"<caption style='text-align:left'>{escape(caption)}</caption>" if caption else ""
    head = "".join(f"<th style='text-align:left'>{escape(text)}</th>" for text in header)
    body = []
    for row in rows:
        columns = "".join(f"<td style='text-align:left'>{escape(str(value))}</td>" for value in row)
        body.append(f"<tr>{columns}</tr>")
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def html_picture(svg: str, text: str) -> str:
    """A picture with its description folded below it."""
    details = f"<details><summary>in words</summary><pre>{escape(text)}</pre></details>"
    return f"<div style='display:inline-block;vertical-align:top;margin:0 1em 1em 0'>{svg}{details}</div>"

"""Markdown by hand: tables, links between pages, blocks that fold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from posixpath import dirname, relpath
from textwrap import indent


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a head; nothing if there are no rows.

    >>> print(table(("a", "b"), [("1", "x|y")]))
    | a | b |
    | --- | --- |
    | 1 | x\\|y |
    """
    lines = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in (head, *rows)]
    if len(lines) == 1:
        return ""
    lines.insert(1, ["---"] * len(head))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def link(text: str, target: str, page: str) -> str:
    """A link on a page to another page of the site, both by their paths there.

    >>> link("lstm", "models/lstm.md", "tasks/retrieval/T1.md")
    '[lstm](../../models/lstm.md)'
    """
    return f"[{text}]({relpath(target, dirname(page) or '.')})"


def fenced(language: str, text: str) -> str:
    """Text as it stands."""
    return f"```{language}\n{text}\n```"


def fold(kind: str, title: str, body: str) -> str:
    """A block of Material's kind that opens at a click."""
    return f'??? {kind} "{title}"\n\n{indent(body, "    ")}'


def unfold(title: str, body: str) -> str:
    """A block that opens at a click on the site and on code hosts; nothing if it has nothing in it."""
    if not body:
        return ""
    return f'<details markdown="1">\n<summary>{title}</summary>\n\n{body}\n\n</details>'


def sections(parts: dict[str, str]) -> str:
    """Those that have something to say, under their titles."""
    return "\n\n".join(f"## {title}\n\n{body}" for title, body in parts.items() if body)

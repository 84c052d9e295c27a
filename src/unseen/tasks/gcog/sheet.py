"""Many examples on one page: small grids with their questions and answers. SVG text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from unseen.tasks.gcog.drawing import ACCENT, GREY, badges_of, draw_grid, frame, text
from unseen.tasks.gcog.sentences import write_sentence
from unseen.tasks.gcog.tree import depth
from unseen.tasks.gcog.views import View

_CELL, _LEFT, _GAP, _LINE = 24, 30, 34, 15
_CHARACTER = 5.6
"""The width of a letter of the questions, on average."""


def contact_sheet(views: Sequence[View], columns: int = 4) -> str:
    """Examples in rows, numbered from 1; cells that the path looks at are framed and carry the number of the step."""
    grid = _CELL * max(view.schema.columns for view in views)
    width = _LEFT + grid + _GAP
    parts, y = list[str](), 20
    for start in range(0, len(views), columns):
        row = views[start : start + columns]
        wrapped = [textwrap.wrap(write_sentence(view.schema, view.tree), int(grid / _CHARACTER)) for view in row]
        height = _CELL * max(view.schema.rows for view in row)
        for place, (view, question) in enumerate(zip(row, wrapped, strict=True)):
            parts += _entry(view, question, start + place + 1, _LEFT + place * width, y, height)
        y += height + _LINE * max(map(len, wrapped)) + 84
    return "\n".join([*frame(width * min(columns, len(views)), y, "examples"), *parts, "</svg>"])


def _entry(view: View, question: Sequence[str], number: int, left: int, top: int, height: int) -> list[str]:
    below = top + 40 + height
    return [
        text(left, top + 4, f"{number}", 12, weight="bold"),
        text(left + 20, top + 4, f"depth {depth(view.tree)}, {len(view.things)} objects", 10, colour=GREY),
        *draw_grid(view, left, top + 26, _CELL, badges_of(view)),
        *(text(left, below + _LINE * n, line, 11) for n, line in enumerate(question)),
        text(
            left,
            below + _LINE * len(question) + 4,
            f"→ {view.schema.answer_name(view.target)}",
            13,
            weight="bold",
            colour=ACCENT,
        ),
    ]

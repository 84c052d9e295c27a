"""One example as a picture: the grid as a model sees it, the tree with the path taken, and the answer. SVG text."""

from __future__ import annotations

import textwrap
from html import escape

from unseen.tasks.gcog.font import GLYPHS
from unseen.tasks.gcog.schema import COLORS
from unseen.tasks.gcog.sentences import write_sentence
from unseen.tasks.gcog.tree import Branch, Thing, Tree, depth, levels, top
from unseen.tasks.gcog.views import View, because, name_of, value_name

INK, GREY, PALE, ACCENT, WASH, NIGHT, LINE = "#22262b", "#7a828c", "#d5dae0", "#00798c", "#e3f1f3", "#15181c", "#2e343b"
MARGIN, CELL = 20, 32
BOX, BOX_HEIGHT, STEP, ROW = 148, 42, 196, 52


def picture(view: View) -> str:
    """Grid on the left, tree on the right, what was asked above and why below. Numbers mark the steps in both."""
    question = textwrap.wrap(write_sentence(view.schema, view.tree), _columns(view))
    reasons = [f"{n}.  {because(view.schema, step)}" for n, step in enumerate(view.solution.steps, 1)]
    grid_top = MARGIN + 44 + 18 * len(question)
    grid_left, tree_left = MARGIN + 22, MARGIN + 22 + view.schema.columns * CELL + 36
    leaves = len(levels(view.tree)[-1])
    body = max(view.schema.rows * CELL, leaves * ROW)
    below = grid_top + body + 34
    last = below + 18 * len(reasons) + 13
    return "\n".join(
        [
            *frame(_width(view), last + 29, view.title),
            text(MARGIN, MARGIN + 10, f"{view.title} · depth {depth(view.tree)}", size=11, colour=GREY),
            *(text(MARGIN, MARGIN + 32 + 18 * n, line, size=14) for n, line in enumerate(question)),
            *draw_grid(view, grid_left, grid_top, CELL, badges_of(view)),
            *_draw_tree(view, tree_left, grid_top, body),
            *(text(MARGIN, below + 18 * n, line, size=12) for n, line in enumerate(reasons)),
            f'<rect x="{MARGIN}" y="{last - 19}" width="{96 + round(7.4 * len(view.answer))}" height="28" rx="6" '
            f'fill="{ACCENT}"/>',
            text(MARGIN + 12, last, "answer", size=12, colour=WASH),
            text(MARGIN + 60, last, view.answer, size=14, weight="bold", colour="#ffffff"),
            "</svg>",
        ]
    )


def _width(view: View) -> int:
    tree = (len(levels(view.tree)) - 1) * STEP + BOX
    return max(2 * MARGIN + 22 + view.schema.columns * CELL + 36 + tree, 640)


def _columns(view: View) -> int:
    """How many characters of the question fit on a line."""
    return (_width(view) - 2 * MARGIN) // 7


def frame(width: int, height: int, title: str) -> list[str]:
    """The beginning of a picture: its size, its title for readers of the source, a white ground."""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="Helvetica, Arial, sans-serif">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]


def text(
    x: float, y: float, words: str, size: int = 12, anchor: str = "start", weight: str = "normal", colour: str = INK
) -> str:
    """A line of text."""
    style = f'font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" fill="{colour}"'
    return f'<text x="{x:g}" y="{y:g}" {style}>{escape(words)}</text>'


def draw_grid(view: View, left: int, top_: int, cell: int, badges: dict[tuple[int, int], str]) -> list[str]:
    """The objects in their cells, letters pixel by pixel; cells with a badge are framed."""
    columns, rows = view.schema.columns, view.schema.rows
    width, height = columns * cell, rows * cell
    lines = "".join(f"M{left + x * cell} {top_}v{height}" for x in range(1, columns))
    lines += "".join(f"M{left} {top_ + y * cell}h{width}" for y in range(1, rows))
    found = [
        f'<rect x="{left}" y="{top_}" width="{width}" height="{height}" rx="4" fill="{NIGHT}"/>',
        f'<path d="{lines}" stroke="{LINE}" fill="none"/>',
    ]
    found += [text(left + (x + 0.5) * cell, top_ - 6, str(x), 10, "middle", colour=GREY) for x in range(columns)]
    found += [text(left - 6, top_ + (y + 0.5) * cell + 4, str(y), 10, "end", colour=GREY) for y in range(rows)]
    found += [
        text(left - 6, top_ - 6, "x →", 10, "end", colour=GREY),
        text(left - 6, top_ + height + 12, "y ↓", 10, "end", colour=GREY),
    ]
    for (x, y), badge in badges.items():
        corner_x, corner_y = left + x * cell, top_ + y * cell
        found.append(
            f'<rect x="{corner_x + 1}" y="{corner_y + 1}" width="{cell - 2}" height="{cell - 2}" rx="4" '
            f'fill="none" stroke="#ffffff" stroke-width="2"/>'
        )
        found.append(_badge(corner_x + cell - 3, corner_y + 3, badge))
    return found + [_letter(thing, left, top_, cell) for thing in view.things]


def _letter(thing: Thing, left: int, top_: int, cell: int) -> str:
    pixel = cell / 9
    x, y = left + thing.x * cell + (cell - 5 * pixel) / 2, top_ + thing.y * cell + (cell - 7 * pixel) / 2
    dots = "".join(
        f"M{x + column * pixel:.2f} {y + row * pixel:.2f}h{pixel:.2f}v{pixel:.2f}h-{pixel:.2f}z"
        for row, column in zip(*GLYPHS[thing.values[0]].nonzero(), strict=True)
    )
    further = " ".join(thing.values[2:])
    note = text(left + (thing.x + 0.5) * cell, top_ + (thing.y + 1) * cell - 1, further, 7, "middle", colour="#ffffff")
    return f'<path fill="{_rgb(thing.values[1])}" d="{dots}"/>' + (note if further else "")


def _rgb(color: str) -> str:
    return "#{:02x}{:02x}{:02x}".format(*COLORS[color])


def _badge(x: float, y: float, words: str) -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="7" fill="{ACCENT}" stroke="#ffffff"/>' + text(
        x, y + 3.5, words, 9 if len(words) < 2 else 7, "middle", "bold", "#ffffff"
    )


def badges_of(view: View) -> dict[tuple[int, int], str]:
    """The steps at which each cell was looked at."""
    found: dict[tuple[int, int], str] = {}
    for number, step in enumerate(view.solution.steps, 1):
        for thing in step.things:
            place = thing.x, thing.y
            found[place] = f"{found[place]},{number}" if place in found else str(number)
    return found


def _draw_tree(view: View, left: int, top_: int, height: int) -> list[str]:
    """Boxes level by level from left to right; first the lines, then the boxes over them."""
    rows = levels(view.tree)
    centre = {
        id(node): (left + level * STEP, top_ + height * (2 * place + 1) / (2 * len(nodes)))
        for level, nodes in enumerate(rows)
        for place, node in enumerate(nodes)
    }
    lines, boxes = [], []
    for nodes in rows:
        for node in nodes:
            x, y = centre[id(node)]
            boxes.append(_draw_box(view, node, x, y))
            if isinstance(node, Branch):
                for word, child in (("then", node.then), ("else", node.otherwise)):
                    lines.append(
                        (
                            id(child) in view.visited,
                            _draw_line(x, y, *centre[id(child)], word, id(child) in view.visited),
                        )
                    )
    return [line for _, line in sorted(lines)] + boxes


def _draw_line(x: float, y: float, to_x: float, to_y: float, word: str, taken: bool) -> str:
    middle, colour = (x + BOX + to_x) / 2, ACCENT if taken else PALE
    path = f"M{x + BOX:g} {y:g}C{middle:g} {y:g} {middle:g} {to_y:g} {to_x:g} {to_y:g}"
    label = text(
        to_x - 4,
        to_y + (-6 if word == "then" else 13),
        word,
        10,
        "end",
        "bold" if taken else "normal",
        ACCENT if taken else GREY,
    )
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{3 if taken else 1.5}"/>{label}'


def _draw_box(view: View, node: Tree, x: float, y: float) -> str:
    ask, number = top(node), view.visited.get(id(node))
    seen = number is not None
    upper = y - BOX_HEIGHT / 2
    fill, stroke, width = (WASH, ACCENT, 2) if seen else ("#ffffff", PALE, 1.5)
    parts = [
        f'<rect x="{x:g}" y="{upper:g}" width="{BOX}" height="{BOX_HEIGHT}" rx="6" fill="{fill}" '
        f'stroke="{stroke}" stroke-width="{width}"/>',
        text(x + 12, upper + 17, ask.operator, 12, weight="bold", colour=INK if seen else GREY),
    ]
    chips = [named[1] for named in ask.objects if named[1] is not None]
    for place, color in enumerate(chips):
        parts.append(
            f'<circle cx="{x + 16 + 12 * place:g}" cy="{upper + 30:g}" r="4.5" fill="{_rgb(color)}" '
            f'stroke="{GREY}" stroke-width="0.75"/>'
        )
    parts.append(text(x + 12 + 12 * len(chips), upper + 34, name_of(ask), 11, colour=INK if seen else GREY))
    if number is not None:
        parts.append(_badge(x + 2, upper + 2, str(number)))
        value = value_name(view.solution.steps[number - 1].value)
        parts.append(text(x + BOX - 8, upper + 17, value, 12, "end", "bold", ACCENT))
    return "".join(parts)

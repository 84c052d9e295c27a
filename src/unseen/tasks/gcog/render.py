"""Pictures of examples: SVG for people, and pixels that models can read and that `decode` turns back into grids.

In pixels, a cell is 8 × 8 pixels or more: a letter of the bitmap font in its colour on black. The column to the right of
the letter, then the one to the left of it, hold the code of a third and a fourth feature in binary, lowest bit on top.
Column x grows to the right, row y downwards.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unseen.errors import UsageError
from unseen.randomness import Bools
from unseen.tasks import svg
from unseen.tasks.gcog.plan import Codes
from unseen.tasks.gcog.schema import COLORS, Schema, format_answer
from unseen.tasks.gcog.text import ExampleView, explain_step, format_query, write_sentence
from unseen.tasks.gcog.tree import Conditional, GridObject, Tree, get_query, list_levels, measure_depth

# ---------------------------------------------------------------------------------------------------------------- pixels

CELL_PIXELS = 8
_LETTER_WIDTH = 5
_LETTER_HEIGHT = 7
_FURTHER_COLUMNS = (7, 0)
"""The pixel columns of a third and a fourth feature."""

Image = NDArray[np.uint8]

_LETTERS = """
a     b     c     d     e     f     g     h     i
..... #.... ..... ....# ..... ..##. ..... #.... ..#..
..... #.... ..... ....# ..... .#... .#### #.... .....
.###. ####. .#### .#### .###. ####. #...# ####. .##..
....# #...# #.... #...# #...# .#... #...# #...# ..#..
.#### #...# #.... #...# ##### .#... .#### #...# ..#..
#...# #...# #.... #...# #.... .#... ....# #...# ..#..
.#### ####. .#### .#### .###. .#... .###. #...# .###.

j     k     l     m     n     o     p     q     r
...#. #.... .##.. ..... ..... ..... ..... ..... .....
..... #.... ..#.. ..... ..... ..... ####. .#### .....
..##. #..#. ..#.. ##.#. ####. .###. #...# #...# #.##.
...#. #.#.. ..#.. #.#.# #...# #...# #...# #...# ##..#
...#. ##... ..#.. #.#.# #...# #...# ####. .#### #....
#..#. #.#.. ..#.. #.#.# #...# #...# #.... ....# #....
.##.. #..#. .###. #.#.# #...# .###. #.... ....# #....

s     t     u     v     w     x     y     z
..... .#... ..... ..... ..... ..... ..... .....
..... .#... ..... ..... ..... ..... #...# .....
.#### ####. #...# #...# #...# #...# #...# #####
#.... .#... #...# #...# #...# .#.#. #...# ...#.
.###. .#... #...# #...# #.#.# ..#.. .#### ..#..
....# .#..# #..## .#.#. #.#.# .#.#. ....# .#...
####. ..##. .##.# ..#.. .#.#. #...# .###. #####
"""


def _read_font() -> dict[str, Bools]:
    glyphs = {}
    for block in _LETTERS.strip("\n").split("\n\n"):
        heading, *rows = block.split("\n")
        for number, letter in enumerate(heading.split()):
            start = number * (_LETTER_WIDTH + 1)
            pixels = [list(row[start : start + _LETTER_WIDTH]) for row in rows]
            glyphs[letter] = np.array(pixels) == "#"
    return glyphs


GLYPHS: dict[str, Bools] = _read_font()
"""The pixels of each letter, (7, 5), true where there is ink."""


def render(schema: Schema, grid: Codes, cell: int = CELL_PIXELS) -> Image:
    """Return pictures (…, rows · cell, columns · cell, 3) of grids (…, cells, F).

    >>> render(Schema(), np.zeros((100, 2), np.uint8)).shape
    (80, 80, 3)
    """
    if cell < CELL_PIXELS:
        raise UsageError(f"cell: a legible cell needs at least {CELL_PIXELS} pixels, got {cell}")
    if len(schema.features) > 2 + len(_FURTHER_COLUMNS):
        raise UsageError(
            f"features: pictures show at most {2 + len(_FURTHER_COLUMNS)} features, got {len(schema.features)}"
        )
    # The lit pixels of each cell at the smallest size, (…, cells, 8, 8). Code 0 is an empty cell.
    letters = np.zeros((schema.sizes[0] + 1, CELL_PIXELS, CELL_PIXELS), np.bool_)
    for code, name in enumerate(schema.features[0][1], 1):
        letters[code, :_LETTER_HEIGHT, 1 : 1 + _LETTER_WIDTH] = GLYPHS[name]
    ink: Bools = letters[grid[..., 0]]
    # strict=False: there may be fewer further features than columns for them.
    for feature, column in zip(range(2, len(schema.features)), _FURTHER_COLUMNS, strict=False):
        ink[..., column] = np.unpackbits(grid[..., feature, None], axis=-1, bitorder="little").astype(np.bool_)
    scale = cell // CELL_PIXELS
    ink = ink.repeat(scale, axis=-2).repeat(scale, axis=-1)
    palette = np.array([(0, 0, 0), *(COLORS[name] for name in schema.features[1][1])], np.uint8)
    colors = palette[grid[..., 1]]
    cells = np.zeros((*grid.shape[:-1], cell, cell, 3), np.uint8)
    margin = (cell - scale * CELL_PIXELS) // 2
    inner = slice(margin, margin + scale * CELL_PIXELS)
    cells[..., inner, inner, :] = ink[..., None] * colors[..., None, None, :]
    separated = cells.reshape(*grid.shape[:-2], schema.columns, schema.rows, cell, cell, 3)
    # From (x, y, pixel row, pixel column) to (y, pixel row, x, pixel column).
    ordered = np.moveaxis(separated, (-5, -4, -3, -2), (-3, -5, -4, -2))
    return ordered.reshape(*grid.shape[:-2], schema.rows * cell, schema.columns * cell, 3)


def decode(schema: Schema, image: Image) -> Codes:
    """Return the grids (…, cells, F) of pictures; raise `UsageError` for a picture that `render` cannot have made."""
    height, width = image.shape[-3:-1]
    cell = height // schema.rows
    if cell < CELL_PIXELS or (height, width) != (schema.rows * cell, schema.columns * cell):
        raise UsageError(
            f"expected a picture of {schema.columns} × {schema.rows} square cells of at least {CELL_PIXELS} pixels, "
            f"got {width} × {height} pixels"
        )
    separated = image.reshape(*image.shape[:-3], schema.rows, cell, schema.columns, cell, 3)
    ordered = np.moveaxis(separated, (-3, -5, -4, -2), (-5, -4, -3, -2))
    cells = ordered.reshape(*image.shape[:-3], schema.cells, cell, cell, 3)
    # One pixel of each enlarged pixel is enough; the comparison at the end covers the others.
    scale = cell // CELL_PIXELS
    sampled = (cell - scale * CELL_PIXELS) // 2 + np.arange(CELL_PIXELS) * scale
    cells = cells[..., sampled, :, :][..., sampled, :]
    ink = np.asarray(cells.any(axis=-1))
    color = cells.max(axis=(-3, -2))
    grid = np.zeros((*ink.shape[:-2], len(schema.features)), np.uint8)
    letters = ink[..., :_LETTER_HEIGHT, 1 : 1 + _LETTER_WIDTH]
    for code, name in enumerate(schema.features[0][1], 1):
        grid[..., 0][(letters == GLYPHS[name]).all(axis=(-2, -1))] = code
    for code, name in enumerate(schema.features[1][1], 1):
        grid[..., 1][(color == COLORS[name]).all(axis=-1)] = code
    for feature, column in zip(range(2, len(schema.features)), _FURTHER_COLUMNS, strict=False):
        grid[..., feature] = np.packbits(ink[..., column], axis=-1, bitorder="little")[..., 0]
    if not np.array_equal(render(schema, grid, cell), image):
        raise UsageError("the picture has a cell that is not a letter of the font in a known colour")
    return grid


# ------------------------------------------------------------------------------------------------------------------- SVG

_PALE = "#d5dae0"
_ACCENT = "#00798c"
_WASH = "#e3f1f3"
_NIGHT = "#15181c"
_LINE = "#2e343b"
_WHITE = "#ffffff"
_MARGIN = 20
_CELL = 32
_BOX_WIDTH = 148
_BOX_HEIGHT = 42
_LEVEL_WIDTH = 196
_LEAF_HEIGHT = 52


def draw_example(view: ExampleView) -> str:
    """Return a picture with the question, the grid, the tree, the reasons and the answer.

    Numbers mark the steps of the path in the grid and in the tree.
    """
    levels = list_levels(view.tree)
    grid_left = _MARGIN + 22
    tree_left = grid_left + view.schema.columns * _CELL + 36
    tree_width = (len(levels) - 1) * _LEVEL_WIDTH + _BOX_WIDTH
    width = max(tree_left + tree_width + _MARGIN, 640)
    question = textwrap.wrap(write_sentence(view.schema, view.tree), (width - 2 * _MARGIN) // 7)
    top = _MARGIN + 44 + 18 * len(question)
    height = max(view.schema.rows * _CELL, len(levels[-1]) * _LEAF_HEIGHT)
    reasons_top = top + height + 34
    answer_top = reasons_top + 18 * len(view.solution.steps) + 13

    heading = f"{view.title} · depth {measure_depth(view.tree)}"
    body = [svg.text(_MARGIN, _MARGIN + 10, heading, size=11, colour=svg.GREY)]
    for number, line in enumerate(question):
        body.append(svg.text(_MARGIN, _MARGIN + 32 + 18 * number, line, size=14))
    body += _draw_grid(view, grid_left, top, _CELL)
    body += _draw_tree(view, tree_left, top, height)
    for number, step in enumerate(view.solution.steps):
        reason = f"{number + 1}.  {explain_step(view.schema, step)}"
        body.append(svg.text(_MARGIN, reasons_top + 18 * number, reason, size=12))
    answer_width = 96 + round(7.4 * len(view.answer))
    body += [
        svg.rectangle(_MARGIN, answer_top - 19, answer_width, 28, rx=6, fill=_ACCENT),
        svg.text(_MARGIN + 12, answer_top, "answer", size=12, colour=_WASH),
        svg.text(_MARGIN + 60, answer_top, view.answer, size=14, weight="bold", colour=_WHITE),
    ]
    return svg.document(width, answer_top + 29, view.title, body)


def draw_contact_sheet(views: Sequence[ExampleView], columns: int = 4) -> str:
    """Return one picture of many examples in rows, numbered from 1: small grids with questions and answers."""
    cell = 24
    left = 30
    line_height = 15
    character_width = 5.6
    grid_width = cell * max(view.schema.columns for view in views)
    entry_width = left + grid_width + 34
    body: list[str] = []
    y = 20
    for start in range(0, len(views), columns):
        row = views[start : start + columns]
        height = cell * max(view.schema.rows for view in row)
        most_lines = 0
        for number, view in enumerate(row):
            x = left + number * entry_width
            summary = f"depth {measure_depth(view.tree)}, {len(view.objects)} objects"
            body.append(svg.text(x, y + 4, str(start + number + 1), 12, weight="bold"))
            body.append(svg.text(x + 20, y + 4, summary, 10, colour=svg.GREY))
            body += _draw_grid(view, x, y + 26, cell)
            question = textwrap.wrap(write_sentence(view.schema, view.tree), int(grid_width / character_width))
            most_lines = max(most_lines, len(question))
            below = y + 40 + height
            for line in question:
                body.append(svg.text(x, below, line, 11))
                below += line_height
            answer = f"→ {view.schema.answer_name(view.target)}"
            body.append(svg.text(x, below + 4, answer, 13, weight="bold", colour=_ACCENT))
        y += height + line_height * most_lines + 84
    return svg.document(entry_width * min(columns, len(views)), y, "examples", body)


def _draw_grid(view: ExampleView, left: int, top: int, cell: int) -> list[str]:
    """Draw the objects in their cells; cells that the path looks at are framed and carry the numbers of the steps."""
    columns, rows = view.schema.columns, view.schema.rows
    width, height = columns * cell, rows * cell
    lines = ""
    labels: list[str] = []
    for x in range(columns):
        lines += f"M{left + x * cell} {top}v{height}" if x else ""
        labels.append(svg.text(left + (x + 0.5) * cell, top - 6, str(x), 10, "middle", colour=svg.GREY))
    for y in range(rows):
        lines += f"M{left} {top + y * cell}h{width}" if y else ""
        labels.append(svg.text(left - 6, top + (y + 0.5) * cell + 4, str(y), 10, "end", colour=svg.GREY))
    labels.append(svg.text(left - 6, top - 6, "x →", 10, "end", colour=svg.GREY))
    labels.append(svg.text(left - 6, top + height + 12, "y ↓", 10, "end", colour=svg.GREY))
    elements = [
        svg.rectangle(left, top, width, height, rx=4, fill=_NIGHT),
        svg.element("path", d=lines, stroke=_LINE, fill="none"),
        *labels,
    ]
    steps_of_cell: dict[tuple[int, int], list[str]] = {}
    for number, step in enumerate(view.solution.steps, 1):
        for grid_object in step.objects:
            steps_of_cell.setdefault((grid_object.x, grid_object.y), []).append(str(number))
    for (x, y), numbers in steps_of_cell.items():
        corner_x, corner_y = left + x * cell, top + y * cell
        frame = {"rx": 4, "fill": "none", "stroke": _WHITE, "stroke_width": 2}
        elements.append(svg.rectangle(corner_x + 1, corner_y + 1, cell - 2, cell - 2, **frame))
        elements.append(_draw_badge(corner_x + cell - 3, corner_y + 3, ",".join(numbers)))
    for grid_object in view.objects:
        elements.append(_draw_letter(grid_object, left + grid_object.x * cell, top + grid_object.y * cell, cell))
    return elements


def _draw_letter(grid_object: GridObject, left: int, top: int, cell: int) -> str:
    """Draw a letter pixel by pixel, with the values of further features below it."""
    pixel = cell / 9
    x = left + (cell - _LETTER_WIDTH * pixel) / 2
    y = top + (cell - _LETTER_HEIGHT * pixel) / 2
    dots = ""
    for row, column in zip(*GLYPHS[grid_object.values[0]].nonzero(), strict=True):
        dots += f"M{x + column * pixel:.2f} {y + row * pixel:.2f}h{pixel:.2f}v{pixel:.2f}h-{pixel:.2f}z"
    letter = svg.element("path", fill=_get_hex_color(grid_object.values[1]), d=dots)
    further = " ".join(grid_object.values[2:])
    if further:
        letter += svg.text(left + 0.5 * cell, top + cell - 1, further, 7, "middle", colour=_WHITE)
    return letter


def _get_hex_color(color: str) -> str:
    return "#{:02x}{:02x}{:02x}".format(*COLORS[color])


def _draw_badge(x: float, y: float, label: str) -> str:
    circle = svg.element("circle", cx=x, cy=y, r=7, fill=_ACCENT, stroke=_WHITE)
    return circle + svg.text(x, y + 3.5, label, 9 if len(label) < 2 else 7, "middle", "bold", _WHITE)


def _draw_tree(view: ExampleView, left: int, top: int, height: int) -> list[str]:
    """Draw the nodes level by level from left to right: first all lines, those of the path last, then the boxes."""
    centres: dict[int, tuple[float, float]] = {}
    boxes: list[str] = []
    for level, nodes in enumerate(list_levels(view.tree)):
        for number, node in enumerate(nodes):
            centre = left + level * _LEVEL_WIDTH, top + height * (2 * number + 1) / (2 * len(nodes))
            centres[id(node)] = centre
            boxes.append(_draw_box(view, node, *centre))
    lines: list[tuple[bool, str]] = []
    for nodes in list_levels(view.tree):
        for node in nodes:
            if not isinstance(node, Conditional):
                continue
            x, y = centres[id(node)]
            for label, child in (("then", node.then), ("else", node.otherwise)):
                on_path = id(child) in view.visited
                to_x, to_y = centres[id(child)]
                middle = (x + _BOX_WIDTH + to_x) / 2
                curve = f"M{x + _BOX_WIDTH:g} {y:g}C{middle:g} {y:g} {middle:g} {to_y:g} {to_x:g} {to_y:g}"
                stroke, stroke_width = (_ACCENT, 3) if on_path else (_PALE, 1.5)
                weight, colour = ("bold", _ACCENT) if on_path else ("normal", svg.GREY)
                line = svg.element("path", d=curve, fill="none", stroke=stroke, stroke_width=stroke_width)
                line += svg.text(to_x - 4, to_y + (-6 if label == "then" else 13), label, 10, "end", weight, colour)
                lines.append((on_path, line))
    return [line for _, line in sorted(lines)] + boxes


def _draw_box(view: ExampleView, node: Tree, x: float, y: float) -> str:
    """Draw the operator of a node, its objects and, if the path visits it, its step and its value."""
    query = get_query(node)
    number = view.visited.get(id(node))
    top = y - _BOX_HEIGHT / 2
    if number is None:
        ink, frame = svg.GREY, {"fill": _WHITE, "stroke": _PALE, "stroke_width": 1.5}
    else:
        ink, frame = svg.INK, {"fill": _WASH, "stroke": _ACCENT, "stroke_width": 2}
    box = svg.rectangle(x, top, _BOX_WIDTH, _BOX_HEIGHT, rx=6, **frame)
    box += svg.text(x + 12, top + 17, query.operator, 12, weight="bold", colour=ink)
    chip_x = x + 16
    for description in query.objects:
        color = description[1]
        if color is not None:
            fill = _get_hex_color(color)
            box += svg.element("circle", cx=chip_x, cy=top + 30, r=4.5, fill=fill, stroke=svg.GREY, stroke_width=0.75)
            chip_x += 12
    box += svg.text(chip_x - 4, top + 34, format_query(query), 11, colour=ink)
    if number is not None:
        value = format_answer(view.solution.steps[number - 1].value)
        box += _draw_badge(x + 2, top + 2, str(number))
        box += svg.text(x + _BOX_WIDTH - 8, top + 17, value, 12, "end", "bold", _ACCENT)
    return box

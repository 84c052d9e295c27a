"""Grids as pictures that a model or a person can read, and pictures back as grids.

A cell is 8 × 8 pixels or more: a letter of the font in its colour on black. The column right of a letter, and then the
one left of it, hold the code of a third and a fourth feature in binary, lowest bit on top. Column x grows to the right,
row y downwards.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unseen.errors import UsageError
from unseen.randomness import Bools
from unseen.tasks.gcog.font import GLYPHS, HEIGHT, WIDTH
from unseen.tasks.gcog.records import Codes
from unseen.tasks.gcog.schema import COLORS, Schema

CELL = 8
_FURTHER = (7, 0)
"""The pixel columns of a third and a fourth feature."""

Image = NDArray[np.uint8]


def render(schema: Schema, grid: Codes, cell: int = CELL) -> Image:
    """Pictures (…, rows · cell, columns · cell, 3) of grids (…, cells, F).

    >>> render(Schema(), np.zeros((100, 2), np.uint8)).shape
    (80, 80, 3)
    """
    if cell < CELL:
        raise UsageError(f"a cell needs at least {CELL} pixels to be legible, got {cell}")
    scale = cell // CELL
    ink = _ink(schema, grid).repeat(scale, axis=-2).repeat(scale, axis=-1)
    colors = np.array([(0, 0, 0), *(COLORS[name] for name in schema.features[1][1])], np.uint8)[grid[..., 1]]
    cells = np.zeros((*grid.shape[:-1], cell, cell, 3), np.uint8)
    margin = (cell - scale * CELL) // 2
    cells[..., margin : margin + scale * CELL, margin : margin + scale * CELL, :] = (
        ink[..., None] * colors[..., None, None, :]
    )
    placed = cells.reshape(*grid.shape[:-2], schema.columns, schema.rows, cell, cell, 3)
    # From x, y, row in the cell, column in the cell to y, row, x, column.
    ordered = np.moveaxis(placed, (-5, -4, -3, -2), (-3, -5, -4, -2))
    return ordered.reshape(*grid.shape[:-2], schema.rows * cell, schema.columns * cell, 3)


def decode(schema: Schema, image: Image) -> Codes:
    """The grids (…, cells, F) of pictures; `UsageError` for a picture that is not one of ours."""
    height, width = image.shape[-3:-1]
    cell = height // schema.rows
    if cell < CELL or (height, width) != (schema.rows * cell, schema.columns * cell):
        raise UsageError(
            f"a picture of {schema.columns} × {schema.rows} cells has cells of at least {CELL} pixels; "
            f"got {width} × {height} pixels"
        )
    scale = cell // CELL
    sampled = (cell - scale * CELL) // 2 + np.arange(CELL) * scale
    parts = image.reshape(*image.shape[:-3], schema.rows, cell, schema.columns, cell, 3)
    placed = np.moveaxis(parts, (-3, -5, -4, -2), (-5, -4, -3, -2))
    cells = placed.reshape(*image.shape[:-3], schema.cells, cell, cell, 3)[..., sampled, :, :][..., sampled, :]
    ink, color = np.asarray(cells.any(axis=-1)), cells.max(axis=(-3, -2))
    grid = np.zeros((*ink.shape[:-2], len(schema.features)), np.uint8)
    letters = ink[..., :HEIGHT, 1 : 1 + WIDTH]
    for code, name in enumerate(schema.features[0][1], 1):
        grid[..., 0][(letters == GLYPHS[name]).all(axis=(-2, -1))] = code
    for code, name in enumerate(schema.features[1][1], 1):
        grid[..., 1][(color == COLORS[name]).all(axis=-1)] = code
    for feature, column in zip(range(2, len(schema.features)), _FURTHER, strict=False):
        grid[..., feature] = np.packbits(ink[..., column], axis=-1, bitorder="little")[..., 0]
    if not np.array_equal(render(schema, grid, cell), image):
        raise UsageError("the picture has cells that hold no letter of ours in a colour of ours")
    return grid


def _ink(schema: Schema, grid: Codes) -> Bools:
    """Which pixels of each cell are lit, (…, cells, 8, 8)."""
    if len(schema.features) > 2 + len(_FURTHER):
        raise UsageError(f"a picture shows up to {2 + len(_FURTHER)} features, there are {len(schema.features)}")
    letters = np.zeros((schema.sizes[0] + 1, CELL, CELL), np.bool_)
    for code, name in enumerate(schema.features[0][1], 1):
        letters[code, :HEIGHT, 1 : 1 + WIDTH] = GLYPHS[name]
    ink: Bools = letters[grid[..., 0]]
    for feature, column in zip(range(2, len(schema.features)), _FURTHER, strict=False):
        ink[..., column] = np.unpackbits(grid[..., feature, None], axis=-1, bitorder="little").astype(np.bool_)
    return ink

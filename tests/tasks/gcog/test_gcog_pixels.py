"""Pictures of grids: legible everywhere, and read back exactly."""

from __future__ import annotations

import numpy as np
import pytest
from gcog_cases import PAPER, clean, make_plan
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen.errors import UsageError
from unseen.tasks.gcog.font import GLYPHS
from unseen.tasks.gcog.pixels import decode, render
from unseen.tasks.gcog.schema import COLORS, FEATURES, LETTERS, Schema

FOUR = Schema((*FEATURES, ("size", ("small", "big", "huge")), ("mood", ("sad", "glad"))), 5, 7)


def test_letters_differ_in_more_than_a_pixel() -> None:
    assert tuple(GLYPHS) == LETTERS
    for first in LETTERS:
        assert GLYPHS[first].shape == (7, 5) and GLYPHS[first].sum() >= 7
        for second in LETTERS:
            assert first == second or (GLYPHS[first] != GLYPHS[second]).sum() >= 2


def test_every_letter_in_every_colour_at_every_place() -> None:
    """All 260 objects visit all 100 cells, with full neighbourhoods."""
    objects = np.stack(np.meshgrid(np.arange(1, 27), np.arange(1, 11), indexing="ij"), axis=-1).reshape(-1, 2)
    grids = np.stack([np.roll(objects, shift, axis=0)[:100] for shift in range(260)]).astype(np.uint8)
    np.testing.assert_array_equal(decode(PAPER, render(PAPER, grids)), grids)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(schema=st.sampled_from([PAPER, FOUR]), cell=st.integers(8, 40), seed=st.integers(0, 10**9))
def test_any_size_is_read_back(schema: Schema, cell: int, seed: int) -> None:
    grid = clean(make_plan(schema, 3), 3, seed).grid
    image = render(schema, grid, cell)
    assert image.shape == (3, schema.rows * cell, schema.columns * cell, 3) and image.dtype == np.uint8
    np.testing.assert_array_equal(decode(schema, image), grid)
    np.testing.assert_array_equal(render(schema, grid[0], cell), image[0])
    np.testing.assert_array_equal(decode(schema, image[1]), grid[1])


def test_x_grows_to_the_right_and_y_downwards() -> None:
    grid = np.zeros((100, 2), np.uint8)
    grid[PAPER.cell(7, 2)] = PAPER.code(0, "l"), PAPER.code(1, "cyan")
    rows, columns = np.nonzero(render(PAPER, grid).any(axis=2))
    assert (rows // 8 == 2).all() and (columns // 8 == 7).all()
    lit = render(PAPER, grid)[rows, columns]
    assert (lit == COLORS["cyan"]).all() and len(lit) == GLYPHS["l"].sum()


def test_letters_keep_inside_their_cells() -> None:
    grid = np.full((100, 2), 1, np.uint8)
    for code in range(1, 27):
        grid[:, 0] = code
        image = render(PAPER, grid).any(axis=2).reshape(10, 8, 10, 8)
        assert not image[:, 7].any() and not image[:, :, :, [0, 6, 7]].any()


def test_pictures_that_are_not_ours_are_refused() -> None:
    with pytest.raises(UsageError, match="at least 8 pixels to be legible, got 7"):
        render(PAPER, np.zeros((100, 2), np.uint8), 7)
    for shape in ((80, 90, 3), (85, 80, 3), (40, 40, 3)):
        with pytest.raises(UsageError, match="a picture of 10 × 10 cells"):
            decode(PAPER, np.zeros(shape, np.uint8))
    image = np.zeros((80, 80, 3), np.uint8)
    image[3, 3] = 255
    with pytest.raises(UsageError, match="no letter of ours"):
        decode(PAPER, image)
    five = Schema((*FEATURES, *((name, (f"{name}a", f"{name}b")) for name in ("p", "q", "r"))))
    with pytest.raises(UsageError, match="shows up to 4 features, there are 5"):
        render(five, np.zeros((100, 5), np.uint8))

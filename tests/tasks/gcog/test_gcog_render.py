"""Pictures of grids: legible everywhere, and read back exactly."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.gcog_cases import PAPER, clean, get_code, list_queries, make_plan
from unseen.errors import UsageError
from unseen.tasks import task
from unseen.tasks.gcog.render import GLYPHS, decode, draw_contact_sheet, render
from unseen.tasks.gcog.schema import COLORS, FEATURES, LETTERS, STANDARD, Schema
from unseen.tasks.gcog.task import GcogTask
from unseen.tasks.gcog.text import explain_step

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
    grid[PAPER.cell(7, 2)] = get_code(PAPER, 0, "l"), get_code(PAPER, 1, "cyan")
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
    with pytest.raises(UsageError, match="a legible cell needs at least 8 pixels, got 7"):
        render(PAPER, np.zeros((100, 2), np.uint8), 7)
    for shape in ((80, 90, 3), (85, 80, 3), (40, 40, 3)):
        with pytest.raises(UsageError, match="a picture of 10 × 10 square cells"):
            decode(PAPER, np.zeros(shape, np.uint8))
    image = np.zeros((80, 80, 3), np.uint8)
    image[3, 3] = 255
    with pytest.raises(UsageError, match="not a letter of the font"):
        decode(PAPER, image)
    five = Schema((*FEATURES, *((name, (f"{name}a", f"{name}b")) for name in ("p", "q", "r"))))
    with pytest.raises(UsageError, match="show at most 4 features, got 5"):
        render(five, np.zeros((100, 5), np.uint8))


SVG = "{http://www.w3.org/2000/svg}"


def gcog(name: str = "gcog/productive", **options: object) -> GcogTask:
    gcog_task = task(name, **options)
    assert isinstance(gcog_task, GcogTask)
    return gcog_task


@pytest.mark.parametrize("preset", ["clean", "released"])
def test_pictures_show_every_object_and_operator_and_the_path(preset: str) -> None:
    gcog_task = gcog(preset=preset)
    for split in ("iid/depth=1", "iid/depth=3", "ood/depth=7"):
        examples = gcog_task.sample(split, 6)
        for i in range(6):
            seen, drawn = gcog_task.view(examples, i), ElementTree.fromstring(gcog_task.picture(examples, i))
            words = [element.text for element in drawn.iter(f"{SVG}text")]
            for query in list_queries(seen.tree):
                assert query.operator in words
            letters = [p for p in drawn.iter(f"{SVG}path") if (p.get("d") or "").endswith("z")]
            dots = sum((p.get("d") or "").count("M") for p in letters)
            assert len(letters) == len(seen.objects)
            assert dots == sum(int(GLYPHS[grid_object.values[0]].sum()) for grid_object in seen.objects)
            assert any(word == seen.answer for word in words)
            assert all(explain_step(seen.schema, step) in " ".join(map(str, words)) for step in seen.solution.steps)


def test_further_features_are_written_beside_the_letters() -> None:
    gcog_task = gcog(features=(*FEATURES, ("size", ("small", "big"))), grid=(6, 8))
    examples = gcog_task.sample("iid/depth=3", 1)
    words = [element.text for element in ElementTree.fromstring(gcog_task.picture(examples, 0)).iter(f"{SVG}text")]
    sizes = sorted(grid_object.values[2] for grid_object in gcog_task.view(examples, 0).objects)
    assert sorted(word for word in words if word in ("small", "big")) == sizes


def test_contact_sheet_has_all_examples() -> None:
    gcog_task = gcog()
    examples = gcog_task.sample("iid", 10)
    sheet = ElementTree.fromstring(draw_contact_sheet([gcog_task.view(examples, i) for i in range(10)], columns=4))
    words = [element.text for element in sheet.iter(f"{SVG}text")]
    for i in range(10):
        assert f"→ {gcog_task.view(examples, i).schema.answer_name(int(examples.targets[i]))}" in words
    assert sum(word in map(str, range(1, 11)) for word in words) >= 10


def test_every_operator_can_be_shown() -> None:
    names = (*STANDARD, *(n for n in gcog().domain.operators if n not in STANDARD))
    gcog_task = gcog(operators=names, two_objects=0.5)
    examples = gcog_task.sample("iid/depth=1", 60)
    for i in range(60):
        assert gcog_task.describe(examples, i) and ElementTree.fromstring(gcog_task.picture(examples, i)) is not None
    assert set(examples.factors["operator"].tolist()) == set(names)
    assert set(LETTERS) >= {t.values[0] for i in range(9) for t in gcog_task.view(examples, i).objects}

"""Draws without replacement, and cells that give operators their truth values."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from support.gcog_cases import PAPER, clean, even, make_plan, questions
from unseen.randomness import stream
from unseen.tasks.gcog.place_objects import Redraws, build_cell_classes, draw_distinct, shuffle_rows
from unseen.tasks.gcog.schema import Schema


def test_distinct_draws_are_uniform_in_every_order() -> None:
    count = 24_000
    expected_values = np.ones((3, count), np.bool_)
    found = draw_distinct(np.full(count, 4), expected_values, np.zeros((count, 4), np.bool_), stream("order").block())
    assert all(len(set(column)) == 3 for column in found.T.tolist())
    orders = Counter(map(tuple, found.T.tolist()))
    assert len(orders) == 24 and even(np.array(list(orders.values())))


def test_distinct_draws_respect_bounds_what_is_taken_and_what_is_not_wanted() -> None:
    count = 500
    bound = np.arange(count) % 5 + 4
    taken = np.zeros((count, 8), np.bool_)
    taken[:, 1] = True
    expected_values = np.array([[True], [False], [True], [True]]) & np.ones(count, np.bool_)
    found = draw_distinct(bound, expected_values, taken, stream("bounds").block(), first=np.full(count, 2))
    assert (found[0] == 2).all() and (found < bound).all()
    chosen = found[[0, 2, 3]]
    assert all(len({*column, 1}) == 4 for column in chosen.T.tolist())
    assert (taken.sum(axis=1) == 4).all()


def test_redraws_are_uniform_across_the_ends_of_the_stock() -> None:
    redraws = Redraws(stream("stock").block())
    found = np.concatenate([redraws.integers(np.full(700, 7)) for _ in range(40)])
    assert even(np.bincount(found, minlength=7))
    assert len(redraws.integers(np.full(5000, 3))) == 5000


def test_shuffles_are_permutations_with_a_uniform_beginning() -> None:
    order = shuffle_rows(12_000, 4, 2, stream("shuffle").block())
    assert (np.sort(order, axis=1) == np.arange(4)).all()
    assert even(np.unique(order[:, 0] * 4 + order[:, 1], return_counts=True)[1])
    assert (shuffle_rows(10, 4, 1, stream("shuffle").block(), first=np.full(10, 3))[:, 0] == 3).all()


@pytest.mark.parametrize(
    ("name", "true", "ways"),
    [
        ("SumEven", True, 4900),
        ("SumEven", False, 5000),
        ("SumOdd", True, 5000),
        ("SumOdd", False, 4900),
        ("ProductOdd", True, 600),
        ("ProductOdd", False, 9300),
        ("ProductEven", True, 9300),
        ("ProductEven", False, 600),
    ],
)
def test_pairs_of_cells_are_uniform_over_those_that_give_the_truth(name: str, true: bool, ways: int) -> None:
    known = build_cell_classes(PAPER, True)
    chosen = known.by_operator[PAPER.operators[name].code, int(true), 1]
    start, size = known.start[chosen], known.size[chosen]
    pairs = {tuple(pair) for pair in known.cells[start : start + size].tolist()}
    expected = set()
    for first in range(100):
        for second in range(100):
            (x1, y1), (x2, y2) = divmod(first, 10), divmod(second, 10)
            value = x1 * y1 * x2 * y2 if name.startswith("Product") else x1 + y1 + x2 + y2
            if first != second and (value % 2 == (0 if name.endswith("Even") else 1)) == true:
                expected.add((first, second))
    assert pairs == expected and len(pairs) == size == ways


def test_pairs_of_cells_are_drawn_uniformly() -> None:
    schema = Schema(columns=3, rows=2, enabled=("SumEven",))
    plan = make_plan(schema, 1, (0, 0), two_objects=1.0)
    found: dict[bool, Counter[tuple[int, int]]] = {True: Counter(), False: Counter()}
    for records in (clean(plan, 1024, seed) for seed in range(8)):
        for target, (tree, grid_objects) in zip(records.target.tolist(), questions(plan, records), strict=True):
            where = {t.values: schema.cell(t.x, t.y) for t in grid_objects}
            first, second = (where[o] for o in tree.objects)
            found[target == 0][first, second] += 1
    assert {truth: len(counts) for truth, counts in found.items()} == {True: 12, False: 18}
    assert all(even(np.array(list(counts.values()))) for counts in found.values())

"""Balance and uniformity of the clean generator, and the small draws it is made of."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from gcog_cases import EVERY_OPERATOR, PAPER, clean, even, fair, make_plan, questions
from scipy.stats import chi2_contingency

from unseen.randomness import stream
from unseen.tasks.gcog.distinct import Redraws, draw_distinct, shuffled
from unseen.tasks.gcog.operators import STANDARD
from unseen.tasks.gcog.plan import Plan, deal
from unseen.tasks.gcog.records import Records
from unseen.tasks.gcog.schema import Schema
from unseen.tasks.gcog.solver import solve
from unseen.tasks.gcog.tree import Branch


def many(plan: Plan, blocks: int = 24) -> list[Records]:
    return [clean(plan, 1024, seed) for seed in range(blocks)]


def test_distinct_draws_are_uniform_in_every_order() -> None:
    count = 24_000
    wanted = np.ones((3, count), np.bool_)
    found = draw_distinct(np.full(count, 4), wanted, np.zeros((count, 4), np.bool_), stream("order").block())
    assert all(len(set(column)) == 3 for column in found.T.tolist())
    orders = Counter(map(tuple, found.T.tolist()))
    assert len(orders) == 24 and even(np.array(list(orders.values())))


def test_distinct_draws_respect_bounds_what_is_taken_and_what_is_not_wanted() -> None:
    count = 500
    bound = np.arange(count) % 5 + 4
    taken = np.zeros((count, 8), np.bool_)
    taken[:, 1] = True
    wanted = np.array([[True], [False], [True], [True]]) & np.ones(count, np.bool_)
    found = draw_distinct(bound, wanted, taken, stream("bounds").block(), first=np.full(count, 2))
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
    order = shuffled(12_000, 4, 2, stream("shuffle").block())
    assert (np.sort(order, axis=1) == np.arange(4)).all()
    assert even(np.unique(order[:, 0] * 4 + order[:, 1], return_counts=True)[1])
    assert (shuffled(10, 4, 1, stream("shuffle").block(), first=np.full(10, 3))[:, 0] == 3).all()


def test_dealt_operators_are_even_in_every_stretch() -> None:
    dealt = deal([1, 2, 3, 4, 5, 6, 7, 8], 1000, stream("deal").block())
    assert len(dealt) == 1000
    assert (np.sort(dealt.reshape(-1, 8), axis=1) == np.arange(1, 9)).all()


@pytest.mark.parametrize("depth", [1, 3, 5])
def test_booleans_operators_and_branches_are_balanced(depth: int) -> None:
    """Every boolean operator at every place of the tree, on the path or not, is true in half of the cases."""
    plan = make_plan(depth=depth)
    nodes, leaves = plan.operators_in_tree, plan.operators_in_tree // 2
    true, asked = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    reached = np.zeros(nodes, np.int64)
    for records in many(plan, 3 if depth > 1 else 8):
        reached += np.bincount(records.leaf, minlength=nodes)
        for tree, things in questions(plan, records):
            level, place = [tree], 0
            while level:
                for node in level:
                    ask = node.condition if isinstance(node, Branch) else node
                    asked[place, ask.operator] += 1
                    if PAPER.operators[ask.operator].boolean:
                        true[place, ask.operator] += solve(PAPER, ask, things).answer == 0
                    place += 1
                level = [child for node in level if isinstance(node, Branch) for child in (node.then, node.otherwise)]
    for (place, name), trials in asked.items():
        assert not PAPER.operators[name].boolean or fair(true[place, name], trials), (place, name)
        assert fair(trials, reached.sum(), 1 / 8 if place >= leaves else 1 / 5), (place, name)
    assert not reached[:leaves].any() and (depth == 1 or even(reached[leaves:]))


@pytest.mark.parametrize("depth", [1, 3, 7])
def test_answers_and_numbers_of_distractors_are_uniform(depth: int) -> None:
    plan = make_plan(depth=depth)
    found = many(plan, 24)
    targets, distractors = (np.concatenate([getattr(r, name) for r in found]) for name in ("target", "distractors"))
    counts = np.bincount(targets, minlength=138)
    for start, end in ((0, 2), (2, 102), (102, 128), (128, 138)):
        assert even(counts[start:end])
    assert even(np.bincount(distractors)[1:])


def test_objects_and_cells_are_uniform_where_no_truth_chooses_them() -> None:
    plan = make_plan(groups=((("GetLocation", "Exist"),),), distractors=(3, 3))
    grid = np.concatenate([r.grid for r in many(plan)])
    cells, objects = grid.any(axis=2).sum(axis=0), grid[grid.any(axis=2)].astype(np.int64)
    assert even(cells) and even(np.bincount(objects[:, 0] - 1 + 26 * (objects[:, 1] - 1)))


def test_locations_stay_uniform_where_products_take_odd_cells() -> None:
    """In plain heap order the odd-odd cells, which products occupy, would be answers too rarely."""
    inner = ("ProductEven", "ProductOdd")
    plan = make_plan(depth=7, groups=((inner,) * 7 + (("GetLocation",),) * 8,))
    targets = np.concatenate([r.target for r in many(plan, 16)]) - 2
    odd = ((targets % 10) % 2 == 1) & ((targets // 10) % 2 == 1)
    assert fair(int(odd.sum()), len(odd), 0.25)


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
    from unseen.tasks.gcog.places import places

    known = places(PAPER, True)
    chosen = known.of[PAPER.operators[name].code, int(true), 1]
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
    for records in many(plan, 8):
        for target, (tree, things) in zip(records.target.tolist(), questions(plan, records), strict=True):
            where = {t.values: schema.cell(t.x, t.y) for t in things}
            first, second = (where[o] for o in tree.objects)
            found[target == 0][first, second] += 1
    assert {truth: len(counts) for truth, counts in found.items()} == {True: 12, False: 18}
    assert all(even(np.array(list(counts.values()))) for counts in found.values())


FREQUENCIES = {
    ("ExistAnd", True): (0, 0, 0, 1),
    ("ExistAnd", False): (1 / 4, 3 / 8, 3 / 8, 0),
    ("ExistOr", True): (0, 3 / 8, 3 / 8, 1 / 4),
    ("ExistOr", False): (1, 0, 0, 0),
    ("ExistXor", True): (0, 1 / 2, 1 / 2, 0),
    ("ExistXor", False): (1 / 2, 0, 0, 1 / 2),
}


def test_presence_of_two_objects() -> None:
    schema = Schema(enabled=("ExistAnd", "ExistOr", "ExistXor"))
    plan = make_plan(schema, 1)
    seen = {case: np.zeros(4, np.int64) for case in FREQUENCIES}
    for records in many(plan, 8):
        for target, (tree, things) in zip(records.target.tolist(), questions(plan, records), strict=True):
            there = {t.values for t in things}
            first, second = (o in there for o in tree.objects)
            seen[tree.operator, target == 0][first + 2 * second] += 1
    for case, expected in FREQUENCIES.items():
        trials = int(seen[case].sum())
        assert fair(trials, 8 * 1024, 1 / 6)
        for hits, share in zip(seen[case].tolist(), expected, strict=True):
            assert hits == 0 if share == 0 else fair(hits, trials, share)


@pytest.mark.parametrize("two", [0.0, 1.0])
def test_numbers_say_nothing_about_the_truth(two: float) -> None:
    schema = Schema(enabled=("AddEqual", "SubtractEqual", "MultiplyEqual"))
    plan = make_plan(schema, 1, two_objects=two)
    found = many(plan, 12)
    truth, number, code = (
        np.concatenate(parts)
        for parts in zip(*((r.target == 0, r.number[:, 0], r.operator[:, 0]) for r in found), strict=True)
    )
    for name in schema.enabled:
        mine = code == schema.operators[name].code
        assert fair(int(truth[mine].sum()), int(mine.sum()))
        common = [n for n, many_ in Counter(number[mine].tolist()).items() if many_ > 100]
        table = [[int((truth[mine & (number == n)] == t).sum()) for n in common] for t in (True, False)]
        assert chi2_contingency(table).pvalue > 1e-6
    sums = Counter(number[code == 19].tolist())
    expected = np.bincount(np.add.outer(np.arange(10), np.arange(10)).ravel()) / 100
    if not two:
        assert all(fair(sums[n], sum(sums.values()), float(share)) for n, share in enumerate(expected))


def test_compared_features_are_uniform() -> None:
    schema = Schema(enabled=("IsColor", "IsShape", "SameColor", "NotSameColor", "SameShape", "NotSameShape"))
    plan = make_plan(schema, 1)
    named: dict[tuple[str, bool], Counter[str]] = {}
    for records in many(plan, 16):
        for target, (tree, things) in zip(records.target.tolist(), questions(plan, records), strict=True):
            about = schema.operators[tree.operator].about
            assert about is not None
            solution = solve(schema, tree, things)
            value = tree.objects[0][about] or solution.steps[0].things[-1].values[about]
            named.setdefault((tree.operator, target == 0), Counter())[value] += 1
    assert len(named) == 12
    for (name, _), counts in named.items():
        assert len(counts) == (26 if name.endswith("Shape") else 10)
        assert even(np.array(list(counts.values())))


def test_two_objects_as_often_as_asked() -> None:
    plan = make_plan(EVERY_OPERATOR, 3, two_objects=0.5)
    optional = [o.code for o in EVERY_OPERATOR.operators.values() if o.objects == (1, 2)]
    two, asked = 0, 0
    for records in many(plan, 6):
        mine = np.isin(records.operator, optional)
        two, asked = two + int(records.named[mine][:, 1].any(axis=1).sum()), asked + int(mine.sum())
    assert fair(two, asked)


def test_counting_tells_about_exist_unless_the_count_is_constant() -> None:
    for constant in (False, True):
        plan = make_plan(groups=((("Exist",),),), constant_count=constant)
        found = many(plan, 8)
        objects = np.concatenate([r.grid.any(axis=2).sum(axis=1) for r in found])
        truth = np.concatenate([r.target == 0 for r in found])
        table = np.array([np.bincount(objects[truth == t], minlength=7)[1:] for t in (True, False)])
        if constant:
            assert not table[:, 0].any() and chi2_contingency(table[:, 1:]).pvalue > 1e-6
        else:
            assert fair(int(table.max(axis=0).sum()), int(table.sum()), 0.6)


def test_the_paper_counts_2080_single_tasks() -> None:
    single = sum(1 for name in STANDARD for _ in range(260))
    instructions = sum(
        {0: 10, 1: 26}.get(-1 if PAPER.operators[n].key is None else 1 - PAPER.operators[n].key, 260) for n in STANDARD
    )
    assert (single, instructions) == (2080, 1596)

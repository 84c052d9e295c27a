"""What must hold for every example, whatever is asked for: looked up object by object, without the generator's help."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from support.gcog_cases import (
    EVERY_OPERATOR,
    PAPER,
    PRESENCE_FREQUENCIES,
    SCHEMAS,
    check_records,
    clean,
    even,
    fair,
    list_queries,
    make_plan,
    questions,
    released,
)
from unseen.errors import UsageError
from unseen.randomness import stream
from unseen.tasks.gcog.plan import QuestionPlan, QuestionRecords, allow_all_operators, deal_operators
from unseen.tasks.gcog.schema import FEATURES, STANDARD, Schema
from unseen.tasks.gcog.solver import solve
from unseen.tasks.gcog.tree import Conditional, GridObject, Query

COUNT = 96


@settings(derandomize=True, deadline=None, max_examples=30)
@given(
    name=st.sampled_from(list(SCHEMAS)),
    depth=st.sampled_from([1, 3, 5]),
    two=st.sampled_from([0.0, 0.5, 1.0]),
    low=st.integers(0, 6),
    more=st.integers(0, 6),
    constant=st.booleans(),
    seed=st.integers(0, 10**9),
)
def test_clean_examples(name: str, depth: int, two: float, low: int, more: int, constant: bool, seed: int) -> None:
    plan = make_plan(SCHEMAS[name], depth, (low, low + more), two_objects=two, constant_count=constant)
    check_records(plan, clean(plan, COUNT, seed), sound=True)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(
    depth=st.sampled_from([1, 3, 5, 7]),
    low=st.integers(0, 3),
    more=st.integers(0, 40),
    two=st.sampled_from([0.0, 0.5]),
    seed=st.integers(0, 10**9),
)
def test_released_examples(depth: int, low: int, more: int, two: float, seed: int) -> None:
    plan = make_plan(PAPER, depth, (low, low + more), two_objects=two)
    check_records(plan, released(plan, COUNT, seed), sound=False)


@pytest.mark.parametrize("leaf", ["GetShape", "GetColor", "GetLocation", "ProductOdd", "SumEven", "Exist"])
def test_the_tightest_questions_there_are(leaf: str) -> None:
    """Depth 7 with 45 distractors: eight times GetShape leave exactly as many objects as are needed."""
    inner = ("ProductOdd",) if leaf == "ProductOdd" else allow_all_operators(PAPER, 7)[0][0]
    plan = make_plan(PAPER, 7, (45, 45), groups=((inner,) * 7 + ((leaf,),) * 8,))
    check_records(plan, clean(plan, 32), sound=True)


@pytest.mark.parametrize(("depth", "redrawn"), [(9, False), (11, True)])
def test_deeper_questions_are_drawn_again_where_there_is_no_room(depth: int, redrawn: bool) -> None:
    plan = make_plan(PAPER, depth)
    records = clean(plan, 128)
    check_records(plan, records, sound=True)
    assert (records.redraws > 0).any() == redrawn


def test_a_class_of_places_that_runs_out_is_drawn_again() -> None:
    """On a grid of 3 × 3 one cell has an odd product: two questions that need it can't both be true."""
    schema = Schema(columns=3, rows=3, enabled=("ProductOdd", "ProductEven"))
    plan = make_plan(schema, 3, (0, 2))
    records = clean(plan, 200)
    check_records(plan, records, sound=True)
    many = clean(plan, 4000)
    again = many.redraws > 0
    assert again.mean() > 0.05  # and yet numbers of distractors and the truth of the root are as they were drawn
    assert even(np.bincount(many.distractors[again])) and fair(int((many.leaf[again] == 1).sum()), int(again.sum()))


def test_numbers_that_no_free_place_gives_are_placed_anew() -> None:
    schema = Schema(columns=2, rows=2, enabled=("MultiplyEqual", "GetLocation"))
    plan = make_plan(schema, 3, (0, 0))
    check_records(plan, clean(plan, 100), sound=True)


def test_a_full_grid_is_possible() -> None:
    schema = Schema(FEATURES, 3, 4)
    plan = make_plan(schema, 3, (9, 9))
    records = clean(plan, 200)
    check_records(plan, records, sound=True)
    assert (records.grid.any(axis=2).sum(axis=1) == 12).any()


def test_questions_without_room_are_given_up() -> None:
    tight = Schema((("shape", tuple("abc")), ("color", ("red", "green"))), enabled=("GetColor", "IsColor"))
    with pytest.raises(UsageError, match="found no room in 1000 attempts; use fewer distractors"):
        clean(make_plan(tight, 5, (0, 0)), 4)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(depth=st.sampled_from([1, 3, 5]), seed=st.integers(0, 10**9))
def test_relabelling_more_distractors_and_moves_keep_the_answer(depth: int, seed: int) -> None:
    plan = make_plan(PAPER, depth)
    records, rng = clean(plan, 24, seed), np.random.default_rng(seed)
    for i, (tree, grid_objects) in enumerate(questions(plan, records)):
        solution = solve(PAPER, tree, grid_objects)
        renamed = {name: dict(zip(values, rng.permutation(values).tolist(), strict=True)) for name, values in FEATURES}
        answer = PAPER.answers[records.target[i]]
        expected = (
            (answer[0], renamed[answer[0]][answer[1]])
            if isinstance(answer, tuple) and isinstance(answer[0], str)
            else answer
        )
        relabelled = [
            GridObject(tuple(renamed[n][v] for (n, _), v in zip(FEATURES, t.values, strict=True)), t.x, t.y)
            for t in grid_objects
        ]
        assert solve(PAPER, _rename(tree, renamed), relabelled).answer == PAPER.answers.index(expected)
        assert (
            solve(PAPER, tree, [*grid_objects, _legal_distractor(tree, grid_objects, rng)]).answer == records.target[i]
        )
        read = {(t.x, t.y) for step in solution.steps for t in step.objects}
        idle = [t for t in grid_objects if (t.x, t.y) not in read]
        if idle:
            free = {(x, y) for x in range(10) for y in range(10)} - {(t.x, t.y) for t in grid_objects}
            x, y = next((x, y) for x, y in sorted(free) if (x % 2, y % 2) == (idle[0].x % 2, idle[0].y % 2))
            moved = [t for t in grid_objects if t is not idle[0]] + [GridObject(idle[0].values, x, y)]
            assert solve(PAPER, tree, moved).answer == records.target[i]


def _rename(tree: Any, renamed: dict[str, dict[str, str]]) -> Any:
    if isinstance(tree, Query):
        objects = tuple(tuple(v and renamed[n][v] for (n, _), v in zip(FEATURES, o, strict=True)) for o in tree.objects)
        return Query(tree.operator, objects, tree.number)
    return type(tree)(_rename(tree.test, renamed), _rename(tree.then, renamed), _rename(tree.otherwise, renamed))


def _legal_distractor(tree: Any, grid_objects: list[GridObject], rng: np.random.Generator) -> GridObject:
    """An object that no operator of the tree could mean, in a free cell."""
    shapes = {query.objects[0][0] for query in list_queries(tree) if query.operator == "GetColor"}
    colors = {query.objects[0][1] for query in list_queries(tree) if query.operator == "GetShape"}
    barred = {t.values for t in grid_objects} | {o for query in list_queries(tree) for o in query.objects}
    while True:
        values = (str(rng.choice(FEATURES[0][1])), str(rng.choice(FEATURES[1][1])))
        x, y = map(int, rng.integers(10, size=2))
        if (
            values[0] not in shapes
            and values[1] not in colors
            and values not in barred
            and (x, y) not in {(t.x, t.y) for t in grid_objects}
        ):
            return GridObject(values, x, y)


def many(plan: QuestionPlan, blocks: int = 24) -> list[QuestionRecords]:
    return [clean(plan, 1024, seed) for seed in range(blocks)]


def test_dealt_operators_are_even_in_every_stretch() -> None:
    dealt = deal_operators([1, 2, 3, 4, 5, 6, 7, 8], 1000, stream("deal_operators").block())
    assert len(dealt) == 1000
    assert (np.sort(dealt.reshape(-1, 8), axis=1) == np.arange(1, 9)).all()


@pytest.mark.parametrize("depth", [1, 3, 5])
def test_booleans_operators_and_branches_are_balanced(depth: int) -> None:
    """Every boolean operator at every place of the tree, on the path or not, is true in half of the cases."""
    plan = make_plan(depth=depth)
    nodes, leaves = plan.nodes, plan.nodes // 2
    true, asked = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    reached = np.zeros(nodes, np.int64)
    for records in many(plan, 3 if depth > 1 else 8):
        reached += np.bincount(records.leaf, minlength=nodes)
        for tree, grid_objects in questions(plan, records):
            level, place = [tree], 0
            while level:
                for node in level:
                    query = node.test if isinstance(node, Conditional) else node
                    asked[place, query.operator] += 1
                    if PAPER.operators[query.operator].boolean:
                        true[place, query.operator] += solve(PAPER, query, grid_objects).answer == 0
                    place += 1
                level = [
                    child for node in level if isinstance(node, Conditional) for child in (node.then, node.otherwise)
                ]
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


def test_presence_of_two_objects() -> None:
    schema = Schema(enabled=("ExistAnd", "ExistOr", "ExistXor"))
    plan = make_plan(schema, 1)
    seen = {case: np.zeros(4, np.int64) for case in PRESENCE_FREQUENCIES}
    for records in many(plan, 8):
        for target, (tree, grid_objects) in zip(records.target.tolist(), questions(plan, records), strict=True):
            there = {t.values for t in grid_objects}
            first, second = (o in there for o in tree.objects)
            seen[tree.operator, target == 0][first + 2 * second] += 1
    for case, expected in PRESENCE_FREQUENCIES.items():
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
        selected = code == schema.operators[name].code
        assert fair(int(truth[selected].sum()), int(selected.sum()))
        common = [n for n, many_ in Counter(number[selected].tolist()).items() if many_ > 100]
        table = [[int((truth[selected & (number == n)] == t).sum()) for n in common] for t in (True, False)]
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
        for target, (tree, grid_objects) in zip(records.target.tolist(), questions(plan, records), strict=True):
            about = schema.operators[tree.operator].about
            assert about is not None
            solution = solve(schema, tree, grid_objects)
            value = tree.objects[0][about] or solution.steps[0].objects[-1].values[about]
            named.setdefault((tree.operator, target == 0), Counter())[value] += 1
    assert len(named) == 12
    for (name, _), counts in named.items():
        assert len(counts) == (26 if name.endswith("Shape") else 10)
        assert even(np.array(list(counts.values())))


def test_two_objects_as_often_as_asked() -> None:
    plan = make_plan(EVERY_OPERATOR, 3, two_objects=0.5)
    optional = [o.code for o in EVERY_OPERATOR.operators.values() if o.object_counts == (1, 2)]
    two, asked = 0, 0
    for records in many(plan, 6):
        selected = np.isin(records.operator, optional)
        two, asked = two + int(records.stated[selected][:, 1].any(axis=1).sum()), asked + int(selected.sum())
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

"""What must hold for every example, whatever is asked for: looked up object by object, without the generator's help."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gcog_cases import PAPER, SCHEMAS, clean, even, fair, make_plan, questions, released
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen.errors import UsageError
from unseen.tasks.gcog.plan import Plan
from unseen.tasks.gcog.records import Records
from unseen.tasks.gcog.schema import FEATURES, Schema
from unseen.tasks.gcog.solver import solve
from unseen.tasks.gcog.splits import all_operators
from unseen.tasks.gcog.tree import Ask, Thing, asks, levels, top

COUNT = 96


def fitting(schema: Schema, ask: Ask, number: int, things: list[Thing]) -> list[Thing]:
    """The objects that an operator's first or second object could be."""
    hidden = schema.operators[ask.operator].about if schema.operators[ask.operator].kind == "is" else None
    wanted = {i: v for i, v in enumerate(ask.objects[number]) if v is not None and i != hidden}
    return [t for t in things if all(t.values[i] == v for i, v in wanted.items())]


def check_form(plan: Plan, records: Records, i: int, tree: Any, things: list[Thing]) -> None:
    schema = plan.schema
    grid = records.grid[i]
    assert ((grid > 0).all(axis=1) | (grid == 0).all(axis=1)).all()
    places = [(t.x, t.y) for t in things]
    assert len(set(places)) == len(places) == (grid > 0).any(axis=1).sum()
    inner = [top(node) for level in levels(tree)[:-1] for node in level]
    assert all(schema.operators[ask.operator].boolean for ask in inner)
    reached = schema.by_code[int(records.operator[i, records.leaf[i]])]
    assert schema.answer_kinds[records.target[i]] == reached.answer


def check_sound(plan: Plan, records: Records, i: int, tree: Any, things: list[Thing]) -> None:
    """Clean only: every operator, on the path or not, is about exactly one object; nothing occurs twice."""
    schema = plan.schema
    assert len({t.values for t in things}) == len(things)
    named, absent = 0, 0
    for ask in asks(tree):
        for number in range(len(ask.objects)):
            found, named = len(fitting(schema, ask, number, things)), named + 1
            if schema.operators[ask.operator].kind in ("exist", "combine"):
                assert found <= 1
                absent += 1 - found
            else:
                assert found == 1
    extra = len(things) - (named - absent)
    low, high = plan.distractors
    assert extra == records.distractors[i]
    assert low <= extra - (absent if plan.constant_count else 0) <= high
    pairs = [
        objects
        for ask in asks(tree)
        for objects in ask.objects
        if None not in objects and schema.operators[ask.operator].kind != "is"
    ]
    assert len(set(pairs)) == len(pairs)


def check(plan: Plan, records: Records, sound: bool) -> None:
    for i, (tree, things) in enumerate(questions(plan, records, 0 if sound else 1)):
        check_form(plan, records, i, tree, things)
        if sound:
            check_sound(plan, records, i, tree, things)
        assert solve(plan.schema, tree, things, "error" if sound else "smallest").answer == records.target[i]


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
    check(plan, clean(plan, COUNT, seed), sound=True)


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
    check(plan, released(plan, COUNT, seed), sound=False)


@pytest.mark.parametrize("leaf", ["GetShape", "GetColor", "GetLocation", "ProductOdd", "SumEven", "Exist"])
def test_the_tightest_questions_there_are(leaf: str) -> None:
    """Depth 7 with 45 distractors: eight times GetShape leave exactly as many objects as are needed."""
    inner = ("ProductOdd",) if leaf == "ProductOdd" else all_operators(PAPER, 7)[0][0]
    plan = make_plan(PAPER, 7, (45, 45), groups=((inner,) * 7 + ((leaf,),) * 8,))
    check(plan, clean(plan, 32), sound=True)


@pytest.mark.parametrize(("depth", "redrawn"), [(9, False), (11, True)])
def test_deeper_questions_are_drawn_again_where_there_is_no_room(depth: int, redrawn: bool) -> None:
    plan = make_plan(PAPER, depth)
    records = clean(plan, 128)
    check(plan, records, sound=True)
    assert (records.redraws > 0).any() == redrawn


def test_a_class_of_places_that_runs_out_is_drawn_again() -> None:
    """On a grid of 3 × 3 one cell has an odd product: two questions that need it can't both be true."""
    schema = Schema(columns=3, rows=3, enabled=("ProductOdd", "ProductEven"))
    plan = make_plan(schema, 3, (0, 2))
    records = clean(plan, 200)
    check(plan, records, sound=True)
    many = clean(plan, 4000)
    again = many.redraws > 0
    assert again.mean() > 0.05  # and yet numbers of distractors and the truth of the root are as they were drawn
    assert even(np.bincount(many.distractors[again])) and fair(int((many.leaf[again] == 1).sum()), int(again.sum()))


def test_numbers_that_no_free_place_gives_are_placed_anew() -> None:
    schema = Schema(columns=2, rows=2, enabled=("MultiplyEqual", "GetLocation"))
    plan = make_plan(schema, 3, (0, 0))
    check(plan, clean(plan, 100), sound=True)


def test_a_full_grid_is_possible() -> None:
    schema = Schema(FEATURES, 3, 4)
    plan = make_plan(schema, 3, (9, 9))
    records = clean(plan, 200)
    check(plan, records, sound=True)
    assert (records.grid.any(axis=2).sum(axis=1) == 12).any()


def test_questions_without_room_are_given_up() -> None:
    tight = Schema((("shape", tuple("abc")), ("color", ("red", "green"))), enabled=("GetColor", "IsColor"))
    with pytest.raises(UsageError, match="found no room in 1000 tries; take fewer distractors"):
        clean(make_plan(tight, 5, (0, 0)), 4)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(depth=st.sampled_from([1, 3, 5]), seed=st.integers(0, 10**9))
def test_relabelling_more_distractors_and_moves_keep_the_answer(depth: int, seed: int) -> None:
    plan = make_plan(PAPER, depth)
    records, rng = clean(plan, 24, seed), np.random.default_rng(seed)
    for i, (tree, things) in enumerate(questions(plan, records)):
        solution = solve(PAPER, tree, things)
        renamed = {name: dict(zip(values, rng.permutation(values).tolist(), strict=True)) for name, values in FEATURES}
        answer = PAPER.answers[records.target[i]]
        expected = (
            (answer[0], renamed[answer[0]][answer[1]])
            if isinstance(answer, tuple) and isinstance(answer[0], str)
            else answer
        )
        relabelled = [
            Thing(tuple(renamed[n][v] for (n, _), v in zip(FEATURES, t.values, strict=True)), t.x, t.y) for t in things
        ]
        assert solve(PAPER, _rename(tree, renamed), relabelled).answer == PAPER.answers.index(expected)
        assert solve(PAPER, tree, [*things, _legal_distractor(tree, things, rng)]).answer == records.target[i]
        read = {(t.x, t.y) for step in solution.steps for t in step.things}
        idle = [t for t in things if (t.x, t.y) not in read]
        if idle:
            free = {(x, y) for x in range(10) for y in range(10)} - {(t.x, t.y) for t in things}
            x, y = next((x, y) for x, y in sorted(free) if (x % 2, y % 2) == (idle[0].x % 2, idle[0].y % 2))
            moved = [t for t in things if t is not idle[0]] + [Thing(idle[0].values, x, y)]
            assert solve(PAPER, tree, moved).answer == records.target[i]


def _rename(tree: Any, renamed: dict[str, dict[str, str]]) -> Any:
    if isinstance(tree, Ask):
        objects = tuple(tuple(v and renamed[n][v] for (n, _), v in zip(FEATURES, o, strict=True)) for o in tree.objects)
        return Ask(tree.operator, objects, tree.number)
    return type(tree)(_rename(tree.condition, renamed), _rename(tree.then, renamed), _rename(tree.otherwise, renamed))


def _legal_distractor(tree: Any, things: list[Thing], rng: np.random.Generator) -> Thing:
    """An object that no operator of the tree could mean, in a free cell."""
    shapes = {ask.objects[0][0] for ask in asks(tree) if ask.operator == "GetColor"}
    colors = {ask.objects[0][1] for ask in asks(tree) if ask.operator == "GetShape"}
    barred = {t.values for t in things} | {o for ask in asks(tree) for o in ask.objects}
    while True:
        values = (str(rng.choice(FEATURES[0][1])), str(rng.choice(FEATURES[1][1])))
        x, y = map(int, rng.integers(10, size=2))
        if (
            values[0] not in shapes
            and values[1] not in colors
            and values not in barred
            and (x, y) not in {(t.x, t.y) for t in things}
        ):
            return Thing(values, x, y)

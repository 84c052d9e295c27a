"""The preset released: the published samples solved, and the statistics measured on the published code."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from support.gcog_cases import (
    PAPER,
    PUBLISHED,
    fair,
    make_plan,
    questions,
    read_published_objects,
    read_published_tree,
    released,
)
from unseen.tasks.gcog.audit import count_ambiguous
from unseen.tasks.gcog.encode import encode_tokens, get_rule_length
from unseen.tasks.gcog.plan import QuestionRecords, count_operators
from unseen.tasks.gcog.solver import Unanswerable, solve

BLOCKS = 6


@lru_cache(maxsize=16)
def drawn(depth: int, distractors: tuple[int, int]) -> list[QuestionRecords]:
    plan = make_plan(depth=depth, distractors=distractors, two_objects=0.5 if depth > 1 else 0.0)
    return [released(plan, 1024, seed) for seed in range(BLOCKS)]


def true_share(records: list[QuestionRecords], name: str) -> tuple[int, int]:
    code = PAPER.operators[name].code
    targets = np.concatenate([r.target[r.operator[np.arange(len(r)), r.leaf] == code] for r in records])
    return int((targets == 0).sum()), len(targets)


@pytest.mark.parametrize("sample", PUBLISHED, ids=range(len(PUBLISHED)))
def test_published_samples_are_solved(sample: dict[str, object]) -> None:
    tree, grid_objects = read_published_tree(sample["tree"]), read_published_objects(sample["objects"])
    solution = solve(PAPER, tree, grid_objects, "smallest")
    assert solution.answer == sample["target"]["index"]
    assert [step.value for step in solution.steps[:-1]] == sample["branch_path"]
    if sample["ambiguous_on_path"]:
        with pytest.raises(Unanswerable, match=r"there are \d, at"):
            solve(PAPER, tree, grid_objects)
    else:
        assert solve(PAPER, tree, grid_objects) == solution


@pytest.mark.parametrize(
    ("name", "share"), [("SumEven", 1 / 2), ("SumOdd", 1 / 2), ("ProductEven", 3 / 4), ("ProductOdd", 1 / 4)]
)
def test_single_parities_follow_the_cells(name: str, share: float) -> None:
    assert fair(*true_share(drawn(1, (0, 5)), name), share)


def test_exist_is_true_more_often_among_many_distractors() -> None:
    few, many = (np.divide(*true_share(drawn(1, asked), "Exist")) for asked in ((0, 5), (40, 40)))
    assert 0.46 < few < 0.56 and 0.53 < many < 0.62


@pytest.mark.parametrize(
    ("depth", "asked", "mean"), [(1, 5, 4.90), (3, 5, 4.73), (1, 40, 36.7), (3, 40, 35.4), (5, 40, 32.8), (7, 40, 28.8)]
)
def test_fewer_distractors_are_there_than_were_asked_for(depth: int, asked: int, mean: float) -> None:
    """Within 0.3 (0.05 for 5): the published means are measured on samples of unknown size."""
    found = np.concatenate([r.distractors for r in drawn(depth, (asked, asked))])
    assert found.max() <= asked and abs(found.mean() - mean) < (0.05 if asked == 5 else 0.3)


@pytest.mark.parametrize(("depth", "on_path", "anywhere"), [(3, 0.034, 0.066), (5, 0.09, 0.31), (7, 0.14, 0.77)])
def test_ambiguous_questions(depth: int, on_path: float, anywhere: float) -> None:
    plan = make_plan(depth=depth, distractors=(0, 5), two_objects=0.5)
    records = drawn(depth, (0, 5))
    tokens = [encode_tokens(PAPER, r, depth, get_rule_length(depth), 1) for r in records]
    share = np.mean([count_ambiguous(PAPER, t) > 0 for t in tokens])
    assert abs(share - anywhere) < 0.03
    ambiguous = 0
    for tree, grid_objects in questions(plan, records[0], 1) + questions(plan, records[1], 1):
        try:
            solve(PAPER, tree, grid_objects)
        except Unanswerable:
            ambiguous += 1
    assert fair(ambiguous, 2048, on_path)


@pytest.mark.parametrize(("depth", "first", "any_object"), [(3, 0.03, 0.04), (5, 0.19, 0.25), (7, 0.66, 0.76)])
def test_operators_share_objects(depth: int, first: float, any_object: float) -> None:
    """First objects come from a pool with replacement; second ones may be any object."""
    groups = ((("SumEven", "Exist", "SumOdd", "ProductEven", "ProductOdd"),) * count_operators(depth),)
    plan = make_plan(depth=depth, distractors=(0, 0), two_objects=0.5, groups=groups)
    named = np.concatenate([released(plan, 1024, seed).stated for seed in range(BLOCKS)]).astype(np.int64)
    number = named[..., 0] + 27 * named[..., 1]
    shared = [len(set(row)) < len(row) for row in number[:, :, 0].tolist()]
    assert fair(sum(shared), len(shared), first, 12)
    both = [row[row > 0].tolist() for row in number.reshape(len(number), -1)]
    assert fair(sum(len(set(row)) < len(row) for row in both), len(both), any_object, 12)


def test_trees_ask_about_two_objects_in_half_of_their_parities() -> None:
    parities = [PAPER.operators[name].code for name in ("SumEven", "SumOdd", "ProductEven", "ProductOdd")]
    for depth, expected in ((3, 0.5), (1, 0.0)):
        records = drawn(depth, (0, 5))
        selected = np.concatenate([r.stated[np.isin(r.operator, parities)] for r in records])
        two = selected[:, 1].any(axis=1)
        assert fair(int(two.sum()), len(two), expected) if expected else not two.any()


def test_distractors_avoid_what_get_operators_go_by() -> None:
    """So every ambiguity is between objects that some operator asks about: at depth 1 there is none."""
    plan = make_plan(distractors=(40, 40))
    tokens = encode_tokens(PAPER, released(plan, 1024), 1, 2, 1)
    assert not count_ambiguous(PAPER, tokens).any()


def test_an_absent_object_may_come_back_as_a_distractor() -> None:
    plan = make_plan(distractors=(40, 40), groups=((("Exist",),),))
    hits, trials = true_share([released(plan, 1024, seed) for seed in range(BLOCKS)], "Exist")
    back = 1 - (1 - 1 / 260) ** 40
    assert fair(hits, trials, 0.5 + 0.5 * back)


def test_questions_about_some_shapes_only() -> None:
    allowed = tuple(number for number in range(260) if number % 26 < 10)
    for depth in (1, 3):
        plan = make_plan(depth=depth, distractors=(5, 5), task_objects=allowed)
        records = released(plan, 1024)
        assert records.stated[:, :, 0, 0].max() == 10 and records.grid[..., 0].max() == 26

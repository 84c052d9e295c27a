"""What the tests of this family share: small plans, examples as trees and objects, and the published samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from unseen.randomness import stream
from unseen.tasks.gcog.encode import encode_tokens, get_rule_length, read_objects, read_tree
from unseen.tasks.gcog.generate_clean import generate_clean
from unseen.tasks.gcog.generate_released import generate_released
from unseen.tasks.gcog.plan import QuestionPlan, QuestionRecords, allow_all_operators
from unseen.tasks.gcog.schema import FEATURES, Schema
from unseen.tasks.gcog.solver import solve
from unseen.tasks.gcog.tree import Conditional, Description, GridObject, Query, Tree, get_query, list_levels

PUBLISHED: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "tasks" / "gcog" / "gcog_released.json").read_text()
)
"""Samples drawn with the published code; of stimulus tokens those that are not zero, with their places in front."""

PAPER = Schema()
EVERY_OPERATOR = Schema(enabled=tuple(PAPER.operators))
_SIZES = (*FEATURES, ("size", ("small", "big", "huge")))
THREE_FEATURES = Schema(_SIZES, 7, 9, tuple(Schema(_SIZES).operators))
SCHEMAS = {"paper": PAPER, "every operator": EVERY_OPERATOR, "three features": THREE_FEATURES}


def make_plan(
    schema: Schema = PAPER, depth: int = 1, distractors: tuple[int, int] = (1, 5), **options: Any
) -> QuestionPlan:
    options.setdefault("groups", allow_all_operators(schema, depth))
    return QuestionPlan(schema, depth, distractors=distractors, **options)


def clean(plan: QuestionPlan, count: int = 512, seed: object = 0) -> QuestionRecords:
    return generate_clean(plan, count, None, stream("test", seed).block())


def released(plan: QuestionPlan, count: int = 512, seed: object = 0) -> QuestionRecords:
    return generate_released(plan, count, stream("test", seed).block())


def questions(plan: QuestionPlan, records: QuestionRecords, unnamed: int = 0) -> list[tuple[Tree, list[GridObject]]]:
    """The trees and objects behind records, read from their tokens."""
    tokens = encode_tokens(plan.schema, records, plan.depth, get_rule_length(plan.depth), unnamed)
    return [
        (read_tree(plan.schema, rule.tolist()), read_objects(plan.schema, grid))
        for rule, grid in zip(tokens.rule, tokens.grid, strict=True)
    ]


def read_published_tree(data: dict[str, Any]) -> Tree:
    """The tree in a published sample: a plain reading of its form."""
    if "if" in data:
        split = read_published_tree(data["if"])
        assert isinstance(split, Query)
        return Conditional(split, read_published_tree(data["then"]), read_published_tree(data["else"]))
    objects: list[Description] = [(o["shape"], o["color"]) for o in data["objects"]]
    return Query(data["op"], tuple(objects))


def read_published_objects(data: list[dict[str, Any]]) -> list[GridObject]:
    return [GridObject((o["shape"], o["color"]), o["x"], o["y"]) for o in data]


def even(counts: np.ndarray[Any, Any], alpha: float = 1e-6) -> bool:
    """Whether counts could come from a uniform distribution: a chi-square test that a sound generator passes."""
    from scipy.stats import chisquare

    return bool(chisquare(counts).pvalue > alpha)


def fair(hits: int, trials: int, share: float = 0.5, errors: float = 5) -> bool:
    """Whether a share of hits lies within so many standard errors of the expected one."""
    return abs(hits / trials - share) <= errors * np.sqrt(share * (1 - share) / trials)


def list_queries(tree: Tree) -> list[Query]:
    """All operators of a tree in level order."""
    queries: list[Query] = []
    for level in list_levels(tree):
        queries += map(get_query, level)
    return queries


def get_code(schema: Schema, feature: int, value: str) -> int:
    """The code of a feature's value."""
    return schema.features[feature][1].index(value) + 1


def list_matching(schema: Schema, query: Query, number: int, grid_objects: list[GridObject]) -> list[GridObject]:
    """The objects that an operator's first or second object could be."""
    hidden = schema.operators[query.operator].about if schema.operators[query.operator].category == "is" else None
    expected_values = {i: v for i, v in enumerate(query.objects[number]) if v is not None and i != hidden}
    return [t for t in grid_objects if all(t.values[i] == v for i, v in expected_values.items())]


def _check_form(
    plan: QuestionPlan, records: QuestionRecords, i: int, tree: Any, grid_objects: list[GridObject]
) -> None:
    schema = plan.schema
    grid = records.grid[i]
    assert ((grid > 0).all(axis=1) | (grid == 0).all(axis=1)).all()
    places = [(t.x, t.y) for t in grid_objects]
    assert len(set(places)) == len(places) == (grid > 0).any(axis=1).sum()
    inner = [get_query(node) for level in list_levels(tree)[:-1] for node in level]
    assert all(schema.operators[query.operator].boolean for query in inner)
    reached = schema.by_code[int(records.operator[i, records.leaf[i]])]
    assert schema.answer_kinds[records.target[i]] == reached.answer


def _check_sound(
    plan: QuestionPlan, records: QuestionRecords, i: int, tree: Any, grid_objects: list[GridObject]
) -> None:
    """Clean only: every operator, on the path or not, is about exactly one object; nothing occurs twice."""
    schema = plan.schema
    assert len({t.values for t in grid_objects}) == len(grid_objects)
    named, absent = 0, 0
    for query in list_queries(tree):
        for number in range(len(query.objects)):
            found, named = len(list_matching(schema, query, number, grid_objects)), named + 1
            if schema.operators[query.operator].category in ("exist", "combine"):
                assert found <= 1
                absent += 1 - found
            else:
                assert found == 1
    extra = len(grid_objects) - (named - absent)
    low, high = plan.distractors
    assert extra == records.distractors[i]
    assert low <= extra - (absent if plan.constant_count else 0) <= high
    pairs = [
        objects
        for query in list_queries(tree)
        for objects in query.objects
        if None not in objects and schema.operators[query.operator].category != "is"
    ]
    assert len(set(pairs)) == len(pairs)


def check_records(plan: QuestionPlan, records: QuestionRecords, sound: bool) -> None:
    """Check every question by looking at its objects one by one, without the help of the generator."""
    for i, (tree, grid_objects) in enumerate(questions(plan, records, 0 if sound else 1)):
        _check_form(plan, records, i, tree, grid_objects)
        if sound:
            _check_sound(plan, records, i, tree, grid_objects)
        assert solve(plan.schema, tree, grid_objects, "error" if sound else "smallest").answer == records.target[i]


PRESENCE_FREQUENCIES = {
    ("ExistAnd", True): (0, 0, 0, 1),
    ("ExistAnd", False): (1 / 4, 3 / 8, 3 / 8, 0),
    ("ExistOr", True): (0, 3 / 8, 3 / 8, 1 / 4),
    ("ExistOr", False): (1, 0, 0, 0),
    ("ExistXor", True): (0, 1 / 2, 1 / 2, 0),
    ("ExistXor", False): (1 / 2, 0, 0, 1 / 2),
}
"""How often none, only the first, only the second and both objects are present, by operator and answer."""

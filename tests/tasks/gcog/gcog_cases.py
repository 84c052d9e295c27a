"""What the tests of this family share: small plans, examples as trees and objects, and the published samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from unseen.randomness import stream
from unseen.tasks.gcog.clean import generate_clean
from unseen.tasks.gcog.plan import Plan
from unseen.tasks.gcog.records import Records
from unseen.tasks.gcog.released import generate_released
from unseen.tasks.gcog.schema import FEATURES, Schema
from unseen.tasks.gcog.splits import all_operators
from unseen.tasks.gcog.tokens import encode, read_things, read_tree, rule_length
from unseen.tasks.gcog.tree import Ask, Branch, Named, Thing, Tree

PUBLISHED: list[dict[str, Any]] = json.loads((Path(__file__).parent / "gcog_released.json").read_text())
"""Samples drawn with the published code; of stimulus tokens those that are not zero, with their places in front."""

PAPER = Schema()
EVERY_OPERATOR = Schema(enabled=tuple(PAPER.operators))
_SIZES = (*FEATURES, ("size", ("small", "big", "huge")))
THREE_FEATURES = Schema(_SIZES, 7, 9, tuple(Schema(_SIZES).operators))
SCHEMAS = {"paper": PAPER, "every operator": EVERY_OPERATOR, "three features": THREE_FEATURES}


def make_plan(schema: Schema = PAPER, depth: int = 1, distractors: tuple[int, int] = (1, 5), **options: Any) -> Plan:
    options.setdefault("groups", all_operators(schema, depth))
    return Plan(schema, depth, distractors=distractors, **options)


def clean(plan: Plan, count: int = 512, seed: object = 0) -> Records:
    return generate_clean(plan, count, None, stream("test", seed).block())


def released(plan: Plan, count: int = 512, seed: object = 0) -> Records:
    return generate_released(plan, count, stream("test", seed).block())


def questions(plan: Plan, records: Records, unnamed: int = 0) -> list[tuple[Tree, list[Thing]]]:
    """The trees and objects behind records, read from their tokens."""
    tokens = encode(plan.schema, records, plan.depth, rule_length(plan.depth), unnamed)
    return [
        (read_tree(plan.schema, rule.tolist()), read_things(plan.schema, grid))
        for rule, grid in zip(tokens.rule, tokens.grid, strict=True)
    ]


def tree_of(data: dict[str, Any]) -> Tree:
    """The tree in a published sample: a plain reading of its form."""
    if "if" in data:
        condition = tree_of(data["if"])
        assert isinstance(condition, Ask)
        return Branch(condition, tree_of(data["then"]), tree_of(data["else"]))
    objects: list[Named] = [(o["shape"], o["color"]) for o in data["objects"]]
    return Ask(data["op"], tuple(objects))


def things_of(data: list[dict[str, Any]]) -> list[Thing]:
    return [Thing((o["shape"], o["color"]), o["x"], o["y"]) for o in data]


def even(counts: np.ndarray[Any, Any], alpha: float = 1e-6) -> bool:
    """Whether counts could come from a uniform distribution: a chi-square test that a sound generator passes."""
    from scipy.stats import chisquare

    return bool(chisquare(counts).pvalue > alpha)


def fair(hits: int, trials: int, share: float = 0.5, errors: float = 5) -> bool:
    """Whether a share of hits lies within so many standard errors of the expected one."""
    return abs(hits / trials - share) <= errors * np.sqrt(share * (1 - share) / trials)

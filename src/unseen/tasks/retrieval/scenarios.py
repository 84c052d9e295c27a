"""Scenarios: what a datapoint is built around, and how often.

Yes and no are equally often the answer; each has its scenarios, which say where the two features of the chosen pair are
put: in one token, in two, or nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from unseen.randomness import Draws, Ints

Placement = Literal["none", "first", "second", "same", "different", "in-order", "reversed"]


@dataclass(frozen=True)
class Scenario:
    """A way to reach an answer; `weight` is its probability given the answer."""

    name: str
    answer: bool
    weight: float
    placement: Placement

    @property
    def present(self) -> tuple[bool, bool]:
        """Whether the first and the second feature of the chosen pair occur."""
        return self.placement not in ("none", "second"), self.placement not in ("none", "first")


_BOTH_OR_NOT = (
    Scenario("yes/same", True, 1 / 2, "same"),
    Scenario("yes/diff", True, 1 / 2, "different"),
    Scenario("no/none", False, 1 / 2, "none"),
    Scenario("no/a-only", False, 1 / 4, "first"),
    Scenario("no/b-only", False, 1 / 4, "second"),
)


def scenarios(kind: str, none_share: float) -> tuple[Scenario, ...]:
    """The scenarios of a task. `none_share`: how many of the unordered negatives of T6 and T7 show neither feature."""
    if kind == "T1":
        return Scenario("yes", True, 1.0, "first"), Scenario("no", False, 1.0, "none")
    if kind == "T3":
        return (
            Scenario("yes/both-same", True, 1 / 4, "same"),
            Scenario("yes/both-diff", True, 1 / 4, "different"),
            Scenario("yes/a-only", True, 1 / 4, "first"),
            Scenario("yes/b-only", True, 1 / 4, "second"),
            Scenario("no", False, 1.0, "none"),
        )
    if kind in ("T6", "T7"):
        one = (1 - none_share) / 4
        return (
            Scenario("yes", True, 1.0, "in-order"),
            Scenario("no/wrong-order", False, 1 / 2, "reversed"),
            Scenario("no/a-only", False, one, "first"),
            Scenario("no/b-only", False, one, "second"),
            Scenario("no/none", False, none_share / 2, "none"),
        )
    return _BOTH_OR_NOT


def deal_scenarios(table: Sequence[Scenario], deck: Ints, draws: Draws) -> Ints:
    """A scenario (its place in the table) for each card of a shuffled deck, (B,), a permutation of 0 … B − 1.

    Yes and no come equally often and every scenario in its exact share, up to one card: for a single datapoint that
    is the same as drawing, and what is measured on a block is free of the noise of its scenario counts.
    """
    edges = np.cumsum([s.weight / 2 for s in table])[:-1]
    return np.searchsorted(edges, (deck + draws.uniform()) / len(deck), side="right")


def draw_positions(table: Sequence[Scenario], scenario: Ints, length: int, draws: Draws) -> Ints:
    """The forced tokens of the first and second feature of the chosen pair, (B, 2); −1: none.

    One position is uniform; two different ones are uniform over ordered pairs.
    """
    count = len(scenario)
    one, two = draws.integers(length, count), draws.integers(length - 1, count)
    two += two >= one
    early, late, nowhere = np.minimum(one, two), np.maximum(one, two), np.full(count, -1)
    ways = {
        "none": (nowhere, nowhere),
        "first": (one, nowhere),
        "second": (nowhere, one),
        "same": (one, one),
        "different": (one, two),
        "in-order": (early, late),
        "reversed": (late, early),
    }
    code = np.array([get_args(Placement).index(s.placement) for s in table])[scenario]
    by_code = [np.choose(code, [ways[p][side] for p in get_args(Placement)]) for side in (0, 1)]
    return np.stack(by_code, axis=1)

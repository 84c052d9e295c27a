"""Scenarios: what a datapoint is built around, and how often; and the presets, which build them differently.

Yes and no are the answer equally often. Each answer has its scenarios, which say where the two features of the chosen
pair are placed: in one token, in two, or nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from unseen.randomness import Bools, Draws, Ints

Placement = Literal["none", "first", "second", "same", "different", "in-order", "reversed"]
PresetName = Literal["clean", "released", "paper"]
Balance = Literal["blind", "aware"]

MAX_EXCLUDED = 6
"""No preset draws more excluded features than this."""


@dataclass(frozen=True)
class Scenario:
    """A way to build a datapoint with a certain answer; `weight` is its probability given the answer."""

    name: str
    answer: bool
    weight: float
    placement: Placement

    @property
    def present(self) -> tuple[bool, bool]:
        """Whether the first and the second feature of the chosen pair occur."""
        return self.placement not in ("none", "second"), self.placement not in ("none", "first")


def scenarios(task: str, none_share: float) -> tuple[Scenario, ...]:
    """The scenarios of a task. `none_share`: the share of unordered negatives of T6 and T7 with neither feature."""
    if task == "T1":
        return Scenario("yes", True, 1.0, "first"), Scenario("no", False, 1.0, "none")
    if task == "T3":
        return (
            Scenario("yes/both-same", True, 1 / 4, "same"),
            Scenario("yes/both-diff", True, 1 / 4, "different"),
            Scenario("yes/a-only", True, 1 / 4, "first"),
            Scenario("yes/b-only", True, 1 / 4, "second"),
            Scenario("no", False, 1.0, "none"),
        )
    if task in ("T6", "T7"):
        single_weight = (1 - none_share) / 4
        return (
            Scenario("yes", True, 1.0, "in-order"),
            Scenario("no/wrong-order", False, 1 / 2, "reversed"),
            Scenario("no/a-only", False, single_weight, "first"),
            Scenario("no/b-only", False, single_weight, "second"),
            Scenario("no/none", False, none_share / 2, "none"),
        )
    return (
        Scenario("yes/same", True, 1 / 2, "same"),
        Scenario("yes/diff", True, 1 / 2, "different"),
        Scenario("no/none", False, 1 / 2, "none"),
        Scenario("no/a-only", False, 1 / 4, "first"),
        Scenario("no/b-only", False, 1 / 4, "second"),
    )


def deal_scenarios(table: Sequence[Scenario], deck: Ints, draws: Draws) -> Ints:
    """The scenario (its index in the table) of each card of a shuffled deck, a permutation of 0 … B − 1; (B,).

    Within a block every scenario has its exact share, up to one card. For a single datapoint that is the same as
    drawing its scenario, and measurements on a block are free of the noise of scenario counts.
    """
    edges = np.cumsum([scenario.weight / 2 for scenario in table])[:-1]
    # Cards lie at even distances on the interval from 0 to 1, which the scenarios divide; one draw shifts all of them.
    return np.searchsorted(edges, (deck + draws.uniform()) / len(deck), side="right")


def draw_positions(table: Sequence[Scenario], scenario: Ints, length: int, draws: Draws) -> Ints:
    """The forced tokens of the first and second feature of the chosen pair, (B, 2); −1: none.

    One position is uniform; two different ones are uniform over ordered pairs.
    """
    count = len(scenario)
    a = draws.integers(length, count)
    b = draws.integers(length - 1, count)
    b += b >= a  # skips a, so that b is uniform over the other tokens
    early = np.minimum(a, b)
    late = np.maximum(a, b)
    nowhere = np.full(count, -1)
    by_placement = {
        "none": (nowhere, nowhere),
        "first": (a, nowhere),
        "second": (nowhere, a),
        "same": (a, a),
        "different": (a, b),
        "in-order": (early, late),
        "reversed": (late, early),
    }
    placements = get_args(Placement)
    code = np.array([placements.index(row.placement) for row in table])[scenario]
    first = np.choose(code, [by_placement[placement][0] for placement in placements])
    second = np.choose(code, [by_placement[placement][1] for placement in placements])
    return np.stack([first, second], axis=1)


# Presets


@dataclass(frozen=True)
class RetrievalPreset:
    """How datapoints are built where clean data, the released data and the paper's text disagree.

    - `single_in_train`: share of training datapoints built with single occurrences, as evaluation data are.
    - `exclusion_hits_relevant`: tasks whose randomly excluded features may be relevant ones.
    - `missing_named_first`: in T2 negatives with one feature, the missing one is named first (artefact A1).
    - `none_share`: share of T6 and T7 negatives without wrong order that show neither feature of the pair.
    - `other_pair`: in T5 and T7 `released` (free in training positives, avoids tokens in T7 negatives), `background`
      (one feature blocked, the other background) or `balanced` (one absent, the other absent or forced once).
    - `wrong_order`: how extra occurrences in wrong-order negatives are kept from creating the right order.
    """

    single_in_train: float
    exclusion_hits_relevant: frozenset[str]
    missing_named_first: bool
    none_share: float
    other_pair: Literal["released", "background", "balanced"]
    wrong_order: Literal["scan", "cut"]


PRESETS: dict[PresetName, RetrievalPreset] = {
    "clean": RetrievalPreset(0.0, frozenset(), False, 0.0, "balanced", "cut"),
    "released": RetrievalPreset(0.10, frozenset({"T3", "T4", "T5", "T6", "T7"}), True, 0.0, "released", "scan"),
    "paper": RetrievalPreset(0.0, frozenset(), False, 1 / 2, "background", "cut"),
}

_RELEASED_RANGES = {"T1": (1, 6), "T2": (2, 6), "T3": (2, 6), "T4": (2, 5), "T5": (2, 5)}
_CLEAN_LOWEST = {"T1": 1, "T2": 2, "T3": 2, "T4": 2, "T5": 4, "T6": 2, "T7": 4}


def exclusion_range(
    preset: PresetName, balance: Balance, task: str, missing: Ints, blocked: Ints, free_positive: Bools
) -> tuple[Ints, Ints]:
    """The smallest and largest number of randomly excluded features, each (B,); below zero counts as zero.

    `missing` features of the chosen pair and `blocked` ones of the other pair are excluded anyway, so they count.
    """
    zero = np.zeros_like(missing)
    if preset == "released":
        if task in ("T6", "T7"):
            return zero + 2, 6 - missing - blocked
        low, high = _RELEASED_RANGES[task]
        # T5 positives with free occurrences leave the other pair alone and draw from a longer range.
        return low - missing, high - missing + (free_positive if task == "T5" else 0)
    if balance == "aware":
        return zero + 1, zero + 6
    lowest = 1 if preset == "paper" else _CLEAN_LOWEST[task]
    return lowest - missing - blocked, 6 - missing - blocked

"""The pair of a T5 or T7 query that the scenario is not built around."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unseen.randomness import Bools, Draws, Ints
from unseen.tasks.retrieval.presets import Preset


@dataclass(frozen=True)
class OtherPair:
    """Per example and feature of the other pair, all (B, 2).

    `shared` with the chosen pair (it then follows that pair alone); `blocked` for the whole sequence; `positions` of
    a forced occurrence, −1: none.
    """

    shared: Bools
    blocked: Bools
    positions: Ints


def draw_other_pair(
    preset: Preset, kind: str, roles: Ints, answer: Bools, single: Bools, length: int, draws: Draws
) -> OtherPair:
    """The state of the other pair. `roles` (B, 4): features of the chosen pair, then of the other one."""
    count = len(roles)
    rows = np.arange(count)
    shared = (roles[:, 2:, None] == roles[:, None, :2]).any(axis=2)
    # Whatever has to be blocked is the feature that is not shared.
    first = draws.integers(2, count)
    first = np.where(shared[:, 0], 1, np.where(shared[:, 1], 0, first))
    blocked = np.zeros((count, 2), np.bool_)
    positions = np.full((count, 2), -1)
    if preset.other_pair == "released":
        blocked[rows, first] = single | ~answer if kind == "T5" else single
    else:
        blocked[rows, first] = True
    if preset.other_pair == "balanced":
        both, forced = draws.bernoulli(0.5, count), draws.integers(length, count)
        alone = shared.any(axis=1)
        blocked[rows, 1 - first] = both & ~alone
        positions[rows, 1 - first] = np.where(both | alone, -1, forced)
    return OtherPair(shared, blocked, positions)

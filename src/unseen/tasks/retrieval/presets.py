"""The three presets, field by field: what differs between clean data, the released data and the paper's text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from unseen.randomness import Bools, Ints

PresetName = Literal["clean", "released", "paper"]
Balance = Literal["blind", "aware"]

LARGEST_EXCLUSION = 6
"""No preset draws more excluded features than this."""


@dataclass(frozen=True)
class Preset:
    """How datapoints are built where the presets disagree.

    - `single_in_train`: share of training datapoints built with single occurrences, as evaluation data are.
    - `exclusion_hits_relevant`: tasks whose randomly excluded features may be relevant ones.
    - `missing_named_first`: in T2 negatives with one feature, the missing one is named first (artefact A1).
    - `none_share`: share of T6 and T7 negatives without wrong order that show neither feature of the pair.
    - `other_pair`: in T5 and T7 `released` (free in training positives, avoids tokens in T7 negatives), `background`
      (one feature blocked, the other background) or `balanced` (one absent, the other absent or forced once).
    - `wrong_order`: how extra occurrences in wrong-order negatives are kept from setting the right order.
    """

    single_in_train: float
    exclusion_hits_relevant: frozenset[str]
    missing_named_first: bool
    none_share: float
    other_pair: Literal["released", "background", "balanced"]
    wrong_order: Literal["scan", "cut"]


PRESETS: dict[PresetName, Preset] = {
    "clean": Preset(0.0, frozenset(), False, 0.0, "balanced", "cut"),
    "released": Preset(0.10, frozenset({"T3", "T4", "T5", "T6", "T7"}), True, 0.0, "released", "scan"),
    "paper": Preset(0.0, frozenset(), False, 1 / 2, "background", "cut"),
}

_RELEASED_RANGES = {"T1": (1, 6), "T2": (2, 6), "T3": (2, 6), "T4": (2, 5), "T5": (2, 5)}
_CLEAN_LOWEST = {"T1": 1, "T2": 2, "T3": 2, "T4": 2, "T5": 4, "T6": 2, "T7": 4}


def exclusion_range(
    preset: PresetName, balance: Balance, kind: str, missing: Ints, blocked: Ints, free_positive: Bools
) -> tuple[Ints, Ints]:
    """Lowest and highest number of randomly excluded features, each (B,); below zero counts as zero.

    `missing` features of the chosen pair and `blocked` ones of the other pair are excluded anyway, so they count.
    """
    zero = np.zeros_like(missing)
    if preset == "released":
        if kind in ("T6", "T7"):
            return zero + 2, 6 - missing - blocked
        low, high = _RELEASED_RANGES[kind]
        # T5 positives of the free regime leave the other pair alone and draw from a longer range.
        return low - missing, high - missing + (free_positive if kind == "T5" else 0)
    if balance == "aware":
        return zero + 1, zero + 6
    lowest = 1 if preset == "paper" else _CLEAN_LOWEST[kind]
    return lowest - missing - blocked, 6 - missing - blocked

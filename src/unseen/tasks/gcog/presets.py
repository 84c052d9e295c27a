"""The two presets, field by field: sound data, and what the published code does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from unseen.tasks.gcog.solver import Ties

PresetName = Literal["clean", "released"]
SplitName = Literal["clean", "released", "released-minus-leak"]


@dataclass(frozen=True)
class Preset:
    """What differs between the presets besides their generators.

    - `distractors`: how many are asked for;
    - `mixed_distractors`: the same where depths are mixed;
    - `two_objects`: how often a parity operator of a tree is about two objects;
    - `split`: how operators and objects are divided;
    - `masked`: whether padding is marked, or only zeros;
    - `unnamed`: the code of a feature that a question does not name;
    - `ties`: what counts where several objects fit.
    """

    distractors: tuple[int, int]
    mixed_distractors: tuple[int, int]
    two_objects: float
    split: SplitName
    masked: bool
    unnamed: int
    ties: Ties


PRESETS: dict[PresetName, Preset] = {
    "clean": Preset((1, 5), (1, 5), 0.0, "clean", True, 0, "error"),
    # Joining depths forgets the distractors; an unnamed feature is written as 1, which is also a or red.
    "released": Preset((0, 5), (0, 0), 0.5, "released", False, 1, "smallest"),
}

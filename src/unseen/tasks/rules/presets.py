"""What the two presets disagree about; each is also an option of its own (D1, D2, D6)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

PresetName = Literal["clean", "paper"]
Setting = Literal["classification", "regression"]
Answer = Literal["state", "readout"]


@dataclass(frozen=True)
class Preset:
    """Clean follows the authors' program without its bugs, paper the text to the letter.

    - `amplitude`: by how much all normal inputs are multiplied out of distribution (D1: N(0, 2 I) is a variance).
    - `nearest`: whether search 2 of rules/mha finds the nearest token or the one with the least product (D2).
    - `target`: what rules/rnn asks for in regression (D6).
    """

    amplitude: float
    nearest: bool
    target: Answer


PRESETS: dict[PresetName, Preset] = {
    "clean": Preset(2.0, True, "state"),
    "paper": Preset(math.sqrt(2), False, "readout"),
}

"""The three presets, field by field: where clean data, the released code and the paper's text differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from unseen.tasks.ctl.lots import Sampling

PresetName = Literal["clean", "released", "paper"]
Include = Literal["singles", "pairs", "both", "none"]


@dataclass(frozen=True)
class Preset:
    """How the training set is made where the presets disagree.

    - `sampling`: step by step as the code does, or uniform over examples (they differ in S alone);
    - `include`: which short examples are always in training;
    - `include_staged`: the same for S;
    - `counted`: whether these count in the size of the training set, or come on top, repeats kept;
    - `disjoint`: whether IID examples are kept out of the whole training set, or only of its drawn part;
    - `estimate`: whether lengths are shared out by the code's estimate of how many examples exist, or exactly.
    """

    sampling: Sampling
    include: Include
    include_staged: Include
    counted: bool
    disjoint: bool
    estimate: bool


PRESETS: dict[PresetName, Preset] = {
    "clean": Preset("uniform", "singles", "none", counted=True, disjoint=True, estimate=False),
    "released": Preset("stepwise", "pairs", "pairs", counted=False, disjoint=False, estimate=True),
    "paper": Preset("stepwise", "singles", "none", counted=True, disjoint=True, estimate=False),
}

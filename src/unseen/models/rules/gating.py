"""The options that the three models have in common. What the gatings mean: `unseen.models.layers.gating`."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from unseen.config import Config
from unseen.models.layers.gating import Gating
from unseen.models.rules.widths import Match


class GatingOptions(Config):
    """What the three models have in common.

    `width` is the encoder's e; the `core` is four times as wide unless given. `modules`: as many as rules unless given;
    there is one without gating. `partition` is the module of each rule under gating `truth`: rule modulo modules unless
    given. `match` says how modular models get about as many parameters as the monolithic one: by the authors'
    equations, or `exact`ly, as far as whole widths allow.
    """

    gating: Gating = "joint"
    width: int = Field(32, ge=2)
    core: int | None = Field(None, ge=2)
    modules: int | None = Field(None, ge=1)
    partition: tuple[int, ...] | None = None
    match: Match = "reference"

    @model_validator(mode="after")
    def _partition_needs_truth(self) -> Self:
        if self.partition is not None and self.gating != "truth":
            raise ValueError(f"gating '{self.gating}' has no partition: leave it out, or choose gating 'truth'")
        return self

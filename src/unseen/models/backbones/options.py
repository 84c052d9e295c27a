"""The options that all backbones share."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator

from unseen.config import Config
from unseen.models.layers.positions import Scheme

MatchBy = Literal["parameters", "state", "flops"]


class Matched(BaseModel):
    """The quantity by which a width was chosen, and the number that was asked for: see `unseen.models.matching`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: MatchBy
    to: PositiveInt


class BackboneOptions(Config):
    """`matched` records how `match` chose the width, if it did; it changes nothing else."""

    width: int = Field(128, ge=2)
    dropout: float = Field(0.1, ge=0, lt=1)
    matched: Matched | None = None


class PlacedOptions(BackboneOptions):
    """`places`: the number of positions of a sequence in the table of learned positions, by default that of the spec."""

    positions: Scheme = "sinusoidal"
    places: int | None = Field(
        None, ge=1, description="positions in the table of learned positions; None: those of the task"
    )

    @model_validator(mode="after")
    def _check_places(self) -> Self:
        if self.places is not None and self.positions != "learned":
            raise ValueError(
                f"positions '{self.positions}' have no position table: remove `places`, or set positions='learned'"
            )
        return self

"""What the options of all backbones have in common."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator

from unseen.config import Config
from unseen.models.layers.positions import Scheme

By = Literal["parameters", "state", "flops"]


class Matched(BaseModel):
    """What a width was chosen by, and the number asked for: see `unseen.models.matching`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: By
    to: PositiveInt


class BackboneOptions(Config):
    """`matched` says why the width is what it is, if `match` has chosen it; it changes nothing else."""

    width: int = Field(128, ge=2)
    dropout: float = Field(0.1, ge=0, lt=1)
    matched: Matched | None = None


class PlacedOptions(BackboneOptions):
    """`places`: how many places of a sequence learned positions are for; as many as it has in training unless given."""

    positions: Scheme = "sinusoidal"
    places: int | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _places_are_learned(self) -> Self:
        if self.places is not None and self.positions != "learned":
            raise ValueError(
                f"positions '{self.positions}' have no table of places: leave out places, or choose positions 'learned'"
            )
        return self

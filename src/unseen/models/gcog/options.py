"""The options that the gcog Transformers share."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from unseen.config import Config
from unseen.models.gcog.streams import RULE_PLACES
from unseen.models.layers.distances import DistanceTable


class TransformerOptions(Config):
    """Sizes and switches; `width` is that of tokens, `hidden` that of what follows the blocks.

    `positions`: sinusoidal codes, or a learned vector per distance, of the rule in models with two streams. `causal`
    bars later tokens under relative positions, as released. `pos_dropout` acts on the sum of token and code: 0.1 as
    released. `pad_mask`: whether a mask is used where there is one, and a rule is read at its end token; if not,
    padding is looked at, and the last row is read.
    """

    width: int = Field(256, ge=2)
    hidden: int = Field(512, ge=2)
    positions: Literal["absolute", "relative"] = "absolute"
    causal: bool = True
    pos_dropout: float = Field(0.0, ge=0, lt=1)
    pad_mask: bool = True

    @model_validator(mode="after")
    def _causal_is_relative(self) -> Self:
        if not self.causal and self.positions == "absolute":
            raise ValueError("causal=false belongs to positions=relative; absolute positions never bar later tokens")
        return self

    @property
    def absolute(self) -> bool:
        """Whether tokens get codes of their places."""
        return self.positions == "absolute"

    def table(self, heads: int = 1, more_places: int = 0) -> DistanceTable | None:
        """The distances in a rule and in what follows it, if positions are relative."""
        if self.absolute:
            return None
        return DistanceTable(RULE_PLACES + more_places, self.width // heads, causal=self.causal)


class JointOptions(TransformerOptions):
    """`stim_position`: the stimulus follows the rule, or always begins at place 100."""

    stim_position: Literal["following", "fixed"] = "following"

    @model_validator(mode="after")
    def _only_absolute(self) -> Self:
        if not self.absolute and (self.stim_position == "fixed" or self.pos_dropout):
            raise ValueError(
                "stim_position=fixed and pos_dropout belong to positions=absolute: without codes there is "
                "nothing to move or drop"
            )
        return self

    @property
    def start(self) -> int | None:
        """Where the stimulus begins, if that is fixed."""
        return RULE_PLACES if self.stim_position == "fixed" else None

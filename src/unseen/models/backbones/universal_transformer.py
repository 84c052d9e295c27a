"""A universal Transformer for any task."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from unseen.models.backbones.attentive import Attentive, AttentiveOptions
from unseen.models.layers.positions import Scheme
from unseen.spec import Spec


class UniversalTransformer(Attentive):
    """One layer of self-attention and feed-forward, applied again and again; see `Attentive`."""

    class Options(AttentiveOptions):
        """See `AttentiveOptions`; `layers` is how often the layer is applied."""

        name: Literal["universal-transformer"] = "universal-transformer"
        layers: int = Field(4, ge=1)
        positions: Scheme = "relative"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__(options, spec, shared=True)

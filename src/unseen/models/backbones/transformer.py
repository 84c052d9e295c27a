"""A Transformer encoder for any task."""

from __future__ import annotations

from typing import Literal

from unseen.models.backbones.attentive import Attentive, AttentiveOptions
from unseen.spec import Spec


class Transformer(Attentive):
    """Layers of self-attention and feed-forward, each with weights of its own; see `Attentive`."""

    class Options(AttentiveOptions):
        """See `AttentiveOptions`."""

        name: Literal["transformer"] = "transformer"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__(options, spec, shared=False)

"""A GRU for any task."""

from __future__ import annotations

from typing import Literal

from unseen.models.backbones.recurrent import Recurrent, RecurrentOptions
from unseen.models.layers.gru import gated
from unseen.models.layers.steps import Stepwise
from unseen.spec import Spec


class GRU(Recurrent):
    """The gated recurrent unit, the reset gate inside the tanh; see `Recurrent`."""

    class Options(RecurrentOptions):
        """See `RecurrentOptions`."""

        name: Literal["gru"] = "gru"

    def __init__(self, options: Options, spec: Spec) -> None:
        width = options.width
        super().__init__(options, spec, lambda: Stepwise(width, width, 3, gated, options.layers, options.dropout))

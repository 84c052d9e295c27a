"""An LSTM for any task."""

from __future__ import annotations

from typing import Literal

from unseen.models.backbones.recurrent import Recurrent, RecurrentOptions
from unseen.models.layers.recurrence import Recurrence
from unseen.spec import Spec


class LSTM(Recurrent):
    """Long short-term memory; see `Recurrent`."""

    class Options(RecurrentOptions):
        """See `RecurrentOptions`."""

        name: Literal["lstm"] = "lstm"

    def __init__(self, options: Options, spec: Spec) -> None:
        width = options.width
        super().__init__(options, spec, lambda: Recurrence(width, width, options.layers, options.dropout))

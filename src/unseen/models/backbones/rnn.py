"""Elman's RNN for any task."""

from __future__ import annotations

from typing import Literal

from unseen.models.backbones.recurrent import Recurrent, RecurrentOptions
from unseen.models.layers.steps import Activation, Stepwise, elman
from unseen.spec import Spec


class RNN(Recurrent):
    """The plain recurrent network, h = activation(inputs + W h); see `Recurrent`."""

    class Options(RecurrentOptions):
        """See `RecurrentOptions`."""

        name: Literal["rnn"] = "rnn"
        activation: Activation = "tanh"

    def __init__(self, options: Options, spec: Spec) -> None:
        width, step = options.width, elman(options.activation)
        super().__init__(options, spec, lambda: Stepwise(width, width, 1, step, options.layers, options.dropout))

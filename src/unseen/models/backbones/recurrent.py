"""What the recurrent backbones have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import Field
from torch import Tensor, nn

from unseen.models.backbones.options import BackboneOptions
from unseen.models.layers.embed import Embed
from unseen.models.layers.readout import ReadOut
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Spec


class RecurrentOptions(BackboneOptions):
    """Dropout acts on the embedding and between layers."""

    layers: int = Field(1, ge=1)


class Recurrent(nn.Module):
    """Embed, recur, read out; padding is passed over. Traces: `encoder.state`, for all tokens, and `readout.state`.

    It reads from left to right: a prediction along a stream knows nothing of later tokens.
    """

    def __init__(self, options: RecurrentOptions, spec: Spec, recurrence: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.dropout = options.dropout
        self.embed = Embed(spec, options.width)
        self.recurrence = recurrence()
        self.read_out = ReadOut(spec, options.width)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """The prediction in the shape of the target, logits for binary and category."""
        tokens = self.embed(inputs)
        states = self.recurrence(tape.dropout(tokens.states, self.dropout), tokens.mask, tape=tape)
        tape.keep("encoder.state", states)
        prediction: Tensor = self.read_out(states[:, tokens.read], tape)
        return prediction

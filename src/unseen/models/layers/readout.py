"""From states to a prediction in the shape of the target."""

from __future__ import annotations

from torch import Tensor, nn

from unseen.models.layers.linear import Linear
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Spec


class ReadOut(nn.Module):
    """A linear map of the states at `Tokens.read`: (B, T, width) → (B, T, target), or (B, target) if it is given once.

    Binary targets get one logit per bit, categories one per value, real ones the number. Keeps what the map is given,
    `readout.state`.
    """

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.once = spec.target.along is None
        self.project = Linear(width, spec.target.width)

    def forward(self, states: Tensor, tape: Tape = NO_TAPE) -> Tensor:
        read = states[:, -1] if self.once else states
        tape.keep("readout.state", read)
        prediction: Tensor = self.project(read)
        return prediction

"""Any module that maps a sequence of vectors to one, as a model on every task."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from unseen.config import Config
from unseen.errors import UsageError
from unseen.models.layers.embed import Embed
from unseen.models.layers.gather import spread
from unseen.models.layers.readout import ReadOut
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Spec

MASKS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "src_key_padding_mask": torch.logical_not,
    "key_padding_mask": torch.logical_not,
    "attention_mask": Tensor.long,
    "mask": Tensor.bool,
}
"""Arguments by which a core may ask for the mask, the first that it has being taken, and what each means by it."""


class Adapter(nn.Module):
    """Embed, core, read out. A subclass says what the core is: `(B, T, width) → (B, T, width)`.

        class Mine(unseen.Adapter):
            def core(self, width):
                return nn.LSTM(width, width, batch_first=True)

    Options of its own are those of a nested `class Options(unseen.Adapter.Options)`, found in `self.options`. Padding
    is moved behind all real tokens before the core sees them, so that one that reads from left to right needs no mask.
    Traces: `encoder.state`, for all tokens, and `readout.state`.
    """

    class Options(Config):
        """`positions` are added to the tokens, also for a core that knows order: most do not."""

        name: str = "adapter"
        width: int = Field(128, ge=2)
        positions: Literal["none", "sinusoidal", "learned"] = "sinusoidal"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        self.options = options
        self.embed = Embed(spec, options.width, options.positions)
        self.inner = self.core(options.width)
        if not isinstance(self.inner, nn.Module):
            raise UsageError(f"{type(self).__name__}.core must return an nn.Module, got {self.inner!r}")
        self.read_out = ReadOut(spec, options.width)

    def core(self, width: int) -> nn.Module:
        """The module between embedding and read-out."""
        raise UsageError(f"{type(self).__name__} has no core: define core(self, width), which returns an nn.Module")

    def call(self, core: nn.Module, states: Tensor, mask: Tensor | None) -> Any:
        """What the core makes of the tokens (B, T, width); `mask` (B, T) is true where they are real, None: all are.

        Here the mask is given under the name by which the core asks for it (`MASKS`). Of a tuple the first is taken.
        """
        wanted = [name for name in MASKS if name in inspect.signature(core.forward).parameters]
        if mask is None or not wanted:
            return core(states)
        return core(states, **{wanted[0]: MASKS[wanted[0]](mask)})

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """The prediction in the shape of the target, logits for binary and category."""
        tokens = self.embed(inputs)
        states, mask = tokens.states, tokens.mask
        if mask is None:
            states = self._states(self.call(self.inner, states, None), states)
        else:
            order = torch.argsort((~mask).to(torch.uint8), dim=1, stable=True)
            given = spread(states, order)
            found = self._states(self.call(self.inner, given, mask.take_along_dim(order, 1)), given)
            states = spread(found, torch.argsort(order, dim=1))
        tape.keep("encoder.state", states)
        prediction: Tensor = self.read_out(states[:, tokens.read], tape)
        return prediction

    def _states(self, found: Any, given: Tensor) -> Tensor:
        """The core's states, if they are as many and as wide as what it was given."""
        states = found[0] if isinstance(found, tuple) else found
        if not isinstance(states, Tensor) or states.shape != given.shape:
            what = f"shape {tuple(states.shape)}" if isinstance(states, Tensor) else f"a {type(states).__name__}"
            raise UsageError(
                f"the core of {type(self).__name__} returned {what}; expected a tensor of the shape it "
                f"was given, (batch, tokens, width) = {tuple(given.shape)}. Override call(core, states, "
                "mask) to take the right part"
            )
        return states

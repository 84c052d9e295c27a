"""The adapter: any module that maps a sequence of vectors to another, as a model for every task."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from unseen.config import Config
from unseen.errors import UsageError
from unseen.models.context import NO_CONTEXT, Context
from unseen.models.layers.embedding import Embed, ReadOut, take_tokens
from unseen.spec import Spec

MASKS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "src_key_padding_mask": torch.logical_not,
    "key_padding_mask": torch.logical_not,
    "attention_mask": Tensor.long,
    "mask": Tensor.bool,
}
"""The argument names under which a core may take the mask (the first that it has is used), and the form each expects."""


class Adapter(nn.Module):
    """Embed, core, read out. A subclass defines the core: `(B, T, width) → (B, T, width)`.

        class Mine(unseen.Adapter):
            def core(self, width):
                return nn.LSTM(width, width, batch_first=True)

    Its own options are those of a nested `class Options(unseen.Adapter.Options)`, available as `self.options`. Padding is
    moved behind all real tokens before the core reads them, so that a core that reads from left to right needs no mask.
    Captured activations: `encoder.state`, for all tokens, and `readout.state`.
    """

    class Options(Config):
        """`positions` are added to the tokens, even if the core knows their order, because most do not."""

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
        """Call the core on the tokens (B, T, width); `mask` (B, T) is true where they are real, or None if all are.

        The mask is passed under the first argument name of `MASKS` that the core has. If the core returns a tuple, its
        first element is used.
        """
        arguments = inspect.signature(core.forward).parameters
        mask_name = next((name for name in MASKS if name in arguments), None)
        if mask is None or mask_name is None:
            return core(states)
        return core(states, **{mask_name: MASKS[mask_name](mask)})

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """The prediction in the shape of the target, logits for binary and category targets."""
        tokens = self.embed(inputs)
        states, mask = tokens.states, tokens.mask
        if mask is None:
            states = self._states(self.call(self.inner, states, None), states)
        else:
            # Real tokens first, in their order: a stable sort by padding. Its inverse puts the states back.
            order = torch.argsort((~mask).to(torch.uint8), dim=1, stable=True)
            moved = take_tokens(states, order)
            moved = self._states(self.call(self.inner, moved, mask.take_along_dim(order, 1)), moved)
            states = take_tokens(moved, torch.argsort(order, dim=1))
        states = ctx.capture("encoder.state", states)
        prediction: Tensor = self.read_out(states[:, tokens.read], ctx)
        return prediction

    def _states(self, returned: Any, tokens: Tensor) -> Tensor:
        """The states that the core returned, checked to have the shape of the tokens."""
        states = returned[0] if isinstance(returned, tuple) else returned
        if not isinstance(states, Tensor) or states.shape != tokens.shape:
            result = f"shape {tuple(states.shape)}" if isinstance(states, Tensor) else f"a {type(states).__name__}"
            raise UsageError(
                f"the core of {type(self).__name__} returned {result}; expected a tensor of the shape it "
                f"was given, (batch, tokens, width) = {tuple(tokens.shape)}. Override call(core, states, "
                "mask) to take the right part"
            )
        return states

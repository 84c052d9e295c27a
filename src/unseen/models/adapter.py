"""The adapter: any module that maps a sequence of vectors to another, as a model for every task."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
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
    Captured activations: `encoder.state`, for all tokens, and `readout.state`; a core with routers reports their weights
    by `capture_gating`.
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

    def call(self, core: nn.Module, states: Tensor, mask: Tensor | None, ctx: Context = NO_CONTEXT) -> Any:
        """Call the core on the tokens (B, T, width); `mask` (B, T) is true where they are real, or None if all are.

        The mask is passed under the first argument name of `MASKS` that the core has, the context (dropout, captured
        activations) as `ctx` if the core has such an argument. If the core returns a tuple, its first element is used.
        An override without the argument `ctx` is called without it.
        """
        arguments = inspect.signature(core.forward).parameters
        options: dict[str, Any] = {"ctx": ctx} if "ctx" in arguments else {}
        mask_name = next((name for name in MASKS if name in arguments), None)
        if mask is not None and mask_name is not None:
            options[mask_name] = MASKS[mask_name](mask)
        return core(states, **options)

    def capture_gating(self, weights: Tensor, ctx: Context) -> Tensor:
        """Report the weights of a router (B, T, modules) as `gating.weights`; returns the weights to mix the modules by.

        What is reported is about the tokens that have a rule: of `rules/mlp`, where the rule is given once, the token of
        the fields given once, (B, modules); of `rules/mha` and `rules/rnn` the tokens of the stream, (B, N, modules).
        The read-out token has none. Where a task pads its streams, nothing is reported: tokens are then in another
        order inside the core.
        """
        spec = self.embed.spec
        if any(field.kind == "mask" for field in spec.inputs):
            return weights
        stream = rule_stream(spec, self.embed.order)
        before = self.embed.order[: self.embed.order.index(stream)]
        start = sum(1 if name is None else spec.stream(name).length for name in before)
        if stream is None:
            tokens: slice | int = start
        else:
            # The stream may be longer here than in training; the number of other tokens never changes.
            others = sum(1 if name is None else spec.stream(name).length for name in self.embed.order if name != stream)
            others += self.embed.read is not None
            tokens = slice(start, start + weights.shape[1] - others)
        visible = weights[:, tokens]
        replaced = ctx.capture("gating.weights", visible)
        if replaced is visible:
            return weights
        weights = weights.clone()
        weights[:, tokens] = replaced
        return weights

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """The prediction in the shape of the target, logits for binary and category targets."""
        tokens = self.embed(inputs)
        states = tokens.states
        mask = tokens.mask
        if mask is None:
            states = self._states(self._call(states, None, ctx), states)
        else:
            # Real tokens first, in their order: a stable sort by padding. Its inverse puts the states back.
            order = torch.argsort((~mask).to(torch.uint8), dim=1, stable=True)
            moved = take_tokens(states, order)
            moved = self._states(self._call(moved, mask.take_along_dim(order, 1), ctx), moved)
            states = take_tokens(moved, torch.argsort(order, dim=1))
        states = ctx.capture("encoder.state", states)
        return self.read_out(states[:, tokens.read], ctx)

    def _call(self, states: Tensor, mask: Tensor | None, ctx: Context) -> Any:
        if "ctx" in inspect.signature(self.call).parameters:
            return self.call(self.inner, states, mask, ctx)
        return self.call(self.inner, states, mask)

    def _states(self, returned: Any, tokens: Tensor) -> Tensor:
        """The states that the core returned, checked to have the shape of the tokens."""
        states = returned[0] if isinstance(returned, tuple) else returned
        if not isinstance(states, Tensor) or states.shape != tokens.shape:
            result = f"shape {tuple(states.shape)}" if isinstance(states, Tensor) else f"a {type(states).__name__}"
            raise UsageError(
                f"the core of {type(self).__name__} returned {result}; expected a tensor of the shape it "
                f"was given, (batch, tokens, width) = {tuple(tokens.shape)}. Override call(core, states, "
                "mask, ctx) to take the right part"
            )
        return states


def rule_stream(spec: Spec, order: Sequence[str | None]) -> str | None:
    """The stream along which the task's symbols (its rules) lie, None for the fields given once: the first in this order
    that has a category, or the first of all.

    >>> from unseen.spec import Field, Target
    >>> rule_stream(Spec((), (Field("x", "real", 2), Field("rule", "category", 4)), Target("binary")), [None]) is None
    True
    """
    for stream in order:
        if any(field.kind == "category" for field in spec.along(stream)):
            return stream
    return order[0]

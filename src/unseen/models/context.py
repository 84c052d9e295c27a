"""The context of a forward pass: the only source of its randomness, and where it reports intermediates."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor

from unseen.errors import UsageError

_LANES = 1 << 16
"""The number of values of a 16-bit lane of dropout bits."""


class Context:
    """Hands out dropout masks in call order and collects the activations that were asked for.

    `bits` is a flat tensor of 16-bit lanes (int16), drawn by the caller from a named stream. Without it dropout is the
    identity: modules have no train or eval mode. A layer that is applied eight times gets eight masks. `wanted` names the
    activations to collect in `captured`.

    >>> ctx = Context(wanted=["encoder.state"])
    >>> x = ctx.capture("encoder.state", torch.ones(2))
    >>> ctx.captured["encoder.state"]
    tensor([1., 1.])
    """

    def __init__(self, bits: Tensor | None = None, wanted: Collection[str] = ()) -> None:
        self.bits = bits
        self.used = 0
        self.wanted = frozenset(wanted)
        self.captured: dict[str, Tensor] = {}

    @property
    def training(self) -> bool:
        """Whether this is a pass of training: it has dropout bits, even if none are needed."""
        return self.bits is not None

    def dropout(self, x: Tensor, p: float, *, scaled: bool = True) -> Tensor:
        """`x` with each entry dropped with probability p (a multiple of 2**-16); if `scaled`, the others are scaled up."""
        mask = self._mask(x, p, scaled)
        return x if mask is None else x * mask

    def add_dropped(self, x: Tensor, added: Tensor, p: float) -> Tensor:
        """x + dropout(added), in one pass over memory where product and sum would take two."""
        mask = self._mask(added, p)
        return x + added if mask is None else torch.addcmul(x, added, mask)

    def capture(self, name: str, value: Tensor) -> Tensor:
        """Report an intermediate under a name and return the value to continue with.

        Always continue with the result, `x = ctx.capture("encoder.state", x)`, so that an analysis can replace the value.
        """
        if name in self.wanted:
            self.captured[name] = value
        return value

    def _mask(self, x: Tensor, p: float, scaled: bool = True) -> Tensor | None:
        """The factor of each entry; None if all entries stay as they are."""
        dropped = _dropped_lanes(p)
        if self.bits is None or dropped == 0:
            return None
        start = self.used
        self.used += x.numel()
        if self.used > len(self.bits):
            raise UsageError(
                f"the context has {len(self.bits)} dropout lanes, {self.used} are needed so far; count them "
                "with a CountingContext on inputs of the same shape"
            )
        lanes = self.bits[start : self.used].view(x.shape)
        # 1 where the lane is at least `first`, else 0, by clamping to two neighbouring integers: comparing to booleans
        # and converting back costs three times as much.
        first = dropped - _LANES // 2
        mask = lanes.clamp(first - 1, first).sub_(first - 1).to(x.dtype)
        return mask.mul_(_LANES / (_LANES - dropped)) if scaled else mask


class CountingContext(Context):
    """Counts the dropout lanes that a pass of training (or of evaluation) needs, without dropping anything.

    `names` lists the activations that the pass can capture.
    """

    def __init__(self, *, training: bool = True) -> None:
        super().__init__()
        self._training = training
        self.names: list[str] = []

    @property
    def training(self) -> bool:
        return self._training

    def capture(self, name: str, value: Tensor) -> Tensor:
        self.names.append(name)
        return value

    def _mask(self, x: Tensor, p: float, scaled: bool = True) -> None:
        if _dropped_lanes(p):
            self.used += x.numel()


def _dropped_lanes(p: float) -> int:
    """The number of the 2**16 values of a lane for which an entry is dropped; never all."""
    return min(round(p * _LANES), _LANES - 1)


NO_CONTEXT = Context()

__all__ = ["NO_CONTEXT", "Context", "CountingContext"]

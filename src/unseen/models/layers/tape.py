"""The tape: the only way into a forward pass for randomness, the only way out for intermediates."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor

from unseen.errors import UsageError

_LANES = 1 << 16


class Tape:
    """Hands out dropout bits in call order and keeps the intermediates somebody asked for.

    `bits` is a flat tensor of 16-bit lanes (int16), drawn outside by a named stream. Without it dropout is the
    identity: modules have no train or eval mode. A layer applied eight times gets eight masks.
    """

    def __init__(self, bits: Tensor | None = None, wanted: Collection[str] = ()) -> None:
        self.bits, self.used = bits, 0
        self.wanted = frozenset(wanted)
        self.kept: dict[str, Tensor] = {}

    @property
    def training(self) -> bool:
        """Whether this is a pass of training: it was given dropout bits, even if none are needed."""
        return self.bits is not None

    def dropout(self, x: Tensor, p: float, *, scaled: bool = True) -> Tensor:
        """`x` with each entry dropped with probability p (a multiple of 2**-16) and the rest scaled up if `scaled`."""
        kept = self._kept(x, p, scaled)
        return x if kept is None else x * kept

    def onto(self, x: Tensor, added: Tensor, p: float) -> Tensor:
        """`x` plus what dropout leaves of `added`, in one pass over memory where sum and product would be two."""
        kept = self._kept(added, p)
        return x + added if kept is None else torch.addcmul(x, added, kept)

    def _kept(self, x: Tensor, p: float, scaled: bool = True) -> Tensor | None:
        """What to multiply each entry with; None if all are kept."""
        dropped = _dropped(p)
        if self.bits is None or dropped == 0:
            return None
        start, self.used = self.used, self.used + x.numel()
        if self.used > len(self.bits):
            raise UsageError(
                f"the tape has {len(self.bits)} dropout lanes, {self.used} are needed so far; count them "
                "with a CountingTape on inputs of the same shape"
            )
        lanes = self.bits[start : self.used].view(x.shape)
        # 1 where the lane is at least `first`, else 0. Comparing to booleans and back costs three times as much.
        first = dropped - _LANES // 2
        kept = lanes.clamp(first - 1, first).sub_(first - 1).to(x.dtype)
        return kept.mul_(_LANES / (_LANES - dropped)) if scaled else kept

    def keep(self, name: str, value: Tensor) -> None:
        """Keep an intermediate under a name, if it was asked for."""
        if name in self.wanted:
            self.kept[name] = value


class CountingTape(Tape):
    """Counts the lanes a pass of training (or of evaluation) takes, and hands out none; notes every name it could keep."""

    def __init__(self, *, training: bool = True) -> None:
        super().__init__()
        self._training = training
        self.names: list[str] = []

    @property
    def training(self) -> bool:
        return self._training

    def _kept(self, x: Tensor, p: float, scaled: bool = True) -> None:
        if _dropped(p):
            self.used += x.numel()

    def keep(self, name: str, value: Tensor) -> None:
        self.names.append(name)


def _dropped(p: float) -> int:
    """How many of the 2**16 values of a lane mean that the entry is dropped; never all."""
    return min(round(p * _LANES), _LANES - 1)


NO_TAPE = Tape()

__all__ = ["NO_TAPE", "CountingTape", "Tape"]

"""The tape: the only way into a forward pass for randomness, the only way out for intermediates."""

from __future__ import annotations

from collections.abc import Collection

from torch import Tensor

_LANES = 1 << 16


class Tape:
    """Hands out dropout bits in call order and keeps the intermediates somebody asked for.

    `bits` is a flat tensor of 16-bit lanes (int16), drawn outside by a named stream. Without it dropout is the identity:
    there is no train or eval mode. A layer applied eight times gets eight masks.
    """

    def __init__(self, bits: Tensor | None = None, wanted: Collection[str] = ()) -> None:
        self.bits, self.used = bits, 0
        self.wanted = frozenset(wanted)
        self.kept: dict[str, Tensor] = {}

    def dropout(self, x: Tensor, p: float) -> Tensor:
        """`x` with each entry dropped with probability p (a multiple of 2**-16) and the rest scaled up."""
        if self.bits is None or p == 0:
            return x
        count, threshold = x.numel(), round(p * _LANES)
        lanes = self.bits[self.used : self.used + count].view(x.shape)
        self.used += count
        kept = (lanes >= threshold - _LANES // 2).to(x.dtype)
        return x * (kept * (_LANES / (_LANES - threshold)))

    def keep(self, name: str, value: Tensor) -> None:
        """Keep an intermediate under a name, if it was asked for."""
        if name in self.wanted:
            self.kept[name] = value


class CountingTape(Tape):
    """Counts the lanes a forward pass takes, and hands out none; notes every name it could keep."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def dropout(self, x: Tensor, p: float) -> Tensor:
        if p > 0:
            self.used += x.numel()
        return x

    def keep(self, name: str, value: Tensor) -> None:
        self.names.append(name)


NO_TAPE = Tape()

__all__ = ["NO_TAPE", "CountingTape", "Tape"]

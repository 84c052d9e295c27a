"""The error of a verdict, and how it is divided over planned looks at a growing number of units."""

from __future__ import annotations

from dataclasses import dataclass

ALPHA = 0.05
"""The one-sided error of a verdict."""


@dataclass(frozen=True)
class Look:
    """A number of units at which verdicts are formed, and the one-sided error that is spent there."""

    units: int
    alpha: float


LOOKS = (Look(3, 0.005), Look(5, 0.008), Look(8, 0.010), Look(12, 0.012), Look(20, 0.015))
"""The looks of a study that runs until its claims are decided; their errors add up to `ALPHA`."""

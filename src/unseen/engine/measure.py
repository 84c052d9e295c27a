"""What an evaluation leaves: one number at a time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """One number of one member: a metric on a condition, overall (`factor` empty) or at one level of a factor."""

    condition: str
    factor: str
    level: str
    metric: str
    value: float
    standard_error: float
    n: int

"""What a paper says itself of its seeds that fail: means of such runs are bounded through the share that succeeds."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from unseen.claims.evidence import Group


@dataclass(frozen=True)
class FailingSeeds:
    """A sentence of a paper (`quote`, at `source`): of runs with these columns some seeds exceed `level`, others do not.

    `metrics` are those in which they do, on a scale from 0 to 1. That none of a few seeds failed is then no evidence
    that the next one will not. What a kind of seed that was not seen would score is not known: it may lie anywhere on
    its side of the level.
    """

    columns: Mapping[str, tuple[Hashable, ...]]
    metrics: tuple[str, ...]
    level: float
    quote: str
    source: str

    def covers(self, group: Group) -> bool:
        """Whether runs of a group are among those that the sentence is about."""
        if group.metric not in self.metrics or group.factor:
            return False
        return all(set(group.columns.get(column, values)) & set(values) for column, values in self.columns.items())


@dataclass(frozen=True)
class TwoKinds:
    """Which draws succeeded, and the level that divides those that do from the others."""

    succeeded: NDArray[np.bool_]
    level: float

    @property
    def larger(self) -> NDArray[np.bool_]:
        """The draws of the kind that there are more of."""
        return self.succeeded if 2 * self.succeeded.sum() >= len(self.succeeded) else ~self.succeeded

    @property
    def unseen_range(self) -> tuple[float, float]:
        """Where the scores of the other kind may lie if none of it was seen."""
        return (0.0, self.level) if self.succeeded.all() else (self.level, 1.0)

"""Votes: in how many experiments each contestant is the best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from unseen.errors import UsageError


@dataclass(frozen=True)
class Votes:
    """The votes of each contestant, in the order of the columns, and the number of experiments that voted."""

    votes: tuple[float, ...]
    n: int

    @property
    def shares(self) -> tuple[float, ...]:
        """The votes over the number of experiments; NaN where there are none."""
        return tuple(vote / self.n if self.n else np.nan for vote in self.votes)


def votes(scores: ArrayLike) -> Votes:
    """Each experiment (row) gives one vote to its best, that is highest, score; equal ones share it equally.

    NaN is a contestant that did not run. A row of nothing but NaN does not vote. Negate scores of which low is good.

    >>> votes([[0.9, 0.8, 0.7], [0.9, 0.9, np.nan], [np.nan, np.nan, np.nan]])
    Votes(votes=(1.5, 0.5, 0.0), n=2)
    """
    given = np.asarray(scores, np.float64)
    if given.ndim != 2 or np.isinf(given).any():
        raise UsageError("votes expects an array (experiments, contestants) of scores, NaN for what did not run, got "
                         f"one of shape {given.shape}" + (" with infinite scores" if np.isinf(given).any() else ""))
    voting = given[~np.isnan(given).all(axis=1)]
    best = voting == np.nanmax(voting, axis=1, keepdims=True, initial=-np.inf)
    return Votes(tuple((best / best.sum(axis=1, keepdims=True)).sum(axis=0).tolist()), len(voting))

"""Votes: in how many experiments each contestant is the best, and in how many beyond the luck of the seeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from unseen.errors import UsageError
from unseen.stats.intervals import FEWEST, Floats, check_level
from unseen.stats.multiple import benjamini_hochberg


@dataclass(frozen=True)
class Votes:
    """The votes of each contestant, in the order of the columns, and the number of experiments that voted.

    `ties` counts the experiments whose vote was shared.
    """

    votes: tuple[float, ...]
    n: int
    ties: int = 0

    @property
    def shares(self) -> tuple[float, ...]:
        """The votes over the number of experiments; NaN where there are none."""
        return tuple(vote / self.n if self.n else np.nan for vote in self.votes)

    @property
    def undecided(self) -> int:
        """How many of the experiments gave their vote to nobody."""
        return round(self.n - sum(self.votes))


def votes(scores: ArrayLike) -> Votes:
    """Each experiment (row) gives one vote to its best, that is highest, score; equal ones share it equally.

    NaN is a contestant that did not run. A row of nothing but NaN does not vote. Negate scores of which low is good.

    >>> votes([[0.9, 0.8, 0.7], [0.9, 0.9, np.nan], [np.nan, np.nan, np.nan]])
    Votes(votes=(1.5, 0.5, 0.0), n=2, ties=1)
    """
    given = _table(scores, ("experiments", "contestants"))
    voting = given[~np.isnan(given).all(axis=1)]
    best = voting == np.nanmax(voting, axis=1, keepdims=True, initial=-np.inf)
    winners = best.sum(axis=1, keepdims=True)
    return Votes(tuple((best / winners).sum(axis=0).tolist()), len(voting), int(np.count_nonzero(winners > 1)))


def significant_votes(scores: ArrayLike, *, level: float = 0.95) -> Votes:
    """Votes of the experiments alone whose best contestant beats every other beyond the luck of the seeds.

    `scores` are (experiments, contestants, seeds), NaN for what did not run. On the seeds that all contestants of an
    experiment have, the one with the highest mean is held against each other one by a paired t test; the largest of
    these p values is the experiment's, adjusted by Benjamini and Hochberg over all experiments. (Five seeds can't
    reach 0.05 in a sign-flip test.) An experiment with fewer than 3 shared seeds is undecided, one without any does
    not vote.

    >>> clear, close = [[0.9, 0.91, 0.92], [0.7, 0.72, 0.71]], [[0.9, 0.8, 0.7], [0.7, 0.9, 0.79]]
    >>> found = significant_votes([clear, close])
    >>> found.votes, found.n, found.undecided
    ((1.0, 0.0), 2, 1)
    """
    check_level(level)
    given = _table(scores, ("experiments", "contestants", "seeds"))
    shared = np.all(np.isfinite(given), axis=1)
    given, shared = given[shared.any(axis=1)], shared[shared.any(axis=1)]
    best = np.where(shared[:, None], given, 0).sum(axis=2).argmax(axis=1)
    rivals = np.arange(given.shape[1]) != best[:, None]
    lead = np.take_along_axis(given, best[:, None, None], axis=1) - given
    p_values = np.where(rivals, _paired_t(np.where(shared[:, None], lead, np.nan)), 0).max(axis=1, initial=0)
    p_values = benjamini_hochberg(np.where(shared.sum(axis=1) < FEWEST, np.nan, p_values))
    winners = best[p_values <= 1 - level]
    return Votes(tuple(np.bincount(winners, minlength=given.shape[1]).astype(float).tolist()), len(given))


def _paired_t(lead: Floats) -> Floats:
    """The two-sided p value of differences (…, seeds) with a mean of zero or more; NaN: the seed does not count."""
    from scipy.special import stdtr  # inside, as wherever few calls need SciPy

    n = np.isfinite(lead).sum(axis=-1)
    mean = np.nanmean(lead, axis=-1)
    free = np.maximum(n - 1, 1)
    error = np.sqrt(np.nansum((lead - mean[..., None]) ** 2, axis=-1) / free / n)
    # Differences without spread: certain if there is one, no difference at all if it is zero.
    t = np.divide(mean, error, out=np.where(mean > 0, np.inf, 0.0), where=error > 0)
    found: Floats = 2 * stdtr(free, -t)
    return found


def _table(scores: ArrayLike, axes: tuple[str, ...]) -> Floats:
    given = np.asarray(scores, np.float64)
    if given.ndim != len(axes) or np.isinf(given).any():
        raise UsageError(
            f"expected an array ({', '.join(axes)}) of scores, NaN for what did not run, got "
            f"one of shape {given.shape}" + (" with infinite scores" if np.isinf(given).any() else "")
        )
    return given

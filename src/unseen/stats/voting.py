"""Votes: in how many experiments each contestant is the best, and in how many significantly over seeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from unseen.errors import UsageError
from unseen.stats.intervals import FEWEST, Floats, check_level
from unseen.stats.tests import benjamini_hochberg


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
        """The number of experiments without a winner."""
        return round(self.n - sum(self.votes))


def votes(scores: ArrayLike) -> Votes:
    """Each experiment (row) has one vote for its highest score; equal scores share it equally.

    NaN is a contestant that did not run; a row of NaN alone does not vote. Negate scores for which low is good.

    >>> votes([[0.9, 0.8, 0.7], [0.9, 0.9, np.nan], [np.nan, np.nan, np.nan]])
    Votes(votes=(1.5, 0.5, 0.0), n=2, ties=1)
    """
    table = _read_scores(scores, ("experiments", "contestants"))
    voting = table[~np.isnan(table).all(axis=1)]
    best = voting == np.nanmax(voting, axis=1, keepdims=True, initial=-np.inf)
    winners = best.sum(axis=1, keepdims=True)
    return Votes(tuple((best / winners).sum(axis=0).tolist()), len(voting), int(np.count_nonzero(winners > 1)))


def significant_votes(scores: ArrayLike, *, level: float = 0.95) -> Votes:
    """Votes of only those experiments whose best contestant beats every other significantly over seeds.

    `scores` are (experiments, contestants, seeds), NaN for runs that do not exist. On the seeds that all contestants of
    an experiment share, the contestant with the highest mean is compared with each other one by a paired t test; the
    largest of these p values is the experiment's, adjusted by Benjamini and Hochberg over all experiments. (Five seeds
    can't reach 0.05 in a sign-flip test.) An experiment with fewer than 3 shared seeds is undecided, one without any
    does not vote.

    >>> clear, close = [[0.9, 0.91, 0.92], [0.7, 0.72, 0.71]], [[0.9, 0.8, 0.7], [0.7, 0.9, 0.79]]
    >>> result = significant_votes([clear, close])
    >>> result.votes, result.n, result.undecided
    ((1.0, 0.0), 2, 1)
    """
    check_level(level)
    table = _read_scores(scores, ("experiments", "contestants", "seeds"))
    shared = np.all(np.isfinite(table), axis=1)
    votes_at_all = shared.any(axis=1)
    table = table[votes_at_all]
    shared = shared[votes_at_all]
    best = np.where(shared[:, None], table, 0).sum(axis=2).argmax(axis=1)
    rivals = np.arange(table.shape[1]) != best[:, None]
    lead = np.take_along_axis(table, best[:, None, None], axis=1) - table
    p_values = np.where(rivals, _paired_t(np.where(shared[:, None], lead, np.nan)), 0).max(axis=1, initial=0)
    p_values = benjamini_hochberg(np.where(shared.sum(axis=1) < FEWEST, np.nan, p_values))
    winners = best[p_values <= 1 - level]
    return Votes(tuple(np.bincount(winners, minlength=table.shape[1]).astype(float).tolist()), len(table))


def _paired_t(lead: Floats) -> Floats:
    """The two-sided p value of differences (…, seeds) with a mean ≥ 0; NaN marks seeds that do not count."""
    from scipy.special import stdtr  # inside, as wherever few calls need SciPy

    n = np.isfinite(lead).sum(axis=-1)
    mean = np.nanmean(lead, axis=-1)
    freedom = np.maximum(n - 1, 1)
    error = np.sqrt(np.nansum((lead - mean[..., None]) ** 2, axis=-1) / freedom / n)
    # Differences without spread: certain if they are positive, no difference at all if they are zero.
    t = np.divide(mean, error, out=np.where(mean > 0, np.inf, 0.0), where=error > 0)
    p_values: Floats = 2 * stdtr(freedom, -t)
    return p_values


def _read_scores(scores: ArrayLike, axes: tuple[str, ...]) -> Floats:
    table = np.asarray(scores, np.float64)
    if table.ndim != len(axes) or np.isinf(table).any():
        raise UsageError(
            f"expected an array ({', '.join(axes)}) of scores, NaN for runs that do not exist, got "
            f"one of shape {table.shape}" + (" with infinite scores" if np.isinf(table).any() else "")
        )
    return table

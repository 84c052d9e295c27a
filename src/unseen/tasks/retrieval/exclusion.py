"""Which features a datapoint leaves out altogether."""

from __future__ import annotations

import numpy as np

from unseen.randomness import Bools, Draws, Ints
from unseen.tasks.retrieval.presets import LARGEST_EXCLUSION


def draw_subsets(size: Ints, pool: Ints, draws: Draws) -> Ints:
    """Uniform subsets: row i has `size[i]` distinct numbers below `pool[i]`, then −1; (B, LARGEST_EXCLUSION).

    Floyd's method: the step that may pick up to j takes j itself if its pick is taken already.
    """
    step = np.arange(LARGEST_EXCLUSION)
    top = (pool - size)[:, None] + step
    picks = draws.integers(top + 1, top.shape)
    for j in range(1, LARGEST_EXCLUSION):
        taken = (picks[:, :j] == picks[:, j : j + 1]).any(axis=1)
        picks[:, j] = np.where(taken, top[:, j], picks[:, j])
    return np.where(step < size[:, None], picks, -1)


def draw_exclusion(roles: Ints, absent: Bools, size: Ints, hits_relevant: bool, features: int, draws: Draws) -> Bools:
    """The excluded features as a mask (B, F): the `absent` relevant ones (B, m) and `size` (B,) random ones.

    The random ones come from all features, or from those that are not relevant.
    """
    ordered = np.sort(roles, axis=1)
    # A feature that two pairs share must be skipped once: its second copy moves past the end.
    ordered[:, 1:] = np.where(ordered[:, 1:] == ordered[:, :-1], features, ordered[:, 1:])
    ordered = np.full_like(ordered, features) if hits_relevant else np.sort(ordered, axis=1)
    picks = draw_subsets(size, (ordered == features).sum(axis=1) + features - roles.shape[1], draws)
    valid = picks >= 0
    for column in ordered.T:
        picks += picks >= column[:, None]
    excluded = np.zeros((len(roles), features + 1), np.bool_)
    named = np.concatenate([np.where(absent, roles, features), np.where(valid, picks, features)], axis=1)
    np.put_along_axis(excluded, named, True, axis=1)
    return excluded[:, :features]

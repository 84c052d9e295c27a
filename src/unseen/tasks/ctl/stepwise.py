"""Step-wise sampling: a start symbol, then one function after the other, uniform over those that may come.

It is uniform over examples only where every state offers the same number of functions. Functions from which the
example could not be completed are left out, so there are no dead ends.
"""

from __future__ import annotations

import numpy as np

from unseen.errors import UsageError
from unseen.randomness import Draws, Floats, portable_log
from unseen.tasks.ctl.ranks import Ranks, Walks
from unseen.tasks.ctl.subsets import Numbers, number_type


def draw_walks(ranks: Ranks, draws: Draws, count: int, length: int) -> Walks:
    """Independent examples of one length, step by step; the same one may come again."""
    possible = np.flatnonzero(ranks.begins(length) > 0)
    start = possible[draws.integers(len(possible), count)]
    place, functions = start, np.empty((count, length), np.int64)
    for step in range(length):
        viable = ranks.viable(length - step)
        order = np.argsort(~viable, axis=1, kind="stable")  # the functions that may come, ascending, in front
        chosen = draws.integers(viable.sum(1)[place], count)
        functions[:, step] = order[place, chosen]
        place = ranks.after[place, functions[:, step]]
    return start, functions


def probabilities(ranks: Ranks, walks: Walks) -> Floats:
    """How likely each of these examples is to be drawn, among those of its length."""
    place, functions = walks
    length = functions.shape[1]
    found = np.full(len(place), 1 / max(1, int((ranks.begins(length) > 0).sum())))
    for step in range(length):
        viable = ranks.viable(length - step)
        found /= viable.sum(1)[place]
        place = ranks.after[place, functions[:, step]]
    return found


def draw_different(ranks: Ranks, draws: Draws, count: int, length: int, banned: Numbers) -> Numbers:
    """The numbers of `count` different examples, none of them banned, drawn step by step with repeats dropped.

    Where more than half of the examples would be used up, each gets the key log(u) / probability instead and the
    largest keys win: the same distribution, and it ends.
    """
    total = ranks.total(length)
    if count + len(banned) > total:
        raise UsageError(
            f"{count} different examples of {length} functions were asked for, {total - len(banned)} exist"
        )
    if 2 * (count + len(banned)) > total:
        numbers = np.setdiff1d(np.arange(total), banned)
        uniform = draws.uniform(len(numbers)) + 2.0**-54  # never zero
        keys = portable_log(uniform) / probabilities(ranks, ranks.unrank(numbers, length))
        return numbers[np.argsort(-keys, kind="stable")[:count]]
    found = np.empty(0, number_type(total))
    while len(found) < count:
        fresh = ranks.rank(*draw_walks(ranks, draws, 2 * (count - len(found)) + 16, length))
        joined = np.concatenate([found, fresh[~np.isin(fresh, banned)]])
        _, first = np.unique(joined, return_index=True)
        found = joined[np.sort(first)][:count]
    return found

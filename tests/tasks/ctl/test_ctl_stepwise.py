"""Step-wise sampling: its probabilities, dropping repeats, and the keys that take its place where much is used up."""

from __future__ import annotations

import numpy as np
import pytest
from ctl_worlds import STAGED, make
from scipy.stats import chisquare

from unseen.errors import UsageError
from unseen.randomness import stream
from unseen.tasks.ctl.language import walks
from unseen.tasks.ctl.ranks import Ranks
from unseen.tasks.ctl.stepwise import draw_different, draw_walks, probabilities

NOTHING = np.empty(0, np.int64)


def training(**options: object) -> Ranks:
    world = make("ctl/S", **{**STAGED, **options}).actual_world
    return Ranks(walks(world, "train"), world.tables)


def every(ranks: Ranks, length: int) -> tuple[np.ndarray, np.ndarray]:
    return ranks.unrank(np.arange(ranks.total(length)), length)


@pytest.mark.parametrize("length", [2, 4])
def test_probabilities_add_up_and_are_those_of_the_draws(length: int) -> None:
    ranks = training()
    chances = probabilities(ranks, every(ranks, length))
    assert chances.sum() == pytest.approx(1)
    drawn = draw_walks(ranks, stream("test", length).block(), 60_000, length)
    counts = np.bincount(ranks.rank(*drawn), minlength=ranks.total(length))
    assert chisquare(counts, chances * 60_000).pvalue > 0.001


def test_it_is_not_uniform_in_s_and_uniform_in_a() -> None:
    """The spread of the paper-size world: a factor of about 1.4 for pairs, 1.9 for four functions."""
    made = make("ctl/S", bridge=4, shared=2).actual_world
    ranks = Ranks(walks(made, "train"), made.tables)
    spread = [(chances := probabilities(ranks, every(ranks, length))).max() / chances.min() for length in (2, 4)]
    assert 1.2 < spread[0] < 1.6 and 1.6 < spread[1] < 2.4
    even = make("ctl/A").actual_world
    flat = Ranks(walks(even, "train"), even.tables)
    chances = probabilities(flat, every(flat, 2))
    assert chances.max() == pytest.approx(chances.min())


@pytest.mark.parametrize("count", [1, 20, 35, 36, 60, 69])
def test_different_ones_and_none_of_the_banned(count: int) -> None:
    ranks, banned = training(), np.array([0, 10, 71])
    assert ranks.total(2) == 72
    found = draw_different(ranks, stream("test", count).block(), count, 2, banned)
    assert len(set(found.tolist())) == count and not np.isin(found, banned).any()
    with pytest.raises(UsageError, match="70 different examples of 2 functions were asked for, 69 exist"):
        draw_different(ranks, stream("test").block(), 70, 2, banned)


def test_keys_choose_like_dropping_repeats() -> None:
    """The same inclusion frequencies whether repeats are dropped by hand or keys are compared."""
    ranks, count, runs = training(), 40, 800
    by_keys, by_hand = np.zeros(72), np.zeros(72)
    for seed in range(runs):
        by_keys[draw_different(ranks, stream("keys", seed).block(), count, 2, NOTHING)] += 1
        drawn = ranks.rank(*draw_walks(ranks, stream("hand", seed).block(), 1_500, 2)).tolist()
        by_hand[list(dict.fromkeys(drawn))[:count]] += 1
    error = np.sqrt(2 * by_hand / runs * (1 - by_hand / runs) / runs)
    assert (np.abs(by_keys - by_hand) / runs <= 4.5 * error).all()
    chances = probabilities(ranks, every(ranks, 2))
    assert np.corrcoef(by_keys, chances)[0, 1] > 0.9  # and it is not the uniform choice

"""Training and IID sets of a task with a sampling graph: what is always in, what is held out, what is drawn."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from unseen.errors import UsageError
from unseen.randomness import Stream
from unseen.tasks.ctl.allocation import allocate, shortage
from unseen.tasks.ctl.chains import Chains
from unseen.tasks.ctl.estimate import estimated_count
from unseen.tasks.ctl.language import everything
from unseen.tasks.ctl.lots import HeldOut, Lot, Pool, Sampling
from unseen.tasks.ctl.presets import Include
from unseen.tasks.ctl.ranks import Ranks
from unseen.tasks.ctl.world import World

INCLUDED: dict[Include, tuple[int, ...]] = {"singles": (1,), "pairs": (2,), "both": (1, 2), "none": ()}
"""The lengths of which every example is in training."""


@dataclass(frozen=True)
class Amounts:
    """How large the sets are to be, and by which rules. For the rest see `presets.Preset`."""

    train: int
    iid: int
    lengths: tuple[int, ...]
    include: Include
    counted: bool
    disjoint: bool
    estimate: bool
    sampling: Sampling
    take_all: bool


def always(world: World, train: Ranks, include: Include) -> Chains:
    """The examples that are always in training: every function alone, every legal pair."""
    alone = Ranks(everything(world), world.tables)
    sources = {1: alone, 2: train}
    return Chains.join([every(sources[length], length) for length in INCLUDED[include]])


def every(ranks: Ranks, length: int) -> Chains:
    """All examples of a length."""
    return Chains.of(ranks.unrank(np.arange(ranks.total(length)), length))


def make_training(world: World, train: Ranks, amounts: Amounts, dealt: Stream, drawn_by: Stream) -> tuple[Lot, HeldOut]:
    """The training set and what is held out of it."""
    listed = always(world, train, amounts.include)
    drawn = amounts.train - len(listed) if amounts.counted else amounts.train
    if drawn < 1:
        raise UsageError(
            f"train_size = {amounts.train}: {len(listed)} examples are always included "
            f"(always_include = {amounts.include}); ask for more"
        )
    gone: Collection[int] = INCLUDED[amounts.include] if amounts.disjoint else ()
    exact = {length: 0 if length in gone else train.total(length) for length in amounts.lengths}
    available = exact
    if amounts.estimate:
        available = {length: estimated_count(world, length) if count else 0 for length, count in exact.items()}
    wanted = drawn + amounts.iid
    counts = allocate(available, wanted, 0.5)
    short = sum(counts.values()) < wanted
    if short and (not amounts.take_all or sum(counts.values()) <= amounts.iid):
        raise shortage("train and iid", exact, counts, wanted, ", half of each length at most", or_all=True)
    pool = Pool(train, counts, amounts.iid, amounts.sampling, inside=False, banned={})
    held, left, banned = pool.split(dealt, drawn_by)
    return Lot(train, left, amounts.sampling, listed, banned), held

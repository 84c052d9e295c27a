"""What the set of a condition is made of, and how it is drawn: lots of examples by length, and what is held out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from unseen.randomness import Draws, Stream
from unseen.tasks.base import Array, DataSeed
from unseen.tasks.ctl.allocation import Counts, shortage
from unseen.tasks.ctl.chains import Chains
from unseen.tasks.ctl.ranks import Ranks
from unseen.tasks.ctl.stepwise import draw_different
from unseen.tasks.ctl.subsets import Numbers, skip, subset

Sampling = Literal["stepwise", "uniform"]
Banned = Mapping[int, Numbers]
"""By length, the numbers of examples that may not be drawn, sorted."""


def choose(ranks: Ranks, draws: Draws, count: int, length: int, banned: Numbers, sampling: Sampling) -> Numbers:
    """The numbers of `count` different examples that are not banned, in random order."""
    if sampling == "uniform":
        numbers = skip(subset(draws, ranks.total(length) - len(banned), count), banned)
    else:
        numbers = draw_different(ranks, draws, count, length, banned)
    return numbers[draws.permutation(count)]


@dataclass(frozen=True)
class Lot:
    """So many examples of each length (`take`), drawn from a language without the banned ones, and some that are
    always in it (`listed`).

    Which place of the set has which length is the same for every data seed: batches of one length then have the
    same shapes in all runs.
    """

    ranks: Ranks
    take: Counts
    sampling: Sampling
    listed: Chains = field(default_factory=lambda: Chains.join([]))
    banned: Banned = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(self.take.values()) + len(self.listed)

    @cached_property
    def longest(self) -> int:
        """The number of functions of the longest example."""
        drawn = [length for length, count in self.take.items() if count]
        return max([0, *drawn, *map(int, self.listed.length)])

    def lengths(self, arranged: Stream) -> Array:
        """The length at each place of the set."""
        drawn = np.repeat(np.array(list(self.take), np.int16), list(self.take.values()))
        found: Array = np.concatenate([drawn, self.listed.length])[arranged.block().permutation(len(self))]
        return found

    @property
    def counts(self) -> Counts:
        """How many examples of each length there are."""
        return dict(Counter(self.take) + Counter(map(int, self.listed.length)))

    def draw(self, data_seed: DataSeed, arranged: Stream, drawn: Stream) -> Chains:
        """The set of one data seed, whose name is in `drawn`. Each length is drawn from a block of its own."""
        place = np.argsort(self.lengths(arranged), kind="stable")
        parts: list[Chains] = []
        for length in sorted({*self.take, *self.listed.length.tolist()}):
            draws, listed = drawn.block(length), self.listed[self.listed.length == length]
            count, banned = self.take.get(length, 0), self.banned.get(length, np.empty(0, np.int64))
            numbers = choose(self.ranks, draws, count, length, banned, self.sampling)
            both = Chains.join([Chains.of(self.ranks.unrank(numbers, length)), listed], self.longest)
            parts.append(both[draws.permutation(len(both))] if len(listed) else both)
        return Chains.join(parts, self.longest)[np.argsort(place)]


@dataclass(frozen=True)
class HeldOut:
    """Examples of the training language that no training set has: one set for validation, one for testing.

    Other data seeds draw from both.
    """

    ranks: Ranks
    test: Chains
    validation: Chains
    sampling: Sampling

    def __len__(self) -> int:
        return len(self.test)

    @cached_property
    def longest(self) -> int:
        """The number of functions of the longest example."""
        return max([0, *map(int, self.test.length), *map(int, self.validation.length)])

    @property
    def counts(self) -> Counts:
        """How many examples of each length there are."""
        return dict(Counter(map(int, self.test.length)))

    def draw(self, data_seed: DataSeed, arranged: Stream, drawn: Stream) -> Chains:
        """The set of one data seed. What is held out is arranged already."""
        both = Chains.join([self.test, self.validation], self.longest)
        kept = {"test": range(len(self)), "validation": range(len(self), len(both))}
        places = np.array(kept.get(str(data_seed), range(len(both))))
        return both[places[drawn.block().permutation(len(places))[: len(self)]]]


@dataclass(frozen=True)
class Pool:
    """How many examples of each length are drawn in all, and how many of them are held out for testing.

    As many again are held out for validation: from the pool itself (`inside`), or beside it.
    """

    ranks: Ranks
    counts: Counts
    iid: int
    sampling: Sampling
    inside: bool
    banned: Banned

    def split(self, dealt: Stream, drawn: Stream) -> tuple[HeldOut, dict[int, int], dict[int, Numbers]]:
        """What is held out, how many of each length are left for training, and what training may not draw.

        `dealt` says how many of each length are held out, `drawn` which.
        """
        test, validation = self._deal(dealt.block())
        parts: dict[str, list[Chains]] = {"test": [], "validation": []}
        left: dict[int, int] = {}
        banned: dict[int, Numbers] = {}
        for length, count in self.counts.items():
            before = self.banned.get(length, np.empty(0, np.int64))
            left[length] = count - test[length] - (validation[length] if self.inside else 0)
            self._check(length, test[length] + validation[length] + left[length] + len(before))
            numbers = choose(
                self.ranks, drawn.block(length), test[length] + validation[length], length, before, self.sampling
            )
            for name, chosen in (("test", numbers[: test[length]]), ("validation", numbers[test[length] :])):
                parts[name].append(Chains.of(self.ranks.unrank(chosen, length)))
            banned[length] = np.sort(np.concatenate([before, numbers]))
        held = HeldOut(self.ranks, Chains.join(parts["test"]), Chains.join(parts["validation"]), self.sampling)
        return held, left, banned

    def _deal(self, draws: Draws) -> tuple[dict[int, int], dict[int, int]]:
        """How many of each length are held out: a random part of the pool."""
        ends, size = np.cumsum(list(self.counts.values())), sum(self.counts.values())
        if self.inside:
            chosen = subset(draws, size, 2 * self.iid)[draws.permutation(2 * self.iid)]
            sets = chosen[: self.iid], chosen[self.iid :]
        else:
            sets = subset(draws, size, self.iid), subset(draws, size, self.iid)
        one, other = (np.bincount(np.searchsorted(ends, chosen, side="right"), minlength=len(ends)) for chosen in sets)
        return dict(zip(self.counts, one.tolist(), strict=True)), dict(zip(self.counts, other.tolist(), strict=True))

    def _check(self, length: int, needed: int) -> None:
        if needed > self.ranks.total(length):
            available = {each: self.ranks.total(each) - len(self.banned.get(each, ())) for each in self.counts}
            raise shortage(f"train and iid, {length} functions", available, self.counts, needed)

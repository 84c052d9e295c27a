"""The sets of examples behind the splits: how many examples of each length, which are held out, and how they are drawn.

A set belongs to a split and a data seed. The numbers of examples by length, and the position of each length in the set,
are the same for every data seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import ceil, floor
from typing import Literal

import numpy as np

from unseen.errors import UsageError
from unseen.randomness import Draws, RandomStream
from unseen.tasks.base import Array, DataSeed, Split
from unseen.tasks.ctl.automaton import Rule, edge_entries
from unseen.tasks.ctl.encode import Chains
from unseen.tasks.ctl.unranking import Enumeration, Numbers, draw_distinct_walks, draw_subset, skip_excluded
from unseen.tasks.ctl.world import World

Sampling = Literal["stepwise", "uniform"]
Counts = Mapping[int, int]
"""Numbers of examples by length."""
NumbersByLength = Mapping[int, Numbers]
"""By length, the numbers of certain examples, sorted."""

_NONE = np.empty(0, np.int64)


# How many examples of each length


def allocate(available: Counts, total: int, max_share: float) -> dict[int, int]:
    """Share out `total` examples over the lengths, as the published code does.

    From the shortest length on, each gets an equal part of what is still missing, but at most `max_share` of the
    examples that exist.

    >>> allocate({2: 4_096, 3: 65_536, 4: 1_048_576, 5: 16_777_216, 6: 268_435_456}, 301_000, 0.5)
    {2: 2048, 3: 32768, 4: 88728, 5: 88728, 6: 88728}
    """
    counts: dict[int, int] = {}
    lengths = sorted(length for length, count in available.items() if count)
    for index, length in enumerate(lengths):
        equal_part = ceil((total - sum(counts.values())) / (len(lengths) - index))
        # Half is computed in integers, because counts of long chains exceed what floats hold exactly.
        limit = available[length] // 2 if max_share == 0.5 else floor(max_share * available[length])
        counts[length] = min(limit, equal_part)
    return counts


def expected_counts(available: Counts, total: int) -> dict[int, int]:
    """How many different examples of each length result from drawing lengths uniformly until `total` are found.

    After d draws of each length, N · (1 − (1 − 1/N)^d) of the N examples of a length have been seen on average; d is
    chosen such that they add up to `total`.

    >>> expected_counts({2: 480, 3: 4_368, 4: 50_888, 5: 470_792}, 61_136)
    {2: 480, 3: 4366, 4: 24332, 5: 31958}
    """
    if total > sum(available.values()):
        raise shortage_error("train and iid", available, available, total)

    def seen_after(draws: float) -> dict[int, float]:
        return {length: count * (1 - (1 - 1 / count) ** draws) for length, count in available.items() if count}

    low = 0.0
    high = 1.0
    # The number of draws is found by doubling and then halving the interval, to the last bit of a float.
    while sum(seen_after(high).values()) < total and high < 1e18:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if sum(seen_after(middle).values()) < total:
            low = middle
        else:
            high = middle
    counts = {length: round(count) for length, count in seen_after(high).items()}
    # Rounding errors go to the lengths with the most examples.
    for length in sorted(counts, key=lambda length: available[length], reverse=True):
        counts[length] += min(total - sum(counts.values()), available[length] - counts[length])
    return counts


def shortage_error(
    sets: str, available: Counts, possible: Counts, total: int, note: str = "", or_all: bool = False
) -> UsageError:
    """The error for sets that cannot be filled, with the numbers by length."""
    per_length = ", ".join(f"{length}: {possible.get(length, 0)} of {n}" for length, n in available.items() if n)
    remedy = ", allow longer ones, or set on_shortage = take_all" if or_all else " or allow longer ones"
    return UsageError(
        f"{sets}: needs {total} different examples, but only {sum(possible.values())} can be drawn{note} "
        f"(by length {per_length}). Ask for fewer{remedy}"
    )


def released_count(world: World, length: int) -> int:
    """How many training examples of a length there are by the released code: exact for pairs, too high beyond them.

    The code walks over edges and tracks the set of symbols that are still possible. A function behind symbol sets is
    counted by itself; but all functions of an ordinary group are counted together, and the symbol sets after them are
    merged. Symbols that only one of the functions leads to then count for all of them.
    """
    graph = world.graph
    every_symbol = frozenset(range(len(world.symbols)))
    members = {node.name: world.members(node.group).tolist() for node in graph.nodes}
    edges = [(edge, edge_entries(world, edge)) for edge in graph.uses("train")]

    def apply(function: int, symbols: frozenset[int]) -> frozenset[int]:
        return frozenset(int(world.tables[function, symbol]) for symbol in symbols)

    @cache
    def count_entering(remaining: int, node: str, symbols: frozenset[int]) -> int:
        """Walks that enter an ordinary node, over any of its functions."""
        merged = symbols
        if symbols != every_symbol:
            merged = frozenset().union(*(apply(function, symbols) for function in members[node]))
        return len(members[node]) * count_leaving(remaining - 1, node, merged)

    @cache
    def count_leaving(remaining: int, node: str, symbols: frozenset[int]) -> int:
        if not remaining:
            return len(symbols) if graph.node(node).end else 0
        total = 0
        for edge, entries in edges:
            if edge.source == node and edge.symbols is None:
                total += count_entering(remaining, edge.target, symbols)
            elif edge.source == node:
                for function in members[edge.target]:
                    entered = symbols & frozenset(np.flatnonzero(entries[function]).tolist())
                    total += count_leaving(remaining - 1, edge.target, apply(function, entered))
        return total

    return sum(count_entering(length, node.name, every_symbol) for node in graph.nodes if node.start)


# Sets


def draw_numbers(
    examples: Enumeration, draws: Draws, count: int, length: int, excluded: Numbers, sampling: Sampling
) -> Numbers:
    """Draw the numbers of `count` different examples that are not excluded, in random order."""
    if sampling == "uniform":
        numbers = skip_excluded(draw_subset(draws, examples.total(length) - len(excluded), count), excluded)
    else:
        numbers = draw_distinct_walks(examples, draws, count, length, excluded)
    return numbers[draws.permutation(count)]


@dataclass(frozen=True)
class DrawnSet:
    """A set with certain numbers of examples of each length.

    - `enumeration`: the language the examples are drawn from;
    - `drawn_counts`: how many examples of each length are drawn;
    - `fixed`: examples that are always in the set, besides those that are drawn;
    - `excluded`: examples that may not be drawn.
    """

    enumeration: Enumeration
    drawn_counts: Counts
    sampling: Sampling
    fixed: Chains = field(default_factory=lambda: Chains.concat([]))
    excluded: NumbersByLength = field(default_factory=dict)

    @staticmethod
    def allocated(enumeration: Enumeration, lengths: Sequence[int], size: int, sampling: Sampling) -> DrawnSet:
        """A set of `size` examples, or of all if there are fewer, shared out over the lengths."""
        return DrawnSet(enumeration, allocate(enumeration.totals(lengths), size, 1), sampling)

    def __len__(self) -> int:
        return sum(self.drawn_counts.values()) + len(self.fixed)

    @property
    def counts(self) -> Counts:
        """How many examples of each length there are."""
        return dict(Counter(self.drawn_counts) + Counter(map(int, self.fixed.length)))

    def lengths(self, arrangement: RandomStream) -> Array:
        """The length at each position of the set.

        It is the same for every data seed, so that batches of one length have the same shapes in all runs.
        """
        drawn_lengths = np.repeat(np.array(list(self.drawn_counts), np.int16), list(self.drawn_counts.values()))
        lengths: Array = np.concatenate([drawn_lengths, self.fixed.length])
        return lengths[arrangement.block().permutation(len(self))]

    def draw(self, data_seed: DataSeed, arrangement: RandomStream, data: RandomStream) -> Chains:
        """Draw the set of one data seed (the stream `data` is that seed's), each length from a block of its own."""
        pieces: list[Chains] = []
        for length in sorted({*self.drawn_counts, *self.fixed.length.tolist()}):
            draws = data.block(length)  # so that the examples of a length do not depend on the other lengths
            count = self.drawn_counts.get(length, 0)
            excluded = self.excluded.get(length, _NONE)
            numbers = draw_numbers(self.enumeration, draws, count, length, excluded, self.sampling)
            fixed = self.fixed[self.fixed.length == length]
            piece = Chains.concat([Chains.from_walks(self.enumeration.unrank(numbers, length)), fixed])
            if len(fixed):
                piece = piece[draws.permutation(len(piece))]
            pieces.append(piece)
        # The pieces ascend by length. A stable sort of the arrangement lists its positions in the same order, and the
        # inverse permutation (argsort of an argsort) brings every chain to its position.
        positions = np.argsort(self.lengths(arrangement), kind="stable")
        return Chains.concat(pieces)[np.argsort(positions)]


@dataclass(frozen=True)
class HeldOutSet:
    """Examples of the training language that are in no training set: a set for validation and one for testing.

    Other data seeds draw from the union of both.
    """

    enumeration: Enumeration
    test: Chains
    validation: Chains
    sampling: Sampling

    def __len__(self) -> int:
        return len(self.test)

    @property
    def counts(self) -> Counts:
        """How many examples of each length there are."""
        return dict(Counter(map(int, self.test.length)))

    def draw(self, data_seed: DataSeed, arrangement: RandomStream, data: RandomStream) -> Chains:
        """Draw the set of one data seed. (`arrangement` was used when the examples were held out.)"""
        union = Chains.concat([self.test, self.validation])
        first = len(self) if data_seed == "validation" else 0
        last = len(self) if data_seed == "test" else len(union)
        candidates = np.arange(first, last)
        return union[candidates[data.block().permutation(len(candidates))[: len(self)]]]


def hold_out(
    enumeration: Enumeration,
    counts: Counts,
    iid_size: int,
    sampling: Sampling,
    arrangement: RandomStream,
    data: RandomStream,
    *,
    included: Chains,
    excluded: NumbersByLength,
    validation_inside: bool,
) -> tuple[DrawnSet, HeldOutSet]:
    """Divide a pool with `counts` examples of each length into a training set and held-out IID sets.

    `iid_size` examples of the pool are held out for testing. As many again are held out for validation: from the pool
    itself (`validation_inside`), or besides it. `arrangement` decides how many of each length are held out, `data`
    which. The training set also has the examples `included`; the `excluded` ones are in neither set.
    """
    pool_size = sum(counts.values())
    draws = arrangement.block()
    if validation_inside:
        members = draw_subset(draws, pool_size, 2 * iid_size)[draws.permutation(2 * iid_size)]
    else:
        members = np.concatenate([draw_subset(draws, pool_size, iid_size), draw_subset(draws, pool_size, iid_size)])
    # Members of the pool are numbered by length, so the boundaries tell of which length each is.
    length_index = np.searchsorted(np.cumsum(list(counts.values())), members, side="right")
    test_counts = np.bincount(length_index[:iid_size], minlength=len(counts)).tolist()
    validation_counts = np.bincount(length_index[iid_size:], minlength=len(counts)).tolist()
    test: list[Chains] = []
    validation: list[Chains] = []
    training_counts: dict[int, int] = {}
    training_excluded: dict[int, Numbers] = {}
    for (length, count), test_count, validation_count in zip(
        counts.items(), test_counts, validation_counts, strict=True
    ):
        excluded_before = excluded.get(length, _NONE)
        held_out = test_count + validation_count
        training_counts[length] = count - (held_out if validation_inside else test_count)
        needed = held_out + training_counts[length] + len(excluded_before)
        if needed > enumeration.total(length):
            available = {n: enumeration.total(n) - len(excluded.get(n, ())) for n in counts}
            raise shortage_error(f"train and iid, {length} functions", available, counts, needed)
        numbers = draw_numbers(enumeration, data.block(length), held_out, length, excluded_before, sampling)
        chains = Chains.from_walks(enumeration.unrank(numbers, length))
        test.append(chains[:test_count])
        validation.append(chains[test_count:])
        training_excluded[length] = np.sort(np.concatenate([excluded_before, numbers]))
    training = DrawnSet(enumeration, training_counts, sampling, included, training_excluded)
    return training, HeldOutSet(enumeration, Chains.concat(test), Chains.concat(validation), sampling)


@dataclass(frozen=True)
class SplitSource:
    """A split, the set its examples come from, and what it allows: the lengths, and a rule for the rest."""

    split: Split
    examples: DrawnSet | HeldOutSet
    lengths: tuple[int, ...]
    rule: Rule

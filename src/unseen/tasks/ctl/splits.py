"""The conditions of a task with a sampling graph, and what each may call unseen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unseen.randomness import Bools
from unseen.tasks.base import Condition
from unseen.tasks.ctl import grammar
from unseen.tasks.ctl.allocation import allocate
from unseen.tasks.ctl.grammar import Rule
from unseen.tasks.ctl.graph import Edge
from unseen.tasks.ctl.language import Language, allowed, both, bridges, everything, loops, pairs
from unseen.tasks.ctl.lots import HeldOut, Lot, Sampling
from unseen.tasks.ctl.ranks import Ranks
from unseen.tasks.ctl.world import World

FURTHER = 1_000
"""How many examples the further splits have at most."""


@dataclass(frozen=True)
class Split:
    """A condition, what its set is drawn from, and a plain reading of what it allows: lengths, and a rule."""

    condition: Condition
    lot: Lot | HeldOut
    lengths: tuple[int, ...]
    rule: Rule


def entries(world: World, edges: Iterable[Edge]) -> Bools:
    """At which symbol each function is entered after each group, (groups, functions, symbols)."""
    names = list(world.groups)
    found = np.zeros((len(names), *world.tables.shape), np.bool_)
    for edge in edges:
        found[names.index(world.graph.node(edge.source).group)] |= allowed(world, edge)
    return found


def transitions(world: World, found: Bools) -> Bools:
    """Which group follows which, (groups, groups), at any symbol."""
    member = world.group_of[None, :] == np.arange(len(world.groups))[:, None]
    entered: Bools = np.any(found, axis=2)
    after: Bools = (entered[:, None, :] & member[None]).any(2)
    return after


def new_in_testing(world: World) -> tuple[str, ...]:
    """The factor whose values in test examples never occur in training: the coarsest for which that is certain.

    Where a group serves as several nodes, a transition may be new on one path and old on another.
    """
    trained = entries(world, world.graph.uses("train"))
    tested = entries(world, [edge for edge in world.graph.edges if edge.split == "test"])
    if not (transitions(world, trained) & transitions(world, tested)).any():
        return ("transition",)
    return ("functions", "start") if (trained & tested).any() else ("entry",)


def further_splits(
    world: World, train: Ranks, test: Ranks | None, sampling: Sampling, lengths: Sequence[int]
) -> Iterator[Split]:
    """Any transition, loops, the bridge, unseen symbols, unseen pairs; and two complete lists to look into a model.

    A split that would be empty, or is the training or the test language once more, is left out.
    """
    trained = entries(world, world.graph.uses("train"))
    closed = any(edge.symbols is not None for edge in world.graph.uses("train"))
    looping = np.diagonal(transitions(world, trained)).any()
    some: list[tuple[str, str, Language, tuple[str, ...], Rule]] = [
        (
            "ood/any",
            "any function after any other, also those that training has",
            everything(world),
            (),
            grammar.any_fault,
        ),
        (
            "ood/loops",
            "all functions from one group",
            loops(world),
            () if looping else ("transition",),
            grammar.loops_fault,
        ),
    ]
    if closed:
        some.append(
            (
                "ood/bridge",
                "across the bridge wherever there is one, at any symbol",
                bridges(world),
                (),
                grammar.bridge_fault,
            )
        )
    for name, summary, language, unseen, rule in some:
        ranks = Ranks(language, world.tables)
        if not any(_same(ranks, known, lengths) for known in (train, test) if known is not None):
            take = allocate({length: ranks.total(length) for length in lengths}, FURTHER, 1)
            yield Split(Condition(name, summary, unseen), Lot(ranks, take, sampling), tuple(lengths), rule)
    new = new_in_testing(world) if test is not None and not closed else ("entry",)
    lists: list[tuple[str, str, Language, tuple[str, ...], Rule]] = [
        (
            "ood/symbols",
            "every pair across the bridge at a symbol at which training never enters it",
            pairs(world, ["blocked"]),
            ("entry",),
            grammar.symbols_fault,
        ),
        (
            "ood/pairs",
            "every pair of functions that training never shows: test transitions, and symbols at which "
            "the bridge is closed",
            pairs(world, ["tested", "blocked"]),
            new,
            grammar.unseen_pairs_fault,
        ),
        (
            "probe/pairs",
            "every pair of functions of any language, at every symbol",
            pairs(world, ["trained", "tested", "blocked"]),
            (),
            grammar.pairs_fault,
        ),
    ]
    for name, summary, language, unseen, rule in lists:
        ranks = Ranks(language, world.tables)
        if ranks.total(2):
            yield Split(Condition(name, summary, unseen), Lot(ranks, {2: ranks.total(2)}, "uniform"), (2,), rule)
    singles = Ranks(everything(world), world.tables)
    yield Split(
        Condition("probe/singles", "every function alone, at every symbol"),
        Lot(singles, {1: singles.total(1)}, "uniform"),
        (1,),
        grammar.singles_fault,
    )


def _same(ranks: Ranks, known: Ranks, lengths: Sequence[int]) -> bool:
    """Whether a language has no other examples than a known one."""
    shared = Ranks(both(ranks.language, known.language), ranks.tables)
    return all(shared.total(length) == ranks.total(length) for length in lengths)

"""Languages: sets of examples, each recognised by a deterministic machine that reads one function at a time.

The state of a machine is where the walk is; whether a function may come next depends on the state, the function and
the symbol it is applied to, and on nothing else. That is what makes exact counting possible.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unseen.errors import UsageError
from unseen.randomness import Bools, Ints
from unseen.tasks.ctl.graph import Edge, Graph
from unseen.tasks.ctl.world import World


@dataclass(frozen=True)
class Language:
    """State 0 is the start.

    - `follow` (states, functions): the state after a function, −1 where it may not come;
    - `legal` (states, functions, symbols): whether it may be applied to a symbol there;
    - `final` (states,): whether an example may end there.
    """

    follow: Ints
    legal: Bools
    final: Bools


def allowed(world: World, edge: Edge) -> Bools:
    """At which symbols an edge may be taken, (functions, symbols); false for functions that are not its target's."""
    found = np.zeros(world.tables.shape, np.bool_)
    found[world.members(world.graph.node(edge.target).group)] = True
    for name, symbols in (edge.symbols or {}).items():
        row = np.zeros(len(world.symbols), np.bool_)
        row[list(symbols)] = True
        found[world.names.index(name)] = row
    return found


def walks(world: World, split: Literal["train", "test"], nodes: Iterable[str] | None = None) -> Language:
    """Walks over the edges of a split, through the given nodes alone; those of `test` need at least one test edge."""
    graph = world.graph
    names = [node.name for node in graph.nodes if nodes is None or node.name in set(nodes)]
    # Node v is state 1 + v before a test edge was taken, 1 + len(names) + v afterwards; training needs no such mark.
    marks = 1 if split == "train" else 2
    found = _Builder(world, 1 + marks * len(names))
    for v, name in enumerate(names):
        node = graph.node(name)
        if node.start:
            found.start(v, world.members(node.group), f"the start, over which '{name}'")
        for mark in range(marks):
            found.final[1 + mark * len(names) + v] = node.end and mark == marks - 1
    for edge in graph.uses(split):
        if edge.source in names and edge.target in names:
            for mark in range(marks):
                source = 1 + mark * len(names) + names.index(edge.source)
                after = marks - 1 if edge.split == "test" else mark
                target = 1 + after * len(names) + names.index(edge.target)
                found.connect(source, target, allowed(world, edge), f"'{edge.source}', after which '{edge.target}'")
    return found.language()


def everything(world: World) -> Language:
    """Any function after any other."""
    functions, symbols = world.tables.shape
    follow = np.zeros((1, functions), np.int64)
    return Language(follow, np.ones((1, functions, symbols), np.bool_), np.ones(1, np.bool_))


def loops(world: World) -> Language:
    """All functions from one group."""
    found = _Builder(world, 1 + len(world.groups))
    every = np.ones(world.tables.shape, np.bool_)
    for place, name in enumerate(world.groups):
        members = world.members(name)
        found.start(place, members, "the start")
        found.final[1 + place] = True
        found.connect(1 + place, 1 + place, every & np.isin(np.arange(len(every)), members)[:, None], name)
    return found.language()


def bridges(world: World) -> Language:
    """Training walks that take an edge with symbol sets wherever there is one, at any symbol."""
    graph = world.graph
    restricted = {edge.source for edge in graph.uses("train") if edge.symbols is not None}
    edges = tuple(
        edge.model_copy(update={"symbols": None, "split": "train"})
        for edge in graph.uses("train")
        if edge.symbols is not None or edge.source not in restricted
    )
    lifted = Graph(groups=graph.groups, nodes=graph.nodes, edges=edges)
    return walks(world.model_copy(update={"graph": lifted}), "train")


PairKind = Literal["trained", "tested", "blocked"]


def pairs(world: World, kinds: Iterable[PairKind]) -> Language:
    """Two functions from a start node to an end node, over edges of these kinds.

    `trained` and `tested`: as the edge's symbols allow; `blocked`: a training edge at a symbol it does not allow.
    """
    graph, kinds = world.graph, set(kinds)
    end = 1 + len(graph.nodes)
    found = _Builder(world, end + 1)
    found.final[end] = True
    for place, node in enumerate(graph.nodes):
        if node.start:
            found.start(place, world.members(node.group), f"the start, over which '{node.name}'")
    for edge in graph.edges:
        source = next(place for place, node in enumerate(graph.nodes) if node.name == edge.source)
        if graph.node(edge.source).start and graph.node(edge.target).end:
            open_at = allowed(world, edge)
            closed_at = ~open_at
            closed_at[~np.isin(np.arange(len(world.names)), world.members(graph.node(edge.target).group))] = False
            of = {"trained": ("train", "both"), "tested": ("test",), "blocked": ("train", "both")}
            for kind, where in (("trained", open_at), ("tested", open_at), ("blocked", closed_at)):
                if kind in kinds and edge.split in of[kind]:
                    found.legal[1 + source] |= where
                    found.follow[1 + source, where.any(1)] = end
    return found.language()


def both(one: Language, other: Language) -> Language:
    """The examples that two languages have in common."""
    functions = one.follow.shape[1]
    states, place = [(0, 0)], {(0, 0): 0}
    follow: list[list[int]] = []
    for a, b in states:  # grows while it is read
        row = []
        for f in range(functions):
            pair = int(one.follow[a, f]), int(other.follow[b, f])
            if min(pair) >= 0 and pair not in place:
                place[pair] = len(states)
                states.append(pair)
            row.append(place.get(pair, -1))
        follow.append(row)
    ones, others = np.array(states).T
    return Language(np.array(follow), one.legal[ones] & other.legal[others], one.final[ones] & other.final[others])


class _Builder:
    """A language in the making: every state but the start begins without a way on."""

    def __init__(self, world: World, states: int) -> None:
        functions, symbols = world.tables.shape
        self.names = world.names
        self.follow = np.full((states, functions), -1, np.int64)
        self.legal = np.zeros((states, functions, symbols), np.bool_)
        self.final = np.zeros(states, np.bool_)

    def start(self, node: int, members: Ints, place: str) -> None:
        where = np.zeros(self.legal.shape[1:], np.bool_)
        where[members] = True
        self.connect(0, 1 + node, where, place)

    def connect(self, source: int, target: int, where: Bools, place: str) -> None:
        members = where.any(1)
        twice = np.flatnonzero(members & (self.follow[source] >= 0))
        if len(twice):
            raise UsageError(
                f"the sampling graph is ambiguous at {place} may come: the function "
                f"'{self.names[twice[0]]}' leads to two nodes; an example needs one walk"
            )
        self.follow[source, members] = target
        self.legal[source] |= where

    def language(self) -> Language:
        return Language(self.follow, self.legal, self.final)

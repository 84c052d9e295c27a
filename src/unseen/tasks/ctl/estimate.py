"""How the released code counts the training language: exactly for pairs, too high for longer chains with symbol sets.

It walks over edges, where an ordinary group is one edge and each function of a restricted one an edge of its own, and
keeps the set of symbols that are still possible; but an ordinary group merges that set over all of its functions.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from unseen.tasks.ctl.language import allowed
from unseen.tasks.ctl.world import World

Symbols = frozenset[int]


def estimated_count(world: World, length: int) -> int:
    """The released code's number of training examples with so many functions."""
    graph = world.graph
    every: Symbols = frozenset(range(len(world.symbols)))
    members = {node.name: world.members(node.group).tolist() for node in graph.nodes}
    edges = [(edge, allowed(world, edge)) for edge in graph.uses("train")]

    def through(function: int, symbols: Symbols) -> Symbols:
        return frozenset(int(world.tables[function, symbol]) for symbol in symbols)

    @cache
    def enter(left: int, node: str, symbols: Symbols) -> int:
        """Any function of an ordinary node, then what follows."""
        merged = symbols if symbols == every else frozenset().union(*(through(f, symbols) for f in members[node]))
        return len(members[node]) * go_on(left - 1, node, merged)

    @cache
    def go_on(left: int, node: str, symbols: Symbols) -> int:
        if not left:
            return len(symbols) if graph.node(node).end else 0
        total = 0
        for edge, where in edges:
            if edge.source == node and edge.symbols is None:
                total += enter(left, edge.target, symbols)
            elif edge.source == node:
                for function in members[edge.target]:
                    entered = symbols & frozenset(np.flatnonzero(where[function]).tolist())
                    total += go_on(left - 1, edge.target, through(function, entered))
        return total

    return sum(enter(length, node.name, every) for node in graph.nodes if node.start)

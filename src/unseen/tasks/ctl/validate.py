"""Whether a sampling graph makes sense: reachability, dead ends, empty languages, coverage and overlap.

Ambiguity is found while the languages are built.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from unseen.errors import UsageError
from unseen.tasks.ctl.graph import Graph
from unseen.tasks.ctl.language import both
from unseen.tasks.ctl.ranks import Ranks
from unseen.tasks.ctl.world import World


def check_graph(graph: Graph) -> None:
    """Every node can be reached from a start and leads to an end, over the edges of one language."""
    ahead = {node.name for node in graph.nodes if node.start}
    back = {node.name for node in graph.nodes if node.end}
    ways = [[(e.source, e.target) for e in graph.uses("train")], [(e.source, e.target) for e in graph.uses("test")]]
    reached = {name for edges in ways for name in _spread(ahead, edges)}
    ending = {name for edges in ways for name in _spread(back, [(target, source) for source, target in edges])}
    for node in graph.nodes:
        if node.name not in reached:
            raise UsageError(
                f"the sampling graph never reaches node '{node.name}': give it an edge from a node that "
                "is reached, or make it a start"
            )
        if node.name not in ending:
            raise UsageError(
                f"node '{node.name}' of the sampling graph is a dead end: give it an edge to a node from "
                "which an end is reached, or make it an end"
            )


def check_languages(world: World, train: Ranks, test: Ranks | None, lengths: list[int], singles: bool) -> None:
    """Neither language is empty, training shows every function, and no example is in both."""
    for name, ranks in (("training", train), ("test", test)):
        if ranks is not None and not any(ranks.total(length) for length in lengths):
            possible = [length for length in range(1, 2 * max(lengths) + 3) if ranks.total(length)]
            hint = f"the shortest has {possible[0]}" if possible else "there is none of any length"
            raise UsageError(f"no {name} example has {lengths[0]} … {lengths[-1]} functions; {hint}")
    missing = np.flatnonzero(~train.covered(lengths))
    if len(missing) and not singles:
        raise UsageError(
            f"no training example of {lengths[0]} … {lengths[-1]} functions has "
            f"{_some(world.names[f] for f in missing)}; every function must occur in training"
        )
    if test is not None:
        shared = Ranks(both(train.language, test.language), world.tables)
        for length in lengths:
            if shared.total(length):
                start, functions = shared.unrank(np.zeros(1, np.int64), length)
                example = " ".join([world.names[f] for f in functions[0, ::-1]] + [world.symbols[start[0]]])
                raise UsageError(
                    f"{shared.total(length)} examples of {length} functions are in training and in test, "
                    f"e.g. {example}; let an edge be of one split, or of both"
                )


def _spread(seeds: set[str], edges: list[tuple[str, str]]) -> set[str]:
    found, before = set(seeds), set[str]()
    while found != before:
        before = set(found)
        found |= {target for source, target in edges if source in before}
    return found


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")

"""The published sampling graphs: alternating and repeating groups (A, R), staged paths with a bridge (S).

All are given as plain data, in the form in which a user writes a graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from unseen.errors import UsageError
from unseen.randomness import Draws, stream
from unseen.tasks.ctl.world import parts

Cut = Literal["ascending", "random"]
SymbolSets = dict[str, dict[str, list[int]]]
"""For each path and each function of the bridge, the symbols at which the path may enter it."""

BRIDGE = "o"


def letters(count: int) -> list[str]:
    """The names of groups or paths: a, b, c, … (o is the bridge)."""
    names = [name for name in "abcdefghijklmnpqrstuvwxyz" if name != BRIDGE]
    if count > len(names):
        raise UsageError(f"at most {len(names)} groups or paths have names; got {count}")
    return names[:count]


def cyclic(groups: Mapping[str, Sequence[str]], train: Sequence[int], test: Sequence[int]) -> dict[str, Any]:
    """Groups in a circle; `train` and `test` say how many groups on the next function may come from.

    With two groups, A trains on 1 (the other group) and tests on 0 (the same group); R the other way round.
    """
    names = list(groups)
    edges = [
        {"source": name, "target": names[(place + skip) % len(names)], "split": split}
        for split, skips in (("train", train), ("test", test))
        for place, name in enumerate(names)
        for skip in skips
    ]
    return {"groups": dict(groups), "edges": edges}


def stage_groups(functions: int, bridge: int, paths: int, stages: int) -> dict[str, int]:
    """The sizes of S's groups: the bridge first, then paths and stages; a remainder is spread by one."""
    names = [f"{path}{stage}" for path in letters(paths) for stage in range(1, stages + 1)]
    if functions - bridge < len(names):
        raise UsageError(
            f"{functions} functions, {bridge} of them in the bridge, leave {functions - bridge} for "
            f"{len(names)} groups; every group needs one"
        )
    sizes = dict(zip(names, parts(functions - bridge, len(names)), strict=True))
    return ({BRIDGE: bridge} if bridge else {}) | sizes


def staged(
    groups: Mapping[str, Sequence[str]], symbol_sets: SymbolSets, paths: int, stages: int, bridge_stage: int
) -> dict[str, Any]:
    """Blocks of one function per stage. Training stays on a path or crosses the bridge; testing changes the path.

    The bridge stands in for one stage (from the second on). Before the last stage it leads back to the path it was
    entered from, so it is a node of its own for each path. Blocks follow each other freely.
    """
    names, last = letters(paths), bridge_stage == stages
    nodes = [
        {"name": f"{path}{stage}", "group": f"{path}{stage}", "start": stage == 1, "end": stage == stages}
        for path in names
        for stage in range(1, stages + 1)
    ]
    edges: list[dict[str, Any]] = []

    def connect(source: str, target: str, split: str, symbols: dict[str, list[int]] | None = None) -> None:
        edges.append({"source": source, "target": target, "split": split, "symbols": symbols})

    for stage in range(1, stages):
        for path in names:
            for other in names:
                connect(f"{path}{stage}", f"{other}{stage + 1}", "train" if other == path else "test")
    for path in names:
        for first in names:
            connect(f"{path}{stages}", f"{first}1", "both")
    if groups.get(BRIDGE):
        for name in [BRIDGE] if last else [f"{BRIDGE}{path}" for path in names]:
            nodes.append({"name": name, "group": BRIDGE, "start": False, "end": last})
        for path in names:
            connect(f"{path}{bridge_stage - 1}", BRIDGE if last else f"{BRIDGE}{path}", "train", symbol_sets[path])
        if last:
            for first in names:
                connect(BRIDGE, f"{first}1", "train")
        else:
            for path in names:
                connect(f"{BRIDGE}{path}", f"{path}{bridge_stage + 1}", "train")
    return {"groups": dict(groups), "nodes": nodes, "edges": edges}


def read_symbol_sets(given: Any, bridge: Sequence[str], paths: int, bridge_stage: int) -> SymbolSets:
    """The symbol sets of a world file: for every path (by its letter, or by the group that enters the bridge) and every
    function of the bridge, the symbols at which the path may enter it."""
    sets: SymbolSets = {}
    for path in letters(paths) if bridge else []:
        names = path, f"{path}{bridge_stage - 1}"
        own = next((given[name] for name in names if name in given), None) if isinstance(given, Mapping) else None
        if not isinstance(own, Mapping) or set(own) != set(bridge):
            raise UsageError(
                f"a world with a bridge {BRIDGE} needs symbol_sets (path → function → symbols) or a "
                f"graph; expected path '{path}' with the functions {', '.join(bridge)}"
            )
        sets[path] = dict(own)
    return sets


def draw_symbol_sets(
    functions: Sequence[str], symbols: int, shared: int, paths: int, cut: Cut, task_seed: int
) -> SymbolSets:
    """The symbols at which each path may enter each function of the bridge: `shared` common to all, the rest divided.

    Shared ones run cyclically through an order of the symbols, a new random order after every pass; the others are
    cut ascending (or at random), as equally as can be. A single other symbol goes to a random path.
    """
    draws = stream("ctl symbol sets", len(functions), symbols, shared, paths, cut, task_seed).block()
    order, sets = list(range(symbols)), SymbolSets({path: {} for path in letters(paths)})
    a_pass = -(-symbols // shared) if shared else 0
    for place, function in enumerate(functions):
        if a_pass and place and place % a_pass == 0:
            order = _shuffled(draws, order)
        common = {order[(place * shared + step) % symbols] for step in range(shared)}
        others = [symbol for symbol in range(symbols) if symbol not in common]
        for path, own in zip(sets, _divide(draws, others, paths, cut), strict=True):
            sets[path][function] = sorted(common | set(own))
    return sets


def _divide(draws: Draws, others: list[int], paths: int, cut: Cut) -> list[list[int]]:
    if cut == "random":
        others = _shuffled(draws, others)
    ends = [0]
    for size in parts(len(others), paths):
        ends.append(ends[-1] + size)
    found = [others[begin:end] for begin, end in pairwise(ends)]
    return [found[place] for place in draws.permutation(paths)] if len(others) == 1 else found


def _shuffled(draws: Draws, values: Sequence[int]) -> list[int]:
    """The values in random order."""
    return [values[place] for place in draws.permutation(len(values)).tolist()]

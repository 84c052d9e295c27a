"""A plain reading of what each condition allows: slow, obvious, and a stranger to the machines that generate.

An example is handed over as it is written in a file: names of functions, in order of application, and a start symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from unseen.tasks.ctl.graph import Edge, Node
from unseen.tasks.ctl.world import World

Fault = str | None
"""What is wrong with an example, or None."""
Rule = Callable[[World, Sequence[str], int], Fault]
"""What a condition allows, besides lengths."""


def group_of(world: World, function: str) -> str:
    """The group of a function."""
    return next(group for group, members in world.groups.items() if function in members)


def intermediate(world: World, functions: Sequence[str], start: int) -> list[int]:
    """The symbol before the first function and after each."""
    found = [start]
    for function in functions:
        found.append(world.functions[function][found[-1]])
    return found


def walk(
    world: World, functions: Sequence[str], start: int, edges: Sequence[Edge], what: str
) -> tuple[list[Edge], Fault]:
    """The edges an example takes from a start node to an end node, and what stopped it.

    `what` names the language in the fault: training or test.
    """
    if not functions:
        return [], f"it has no function; {what} examples have at least one"
    symbols, taken = intermediate(world, functions, start), list[Edge]()
    here = [node for node in world.graph.nodes if node.start and functions[0] in world.groups[node.group]]
    if not here:
        return [], f"{functions[0]} comes first, but no {what} example starts in group {group_of(world, functions[0])}"
    for before, function, symbol in zip(functions, functions[1:], symbols[1:], strict=False):
        groups = f"{group_of(world, before)} → {group_of(world, function)}"
        ways = [edge for edge in edges if edge.source == here[0].name and function in _functions(world, edge)]
        if not ways:
            return taken, f"{function} after {before} ({groups}) is no {what} transition"
        if not _open(ways[0], function, symbol):
            name = world.symbols[symbol]
            return taken, f"{function} after {before} ({groups}) is no {what} transition at symbol {name}"
        taken.append(ways[0])
        here = [world.graph.node(ways[0].target)]
    if not here[0].end:
        return taken, f"{functions[-1]} comes last, but no {what} example ends in group {here[0].group}"
    return taken, None


def fault_in_training(world: World, functions: Sequence[str], start: int) -> Fault:
    """Why an example is not in the training language."""
    return walk(world, functions, start, world.graph.uses("train"), "training")[1]


def fault_in_testing(world: World, functions: Sequence[str], start: int) -> Fault:
    """Why an example is not in the test language."""
    taken, fault = walk(world, functions, start, world.graph.uses("test"), "test")
    if fault is None and not any(edge.split == "test" for edge in taken):
        return "every transition is a training transition; test examples have at least one that is not"
    return fault


def any_fault(world: World, functions: Sequence[str], start: int) -> Fault:
    """Any function may follow any other."""
    return None


def loops_fault(world: World, functions: Sequence[str], start: int) -> Fault:
    """Why not all functions are of one group."""
    first = group_of(world, functions[0])
    odd = [function for function in functions if group_of(world, function) != first]
    if not odd:
        return None
    return f"{odd[0]} is of group {group_of(world, odd[0])}, {functions[0]} of {first}; loops stay in one group"


def bridge_fault(world: World, functions: Sequence[str], start: int) -> Fault:
    """Why an example does not cross the bridge wherever it could."""
    edges = []
    for edge in world.graph.uses("train"):
        fellows = [other for other in world.graph.uses("train") if other.source == edge.source]
        if edge.symbols is not None or all(other.symbols is None for other in fellows):
            edges.append(edge.model_copy(update={"symbols": None}))
    return walk(world, functions, start, edges, "bridge")[1]


def or_single(rule: Rule) -> Rule:
    """What a rule allows, and any function alone."""
    return lambda world, functions, start: None if len(functions) == 1 else rule(world, functions, start)


def singles_fault(world: World, functions: Sequence[str], start: int) -> Fault:
    """Why an example is not a single function."""
    return None if len(functions) == 1 else f"it has {len(functions)} functions; expected one"


def symbols_fault(world: World, functions: Sequence[str], start: int) -> Fault:
    """Why a pair is not a training transition at a symbol where it is closed."""
    return _pair_fault(world, functions, start, blocked=True)


def unseen_pairs_fault(world: World, functions: Sequence[str], start: int) -> Fault:
    """Why a pair is neither a test pair nor one at a closed symbol."""
    return _pair_fault(world, functions, start, blocked=True, tested=True)


def pairs_fault(world: World, functions: Sequence[str], start: int) -> Fault:
    """Why a pair is not one of two groups that any language joins."""
    return _pair_fault(world, functions, start, blocked=True, tested=True, trained=True)


def _pair_fault(
    world: World, functions: Sequence[str], start: int, blocked: bool, tested: bool = False, trained: bool = False
) -> Fault:
    if len(functions) != 2:
        return f"it has {len(functions)} functions; expected two"
    first, second = functions
    symbol = world.functions[first][start]
    for edge in world.graph.edges:
        source, target = world.graph.node(edge.source), world.graph.node(edge.target)
        joins = first in world.groups[source.group] and second in world.groups[target.group]
        if joins and source.start and target.end:
            if edge.split == "test":
                good = tested and _open(edge, second, symbol)
            else:
                good = trained if _open(edge, second, symbol) else blocked
            if good:
                return None
    groups = f"{group_of(world, first)} → {group_of(world, second)}"
    return f"{second} after {first} ({groups}) at symbol {world.symbols[symbol]} is not one of these pairs"


def _functions(world: World, edge: Edge) -> tuple[str, ...]:
    target: Node = world.graph.node(edge.target)
    return world.groups[target.group]


def _open(edge: Edge, function: str, symbol: int) -> bool:
    return edge.symbols is None or function not in edge.symbols or symbol in edge.symbols[function]

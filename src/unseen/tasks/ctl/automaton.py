"""Which chains of functions a split allows, in two independent forms.

*Automata* generate: a deterministic automaton reads one function at a time, and whether a function may come next
depends only on the state, the function and the symbol it is applied to. That is what makes exact counting possible
(`unranking`).

*Rules* check: a rule says in plain code what is wrong with one written example. Rules share nothing with the automata,
so tests compare the two, and foreign examples are checked by the rules alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from unseen.errors import UsageError
from unseen.randomness import Bools, Ints
from unseen.tasks.ctl.world import Edge, Graph, World

PairKind = Literal["trained", "tested", "blocked"]
"""A pair over a training edge, over a test edge, or over a training edge at a symbol at which it is closed."""


# Automata


@dataclass(frozen=True)
class Automaton:
    """A deterministic automaton over functions. State 0 is the start.

    - `next_state` (states, functions): the state after a function, −1 where the function may not come;
    - `legal` (states, functions, symbols): whether the function may be applied to the symbol in that state;
    - `final` (states,): whether an example may end in that state.
    """

    next_state: Ints
    legal: Bools
    final: Bools


class _Builder:
    """An automaton under construction: at first no state leads anywhere."""

    def __init__(self, world: World, states: int) -> None:
        functions, symbols = world.tables.shape
        self.world = world
        self.next_state = np.full((states, functions), -1, np.int64)
        self.legal = np.zeros((states, functions, symbols), np.bool_)
        self.final = np.zeros(states, np.bool_)

    def start(self, state: int, group: str, node: str) -> None:
        """Let examples begin with any function of a group, at any symbol."""
        entries = np.zeros(self.legal.shape[1:], np.bool_)
        entries[self.world.members(group)] = True
        self.connect(0, state, entries, f"the start, over which '{node}'")

    def connect(self, source: int, target: int, entries: Bools, context: str) -> None:
        """Lead from a state to another over the functions of `entries` (functions, symbols)."""
        functions = entries.any(1)
        taken_twice = np.flatnonzero(functions & (self.next_state[source] >= 0))
        if len(taken_twice):
            raise UsageError(
                f"the sampling graph is ambiguous at {context} may come: the function "
                f"'{self.world.names[taken_twice[0]]}' leads to two nodes; an example needs one walk"
            )
        self.next_state[source, functions] = target
        self.legal[source] |= entries

    def build(self) -> Automaton:
        return Automaton(self.next_state, self.legal, self.final)


def edge_entries(world: World, edge: Edge) -> Bools:
    """At which symbols an edge enters each function, (functions, symbols); false for functions of other groups."""
    entries = np.zeros(world.tables.shape, np.bool_)
    entries[world.members(world.graph.node(edge.target).group)] = True  # every symbol, unless listed
    for name, symbols in (edge.symbols or {}).items():
        row = np.zeros(len(world.symbols), np.bool_)
        row[list(symbols)] = True
        entries[world.names.index(name)] = row
    return entries


def entries_after_groups(world: World, edges: Iterable[Edge]) -> Bools:
    """At which symbols these edges enter each function after each group, (groups, functions, symbols)."""
    groups = list(world.groups)
    entries = np.zeros((len(groups), *world.tables.shape), np.bool_)
    for edge in edges:
        entries[groups.index(world.graph.node(edge.source).group)] |= edge_entries(world, edge)
    return entries


def walks_over(world: World, split: Literal["train", "test"], nodes: Iterable[str] | None = None) -> Automaton:
    """Walks over the edges of a split (through certain nodes only); test walks take at least one test edge."""
    graph = world.graph
    names = [node.name for node in graph.nodes if nodes is None or node.name in set(nodes)]
    # Test walks need a memory of one bit: node v is state 1 + v before a test edge was taken, and state
    # 1 + len(names) + v afterwards. Only the last phase may end. Training walks have a single phase.
    phases = 1 if split == "train" else 2
    builder = _Builder(world, 1 + phases * len(names))
    for index, name in enumerate(names):
        node = graph.node(name)
        if node.start:
            builder.start(1 + index, node.group, name)
        builder.final[1 + (phases - 1) * len(names) + index] = node.end
    for edge in graph.uses(split):
        if edge.source not in names or edge.target not in names:
            continue
        for phase in range(phases):
            next_phase = phases - 1 if edge.split == "test" else phase
            source = 1 + phase * len(names) + names.index(edge.source)
            target = 1 + next_phase * len(names) + names.index(edge.target)
            context = f"'{edge.source}', after which '{edge.target}'"
            builder.connect(source, target, edge_entries(world, edge), context)
    return builder.build()


def any_chain(world: World) -> Automaton:
    """Any function after any other."""
    functions, symbols = world.tables.shape
    next_state = np.zeros((1, functions), np.int64)
    return Automaton(next_state, np.ones((1, functions, symbols), np.bool_), np.ones(1, np.bool_))


def group_loops(world: World) -> Automaton:
    """All functions from one group."""
    builder = _Builder(world, 1 + len(world.groups))
    for state, group in enumerate(world.groups, 1):
        entries = np.zeros(world.tables.shape, np.bool_)
        entries[world.members(group)] = True
        builder.start(state, group, group)
        builder.connect(state, state, entries, group)
        builder.final[state] = True
    return builder.build()


def bridge_edges(graph: Graph) -> list[Edge]:
    """Training edges without symbol sets, except where an edge with symbol sets leaves the same node: then that one.

    All are open at every symbol.
    """
    edges = graph.uses("train")
    restricted = {edge.source for edge in edges if edge.symbols is not None}
    crossing = []
    for edge in edges:
        if edge.symbols is not None or edge.source not in restricted:
            crossing.append(edge.model_copy(update={"symbols": None, "split": "train"}))
    return crossing


def bridge_walks(world: World) -> Automaton:
    """Training walks that cross the bridge (an edge with symbol sets) wherever they can, at any symbol."""
    graph = Graph(groups=world.graph.groups, nodes=world.graph.nodes, edges=tuple(bridge_edges(world.graph)))
    return walks_over(world.model_copy(update={"graph": graph}), "train")


def function_pairs(world: World, kinds: Collection[PairKind]) -> Automaton:
    """Two functions from a start node to an end node, over one edge, of certain kinds."""
    graph = world.graph
    state_of = {node.name: state for state, node in enumerate(graph.nodes, 1)}
    last = 1 + len(graph.nodes)
    builder = _Builder(world, last + 1)
    builder.final[last] = True
    for node in graph.nodes:
        if node.start:
            builder.start(state_of[node.name], node.group, node.name)
    for edge in graph.edges:
        target = graph.node(edge.target)
        if not graph.node(edge.source).start or not target.end:
            continue
        open_entries = edge_entries(world, edge)
        closed_entries = np.zeros_like(open_entries)
        closed_entries[world.members(target.group)] = ~open_entries[world.members(target.group)]
        open_kind = "tested" if edge.split == "test" else "trained"
        state = state_of[edge.source]
        # Not through `connect`: several edges and kinds may lead from one function to the common last state.
        for entries, selected in (
            (open_entries, open_kind in kinds),
            (closed_entries, "blocked" in kinds and edge.split != "test"),
        ):
            if selected:
                builder.legal[state] |= entries
                builder.next_state[state, entries.any(1)] = last
    return builder.build()


def intersect(a: Automaton, b: Automaton) -> Automaton:
    """The examples that both automata accept: the product automaton, its reachable states only."""
    functions = a.next_state.shape[1]
    states = [(0, 0)]
    index = {(0, 0): 0}
    next_state: list[list[int]] = []
    for state_a, state_b in states:  # the list grows while the loop runs, until no new state is reached
        row = []
        for function in range(functions):
            pair = int(a.next_state[state_a, function]), int(b.next_state[state_b, function])
            if min(pair) >= 0 and pair not in index:
                index[pair] = len(states)
                states.append(pair)
            row.append(index.get(pair, -1))
        next_state.append(row)
    states_a, states_b = np.array(states).T
    return Automaton(np.array(next_state), a.legal[states_a] & b.legal[states_b], a.final[states_a] & b.final[states_b])


# Rules

Fault = str | None
"""The fault of an example, or None."""
Rule = Callable[[World, Sequence[str], int], Fault]
"""The fault of an example, given the world, its functions by name in order of application, and its start symbol."""


def apply_chain(world: World, functions: Sequence[str], start: int) -> list[int]:
    """The symbol before the first function and after each."""
    symbols = [start]
    for function in functions:
        symbols.append(world.functions[function][symbols[-1]])
    return symbols


def follow_walk(
    world: World, functions: Sequence[str], start: int, edges: Sequence[Edge], language: str
) -> tuple[list[Edge], Fault]:
    """The edges that an example takes from a start node to an end node, and what stopped it, if anything.

    `language` says in the fault which language the edges are of: training, test or bridge.
    """
    if not functions:
        return [], f"it has no function; {language} examples have at least one"
    starts = [node for node in world.graph.nodes if node.start and functions[0] in world.groups[node.group]]
    if not starts:
        group = world.group_name(functions[0])
        return [], f"{functions[0]} comes first, but no {language} example starts in group {group}"
    node = starts[0]
    symbols = apply_chain(world, functions, start)
    path: list[Edge] = []
    for (before, function), symbol in zip(pairwise(functions), symbols[1:-1], strict=True):
        step = f"{function} after {before} ({world.group_name(before)} → {world.group_name(function)})"
        matching = []
        for edge in edges:
            if edge.source == node.name and function in world.groups[world.graph.node(edge.target).group]:
                matching.append(edge)
        if not matching:
            return path, f"{step} is no {language} transition"
        if not matching[0].admits(function, symbol):
            return path, f"{step} is no {language} transition at symbol {world.symbols[symbol]}"
        path.append(matching[0])
        node = world.graph.node(matching[0].target)
    if not node.end:
        return path, f"{functions[-1]} comes last, but no {language} example ends in group {node.group}"
    return path, None


def training_fault(world: World, functions: Sequence[str], start: int) -> Fault:
    """Why an example is not in the training language."""
    return follow_walk(world, functions, start, world.graph.uses("train"), "training")[1]


def testing_fault(world: World, functions: Sequence[str], start: int) -> Fault:
    """Why an example is not in the test language."""
    path, fault = follow_walk(world, functions, start, world.graph.uses("test"), "test")
    if fault is None and not any(edge.split == "test" for edge in path):
        return "every transition is a training transition; test examples have at least one that is not"
    return fault


def bridge_fault(world: World, functions: Sequence[str], start: int) -> Fault:
    """Why an example does not cross the bridge wherever it could."""
    edges = []
    for edge in world.graph.uses("train"):
        siblings = [other for other in world.graph.uses("train") if other.source == edge.source]
        if edge.symbols is not None or all(other.symbols is None for other in siblings):
            edges.append(edge.model_copy(update={"symbols": None}))
    return follow_walk(world, functions, start, edges, "bridge")[1]


def no_fault(world: World, functions: Sequence[str], start: int) -> Fault:
    """Any function may follow any other."""
    return None


def loop_fault(world: World, functions: Sequence[str], start: int) -> Fault:
    """Why the functions are not all of one group."""
    first = world.group_name(functions[0])
    for function in functions:
        group = world.group_name(function)
        if group != first:
            return f"{function} is of group {group}, {functions[0]} of {first}; loops stay in one group"
    return None


def single_fault(world: World, functions: Sequence[str], start: int) -> Fault:
    """Why an example is not a single function."""
    return None if len(functions) == 1 else f"it has {len(functions)} functions; expected one"


def or_single(rule: Rule) -> Rule:
    """A rule that also allows every function alone."""
    return lambda world, functions, start: None if len(functions) == 1 else rule(world, functions, start)


def pair_rule(*kinds: PairKind) -> Rule:
    """A rule that allows pairs of functions of certain kinds."""

    def fault(world: World, functions: Sequence[str], start: int) -> Fault:
        if len(functions) != 2:
            return f"it has {len(functions)} functions; expected two"
        first, second = functions
        symbol = world.functions[first][start]
        for edge in world.graph.edges:
            source = world.graph.node(edge.source)
            target = world.graph.node(edge.target)
            joins = first in world.groups[source.group] and second in world.groups[target.group]
            if not joins or not source.start or not target.end:
                continue
            is_open = edge.admits(second, symbol)
            if edge.split == "test":
                allowed = is_open and "tested" in kinds
            else:
                allowed = ("trained" if is_open else "blocked") in kinds
            if allowed:
                return None
        groups = f"{world.group_name(first)} → {world.group_name(second)}"
        return f"{second} after {first} ({groups}) at symbol {world.symbols[symbol]} is not one of these pairs"

    return fault

"""The world of a lookup task: symbols, functions as tables, groups of functions, and the sampling graph.

A world is plain data. It is drawn from a task seed, or read from a JSON file and checked, and it can be written back.
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, count, filterfalse, islice
from math import factorial
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import numpy as np
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    ValidationError,
    field_validator,
    model_validator,
)

from unseen.errors import UsageError
from unseen.files import read_at_most
from unseen.randomness import Ints, stream
from unseen.tasks.ctl.unranking import draw_subset

MOST_BYTES = 64 * 10**6
"""The largest world file that is read."""
EdgeUse = Literal["train", "test", "both"]


class FrozenModel(BaseModel):
    """A strict, immutable part of a config that can be hashed although it holds dictionaries."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __eq__(self, other: object) -> bool:
        # Only fields count: two equal worlds may differ in the cached properties that were used so far.
        return type(self) is type(other) and all(getattr(self, k) == getattr(other, k) for k in type(self).model_fields)

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


Model = TypeVar("Model", bound=FrozenModel)


class Node(FrozenModel):
    """A node of the sampling graph: the next function comes from `group`. A group may serve as several nodes."""

    name: str
    group: str
    start: bool = True
    end: bool = True

    @model_validator(mode="before")
    @classmethod
    def _default_group(cls, data: Any) -> Any:
        """Without a group, a node has the group of its name."""
        return {**data, "group": data.get("group", data.get("name"))} if isinstance(data, Mapping) else data


class Edge(FrozenModel):
    """Functions of `target` may follow functions of `source`.

    `symbols` restricts at which symbols a function of `target` may be entered; functions that it does not list may be
    entered at any symbol. Files may write `from`, `to` and `in` for `source`, `target` and `split`.
    """

    source: str = Field(validation_alias=AliasChoices("source", "from"))
    target: str = Field(validation_alias=AliasChoices("target", "to"))
    split: EdgeUse = Field(validation_alias=AliasChoices("split", "in"))
    symbols: dict[str, tuple[int, ...]] | None = None

    def admits(self, function: str, symbol: int) -> bool:
        """Whether a function of the target may be entered at a symbol."""
        return self.symbols is None or function not in self.symbols or symbol in self.symbols[function]


class Graph(FrozenModel):
    """Groups, nodes and edges. A group is a list of function names or a size; by default each group is one node.

    Training and IID examples are walks from a start node to an end node over `train` and `both` edges.
    Out-of-distribution examples are walks over `test` and `both` edges that take at least one `test` edge.

    >>> graph = Graph.model_validate({"groups": {"a": 2, "b": 2}, "edges": [{"from": "a", "to": "b", "in": "train"}]})
    >>> [node.name for node in graph.nodes], graph.edges[0].source
    (['a', 'b'], 'a')
    """

    groups: dict[str, PositiveInt | tuple[str, ...]]
    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...]

    @model_validator(mode="before")
    @classmethod
    def _default_nodes(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and not data.get("nodes") and isinstance(data.get("groups"), Mapping):
            return {**data, "nodes": [{"name": name} for name in data["groups"]]}
        return data

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [node.name for node in self.nodes]
        if len(set(names)) != len(names):
            raise ValueError(f"two nodes have the same name: {', '.join(names)}")
        for node in self.nodes:
            if node.group not in self.groups:
                raise ValueError(f"node '{node.name}' is of group '{node.group}'; there are {', '.join(self.groups)}")
        for edge in self.edges:
            if not {edge.source, edge.target} <= set(names):
                raise ValueError(
                    f"an edge goes from '{edge.source}' to '{edge.target}'; there are the nodes {', '.join(names)}"
                )
        return self

    def node(self, name: str) -> Node:
        """The node of that name."""
        return next(node for node in self.nodes if node.name == name)

    def uses(self, split: Literal["train", "test"]) -> tuple[Edge, ...]:
        """The edges that training walks, or test walks, may take."""
        return tuple(edge for edge in self.edges if edge.split in (split, "both"))


def check_graph(graph: Graph) -> None:
    """Refuse a graph with nodes that no walk reaches, or from which no walk reaches an end."""
    starts = {node.name for node in graph.nodes if node.start}
    ends = {node.name for node in graph.nodes if node.end}
    reached: set[str] = set()
    finishing: set[str] = set()
    for split in ("train", "test"):
        edges = [(edge.source, edge.target) for edge in graph.uses(split)]
        reached |= _reachable(starts, edges)
        finishing |= _reachable(ends, [(target, source) for source, target in edges])
    for node in graph.nodes:
        if node.name not in reached:
            raise UsageError(
                f"the sampling graph never reaches node '{node.name}': add an edge to it from a node that is "
                "reached, or make it a start"
            )
        if node.name not in finishing:
            raise UsageError(
                f"node '{node.name}' of the sampling graph is a dead end: add an edge from it to a node from "
                "which an end is reached, or make it an end"
            )


def _reachable(seeds: Collection[str], edges: Iterable[tuple[str, str]]) -> set[str]:
    reached = set(seeds)
    frontier = list(seeds)
    while frontier:
        node = frontier.pop()
        for source, target in edges:
            if source == node and target not in reached:
                reached.add(target)
                frontier.append(target)
    return reached


class World(FrozenModel):
    """`symbols` by name, `functions` by name as tables (the symbol that each symbol becomes), and the `graph`.

    `symbols` may be given as a number, and `groups` beside the graph. In a file, tables and symbol sets may use the
    names of symbols.

    >>> world = World.model_validate({"symbols": 2, "functions": {"a": [0, 1], "b": [1, 0]},
    ...                               "groups": {"g": ["a", "b"]},
    ...                               "graph": {"edges": [{"from": "g", "to": "g", "in": "train"}]}})
    >>> world.symbols, world.tables.tolist(), world.group_of.tolist()
    (('0', '1'), [[0, 1], [1, 0]], [0, 0])
    """

    symbols: tuple[str, ...]
    functions: dict[str, tuple[int, ...]]
    graph: Graph

    @model_validator(mode="before")
    @classmethod
    def _normalize(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        world = dict(data)
        if isinstance(world.get("symbols"), int):
            world["symbols"] = list(map(str, range(world["symbols"])))
        if "groups" in world and isinstance(world.get("graph"), Mapping):
            world["graph"] = {"groups": world.pop("groups"), **world["graph"]}
        return world

    @field_validator("graph")
    @classmethod
    def _check_groups(cls, graph: Graph) -> Graph:
        _require_function_lists(graph.groups)
        return graph

    @model_validator(mode="after")
    def _check(self) -> Self:
        n = len(self.symbols)
        if len(set(self.symbols)) != n or n < 2:
            raise ValueError(f"a world needs at least two symbols, each named once; got {list(self.symbols)}")
        for name, table in self.functions.items():
            if len(table) != n or not set(table) <= set(range(n)):
                raise ValueError(f"function '{name}' needs {n} symbols 0 … {n - 1}; got {list(table)}")
        members = list(chain.from_iterable(self.groups.values()))
        for function in members:
            if function not in self.functions:
                raise ValueError(f"a group lists the function '{function}', which has no table")
        for function in [*members, *self.functions]:
            if members.count(function) != 1:
                raise ValueError(f"every function belongs to one group; '{function}' is in {members.count(function)}")
        for edge in self.graph.edges:
            for function, symbols in (edge.symbols or {}).items():
                if function not in self.groups[self.graph.node(edge.target).group]:
                    raise ValueError(
                        f"the edge {edge.source} → {edge.target} restricts '{function}', "
                        f"which is not a function of {edge.target}"
                    )
                if not set(symbols) <= set(range(n)):
                    raise ValueError(
                        f"the edge {edge.source} → {edge.target} allows '{function}' at "
                        f"{list(symbols)}; symbols are 0 … {n - 1}"
                    )
        return self

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """The functions of each group."""
        return {name: members for name, members in self.graph.groups.items() if not isinstance(members, int)}

    @cached_property
    def tables(self) -> Ints:
        """The functions as an array (functions, symbols)."""
        return np.array(list(self.functions.values()), np.int64)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the functions, by id."""
        return tuple(self.functions)

    @cached_property
    def group_of(self) -> Ints:
        """The index of each function's group, (functions,)."""
        groups = list(self.groups)
        return np.array([groups.index(self.group_name(function)) for function in self.functions], np.int64)

    def group_name(self, function: str) -> str:
        """The name of a function's group."""
        return next(group for group, members in self.groups.items() if function in members)

    def members(self, group: str) -> Ints:
        """The ids of a group's functions, ascending."""
        return np.array(sorted(self.names.index(name) for name in self.groups[group]), np.int64)

    def save(self, path: str | Path) -> None:
        """Write the world as JSON; `load_world` reads it."""
        Path(path).write_text(json.dumps(self.model_dump(mode="json"), ensure_ascii=False) + "\n", encoding="utf-8")


class GraphSubstitute(FrozenModel):
    """The contents of a world file that has no graph: the functions of each group, and the symbol sets of S."""

    groups: dict[str, tuple[str, ...] | int] = Field(default_factory=dict)
    symbol_sets: dict[str, dict[str, tuple[int, ...]]] = Field(default_factory=dict)

    @field_validator("groups")
    @classmethod
    def _check_groups(cls, groups: dict[str, tuple[str, ...] | int]) -> dict[str, tuple[str, ...] | int]:
        _require_function_lists(groups)
        return groups


def _require_function_lists(groups: Mapping[str, Any]) -> None:
    for name, members in groups.items():
        if isinstance(members, int):
            raise ValueError(f"a world lists the functions of every group; '{name}' has a number")


# Reading worlds


def load_world(path: str | Path) -> World:
    """Read and check the world in a JSON file."""
    return make_world(read_json(path, "a world"), str(path))


def read_json(path: str | Path, expected: str) -> Any:
    """Read the JSON value in a file; `expected` says in errors what it should be."""
    try:
        return json.loads(read_at_most(Path(path), MOST_BYTES).decode("utf-8"))
    except UsageError:
        raise
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: expected {expected} as JSON; {error}") from None


def make_world(data: Any, origin: str, complete: Callable[[Mapping[str, Any]], Any] = dict) -> World:
    """Make a world from plain data and check it.

    `complete` may add the parts that a file leaves to its task (the graph); `origin` names the data in errors.
    """
    if not isinstance(data, Mapping):
        raise UsageError(f"{origin}: expected an object with the keys symbols, functions, groups, graph")
    data = _resolve_symbol_names(data)
    parse_model(GraphSubstitute, {key: data[key] for key in GraphSubstitute.model_fields if key in data}, origin)
    try:
        completed = complete(data)
    except UsageError as error:
        raise UsageError(f"{origin}: {error}") from None
    return parse_model(World, completed, origin)


def parse_model(model: type[Model], data: Any, origin: str) -> Model:
    """Validate plain data; the first complaint becomes a one-line error."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(map(str, first["loc"]))
        prefix = f"{location}: " if location else ""
        raise UsageError(f"{origin}: {prefix}{first['msg'].removeprefix('Value error, ')}") from None


def _resolve_symbol_names(data: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the names of symbols by their numbers, in tables and in symbol sets."""
    names = data.get("symbols")
    if isinstance(names, int):
        names = list(map(str, range(names)))
    index = {}
    for number, name in enumerate(names if isinstance(names, list) else ()):
        if isinstance(name, str):
            index[name] = number

    def resolve(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: resolve(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [index.get(item, item) if isinstance(item, str) else item for item in value]
        return value

    resolved = dict(data)
    for key in ("functions", "symbol_sets"):
        if key in data:
            resolved[key] = resolve(data[key])
    graph = data.get("graph")
    if isinstance(graph, Mapping) and isinstance(graph.get("edges"), list):
        edges = []
        for edge in graph["edges"]:
            has_symbols = isinstance(edge, Mapping) and "symbols" in edge
            edges.append({**edge, "symbols": resolve(edge["symbols"])} if has_symbols else edge)
        resolved["graph"] = {**graph, "edges": edges}
    return resolved


# Drawing worlds


def draw_tables(
    symbols: int, functions: int, task_seed: int, bijective: bool = True, distinct: bool = True
) -> list[tuple[int, ...]]:
    """Draw random tables: permutations of the symbols, or (not `bijective`) any maps; all different if `distinct`.

    Tables are numbered, numbers are drawn, and each number is turned into its table.
    """
    population = factorial(symbols) if bijective else symbols**symbols
    if distinct and functions > population:
        raise UsageError(f"cannot draw {functions} different functions of {symbols} symbols: only {population} exist")
    draws = stream("ctl tables", symbols, functions, bijective, distinct, task_seed).block()
    if distinct:
        # A subset comes in no particular order, which is not the same as a random order.
        numbers = draw_subset(draws, population, functions)[draws.permutation(functions)].tolist()
    else:
        numbers = [int(draw_subset(draws, population, 1)[0]) for _ in range(functions)]
    tables = []
    for number in numbers:
        remaining = list(range(symbols))
        table = []
        for position in range(symbols):
            if bijective:
                # Lexicographic order: (symbols − 1 − position)! permutations share each choice of this symbol.
                choice, number = divmod(number, factorial(symbols - 1 - position))
                table.append(remaining.pop(choice))
            else:
                number, symbol = divmod(number, symbols)
                table.append(symbol)
        tables.append(tuple(table))
    return tables


def assign_functions(groups: Mapping[str, int | Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Name the functions of groups given by size, in consecutive blocks; a group given as a list keeps its names.

    Names are a … z, A … Z, then f52, f53, …

    >>> assign_functions({"a": 2, "b": 1})
    {'a': ('a', 'b'), 'b': ('c',)}
    """
    used: set[str] = set()
    for members in groups.values():
        used.update(() if isinstance(members, int) else members)
    unused = filterfalse(used.__contains__, chain(string.ascii_letters, map("f{}".format, count(52))))
    assigned = {}
    for group, members in groups.items():
        assigned[group] = tuple(islice(unused, members)) if isinstance(members, int) else tuple(members)
    return assigned


def equal_sizes(total: int, parts: int) -> list[int]:
    """Divide a total into `parts` sizes that differ by one at most, larger ones first.

    >>> equal_sizes(32, 3)
    [11, 11, 10]
    """
    return [total // parts + (position < total % parts) for position in range(parts)]

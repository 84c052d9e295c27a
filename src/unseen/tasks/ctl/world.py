"""A world: symbols, functions as tables, groups and the sampling graph. Explicit in, explicit out."""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from pydantic import Field, ValidationError, field_validator, model_validator

from unseen.errors import UsageError
from unseen.randomness import Ints
from unseen.tasks.ctl.graph import Graph, Plain

Model = TypeVar("Model", bound=Plain)
Groups = TypeVar("Groups", bound=Mapping[str, Any])


def listed(groups: Groups) -> Groups:
    """The same groups, if all of them are lists of functions."""
    sized = [name for name, members in groups.items() if isinstance(members, int)]
    if sized:
        raise ValueError(f"a world lists the functions of every group; '{sized[0]}' has a number")
    return groups


class World(Plain):
    """`symbols` by name, `functions` by name as tables (the symbol each symbol becomes), and the `graph`.

    In a file `symbols` may be a number, tables and sets of symbols may hold their names, and `groups` may stand beside
    the graph.

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
    def _plain_forms(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        world = dict(given)
        if isinstance(world.get("symbols"), int):
            world["symbols"] = [str(symbol) for symbol in range(world["symbols"])]
        if "groups" in world and isinstance(world.get("graph"), Mapping):
            world["graph"] = {"groups": world.pop("groups"), **world["graph"]}
        names = world.get("symbols")
        if isinstance(names, Sequence) and isinstance(world.get("functions"), Mapping):
            index = {str(name): place for place, name in enumerate(names)}
            world["functions"] = {
                name: [index.get(s, s) if isinstance(s, str) else s for s in table]
                if isinstance(table, Sequence)
                else table
                for name, table in world["functions"].items()
            }
        return world

    @field_validator("graph")
    @classmethod
    def _groups_list_functions(cls, graph: Graph) -> Graph:
        listed(graph.groups)
        return graph

    @model_validator(mode="after")
    def _fits(self) -> Self:
        n = len(self.symbols)
        if len(set(self.symbols)) != n or n < 2:
            raise ValueError(f"a world needs at least two symbols, each named once; got {list(self.symbols)}")
        for name, table in self.functions.items():
            if len(table) != n or not all(0 <= symbol < n for symbol in table):
                raise ValueError(f"function '{name}' needs {n} symbols 0 … {n - 1}; got {list(table)}")
        listed = [function for members in self.groups.values() for function in members]
        for function in listed:
            if function not in self.functions:
                raise ValueError(f"a group lists the function '{function}', which has no table")
        if len(set(listed)) != len(listed) or set(listed) != set(self.functions):
            odd = next(f for f in [*listed, *self.functions] if listed.count(f) != 1)
            raise ValueError(f"every function belongs to one group; '{odd}' is in {listed.count(odd)}")
        for edge in self.graph.edges:
            for function, allowed in (edge.symbols or {}).items():
                if function not in self.groups[self.graph.node(edge.target).group]:
                    raise ValueError(
                        f"the edge {edge.source} → {edge.target} restricts '{function}', "
                        f"which is no function of {edge.target}"
                    )
                if not all(0 <= symbol < n for symbol in allowed):
                    raise ValueError(
                        f"the edge {edge.source} → {edge.target} allows '{function}' at "
                        f"{list(allowed)}; symbols are 0 … {n - 1}"
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
        """The number of each function's group."""
        place = {function: g for g, members in enumerate(self.groups.values()) for function in members}
        return np.array([place[name] for name in self.functions], np.int64)

    def members(self, group: str) -> Ints:
        """The ids of a group's functions, ascending."""
        return np.array(sorted(self.names.index(name) for name in self.groups[group]), np.int64)

    def save(self, path: str | Path) -> None:
        """Write the world as JSON; `load_world` reads it."""
        Path(path).write_text(json.dumps(self.model_dump(mode="json"), ensure_ascii=False) + "\n", encoding="utf-8")


class Beside(Plain):
    """What a world file may have instead of a graph: the functions of groups, and S's symbol sets."""

    groups: dict[str, tuple[str, ...] | int] = Field(default_factory=dict)
    symbol_sets: dict[str, dict[str, tuple[int, ...]]] = Field(default_factory=dict)

    @field_validator("groups")
    @classmethod
    def _listed(cls, groups: dict[str, tuple[str, ...] | int]) -> dict[str, tuple[str, ...] | int]:
        return listed(groups)


def read_json(path: str | Path, what: str) -> Any:
    """The JSON value in a file; what cannot be read is wrong use."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"{path}: expected {what} as JSON; {error}") from None


def make_world(given: Any, where: str, complete: Callable[[Mapping[str, Any]], Any] = dict) -> World:
    """The world that plain data describe, checked; `complete` may add to them first, `where` names them in errors."""
    if not isinstance(given, Mapping):
        raise UsageError(f"{where}: expected an object with the keys symbols, functions, groups, graph")
    given = _numbered(given)
    validated(Beside, {key: given[key] for key in Beside.model_fields if key in given}, where)
    try:
        whole = complete(given)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    return validated(World, whole, where)


def _numbered(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same with the numbers of symbols wherever sets of symbols have their names."""
    names = given.get("symbols")
    index = {name: place for place, name in enumerate(names)} if isinstance(names, list) else {}
    index = {name: place for name, place in index.items() if isinstance(name, str)}

    def number(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: number(one) for key, one in value.items()}
        if isinstance(value, list):
            return [index.get(one, one) if isinstance(one, str) else one for one in value]
        return value

    found = dict(given)
    if "symbol_sets" in given:
        found["symbol_sets"] = number(given["symbol_sets"])
    graph = given.get("graph")
    if isinstance(graph, Mapping) and isinstance(graph.get("edges"), list):
        found["graph"] = {
            **graph,
            "edges": [
                {**edge, "symbols": number(edge["symbols"])}
                if isinstance(edge, Mapping) and "symbols" in edge
                else edge
                for edge in graph["edges"]
            ],
        }
    return found


def validated(kind: type[Model], given: Any, where: str) -> Model:
    """A part of a config from plain data; the first complaint is the error."""
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        what = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{where}: {place + ': ' if place else ''}{what}") from None


def load_world(path: str | Path) -> World:
    """The world in a JSON file, checked."""
    return make_world(read_json(path, "a world"), str(path))


def function_names(count: int) -> list[str]:
    """a … z, A … Z, then f52, f53, …

    >>> function_names(54)[24:28], function_names(54)[-2:]
    (['y', 'z', 'A', 'B'], ['f52', 'f53'])
    """
    letters = string.ascii_letters
    return [letters[i] if i < len(letters) else f"f{i}" for i in range(count)]


def share_out(groups: Mapping[str, int | Sequence[str]], functions: int) -> dict[str, tuple[str, ...]]:
    """Function names for groups given by size: consecutive blocks; a group given as a list keeps it.

    >>> share_out({"a": 2, "b": 1}, 3)
    {'a': ('a', 'b'), 'b': ('c',)}
    """
    listed = {name for members in groups.values() if not isinstance(members, int) for name in members}
    free = iter([name for name in function_names(functions) if name not in listed])
    wanted = sum(members if isinstance(members, int) else len(members) for members in groups.values())
    if wanted != functions:
        raise UsageError(f"the groups have {wanted} functions, the task {functions}; set functions = {wanted}")
    return {
        group: tuple(next(free) for _ in range(members)) if isinstance(members, int) else tuple(members)
        for group, members in groups.items()
    }


def parts(total: int, count: int) -> list[int]:
    """Sizes of `count` parts as equal as can be, larger ones first.

    >>> parts(32, 3)
    [11, 11, 10]
    """
    return [total // count + (place < total % count) for place in range(count)]

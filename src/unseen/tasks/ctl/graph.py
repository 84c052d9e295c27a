"""The sampling graph: which function may follow which, in training, in testing, or in both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, PositiveInt, model_validator

Split = Literal["train", "test", "both"]


class Plain(BaseModel):
    """A strict, frozen part of a config, hashable although it holds tables."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(getattr(self, k) == getattr(other, k) for k in type(self).model_fields)

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


class Node(Plain):
    """A place of the walk: the next function comes from `group`. A group may serve as several nodes."""

    name: str
    group: str
    start: bool = True
    end: bool = True

    @model_validator(mode="before")
    @classmethod
    def _named_alike(cls, given: Any) -> Any:
        """A node named like its group needs to say so once."""
        return {**given, "group": given.get("group", given.get("name"))} if isinstance(given, Mapping) else given


class Edge(Plain):
    """Functions of `target` may follow functions of `source`.

    `symbols` lists, for a function of `target`, the symbols at which it may be entered; those not listed may be
    entered at any. In files, `from`, `to` and `in` are understood, too.
    """

    source: str = Field(validation_alias=AliasChoices("source", "from"))
    target: str = Field(validation_alias=AliasChoices("target", "to"))
    split: Split = Field(validation_alias=AliasChoices("split", "in"))
    symbols: dict[str, tuple[int, ...]] | None = None


class Graph(Plain):
    """Groups, nodes and edges. A group is a list of function names or a size; without nodes, each group is one.

    Training and IID examples are walks from a start to an end over `train` and `both` edges. Out-of-distribution
    examples are walks over `test` and `both` edges with at least one `test` edge.

    >>> graph = Graph.model_validate({"groups": {"a": 2, "b": 2}, "edges": [{"from": "a", "to": "b", "in": "train"}]})
    >>> [node.name for node in graph.nodes], graph.edges[0].source
    (['a', 'b'], 'a')
    """

    groups: dict[str, PositiveInt | tuple[str, ...]]
    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...]

    @model_validator(mode="before")
    @classmethod
    def _one_node_per_group(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and not given.get("nodes") and isinstance(given.get("groups"), Mapping):
            return {**given, "nodes": [{"name": name} for name in given["groups"]]}
        return given

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        names = [node.name for node in self.nodes]
        if len(set(names)) != len(names):
            raise ValueError(f"two nodes have the same name: {', '.join(names)}")
        for node in self.nodes:
            if node.group not in self.groups:
                raise ValueError(f"node '{node.name}' is of group '{node.group}'; there are {', '.join(self.groups)}")
        for edge in self.edges:
            for end in (edge.source, edge.target):
                if end not in names:
                    raise ValueError(
                        f"an edge goes from '{edge.source}' to '{edge.target}'; there are the nodes {', '.join(names)}"
                    )
        return self

    def node(self, name: str) -> Node:
        """The node of that name."""
        return next(node for node in self.nodes if node.name == name)

    def uses(self, split: Literal["train", "test"]) -> tuple[Edge, ...]:
        """The edges over which the walks of a language go: its own and those of both."""
        return tuple(edge for edge in self.edges if edge.split in (split, "both"))

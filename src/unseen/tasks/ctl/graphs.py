"""The sampling graphs there are names for, A, R and S, and any other from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field as Option
from pydantic import field_validator, model_validator

from unseen.tasks.ctl.graph import Graph
from unseen.tasks.ctl.presets import Include
from unseen.tasks.ctl.systematic import Systematic
from unseen.tasks.ctl.variants import (
    BRIDGE,
    Cut,
    cyclic,
    draw_symbol_sets,
    letters,
    read_symbol_sets,
    stage_groups,
    staged,
)
from unseen.tasks.ctl.world import parts, read_json, validated

Groups = Mapping[str, Sequence[str]]
Several = Annotated[int, Option(ge=2)]


class Alternating(Systematic):
    """Functions in groups. A trains on chains that go on to the next group, R on chains that stay in one.

        A, groups a = {a, b}, b = {c, d}:    d a 3 → training;    b a 3 → test
        R, the same groups:                  b a 3 → training;    d a 3 → test

    With more than two groups A goes round in a circle; `test_skips` says how many groups on a test chain may go
    (default: all that training does not).
    """

    instance: ClassVar[frozenset[str]] = frozenset({"task_seed"})

    name: Literal["ctl/A", "ctl/R"]
    groups: Several = Option(2, description="into how many groups the functions are divided")
    test_skips: tuple[int, ...] | None = Option(
        None, description="how many groups on a test chain may go; None: all that training does not"
    )

    @model_validator(mode="after")
    def _skips_fit(self) -> Self:
        if self.functions < self.groups:
            raise ValueError(f"functions = {self.functions}: each of {self.groups} groups needs one")
        skips = self.test_skips
        if skips is not None and (not skips or self.train_skip in skips or set(skips) - set(range(self.groups))):
            raise ValueError(
                f"test_skips = {skips}: choose among 0 … {self.groups - 1} without {self.train_skip}, "
                "which is training's"
            )
        return self

    @property
    def train_skip(self) -> int:
        """How many groups on a training chain goes."""
        return 1 if self.name == "ctl/A" else 0

    def group_sizes(self) -> Mapping[str, int | Sequence[str]]:
        return dict(zip(letters(self.groups), parts(self.functions, self.groups), strict=True))

    def make_graph(self, groups: Groups, given: Mapping[str, Any]) -> Mapping[str, Any]:
        skips = self.test_skips or [skip for skip in range(len(groups)) if skip != self.train_skip]
        return cyclic(groups, [self.train_skip], skips)


class Staged(Systematic):
    """S: blocks of two functions, one per stage. Training stays on a path or crosses the bridge; testing changes path.

        groups a1 = {a}, a2 = {b}, b1 = {c}, b2 = {d}, o = {e}:
        b a 3 → training;    d a 3 → test
        e a 3 → training, if a(3) is one of the symbols at which path a may enter e

    `bridge` is the paper's o, the number of functions in the bridge, and `shared` its k, the number of symbols at which
    every path may enter such a function; the others are divided among the paths.
    """

    name: Literal["ctl/S"]
    bridge: int = Option(4, ge=0, description="functions of the bridge (the paper's o)")
    shared: int = Option(
        2, ge=0, description="symbols at which every path may enter a function of the bridge (the paper's k)"
    )
    paths: Several = Option(2, description="how many paths there are")
    stages: Several = Option(2, description="functions of a block, one per stage")
    bridge_stage: Several | None = Option(None, description="the stage that the bridge stands in for; None: the last")
    symbol_cut: Cut = Option("ascending", description="how the symbols that are not shared are divided among the paths")

    @model_validator(mode="after")
    def _bridge_fits(self) -> Self:
        if self.bridge_stage is not None and self.bridge_stage > self.stages:
            raise ValueError(f"bridge_stage = {self.bridge_stage}: there are {self.stages} stages")
        if self.world is None and self.shared > self.symbols:
            raise ValueError(f"shared = {self.shared}: there are {self.symbols} symbols")
        if self.world is None and self.bridge and self.bridge * self.shared < self.symbols:
            raise ValueError(
                f"bridge · shared = {self.bridge * self.shared}: the symbols shared at the bridge cannot "
                f"cover all {self.symbols}; make bridge or shared larger"
            )
        return self

    @property
    def include(self) -> Include:
        return self.always_include or self.fields_of_preset.include_staged

    def group_sizes(self) -> Mapping[str, int | Sequence[str]]:
        return stage_groups(self.functions, self.bridge, self.paths, self.stages)

    def make_graph(self, groups: Groups, given: Mapping[str, Any]) -> Mapping[str, Any]:
        stage = self.bridge_stage or self.stages
        bridge = list(groups.get(BRIDGE, ()))
        if not given:
            sets = draw_symbol_sets(bridge, self.symbols, self.shared, self.paths, self.symbol_cut, self.task_seed)
        else:
            sets = read_symbol_sets(given.get("symbol_sets", {}), bridge, self.paths, stage)
        return staged(groups, sets, self.paths, self.stages, stage)


EXAMPLE: dict[str, Any] = {
    "groups": {"a": 11, "b": 11, "c": 10},
    "edges": [
        {"source": pair[0], "target": pair[1], "split": split}
        for split, pairs in (("both", ("ab", "bc", "ca")), ("test", ("ac", "cb", "ba")))
        for pair in pairs
    ],
}
"""Three groups in a circle; test chains turn back at least once."""


class FromGraph(Systematic):
    """Any sampling graph, from a JSON file or as plain data: groups, nodes and edges. The default is an example.

    Groups are lists of function names or sizes. Ambiguous graphs, unreachable nodes, dead ends, empty languages,
    functions that training never shows, and examples that are both training and test are refused.
    """

    name: Literal["ctl/graph"]
    graph: Graph = Option(
        Graph.model_validate(EXAMPLE), description="the sampling graph, or the path of a JSON file with one"
    )

    @field_validator("graph", mode="before")
    @classmethod
    def _read_graph(cls, value: Any) -> Any:
        """A file may be named by its path: what it says enters the config, not where it lies."""
        if isinstance(value, str | Path):
            return validated(Graph, read_json(value, "a sampling graph"), str(value))
        return value

    @model_validator(mode="after")
    def _graph_makes_sense(self) -> Self:
        if self.world is None:
            self.check_world()
        return self

    def group_sizes(self) -> Mapping[str, int | Sequence[str]]:
        return self.graph.groups

    def make_graph(self, groups: Groups, given: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**self.graph.model_dump(), "groups": groups}

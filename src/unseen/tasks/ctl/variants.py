"""The sampling graphs that have names, A, R and S, and any other graph of the user's.

Graphs are made as plain data, in the form in which a user writes them (`world.Graph`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field as Option
from pydantic import field_validator, model_validator

from unseen.errors import UsageError
from unseen.randomness import Draws, stream
from unseen.tasks.ctl.splits import Systematic
from unseen.tasks.ctl.task import Include
from unseen.tasks.ctl.world import Graph, equal_sizes, parse_model, read_json

AtLeastTwo = Annotated[int, Option(ge=2)]
Groups = Mapping[str, Sequence[str]]
SymbolCut = Literal["ascending", "random"]
SymbolSets = dict[str, dict[str, list[int]]]
"""For each path and each function of the bridge, the symbols at which the path may enter it."""

BRIDGE = "o"
_LETTERS = "abcdefghijklmnpqrstuvwxyz"  # names of groups and paths; o is the bridge


def group_letters(count: int) -> list[str]:
    """The names of groups or paths: a, b, c, …"""
    if count > len(_LETTERS):
        raise UsageError(f"at most {len(_LETTERS)} groups or paths have names; got {count}")
    return list(_LETTERS[:count])


class Alternating(Systematic):
    """A and R: functions in groups. A trains on chains that go on to the next group, R on chains that stay in one.

    With two groups, a = {a, b} and b = {c, d}:

        A:    d a 3 → training    b a 3 → test
        R:    b a 3 → training    d a 3 → test
        a 3 (a function alone) is in training in both: it has no transition

    >>> from unseen.tasks import task
    >>> from unseen.tasks.ctl.automaton import training_fault
    >>> small = {"functions": 4, "train_size": 40, "iid_size": 2, "ood_size": 2, "max_length": 3}
    >>> for name in ("ctl/A", "ctl/R"):
    ...     world = task(name, on_shortage="take_all", **small).actual_world
    ...     [training_fault(world, functions, 3) is None for functions in (["a", "d"], ["a", "b"], ["a"])]
    [True, False, True]
    [False, True, True]

    With more groups, A goes round in a circle; `test_skips` says how many groups ahead the next function of a test
    chain may be (by default anything that training does not do).

    With `coverage`, training has a part of the combinations of test chains: after each group, that share of the functions of
    a group that a test chain may go on to. No step of a test chain is one of them.
    """

    instance_options: ClassVar[frozenset[str]] = frozenset({"task_seed"})

    name: Literal["ctl/A", "ctl/R"]
    groups: AtLeastTwo = Option(2, description="number of groups the functions are divided into")
    test_skips: tuple[int, ...] | None = Option(
        None, description="how many groups ahead a test chain may go; None: anything that training does not do"
    )
    coverage: float = Option(
        0.0,
        ge=0,
        lt=1,
        description="share of the combinations of a group and a next function of test chains that training has",
    )

    @model_validator(mode="after")
    def _check_skips(self) -> Self:
        if self.functions < self.groups:
            raise ValueError(f"functions = {self.functions}: each of {self.groups} groups needs one")
        if self.coverage and self.preset == "released":
            raise ValueError("coverage: the published code estimates sizes without it; use the preset clean or paper")
        skips = self.test_skips
        if skips is not None and (not skips or self.train_skip in skips or set(skips) - set(range(self.groups))):
            raise ValueError(
                f"test_skips = {skips}: choose among 0 … {self.groups - 1} without {self.train_skip}, "
                "which is training's"
            )
        return self

    @property
    def train_skip(self) -> int:
        """How many groups ahead the next function of a training chain is."""
        return 1 if self.name == "ctl/A" else 0

    def group_sizes(self) -> Mapping[str, int | Sequence[str]]:
        return dict(zip(group_letters(self.groups), equal_sizes(self.functions, self.groups), strict=True))

    def make_graph(self, groups: Groups, file_data: Mapping[str, Any]) -> Mapping[str, Any]:
        names = list(groups)
        test_skips = self.test_skips or [skip for skip in range(len(groups)) if skip != self.train_skip]
        edges: list[dict[str, Any]] = []
        for split, skips in (("train", [self.train_skip]), ("test", test_skips)):
            for index, name in enumerate(names):
                for skip in skips:
                    target = names[(index + skip) % len(names)]
                    edge = {"source": name, "target": target, "split": split}
                    if split == "train" or not self.coverage:
                        edges.append(edge)
                    else:
                        edges += self._cover(edge, groups[target])
        return {"groups": dict(groups), "edges": edges}

    def _cover(self, edge: dict[str, Any], functions: Sequence[str]) -> list[dict[str, Any]]:
        """A test edge as one that training walks to some of the functions, and one that test chains walk to the others."""
        draws = stream("ctl coverage", edge["source"], edge["target"], len(functions), self.task_seed).block()
        # More coverage adds functions to the same ones. One at least stays unseen.
        count = min(round(self.coverage * len(functions)), len(functions) - 1)
        covered = {functions[index] for index in draws.permutation(len(functions))[:count].tolist()}
        if not covered:
            raise UsageError(
                f"coverage = {self.coverage}: that is none of the {len(functions)} functions of group {edge['target']}; "
                "set a larger coverage or more functions"
            )
        closed: dict[str, list[str]] = {function: [] for function in functions if function not in covered}
        closed_to_test: dict[str, list[str]] = {function: [] for function in functions if function in covered}
        return [{**edge, "split": "train", "symbols": closed}, {**edge, "symbols": closed_to_test}]


class Staged(Systematic):
    """S: blocks of one function per stage. Training stays on a path or crosses the bridge; testing changes the path.

    With two paths and two stages, groups a1 = {a}, a2 = {b}, b1 = {c}, b2 = {d}, and the bridge o = {e}:

        b a 3 → training (path a)    d a 3 → test (from path a to path b)
        e a 3 → training only if a(3) is one of the symbols at which path a may enter e; otherwise in no language

    `bridge` is the paper's o, the number of functions in the bridge. `shared` is its k, the number of symbols at which
    every path may enter such a function; the other symbols are divided among the paths.
    """

    name: Literal["ctl/S"]
    bridge: int = Option(4, ge=0, description="functions of the bridge (the paper's o)")
    shared: int = Option(
        2, ge=0, description="symbols at which every path may enter a function of the bridge (the paper's k)"
    )
    paths: AtLeastTwo = Option(2, description="number of paths")
    stages: AtLeastTwo = Option(2, description="functions of a block, one per stage")
    bridge_stage: AtLeastTwo | None = Option(None, description="the stage that the bridge replaces; None: the last")
    symbol_cut: SymbolCut = Option(
        "ascending", description="how the symbols that are not shared are divided among the paths"
    )

    @model_validator(mode="after")
    def _check_bridge(self) -> Self:
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
    def actual_include(self) -> Include:
        return self.always_include or self.preset_rules.include_staged

    def group_sizes(self) -> Mapping[str, int | Sequence[str]]:
        names = []
        for path in group_letters(self.paths):
            for stage in range(1, self.stages + 1):
                names.append(f"{path}{stage}")
        remaining = self.functions - self.bridge
        if remaining < len(names):
            raise UsageError(
                f"{self.functions} functions, {self.bridge} of them in the bridge, leave {remaining} for "
                f"{len(names)} groups; every group needs one"
            )
        sizes = {BRIDGE: self.bridge} if self.bridge else {}
        return sizes | dict(zip(names, equal_sizes(remaining, len(names)), strict=True))

    def make_graph(self, groups: Groups, file_data: Mapping[str, Any]) -> Mapping[str, Any]:
        stages = self.stages
        bridge_stage = self.bridge_stage or stages
        functions = list(groups.get(BRIDGE, ()))
        if file_data:
            sets = read_symbol_sets(file_data.get("symbol_sets", {}), functions, self.paths, bridge_stage)
        else:
            sets = draw_symbol_sets(functions, self.symbols, self.shared, self.paths, self.symbol_cut, self.task_seed)
        paths = group_letters(self.paths)
        nodes: list[dict[str, Any]] = []
        edges: list[dict[str, Any]] = []

        def connect(source: str, target: str, split: str, symbols: dict[str, list[int]] | None = None) -> None:
            edges.append({"source": source, "target": target, "split": split, "symbols": symbols})

        for path in paths:
            for stage in range(1, stages + 1):
                name = f"{path}{stage}"
                nodes.append({"name": name, "group": name, "start": stage == 1, "end": stage == stages})
        for stage in range(1, stages):
            for path in paths:
                for next_path in paths:
                    split = "train" if next_path == path else "test"
                    connect(f"{path}{stage}", f"{next_path}{stage + 1}", split)
        # Blocks follow each other freely.
        for path in paths:
            for next_path in paths:
                connect(f"{path}{stages}", f"{next_path}1", "both")
        if functions and bridge_stage == stages:
            # At the last stage all paths share one bridge node, and any block may follow.
            nodes.append({"name": BRIDGE, "group": BRIDGE, "start": False, "end": True})
            for path in paths:
                connect(f"{path}{bridge_stage - 1}", BRIDGE, "train", sets[path])
            for path in paths:
                connect(BRIDGE, f"{path}1", "train")
        elif functions:
            # Before the last stage the bridge leads back to the path it was entered from: one node for each path.
            for path in paths:
                nodes.append({"name": f"{BRIDGE}{path}", "group": BRIDGE, "start": False, "end": False})
            for path in paths:
                connect(f"{path}{bridge_stage - 1}", f"{BRIDGE}{path}", "train", sets[path])
            for path in paths:
                connect(f"{BRIDGE}{path}", f"{path}{bridge_stage + 1}", "train")
        return {"groups": dict(groups), "nodes": nodes, "edges": edges}


def read_symbol_sets(data: Any, bridge: Sequence[str], paths: int, bridge_stage: int) -> SymbolSets:
    """The symbol sets of a world file: path → function of the bridge → symbols.

    A path is named by its letter, or by the group from which it enters the bridge.
    """
    sets: SymbolSets = {}
    for path in group_letters(paths) if bridge else []:
        path_sets = None
        if isinstance(data, Mapping):
            path_sets = data.get(path, data.get(f"{path}{bridge_stage - 1}"))
        if not isinstance(path_sets, Mapping) or set(path_sets) != set(bridge):
            raise UsageError(
                f"a world with a bridge {BRIDGE} needs symbol_sets (path → function → symbols) or a "
                f"graph; expected path '{path}' with the functions {', '.join(bridge)}"
            )
        sets[path] = dict(path_sets)
    return sets


def draw_symbol_sets(
    functions: Sequence[str], symbols: int, shared: int, paths: int, cut: SymbolCut, task_seed: int
) -> SymbolSets:
    """Draw the symbols at which each path may enter each function of the bridge.

    `shared` symbols are common to all paths: function by function they run cyclically through an order of the symbols,
    with a new random order after every pass. The other symbols are divided as equally as possible among the paths,
    ascending or at random; a single one goes to a random path.
    """
    draws = stream("ctl symbol sets", len(functions), symbols, shared, paths, cut, task_seed).block()
    order = list(range(symbols))
    sets: SymbolSets = {path: {} for path in group_letters(paths)}
    functions_per_pass = -(-symbols // shared) if shared else 0  # rounded up
    for index, function in enumerate(functions):
        if functions_per_pass and index and index % functions_per_pass == 0:
            order = _shuffle(draws, order)
        # `symbols` need not be a multiple of `shared`: the last function of a pass wraps around.
        common = {order[(index * shared + step) % symbols] for step in range(shared)}
        others = [symbol for symbol in range(symbols) if symbol not in common]
        if cut == "random":
            others = _shuffle(draws, others)
        # Sizes differ by one at most; a single symbol would always be the first path's, so it is dealt at random below.
        divided = []
        first = 0
        for size in equal_sizes(len(others), paths):
            divided.append(others[first : first + size])
            first += size
        if len(others) == 1:
            divided = [divided[position] for position in draws.permutation(paths)]
        for path, symbols_of_path in zip(sets, divided, strict=True):
            sets[path][function] = sorted(common | set(symbols_of_path))
    return sets


def _shuffle(draws: Draws, values: Sequence[int]) -> list[int]:
    return [values[position] for position in draws.permutation(len(values)).tolist()]


EXAMPLE_GRAPH: dict[str, Any] = {
    "groups": {"a": 11, "b": 11, "c": 10},
    "edges": [
        {"source": "a", "target": "b", "split": "both"},
        {"source": "b", "target": "c", "split": "both"},
        {"source": "c", "target": "a", "split": "both"},
        {"source": "a", "target": "c", "split": "test"},
        {"source": "c", "target": "b", "split": "test"},
        {"source": "b", "target": "a", "split": "test"},
    ],
}
"""Three groups in a circle; test chains turn back at least once."""


class FromGraph(Systematic):
    """Any sampling graph, from a JSON file or as plain data: groups, nodes and edges. The default is an example.

    Groups are lists of function names or sizes. Ambiguous graphs, unreachable nodes, dead ends, empty languages,
    functions that training never shows, and examples that are both training and test are refused.

    Examples with the default graph, a circle of three groups, by the groups of the functions in the order in which they
    are applied. Training goes around the circle; a test chain turns back at least once:

        train             b → c → a → b → c → a
        ood/transition    a → b → c → b: c → b is a test edge

    Edge case: training has every function alone, too, as a chain without a transition.

    >>> from unseen.tasks import task
    >>> graph = task("ctl/graph")
    >>> chain = graph.sample("train", 1)
    >>> print(graph.describe(chain, 0).splitlines()[-1])
    in the training language: b → c → a → b → c → a, training transitions all the way
    >>> print(graph.describe(graph.sample("ood/transition", 1, data_seed="test"), 0).splitlines()[-1])
    in the test language: l after D (c → b) is no training transition
    """

    name: Literal["ctl/graph"]
    graph: Graph = Option(
        Graph.model_validate(EXAMPLE_GRAPH), description="the sampling graph, or the path of a JSON file with one"
    )

    @field_validator("graph", mode="before")
    @classmethod
    def _read_graph(cls, value: Any) -> Any:
        """Replace the path of a file by its content: the config holds what the file says, not where it is."""
        if isinstance(value, str | Path):
            return parse_model(Graph, read_json(value, "a sampling graph"), str(value))
        return value

    @model_validator(mode="after")
    def _check_graph(self) -> Self:
        if self.world is None:
            self.check_world()
        return self

    def group_sizes(self) -> Mapping[str, int | Sequence[str]]:
        return self.graph.groups

    def make_graph(self, groups: Groups, file_data: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**self.graph.model_dump(), "groups": groups}

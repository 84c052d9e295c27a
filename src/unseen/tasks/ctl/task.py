"""Compositional table lookup: the base class of the tasks `ctl/*`, and their presets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field as Option
from pydantic import ValidationError, model_validator

from unseen.config import canonical
from unseen.errors import UsageError
from unseen.randomness import Bools, Draws, RandomStream, stream
from unseen.spec import Field, Spec, Stream, Target
from unseen.tasks.base import Array, DataSeed, Examples, Expressions, ForeignFileReport, Split, Task
from unseen.tasks.ctl.audit import judge_file, token_ceilings
from unseen.tasks.ctl.automaton import entries_after_groups
from unseen.tasks.ctl.encode import MARKERS, ChainCache, Chains, Order, encode
from unseen.tasks.ctl.render import describe, draw_picture
from unseen.tasks.ctl.sampling import DrawnSet, Sampling, SplitSource
from unseen.tasks.ctl.solver import Chain, compose, decode_all, solve
from unseen.tasks.ctl.variables import answer_with, list_variables
from unseen.tasks.ctl.world import (
    GraphSubstitute,
    World,
    assign_functions,
    draw_tables,
    make_world,
    parse_model,
    read_json,
)
from unseen.tasks.variables import Variables, split_name

Count = Annotated[int, Option(ge=1)]
PresetName = Literal["clean", "released", "paper"]
Include = Literal["singles", "pairs", "both", "none"]


@dataclass(frozen=True)
class LookupPreset:
    """How the training set is made where the presets disagree.

    - `sampling`: step by step as in the published code, or uniform over examples (they differ only in S);
    - `include`: which short examples are always in training;
    - `include_staged`: the same for S;
    - `counted`: whether these count towards the size of the training set, or are added to it, repeats included;
    - `disjoint`: whether IID examples are disjoint from the whole training set, or only from its drawn part;
    - `estimate`: whether lengths are allocated by the released code's estimate of how many examples exist, or exactly.
    """

    sampling: Sampling
    include: Include
    include_staged: Include
    counted: bool
    disjoint: bool
    estimate: bool


PRESETS: dict[PresetName, LookupPreset] = {
    "clean": LookupPreset("uniform", "singles", "none", counted=True, disjoint=True, estimate=False),
    "released": LookupPreset("stepwise", "pairs", "pairs", counted=False, disjoint=False, estimate=True),
    "paper": LookupPreset("stepwise", "singles", "none", counted=True, disjoint=True, estimate=False),
}

_DRAWN_SETS = ChainCache(2_000_000)  # some 30 MB


class Lookup(Task):
    """The answer is the symbol that a chain of functions makes of another symbol.

    Functions are tables over a few symbols. An example lists functions and a symbol; the function next to the symbol is
    applied first. With the tables a = [1, 0, 2, 3] (a turns 0 into 1, 1 into 0) and b = [3, 1, 2, 0] over the symbols
    0 … 3:

        b a 1      →  b(a(1)) = b(0) = 3
        a b a 1    →  a(b(a(1))) = a(3) = 3, the same answer by a longer way
        a 1        →  0: a function alone is the shortest chain

    >>> from unseen.tasks.ctl.solver import solve
    >>> a, b = [1, 0, 2, 3], [3, 1, 2, 0]
    >>> [solve([a, b], chain, 1) for chain in ([0, 1], [0, 1, 0], [0])]
    [3, 3, 0]

    Functions come in groups, and a sampling graph says which group may follow which in training and in testing. A test
    example contains something that training never shows: a transition between groups (`Systematic`) or a longer chain
    (`Lengths`). Every function by itself is well known from training.

    `task_seed` draws the world (tables, groups, symbol sets), unless `world` is set; the data seed draws the examples.
    The examples held out for validation and testing belong to the world: they are in no training set of any data seed.
    """

    report_by: ClassVar[tuple[str, ...]] = ("length",)
    interpretation_options: ClassVar[frozenset[str]] = frozenset({"order"})

    preset: PresetName = Option("clean", description="sound data, the published code's data, or the paper's data")
    symbols: int = Option(8, ge=2, le=1_000, description="number of symbols in the tables")
    bijective: bool = Option(True, description="every table is a permutation of the symbols")
    order: Order = Option("backward", description="the outermost function first and the symbol last, or the reverse")
    sampling: Sampling | None = Option(
        None, description="draw examples step by step along the graph, or uniformly; None: as in the preset"
    )
    task_seed: int = Option(0, ge=0, description="draws the world: tables, groups, symbol sets")
    world: World | None = Option(None, description="a world, or the path of a JSON file with one; None: drawn")

    # To be defined by subclasses

    def group_sizes(self) -> Mapping[str, int | Sequence[str]]:
        """The groups by size, or as lists of functions."""
        raise NotImplementedError

    def make_graph(self, groups: Mapping[str, Sequence[str]], file_data: Mapping[str, Any]) -> Mapping[str, Any]:
        """The sampling graph over groups of functions, as plain data; `file_data` is that of a world file, if any."""
        raise NotImplementedError

    @property
    def distinct_tables(self) -> bool:
        """Whether all tables that are drawn are different."""
        return True

    def make_split_sources(self) -> list[SplitSource]:
        """The splits and the sets their examples come from."""
        raise NotImplementedError

    @property
    def longest(self) -> int:
        """The number of functions of the longest training examples."""
        raise NotImplementedError

    # Worlds

    def draw_world(self) -> World:
        """Draw the world of the task seed."""
        groups = assign_functions(self.group_sizes())
        names = list(chain.from_iterable(groups.values()))
        tables = draw_tables(self.symbols, len(names), self.task_seed, self.bijective, self.distinct_tables)
        functions = dict(zip(names, tables, strict=True))
        data = {"symbols": self.symbols, "functions": functions, "graph": self.make_graph(groups, {})}
        return parse_model(World, data, f"{self.name}, sampling graph")

    def complete_world(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add the task's sampling graph to the data of a world file, if the file has groups and no graph."""
        if "graph" in data or not isinstance(data.get("groups"), Mapping):
            return data
        world = {key: value for key, value in data.items() if key not in GraphSubstitute.model_fields}
        return {**world, "graph": self.make_graph(data["groups"], data)}

    def read_world(self, source: Any) -> World:
        """Read a world from a file, given by its path, or from plain data."""
        if isinstance(source, str | Path):
            return make_world(read_json(source, "a world"), str(source), self.complete_world)
        return make_world(source, "world", self.complete_world)

    @model_validator(mode="before")
    @classmethod
    def _read_world(cls, options: Any) -> Any:
        """Replace the path of a world file by its content, and take the numbers of symbols and functions from it."""
        world = options.get("world") if isinstance(options, Mapping) else None
        if world is None:
            return options
        if not isinstance(world, World):
            others = {key: value for key, value in options.items() if key != "world"}
            # A world file may leave its graph to the task, so a task without the world has to be made first: of the
            # world's own sizes if they fit the other options, else of the default sizes.
            for sizes in (cls._sizes_in(world), {}):
                try:
                    world = cls.model_validate({**sizes, **others}).read_world(world)
                    break
                except ValidationError:
                    continue
            else:
                return others  # the other options are at fault: let pydantic report them
        sizes = {"symbols": len(world.symbols), "functions": len(world.functions)}
        return {**{key: size for key, size in sizes.items() if key in cls.model_fields}, **options, "world": world}

    @classmethod
    def _sizes_in(cls, world: Any) -> dict[str, int]:
        """The numbers of symbols and functions in a world file or its data, as far as they can be told."""
        if isinstance(world, str | Path):
            try:
                world = read_json(world, "a world")
            except UsageError:
                return {}  # reported when the world is read for good
        sizes: dict[str, int] = {}
        for key in ("symbols", "functions"):
            value = world.get(key) if isinstance(world, Mapping) else None
            if key in cls.model_fields and isinstance(value, int | list | Mapping):
                sizes[key] = value if isinstance(value, int) else len(value)
        return sizes

    @model_validator(mode="after")
    def _check_symbols(self) -> Self:
        if self.world is not None and len(self.world.symbols) != self.symbols:
            raise ValueError(f"the world has {len(self.world.symbols)} symbols, the option says {self.symbols}")
        return self

    @cached_property
    def actual_world(self) -> World:
        """The world of the option `world`, or the one that the task seed draws."""
        return self.world if self.world is not None else self.draw_world()

    @cached_property
    def trained_entries(self) -> Bools:
        """At which symbols training enters each function after each group, (groups, functions, symbols)."""
        return entries_after_groups(self.actual_world, self.actual_world.graph.uses("train"))

    # Splits and examples

    @property
    def preset_rules(self) -> LookupPreset:
        """The fields of the preset."""
        return PRESETS[self.preset]

    @property
    def actual_sampling(self) -> Sampling:
        """How examples are drawn: the option, or as in the preset."""
        return self.sampling or self.preset_rules.sampling

    @cached_property
    def split_sources(self) -> dict[str, SplitSource]:
        """The splits by name, with the sets their examples come from."""
        return {source.split.name: source for source in self.make_split_sources()}

    @cached_property
    def spec(self) -> Spec:
        functions, symbols = self.actual_world.tables.shape
        fields = Field("token", "category", symbols + functions + 2, "tokens"), Field("mask", "mask", 1, "tokens")
        return Spec((Stream("tokens", self.longest + MARKERS),), fields, Target("category", symbols))

    @property
    def splits(self) -> Mapping[str, Split]:
        return {name: source.split for name, source in self.split_sources.items()}

    def size(self, split: str) -> int | None:
        return len(self.split_sources[self.get_split(split).name].examples)

    def schedule(self) -> Array | None:
        training = self.split_sources["train"].examples
        assert isinstance(training, DrawnSet)
        return training.lengths(self.arrangement("train")) + np.int16(MARKERS)

    def arrangement(self, split: str) -> RandomStream:
        """The stream that decides which position of a set has which length, for all data seeds and instances."""
        identity = {key: value for key, value in self.drawn_by().items() if key not in self.instance_options}
        return stream("arrangement", identity, split)

    def sample(self, split: str, n: int, start: int = 0, data_seed: DataSeed = 0) -> Examples:
        self.check_request(split, n, start, data_seed)

        def draw_set() -> Chains:
            data = stream("data", self.drawn_by(), split, data_seed)
            chains = self.split_sources[split].examples.draw(data_seed, self.arrangement(split), data)
            return Chains.concat([chains], self.longest)

        chains = _DRAWN_SETS.get((canonical(self.drawn_by()), split, data_seed), draw_set)
        # Copied, so that callers who change their examples do not change the cached set.
        selected = chains[start : start + n].copy()
        return replace(encode(self.actual_world, self.trained_entries, self.order, selected), task=self)

    # For the plain solver, worlds and examples are lists of numbers.

    @property
    def _tables(self) -> list[tuple[int, ...]]:
        return list(self.actual_world.functions.values())

    def _decode(self, examples: Examples) -> list[Chain]:
        return decode_all(self._tables, examples.inputs["token"], examples.inputs["mask"], self.order == "backward")

    def solve(self, examples: Examples) -> Array:
        tables = self._tables
        return np.array([solve(tables, functions, symbol) for functions, symbol in self._decode(examples)], np.int64)

    def variables(self, examples: Examples) -> Variables:
        groups = self.actual_world.group_of.tolist()
        tokens = examples.inputs["token"].shape[1]
        return list_variables(self._tables, groups, self._decode(examples), tokens, self.order == "backward")

    def answer_with(self, examples: Examples, name: str, values: Array) -> Array:
        return answer_with(self._tables, self._decode(examples), name, values, self.solve(examples))

    def expressions(self, examples: Examples) -> Expressions | None:
        tokens = examples.inputs["token"].astype(np.int64) - self.symbols
        functions = np.where((tokens >= 0) & (tokens < len(self.actual_world.functions)), tokens, -1)
        if self.order == "backward":
            functions = functions[:, ::-1]
        maps = compose(self.actual_world.tables, functions)
        forms = []
        for row in functions.tolist():
            forms.append(tuple(function for function in row if function >= 0))
        return Expressions(forms, [row.tobytes() for row in maps])

    def counterparts(self, examples: Examples, name: str, draws: Draws) -> Examples | None:
        if split_name(name)[0] != "symbol":
            return None
        # The same functions of another symbol, which is the only token below the number of symbols.
        tokens = examples.inputs["token"].copy()
        rows, columns = np.nonzero(tokens < self.symbols)
        others = 1 + draws.integers(self.symbols - 1, len(rows))
        tokens[rows, columns] = (tokens[rows, columns] + others) % self.symbols
        changed = Examples({**examples.inputs, "token": tokens}, examples.targets, {}, self)
        return replace(changed, targets=self.solve(changed))

    def describe(self, examples: Examples, index: int) -> str:
        return describe(self.name, self.actual_world, self.order, examples, index)

    def picture(self, examples: Examples, index: int) -> str:
        return draw_picture(self.name, self.actual_world, self.order, examples, index)

    def ceilings(self, split: str) -> Mapping[str, float]:
        examples = self.split_sources[self.get_split(split).name].examples
        # Examples of lengths that the language does not have (an accident of `ctl/lengths`) have no closed form.
        counts = {length: n for length, n in examples.counts.items() if examples.enumeration.total(length)}
        return token_ceilings(examples.enumeration, counts, examples.sampling, self.order)

    def judge(self, path: Path, **companions: Path) -> ForeignFileReport:
        unknown = sorted(set(companions) - {"world"})
        if unknown:
            raise UsageError(f"{self.name}: examples come with a world file at most, not with {', '.join(unknown)}")
        if "world" in companions:
            return judge_file(path, self.read_world(companions["world"]), self.split_sources)
        judgement = judge_file(path, self.actual_world, self.split_sources)
        if self.world is not None:
            return judgement
        note = f" and its own world (task seed {self.task_seed}); --world FILE compares with another"
        return replace(judgement, note=note)

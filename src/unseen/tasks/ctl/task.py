"""Compositional table lookup: what a chain of functions makes of a symbol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field as Option
from pydantic import ValidationError, model_validator

from unseen.config import canonical
from unseen.errors import UsageError
from unseen.randomness import Bools, stream
from unseen.randomness import Stream as RandomStream
from unseen.spec import Field, Spec, Stream, Target
from unseen.tasks.base import Array, Condition, DataSeed, Examples, Judgement, Task
from unseen.tasks.ctl.ceilings import token_ceilings
from unseen.tasks.ctl.chains import Chains, Recent
from unseen.tasks.ctl.encode import MARKERS, Order, encode
from unseen.tasks.ctl.judge import judge_file
from unseen.tasks.ctl.lots import HeldOut, Sampling
from unseen.tasks.ctl.picture import picture
from unseen.tasks.ctl.presets import PRESETS, Preset, PresetName
from unseen.tasks.ctl.solver import solve_all
from unseen.tasks.ctl.splits import Split, entries
from unseen.tasks.ctl.views import describe
from unseen.tasks.ctl.world import World, make_world, read_json

Count = Annotated[int, Option(ge=1)]
_DRAWN = Recent(2_000_000)  # some 30 MB


class Lookup(Task):
    """Functions are tables over a few symbols; the answer is the symbol that a chain of them makes of another.

        c b a 3    → c(b(a(3)))

    `task_seed` draws the world (tables, groups, symbol sets); `world`, or the path of a JSON file with one, replaces
    it. The data seed draws the examples. What is held out for validation and testing belongs to the world: it is in no
    training set of any data seed.
    """

    report_by: ClassVar[tuple[str, ...]] = ("length",)
    readings: ClassVar[frozenset[str]] = frozenset({"order"})

    preset: PresetName = Option(
        "clean", description="sound data, data as the published code makes them, or data as the paper describes them"
    )
    symbols: int = Option(8, ge=2, description="how many symbols the tables are over")
    bijective: bool = Option(True, description="every table is a permutation of the symbols")
    order: Order = Option(
        "backward", description="functions before the symbol, the outermost first, or the symbol first"
    )
    sampling: Sampling | None = Option(
        None,
        description="examples are drawn step by step along the graph, or all with the same probability; None: "
        "as the preset says",
    )
    task_seed: int = Option(0, ge=0, description="draws the world: tables, groups, symbol sets")
    world: World | None = Option(
        None, description="a world of your own, or the path of a JSON file with one; None: drawn"
    )

    def complete(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """A world from a file with what its task knows: the sampling graph, where the file has none."""
        return given

    def read_world(self, given: Any) -> World:
        """The world that a file or plain data describe."""
        if isinstance(given, str | Path):
            return make_world(read_json(given, "a world"), str(given), self.complete)
        return make_world(given, "world", self.complete)

    def draw_world(self) -> World:
        """The world of the task seed."""
        raise NotImplementedError

    def make_splits(self) -> list[Split]:
        """The conditions and what their sets are drawn from."""
        raise NotImplementedError

    @property
    def longest(self) -> int:
        """How many functions a training example has at most."""
        raise NotImplementedError

    @model_validator(mode="before")
    @classmethod
    def _read_world(cls, options: Any) -> Any:
        """A world may be named by the path of its file: what it says enters the config, not where it lies."""
        world = options.get("world") if isinstance(options, Mapping) else None
        if world is None:
            return options
        if not isinstance(world, World):
            others = {key: value for key, value in options.items() if key != "world"}
            for sizes in (cls._size_of(world), {}):
                try:
                    world = cls.model_validate({**sizes, **others}).read_world(world)
                    break
                except ValidationError:
                    continue
            else:
                return others  # their faults come first
        counts = {"symbols": list(world.symbols), "functions": world.functions}
        return {**cls._size_of(counts), **options, "world": world}

    @classmethod
    def _size_of(cls, world: Any) -> dict[str, int]:
        """How many symbols and functions a world has, as far as it is one; the task must fit it, not its defaults."""
        if isinstance(world, str | Path):
            try:
                world = read_json(world, "a world")
            except UsageError:
                return {}  # said when it is read for good
        given = {key: world.get(key) for key in ("symbols", "functions")} if isinstance(world, Mapping) else {}
        counts = {
            key: value if isinstance(value, int) else len(value)
            for key, value in given.items()
            if isinstance(value, int | list | Mapping)
        }
        return {key: count for key, count in counts.items() if key in cls.model_fields}

    @model_validator(mode="after")
    def _world_fits(self) -> Self:
        if self.world is not None and len(self.world.symbols) != self.symbols:
            raise ValueError(f"the world has {len(self.world.symbols)} symbols, the option says {self.symbols}")
        return self

    @property
    def fields_of_preset(self) -> Preset:
        """What the preset says."""
        return PRESETS[self.preset]

    @property
    def sampled(self) -> Sampling:
        """How examples are drawn."""
        return self.sampling or self.fields_of_preset.sampling

    @cached_property
    def actual_world(self) -> World:
        """The world given, or the one that the task seed draws."""
        return self.world if self.world is not None else self.draw_world()

    @cached_property
    def splits(self) -> dict[str, Split]:
        """The conditions by name, with what their sets are drawn from."""
        return {split.condition.name: split for split in self.make_splits()}

    @cached_property
    def trained(self) -> Bools:
        """At which symbol training enters each function after each group, (groups, functions, symbols)."""
        return entries(self.actual_world, self.actual_world.graph.uses("train"))

    @cached_property
    def spec(self) -> Spec:
        functions, symbols = self.actual_world.tables.shape
        fields = Field("token", "category", symbols + functions + 2, "tokens"), Field("mask", "mask", 1, "tokens")
        return Spec((Stream("tokens", self.longest + MARKERS),), fields, Target("category", symbols))

    @property
    def conditions(self) -> Mapping[str, Condition]:
        return {name: split.condition for name, split in self.splits.items()}

    def size(self, condition: str) -> int | None:
        return len(self.splits[self.condition(condition).name].lot)

    def schedule(self) -> Array | None:
        lot = self.splits["train"].lot
        assert not isinstance(lot, HeldOut)
        return lot.lengths(self.arranged("train")) + np.int16(MARKERS)

    def arranged(self, condition: str) -> RandomStream:
        """What says which place of a set has which length: the same for all data seeds, and for all instances."""
        what = {key: value for key, value in self.drawn_by().items() if key not in self.instance}
        return stream("arrangement", what, condition)

    def sample(self, condition: str, n: int, start: int = 0, data_seed: DataSeed = 0) -> Examples:
        self.check_request(condition, n, start, data_seed)
        key = canonical(self.drawn_by()), condition, data_seed
        chains = _DRAWN.get(key, lambda: self._draw(condition, data_seed))
        # Copies, so that nobody writes into the set that is kept.
        return encode(self.actual_world, self.trained, self.order, chains[start : start + n].copy())

    def _draw(self, condition: str, data_seed: DataSeed) -> Chains:
        """The whole set of a condition and data seed."""
        lot, drawn = self.splits[condition].lot, stream("data", self.drawn_by(), condition, data_seed)
        found = lot.draw(data_seed, self.arranged(condition), drawn)
        return Chains.join([found], self.longest)

    def solve(self, examples: Examples) -> Array:
        tables = [list(table) for table in self.actual_world.functions.values()]
        return solve_all(tables, examples.inputs["token"], examples.inputs["mask"], self.order == "backward")

    def describe(self, examples: Examples, index: int) -> str:
        return describe(self.name, self.actual_world, self.order, examples, index)

    def picture(self, examples: Examples, index: int) -> str:
        return picture(self.name, self.actual_world, self.order, examples, index)

    def ceilings(self, condition: str) -> Mapping[str, float]:
        lot = self.splits[self.condition(condition).name].lot
        counts = {length: count for length, count in lot.counts.items() if lot.ranks.total(length)}
        return token_ceilings(lot.ranks, counts, lot.sampling, self.order)

    def judge(self, path: Path, **companions: Path) -> Judgement:
        unknown = sorted(set(companions) - {"world"})
        if unknown:
            raise UsageError(f"{self.name}: examples come with a world file at most, not with {', '.join(unknown)}")
        allows = {name: (split.lengths, split.rule) for name, split in self.splits.items()}
        if "world" in companions:
            return judge_file(path, self.read_world(companions["world"]), allows)
        found = judge_file(path, self.actual_world, allows)
        own = f" and its own world (task seed {self.task_seed}); --world FILE compares with another"
        return replace(found, note=own) if self.world is None else found

"""Tasks with a sampling graph: what is new in a test example is a transition between groups of known functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import Field as Option
from pydantic import model_validator

from unseen.randomness import stream
from unseen.tasks.base import Artefact, Condition
from unseen.tasks.ctl import grammar
from unseen.tasks.ctl.allocation import allocate, shortage
from unseen.tasks.ctl.artefacts import forbidden, included
from unseen.tasks.ctl.language import walks
from unseen.tasks.ctl.lots import Lot
from unseen.tasks.ctl.presets import Include
from unseen.tasks.ctl.ranks import Ranks
from unseen.tasks.ctl.splits import Split, further_splits, new_in_testing
from unseen.tasks.ctl.tables import draw_tables
from unseen.tasks.ctl.task import Count, Lookup
from unseen.tasks.ctl.training import INCLUDED, Amounts, make_training
from unseen.tasks.ctl.validate import check_graph, check_languages
from unseen.tasks.ctl.world import World, share_out, validated


class Systematic(Lookup):
    """A sampling graph says which group of functions may follow which: in training, in testing, or in both.

    All functions are well known from training; what is new in a test example is a transition between groups.

    The training set has `train_size` examples of `min_length` … `max_length` functions, among them (or, in the released
    preset, besides them) what is always included; no more than half of the examples of any length are drawn. With
    `longer_length`, both languages are also tested on chains longer than those of training.
    """

    functions: Count = Option(32, description="how many functions there are in all groups")
    min_length: Count = Option(2, description="functions of the shortest chains")
    max_length: Count = Option(6, description="functions of the longest training chains")
    longer_length: Count | None = Option(
        None, description="also tests chains of up to so many functions; None: does not"
    )
    always_include: Include | None = Option(
        None, description="short examples that are always in training; None: as the preset says"
    )
    disjoint: bool | None = Option(
        None,
        description="IID examples are kept out of all of training, what is always included, too; None: as the "
        "preset says",
    )
    train_size: Count = Option(300_000, description="examples of the training set")
    iid_size: Count = Option(1_000, description="examples of each IID set")
    ood_size: Count = Option(1_000, description="examples of every set of walks out of distribution")
    on_shortage: Literal["error", "take_all"] = Option(
        "error", description="where a language has too few examples: stop, or take all there are"
    )

    def group_sizes(self) -> Mapping[str, int | Sequence[str]]:
        """The groups by size, or as lists of functions."""
        raise NotImplementedError

    def make_graph(self, groups: Mapping[str, Sequence[str]], given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The sampling graph over groups of functions; `given` is what a world file says besides."""
        raise NotImplementedError

    def complete(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        if "graph" in given or not isinstance(given.get("groups"), Mapping):
            return given
        world = {key: given[key] for key in given if key not in ("groups", "symbol_sets")}
        return {**world, "graph": self.make_graph(given["groups"], given)}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.max_length < self.min_length:
            raise ValueError(f"max_length = {self.max_length} is below min_length = {self.min_length}")
        if self.longer_length is not None and self.longer_length <= self.max_length:
            raise ValueError(f"longer_length = {self.longer_length} must exceed max_length = {self.max_length}")
        if self.world is not None:
            if len(self.world.functions) != self.functions:
                raise ValueError(
                    f"the world has {len(self.world.functions)} functions, the option says {self.functions}"
                )
            self.check_world()
        return self

    def check_world(self) -> None:
        """Refuse a graph that makes no sense."""
        lengths = list(range(self.min_length, self.max_length + 1))
        check_graph(self.actual_world.graph)
        check_languages(self.actual_world, self._train, self._test, lengths, 1 in INCLUDED[self.include])

    def draw_world(self) -> World:
        groups = share_out(self.group_sizes(), self.functions)
        names = [function for members in groups.values() for function in members]
        tables = draw_tables(self.symbols, len(names), self.task_seed, self.bijective)
        graph = self.make_graph(groups, {})
        given = {"symbols": self.symbols, "functions": dict(zip(names, tables, strict=True)), "graph": graph}
        return validated(World, given, f"{self.name}, sampling graph")

    @property
    def longest(self) -> int:
        return self.max_length

    @property
    def include(self) -> Include:
        """Which short examples are always in training."""
        return self.always_include or self.fields_of_preset.include

    @property
    def apart(self) -> bool:
        """Whether IID examples are kept out of all of training."""
        return self.fields_of_preset.disjoint if self.disjoint is None else self.disjoint

    @cached_property
    def _train(self) -> Ranks:
        return Ranks(walks(self.actual_world, "train"), self.actual_world.tables)

    @cached_property
    def _test(self) -> Ranks | None:
        """The test language; None where no edge is for testing alone."""
        if not any(edge.split == "test" for edge in self.actual_world.graph.edges):
            return None
        return Ranks(walks(self.actual_world, "test"), self.actual_world.tables)

    def make_splits(self) -> list[Split]:
        self.check_world()
        lengths = tuple(range(self.min_length, self.max_length + 1))
        preset, take_all = self.fields_of_preset, self.on_shortage == "take_all"
        amounts = Amounts(
            self.train_size,
            self.iid_size,
            lengths,
            self.include,
            preset.counted,
            self.apart,
            preset.estimate,
            self.sampled,
            take_all,
        )
        lot, held = make_training(
            self.actual_world, self._train, amounts, self.arranged("iid"), stream("held out", self.drawn_by())
        )
        also = INCLUDED[self.include]
        rule = grammar.or_single(grammar.fault_in_training) if 1 in also else grammar.fault_in_training
        words = {
            "singles": "and every function alone",
            "pairs": "every pair among them",
            "both": "every pair among them, and every function alone",
            "none": "",
        }
        short = f", {words[self.include]}".rstrip(", ")
        span = f"{self.min_length} … {self.max_length} functions"
        found = [
            Split(
                Condition("train", f"walks over the training edges, {span}{short}"),
                lot,
                tuple(sorted({*also, *lengths})),
                rule,
            ),
            Split(
                Condition("iid", f"walks over the training edges, {span}, kept out of training"),
                held,
                lengths,
                grammar.fault_in_training,
            ),
        ]
        if self._test is not None:
            found.append(self._walks("transition", "walks with a test edge", self._test, lengths))
        if self.longer_length is not None:
            longer = tuple(range(self.max_length + 1, self.longer_length + 1))
            suffix = f"length={longer[0]}-{longer[-1]}"
            found.append(self._walks(suffix, "longer walks over the training edges", self._train, longer))
            if self._test is not None:
                found.append(self._walks(f"transition,{suffix}", "longer walks with a test edge", self._test, longer))
        return [
            *found,
            *further_splits(
                self.actual_world, self._train, self._test, self.sampled, [length for length in lengths if length > 1]
            ),
        ]

    def _walks(self, name: str, summary: str, ranks: Ranks, lengths: tuple[int, ...]) -> Split:
        available = {length: ranks.total(length) for length in lengths}
        take = allocate(available, self.ood_size, 1)
        if sum(take.values()) < self.ood_size and (self.on_shortage == "error" or not sum(take.values())):
            raise shortage(f"ood/{name}", available, take, self.ood_size, or_all=True)
        testing = ranks is self._test
        unseen = new_in_testing(self.actual_world) if testing else ()
        rule = grammar.fault_in_testing if testing else grammar.fault_in_training
        condition = Condition(f"ood/{name}", f"{summary}, {lengths[0]} … {lengths[-1]} functions", unseen)
        return Split(condition, Lot(ranks, take, self.sampled), lengths, rule)

    def artefacts(self, condition: str) -> Sequence[Artefact]:
        kept = condition in ("train", "iid")
        found = [forbidden(self.trained)] if kept else []
        return [*found, included(INCLUDED[self.include], not self.apart)] if condition == "iid" else found

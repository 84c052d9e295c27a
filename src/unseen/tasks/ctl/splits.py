"""Tasks with a sampling graph: test examples have a transition between groups that training never shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Literal, Self

import numpy as np
from pydantic import Field as Option
from pydantic import model_validator

from unseen.errors import UsageError
from unseen.randomness import Bools, stream
from unseen.tasks.base import Artefact, Split
from unseen.tasks.ctl import automaton
from unseen.tasks.ctl.audit import forbidden_transitions, included_examples
from unseen.tasks.ctl.automaton import Automaton, PairKind, Rule, entries_after_groups
from unseen.tasks.ctl.encode import Chains
from unseen.tasks.ctl.sampling import (
    DrawnSet,
    HeldOutSet,
    SplitSource,
    allocate,
    hold_out,
    released_count,
    shortage_error,
)
from unseen.tasks.ctl.task import Count, Include, Lookup
from unseen.tasks.ctl.unranking import Enumeration
from unseen.tasks.ctl.world import World, check_graph

INCLUDED_LENGTHS: dict[Include, tuple[int, ...]] = {"singles": (1,), "pairs": (2,), "both": (1, 2), "none": ()}
"""The lengths of which training has every example."""
_INCLUDED_TEXT: dict[Include, str] = {
    "singles": ", and every function alone",
    "pairs": ", every pair among them",
    "both": ", every pair among them, and every function alone",
    "none": "",
}
_MORE_SPLITS_SIZE = 1_000


class Systematic(Lookup):
    """A sampling graph says which group of functions may follow which: in training, in testing, or in both.

    The training set has `train_size` examples of `min_length` … `max_length` functions, including (or, in the released
    preset, in addition to) the short examples that are always included; at most half of the examples of any length are
    drawn. With `longer_length`, both languages are also tested on chains longer than those of training.
    """

    functions: Count = Option(32, description="number of functions in all groups together")
    min_length: Count = Option(2, description="functions of the shortest chains")
    max_length: Count = Option(6, description="functions of the longest training chains")
    longer_length: Count | None = Option(None, description="also test longer chains, up to this length; None: do not")
    always_include: Include | None = Option(
        None, description="short examples that are always in training; None: as in the preset"
    )
    disjoint: bool | None = Option(
        None, description="keep IID examples out of the examples that are always included, too; None: as in the preset"
    )
    train_size: Count = Option(300_000, description="examples of the training set")
    iid_size: Count = Option(1_000, description="examples of each IID set")
    ood_size: Count = Option(1_000, description="examples of every out-of-distribution set of walks")
    on_shortage: Literal["error", "take_all"] = Option(
        "error", description="if a language has too few examples: stop, or take all of them"
    )

    # The world

    @model_validator(mode="after")
    def _check_lengths_and_world(self) -> Self:
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

    def draw_world(self) -> World:
        world = super().draw_world()
        if len(world.functions) != self.functions:
            count = len(world.functions)
            raise UsageError(f"the groups have {count} functions, the task {self.functions}; set functions = {count}")
        return world

    def check_world(self) -> None:
        """Refuse a graph with unreachable nodes, dead ends, empty or overlapping languages, or untrained functions."""
        world = self.actual_world
        lengths = self._lengths
        span = f"{lengths[0]} … {lengths[-1]} functions"
        check_graph(world.graph)
        for name, language in (("training", self._train), ("test", self._test)):
            if language is not None and not any(language.total(length) for length in lengths):
                possible = [length for length in range(1, 2 * lengths[-1] + 3) if language.total(length)]
                hint = f"the shortest has {possible[0]}" if possible else "there is none of any length"
                raise UsageError(f"no {name} example has {span}; {hint}")
        if 1 not in INCLUDED_LENGTHS[self.actual_include]:
            missing = [world.names[f] for f in np.flatnonzero(~self._train.covered(lengths))]
            if missing:
                more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
                raise UsageError(
                    f"no training example of {span} has {', '.join(missing[:5])}{more}; "
                    "every function must occur in training"
                )
        if self._test is None:
            return
        shared = Enumeration(automaton.intersect(self._train.automaton, self._test.automaton), world.tables)
        for length in lengths:
            if shared.total(length):
                # Show the first of them.
                start, functions = shared.unrank(np.zeros(1, np.int64), length)
                example = " ".join([world.names[f] for f in functions[0, ::-1]] + [world.symbols[start[0]]])
                raise UsageError(
                    f"{shared.total(length)} examples of {length} functions are in training and in test, "
                    f"e.g. {example}; let an edge be of one split, or of both"
                )

    # Languages and sets

    @property
    def longest(self) -> int:
        return self.max_length

    @property
    def actual_include(self) -> Include:
        """Which short examples are always in training: the option, or as in the preset."""
        return self.always_include or self.preset_rules.include

    @property
    def actual_disjoint(self) -> bool:
        """Whether IID examples are disjoint from all of training: the option, or as in the preset."""
        return self.preset_rules.disjoint if self.disjoint is None else self.disjoint

    @property
    def _lengths(self) -> tuple[int, ...]:
        return tuple(range(self.min_length, self.max_length + 1))

    @cached_property
    def _train(self) -> Enumeration:
        return Enumeration(automaton.walks_over(self.actual_world, "train"), self.actual_world.tables)

    @cached_property
    def _test(self) -> Enumeration | None:
        """The test language; None if no edge is for testing only."""
        if not any(edge.split == "test" for edge in self.actual_world.graph.edges):
            return None
        return Enumeration(automaton.walks_over(self.actual_world, "test"), self.actual_world.tables)

    def _training_sets(self) -> tuple[DrawnSet, HeldOutSet]:
        """The training set and the IID set, which is held out of it."""
        world = self.actual_world
        sources = {1: Enumeration(automaton.any_chain(world), world.tables), 2: self._train}
        included_lengths = INCLUDED_LENGTHS[self.actual_include]
        included = Chains.concat([all_chains(sources[length], length) for length in included_lengths])
        drawn_count = self.train_size - len(included) if self.preset_rules.counted else self.train_size
        if drawn_count < 1:
            raise UsageError(
                f"train_size = {self.train_size}: {len(included)} examples are always included "
                f"(always_include = {self.actual_include}); set a larger train_size"
            )
        existing = self._train.totals(self._lengths)
        if self.actual_disjoint:
            # All examples of these lengths are in training already: none is left to draw or to hold out.
            existing |= dict.fromkeys(existing.keys() & included_lengths, 0)
        available = existing
        if self.preset_rules.estimate:
            available = {length: released_count(world, length) if count else 0 for length, count in existing.items()}
        total = drawn_count + self.iid_size
        counts = allocate(available, total, 0.5)
        possible = sum(counts.values())
        if possible < total and (self.on_shortage == "error" or possible <= self.iid_size):
            raise shortage_error("train and iid", existing, counts, total, ", half of each length at most", or_all=True)
        return hold_out(
            self._train,
            counts,
            self.iid_size,
            self.actual_sampling,
            self.arrangement("iid"),
            stream("held out", self.drawn_by()),
            included=included,
            excluded={},
            validation_inside=False,
        )

    # Splits

    def make_split_sources(self) -> list[SplitSource]:
        self.check_world()
        lengths = self._lengths
        span = f"{lengths[0]} … {lengths[-1]} functions"
        training, held_out = self._training_sets()
        included_lengths = INCLUDED_LENGTHS[self.actual_include]
        rule = automaton.training_fault
        training_rule = automaton.or_single(rule) if 1 in included_lengths else rule
        summary = f"walks over the training edges, {span}{_INCLUDED_TEXT[self.actual_include]}"
        training_lengths = tuple(sorted({*included_lengths, *lengths}))
        iid = Split("iid", f"walks over the training edges, {span}, kept out of training")
        sources = [
            SplitSource(Split("train", summary), training, training_lengths, training_rule),
            SplitSource(iid, held_out, lengths, rule),
        ]
        if self._test is not None:
            sources.append(self._walk_source("transition", "walks with a test edge", self._test, lengths))
        if self.longer_length is not None:
            longer = tuple(range(self.max_length + 1, self.longer_length + 1))
            suffix = f"length={longer[0]}-{longer[-1]}"
            sources.append(self._walk_source(suffix, "longer walks over the training edges", self._train, longer))
            if self._test is not None:
                name = f"transition,{suffix}"
                sources.append(self._walk_source(name, "longer walks with a test edge", self._test, longer))
        return [*sources, *self._more_sources([length for length in lengths if length > 1])]

    def _walk_source(self, name: str, summary: str, language: Enumeration, lengths: tuple[int, ...]) -> SplitSource:
        """A split of `ood_size` walks of the training or the test language."""
        available = language.totals(lengths)
        counts = allocate(available, self.ood_size, 1)
        possible = sum(counts.values())
        if possible < self.ood_size and (self.on_shortage == "error" or not possible):
            raise shortage_error(f"ood/{name}", available, counts, self.ood_size, or_all=True)
        unseen: tuple[str, ...] = ()
        rule: Rule = automaton.training_fault
        if language is self._test:
            unseen = unseen_factors(self.actual_world)
            rule = automaton.testing_fault
        split = Split(f"ood/{name}", f"{summary}, {lengths[0]} … {lengths[-1]} functions", unseen)
        return SplitSource(split, DrawnSet(language, counts, self.actual_sampling), lengths, rule)

    def _more_sources(self, lengths: Sequence[int]) -> Iterator[SplitSource]:
        """Any transition, loops, the bridge, closed symbols, unseen pairs; and two complete lists for probing a model.

        A split that would be empty, or equal to the training or the test language, is left out.
        """
        world = self.actual_world
        # A function that an edge never enters is not closed at some symbols: with `coverage` there is no bridge.
        has_symbol_sets = any(edge.symbols and any(edge.symbols.values()) for edge in world.graph.uses("train"))
        trains_loops = np.diagonal(group_transitions(world, self.trained_entries)).any()
        anything = Split("ood/any", "any function after any other, also those that training has")
        loops = Split("ood/loops", "all functions from one group", () if trains_loops else ("transition",))
        bridge = Split("ood/bridge", "across the bridge wherever there is one, at any symbol")
        sampled: list[tuple[Split, Callable[[World], Automaton], Rule]] = [
            (anything, automaton.any_chain, automaton.no_fault),
            (loops, automaton.group_loops, automaton.loop_fault),
        ]
        if has_symbol_sets:
            sampled.append((bridge, automaton.bridge_walks, automaton.bridge_fault))
        for split, make_automaton, rule in sampled:
            language = Enumeration(make_automaton(world), world.tables)
            if not any(_contains(other, language, lengths) for other in (self._train, self._test) if other is not None):
                examples = DrawnSet.allocated(language, lengths, _MORE_SPLITS_SIZE, self.actual_sampling)
                yield SplitSource(split, examples, tuple(lengths), rule)

        unseen_pair: tuple[str, ...] = ("entry",)
        if self._test is not None and not has_symbol_sets:
            unseen_pair = unseen_factors(world)
        closed = Split(
            "ood/symbols", "every pair across the bridge at a symbol at which training never enters it", ("entry",)
        )
        unseen_pairs = Split(
            "ood/pairs",
            "every pair of functions that training never shows: test transitions, and symbols at which the bridge is "
            "closed",
            unseen_pair,
        )
        all_pairs = Split("probe/pairs", "every pair of functions of any language, at every symbol")
        listed: list[tuple[Split, tuple[PairKind, ...]]] = [
            (unseen_pairs, ("tested", "blocked")),
            (all_pairs, ("trained", "tested", "blocked")),
        ]
        if has_symbol_sets:
            listed.insert(0, (closed, ("blocked",)))
        for split, kinds in listed:
            pairs = Enumeration(automaton.function_pairs(world, kinds), world.tables)
            if pairs.total(2):
                examples = DrawnSet(pairs, {2: pairs.total(2)}, "uniform")
                yield SplitSource(split, examples, (2,), automaton.pair_rule(*kinds))
        yield singles_source(world, "every function alone, at every symbol")

    def artefacts(self, split: str) -> Sequence[Artefact]:
        artefacts = []
        if split in ("train", "iid"):
            artefacts.append(forbidden_transitions(self.trained_entries))
        if split == "iid":
            lengths = INCLUDED_LENGTHS[self.actual_include]
            artefacts.append(included_examples(lengths, known=not self.actual_disjoint))
        return artefacts


def all_chains(language: Enumeration, length: int) -> Chains:
    """All examples of a length."""
    return Chains.from_walks(language.unrank(np.arange(language.total(length)), length))


def singles_source(world: World, summary: str) -> SplitSource:
    """The split `probe/singles`: every function alone, at every symbol."""
    singles = Enumeration(automaton.any_chain(world), world.tables)
    examples = DrawnSet(singles, {1: singles.total(1)}, "uniform")
    return SplitSource(Split("probe/singles", summary), examples, (1,), automaton.single_fault)


def group_transitions(world: World, entries: Bools) -> Bools:
    """Which group follows which, (groups, groups), given entries (groups, functions, symbols)."""
    member = world.group_of[None, :] == np.arange(len(world.groups))[:, None]
    entered: Bools = np.any(entries, axis=2)
    transitions: Bools = (entered[:, None, :] & member[None]).any(2)
    return transitions


def unseen_factors(world: World) -> tuple[str, ...]:
    """The factor whose values in test walks never occur in training: the coarsest for which that is certain.

    It is the transition between groups; or, where training and test edges join the same groups at different symbols,
    the entry; or, where they even share entries (a group may serve as several nodes), only the whole example.
    """
    trained = entries_after_groups(world, world.graph.uses("train"))
    tested = entries_after_groups(world, [edge for edge in world.graph.edges if edge.split == "test"])
    if not (group_transitions(world, trained) & group_transitions(world, tested)).any():
        return ("transition",)
    return ("functions", "start") if (trained & tested).any() else ("entry",)


def _contains(language: Enumeration, candidate: Enumeration, lengths: Sequence[int]) -> bool:
    """Whether a language has all examples of a candidate that have these lengths."""
    shared = Enumeration(automaton.intersect(candidate.automaton, language.automaton), candidate.tables)
    return all(shared.total(length) == candidate.total(length) for length in lengths)

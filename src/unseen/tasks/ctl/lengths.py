"""The original table-lookup task: chains longer than those of training, and compositions held back from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field as Option
from pydantic import model_validator

from unseen.randomness import Ints, stream
from unseen.tasks.base import Artefact, Split
from unseen.tasks.ctl.audit import forbidden_transitions, included_examples
from unseen.tasks.ctl.automaton import any_chain, no_fault, or_single, testing_fault, training_fault, walks_over
from unseen.tasks.ctl.encode import Chains
from unseen.tasks.ctl.sampling import DrawnSet, SplitSource, allocate, expected_counts, hold_out, shortage_error
from unseen.tasks.ctl.splits import all_chains, singles_source
from unseen.tasks.ctl.task import Count, Lookup
from unseen.tasks.ctl.unranking import Enumeration, Numbers, draw_subset

COMPOSED = "t"
EXTRA = ("x", "y")
"""The groups: tables that are composed, and two that training shows only alone."""


@dataclass(frozen=True)
class PublishedGenerator:
    """How the two published generators differ."""

    composed: int  # number of tables that are composed
    distinct: bool  # whether no two tables are equal
    longest: int  # tables in the longest training chains
    longer: tuple[tuple[int, int], ...]  # length ranges of the longer test sets
    rows: int  # examples of each longer set, and of each set with an extra table
    rows_per_length: bool  # `rows` of each length of a longer set, instead of all its lengths together
    held_back: int | None  # compositions that training never has; None: the smaller of 200 and a quarter, per length
    every_input: bool  # whether these are tested at every symbol, or at one
    inputs: int  # number of symbols held back from every other composition
    train: float | None  # share of all examples drawn for training; None: all that is not held back
    iid: float  # examples of each IID set, or (below 1) their share of all that is not held back
    repeats: int  # how many more times training has the examples of the extra tables


GENERATORS: dict[str, PublishedGenerator] = {
    "ndr": PublishedGenerator(
        composed=9,
        distinct=False,
        longest=5,
        longer=((6, 8), (9, 10)),
        rows=1_000,
        rows_per_length=False,
        held_back=None,
        every_input=False,
        inputs=0,
        train=0.1,
        iid=4_000,
        repeats=30,
    ),
    "dubois": PublishedGenerator(
        composed=6,
        distinct=True,
        longest=4,
        longer=((5, 9),),
        rows=5_000,
        rows_per_length=True,
        held_back=100,
        every_input=True,
        inputs=2,
        train=None,
        iid=0.05,
        repeats=0,
    ),
}


class Lengths(Lookup):
    """Tables composed freely; tests on longer chains, on compositions held back, and on tables never composed before.

    With the composed tables a, b, c, the extra table d (of group x), and chains of up to 3 tables in training:

        a b 3      → training (unless it is held back: then `ood/reserved`)
        a b a c 3  → `ood/length=4-…`, longer than any training chain
        a d 3      → `ood/table=x`; d 3, the table alone, is in training

    `generator` is that of the neural data router (`ndr`) or of Dubois and others (`dubois`); options that are None are
    as published there. With `sampling = stepwise`, as published, lengths are drawn uniformly and repeats dropped, so
    that short chains are used up; with `uniform`, at most half of the examples of any length are drawn.

    >>> from unseen.tasks import task
    >>> lengths = task("ctl/lengths", composed=3, max_length=3, longer=((4, 5),), train_size=60, iid_size=10)
    >>> world = lengths.actual_world
    >>> training_fault(world, ["b", "a"], 3) is None, testing_fault(world, ["d", "a"], 3) is None
    (True, True)
    >>> training_fault(world, ["d", "a"], 3)
    'a after d (x → t) is no training transition'
    """

    instance_options: ClassVar[frozenset[str]] = frozenset({"task_seed"})

    name: Literal["ctl/lengths"]
    generator: Literal["ndr", "dubois"] = Option(
        "ndr", description="that of the neural data router, or that of Dubois and others"
    )
    composed: Count | None = Option(None, description="tables that are composed; None: as in the generator")
    max_length: Annotated[int, Option(ge=2)] | None = Option(
        None, description="tables of the longest training chains; None: as in the generator"
    )
    longer: tuple[tuple[int, int], ...] | None = Option(
        None, description="ranges of longer chains to test; None: as in the generator"
    )
    train_size: Count | None = Option(None, description="compositions in the training set; None: as in the generator")
    iid_size: Count | None = Option(None, description="examples of each IID set; None: as in the generator")

    @model_validator(mode="after")
    def _check_ranges_and_groups(self) -> Self:
        for low, high in self.ranges:
            if not self.longest < low <= high:
                raise ValueError(f"longer = {low} … {high}: expected a range above max_length = {self.longest}")
        if self.world is not None and len(self.world.groups) != 1 + len(EXTRA):
            raise ValueError(
                f"a world for {self.name} has three groups: the tables that are composed, and two of one "
                f"table each; got {', '.join(self.world.groups)}"
            )
        return self

    @property
    def published(self) -> PublishedGenerator:
        """The generator as published."""
        return GENERATORS[self.generator]

    @property
    def longest(self) -> int:
        return self.max_length or self.published.longest

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The length ranges of the longer test sets."""
        return self.published.longer if self.longer is None else self.longer

    @property
    def validation(self) -> str:
        return _range_name(self.ranges[0]) if self.generator == "ndr" and self.ranges else "iid"

    @property
    def distinct_tables(self) -> bool:
        return self.published.distinct

    def group_sizes(self) -> Mapping[str, int | Sequence[str]]:
        return {COMPOSED: self.composed or self.published.composed, **dict.fromkeys(EXTRA, 1)}

    def make_graph(self, groups: Mapping[str, Sequence[str]], file_data: Mapping[str, Any]) -> Mapping[str, Any]:
        first, *others = groups
        edges = [{"source": first, "target": first, "split": "both"}]
        for other in others:
            for source, target in ((first, other), (other, first), (other, other)):
                edges.append({"source": source, "target": target, "split": "test"})
        return {"groups": dict(groups), "edges": edges}

    # Splits

    def make_split_sources(self) -> list[SplitSource]:
        world = self.actual_world
        lengths = tuple(range(2, self.longest + 1))
        language = Enumeration(walks_over(world, "train"), world.tables)
        held_back = [_at_every_symbol(functions, self.symbols) for functions in self._reserved.values()]
        held_back.append(self._reserved_inputs)
        excluded = {length: _numbers_of(language, length, held_back) for length in lengths}
        available = {length: language.total(length) - len(excluded[length]) for length in lengths}
        singles = all_chains(Enumeration(any_chain(world), world.tables), 1)
        extra_tables = [world.members(group)[0] for group in list(world.groups)[1:]]
        extra_singles = singles[np.isin(singles.functions[:, 0], extra_tables)]
        training, iid = hold_out(
            language,
            self._pool_counts(language, available),
            self._iid_size(available),
            self.actual_sampling,
            self.arrangement("iid"),
            stream("held out", self.drawn_by()),
            included=Chains.concat([singles, *[extra_singles] * self.published.repeats]),
            excluded=excluded,
            validation_inside=True,
        )
        train = Split("train", f"compositions of up to {self.longest} tables, and every table alone")
        sources = [
            SplitSource(train, training, (1, *lengths), or_single(training_fault)),
            SplitSource(Split("iid", f"2 … {self.longest} tables, kept out of training"), iid, lengths, training_fault),
        ]
        for low, high in self.ranges:
            longer = tuple(range(low, high + 1))
            rows = self.published.rows * len(longer) if self.published.rows_per_length else self.published.rows
            split = Split(_range_name((low, high)), f"{low} … {high} tables, more than in training")
            examples = DrawnSet.allocated(language, longer, rows, self.actual_sampling)
            sources.append(SplitSource(split, examples, longer, training_fault))
        return [*sources, *self._held_back_sources(language, lengths)]

    def _held_back_sources(self, language: Enumeration, lengths: tuple[int, ...]) -> Iterator[SplitSource]:
        """Compositions and inputs held back from training, compositions with an extra table, and every table alone."""
        world = self.actual_world
        draws = stream("reserved inputs", self.drawn_by()).block()
        tested = []
        for functions in self._reserved.values():  # in this order, because all of them share one block of draws
            if self.published.every_input:
                tested.append(_at_every_symbol(functions, self.symbols))
            else:
                tested.append(Chains.from_walks((draws.integers(self.symbols, len(functions)), functions)))
        summary = "compositions held back from training"
        unseen: tuple[str, ...] = ("functions",)
        if self._reserves_singles:
            summary += "; by accident also the empty one and some of a single table, which training has"
            unseen = ()
        reserved = DrawnSet(language, {}, self.actual_sampling, Chains.concat(tested))
        yield SplitSource(Split("ood/reserved", summary, unseen), reserved, tuple(self._reserved), no_fault)
        if len(self._reserved_inputs):
            split = Split("ood/inputs", "training's compositions at symbols held back", ("functions", "start"))
            inputs = DrawnSet(language, {}, self.actual_sampling, self._reserved_inputs)
            yield SplitSource(split, inputs, lengths, training_fault)
        composed, *extra = world.groups
        for group in extra:
            with_extra = Enumeration(walks_over(world, "test", [composed, group]), world.tables)
            summary = "compositions with a table that training shows only alone"
            split = Split(f"ood/table={group}", summary, ("transition",))
            examples = DrawnSet.allocated(with_extra, lengths, self.published.rows, self.actual_sampling)
            yield SplitSource(split, examples, lengths, testing_fault)
        yield singles_source(world, "every table alone, at every symbol")

    def _iid_size(self, available: Mapping[int, int]) -> int:
        if self.iid_size is not None:
            return self.iid_size
        iid = self.published.iid
        return int(iid) if iid >= 1 else int(iid * sum(available.values()))

    def _pool_counts(self, language: Enumeration, available: Mapping[int, int]) -> dict[int, int]:
        """How many examples of each length are drawn, for training and both IID sets together."""
        total = self.train_size
        if total is None:
            if self.published.train is None:
                return dict(available)
            total = int(self.published.train * sum(language.totals(available).values()))
        total += 2 * self._iid_size(available)
        if self.actual_sampling == "uniform":
            counts = allocate(available, total, 0.5)
        else:
            counts = expected_counts(available, total)
        if sum(counts.values()) < total:
            raise shortage_error("train and iid", available, counts, total, ", half of each length at most")
        return counts

    # Compositions and inputs held back from training

    @property
    def _composed_tables(self) -> Ints:
        return self.actual_world.members(next(iter(self.actual_world.groups)))

    @cached_property
    def _reserved(self) -> dict[int, Ints]:
        """The compositions held back from training, by length: tables in order of application, (count, length).

        A composition of a length is a number with that many digits in base `tables`.
        """
        members = self._composed_tables
        tables = len(members)
        random_stream = stream("reserved", self.drawn_by())
        numbers: dict[int, Numbers] = {}
        if self.published.held_back is None:
            # By accident, the released code also holds back compositions of no table and of one.
            shortest = 0 if self.preset == "released" else 2
            for length in range(shortest, self.longest + 1):
                count = min(200, ceil(tables**length / 4))
                numbers[length] = draw_subset(random_stream.block(length), tables**length, count)
        else:
            # Compositions of all lengths are numbered one after the other, the shortest first.
            boundaries = np.cumsum([tables**length for length in range(2, self.longest + 1)])
            chosen = np.sort(draw_subset(random_stream.block(), int(boundaries[-1]), self.published.held_back))
            length_index = np.searchsorted(boundaries, chosen, side="right")
            for index in np.unique(length_index).tolist():
                first = boundaries[index] - tables ** (2 + index)
                numbers[2 + index] = chosen[length_index == index] - first
        return {length: members[_digits(chosen, tables, length)] for length, chosen in numbers.items()}

    @property
    def _reserves_singles(self) -> bool:
        """Whether compositions of fewer than two tables are held back, which training has all the same."""
        return min(self._reserved) < 2

    @cached_property
    def _reserved_inputs(self) -> Chains:
        """The symbols held back from each composition that is not itself held back."""
        count = self.published.inputs
        if not count:
            return Chains.concat([])
        members = self._composed_tables
        random_stream = stream("inputs", self.drawn_by())
        pieces = []
        for length in range(2, self.longest + 1):
            functions = members[_digits(np.arange(len(members) ** length), len(members), length)]
            reserved = {tuple(row) for row in self._reserved.get(length, np.empty((0, length), np.int64)).tolist()}
            functions = functions[[tuple(row) not in reserved for row in functions.tolist()]]
            # The first symbols of a random order: a random subset of each composition's symbols.
            start = random_stream.block(length).permutations(len(functions), self.symbols)[:, :count]
            pieces.append(Chains.from_walks((start.reshape(-1), np.repeat(functions, count, axis=0))))
        return Chains.concat(pieces)

    def artefacts(self, split: str) -> Sequence[Artefact]:
        if split in ("train", "iid"):
            return [forbidden_transitions(self.trained_entries)]
        if split == "ood/reserved":
            return [included_examples((1,), known=self._reserves_singles)]
        return []


def _range_name(span: tuple[int, int]) -> str:
    return f"ood/length={span[0]}-{span[1]}"


def _digits(numbers: Numbers, base: int, length: int) -> Ints:
    """The digits of numbers in a base, the most significant first, (B, length)."""
    digits: Ints = numbers[:, None] // base ** np.arange(length)[::-1] % base
    return digits


def _at_every_symbol(functions: Ints, symbols: int) -> Chains:
    """Compositions (B, length), each at every symbol."""
    return Chains.from_walks((np.tile(np.arange(symbols), len(functions)), np.repeat(functions, symbols, axis=0)))


def _numbers_of(language: Enumeration, length: int, pieces: Sequence[Chains]) -> Numbers:
    """The numbers of the chains that have a length, sorted."""
    numbers = []
    for piece in pieces:
        chains = piece[piece.length == length]
        numbers.append(language.rank(chains.start, chains.functions[:, :length]))
    return np.sort(np.concatenate(numbers))

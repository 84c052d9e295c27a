"""The original compositional table lookup: chains longer than those of training, and compositions held back from it."""

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
from unseen.tasks.base import Artefact, Condition
from unseen.tasks.ctl import grammar
from unseen.tasks.ctl.allocation import allocate, expect, shortage
from unseen.tasks.ctl.artefacts import forbidden, included
from unseen.tasks.ctl.chains import Chains
from unseen.tasks.ctl.language import everything, walks
from unseen.tasks.ctl.lots import Lot, Pool
from unseen.tasks.ctl.ranks import Ranks
from unseen.tasks.ctl.splits import Split
from unseen.tasks.ctl.subsets import Numbers, subset
from unseen.tasks.ctl.tables import draw_tables
from unseen.tasks.ctl.task import Count, Lookup
from unseen.tasks.ctl.training import every
from unseen.tasks.ctl.world import World, share_out, validated


@dataclass(frozen=True)
class Published:
    """What differs between the two published generators.

    - `composed`: tables that are composed (two more occur only alone); `distinct`: no two tables are the same;
    - `longest`: functions in training; `longer`: ranges of the longer test sets;
    - `rows`: examples of each longer set (`each_length`: of each of its lengths) and of those with an extra table;
    - `held_back`: compositions that training never has: so many in all, or None for the smaller of 200 and a quarter
      of each length; `every_input`: whether they are tested at every symbol, or at one;
    - `inputs`: how many symbols of every other composition are held back;
    - `train`: the part of all examples that is drawn for training (None: all that is left);
    - `iid`: examples of each IID set, or their part of all that is left; `repeats`: how often examples of the extra
      tables are repeated in training.
    """

    composed: int
    distinct: bool
    longest: int
    longer: tuple[tuple[int, int], ...]
    rows: int
    each_length: bool
    held_back: int | None
    every_input: bool
    inputs: int
    train: float | None
    iid: float
    repeats: int


GENERATORS: dict[str, Published] = {
    "ndr": Published(9, False, 5, ((6, 8), (9, 10)), 1_000, False, None, False, 0, 0.1, 4_000, 30),
    "dubois": Published(6, True, 4, ((5, 9),), 5_000, True, 100, True, 2, None, 0.05, 0),
}
COMPOSED, EXTRA = "t", ("x", "y")


class Lengths(Lookup):
    """Tables composed freely; tests on longer chains, on compositions held back, and on tables never composed before.

    `generator` is that of the neural data router (`ndr`) or of Dubois and others (`dubois`); options left at None are
    as there. Steps are drawn as there with `sampling = stepwise`: lengths are drawn uniformly, repeats dropped, so that
    short chains are used up. With `uniform` at most half of the examples of any length are drawn.
    """

    instance: ClassVar[frozenset[str]] = frozenset({"task_seed"})

    name: Literal["ctl/lengths"]
    generator: Literal["ndr", "dubois"] = Option(
        "ndr", description="that of the neural data router, or that of Dubois and others"
    )
    composed: Count | None = Option(None, description="tables that are composed; None: as the generator says")
    max_length: Annotated[int, Option(ge=2)] | None = Option(
        None, description="tables of the longest training chains; None: as the generator says"
    )
    longer: tuple[tuple[int, int], ...] | None = Option(
        None, description="ranges of longer chains to test; None: as the generator says"
    )
    train_size: Count | None = Option(None, description="compositions in the training set; None: as the generator says")
    iid_size: Count | None = Option(None, description="examples of each IID set; None: as the generator says")

    @model_validator(mode="after")
    def _longer_is_longer(self) -> Self:
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
    def published(self) -> Published:
        """The generator as published."""
        return GENERATORS[self.generator]

    @property
    def longest(self) -> int:
        return self.max_length or self.published.longest

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The lengths of the longer test sets."""
        return self.published.longer if self.longer is None else self.longer

    @property
    def validation(self) -> str:
        return _range_name(self.ranges[0]) if self.generator == "ndr" and self.ranges else "iid"

    def draw_world(self) -> World:
        count = self.composed or self.published.composed
        groups = share_out({COMPOSED: count, **dict.fromkeys(EXTRA, 1)}, count + len(EXTRA))
        names = [name for members in groups.values() for name in members]
        tables = draw_tables(self.symbols, len(names), self.task_seed, self.bijective, self.published.distinct)
        functions = dict(zip(names, tables, strict=True))
        given = {"symbols": self.symbols, "functions": functions, "graph": free_graph(groups)}
        return validated(World, given, self.name)

    def complete(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        if "graph" in given or not isinstance(given.get("groups"), Mapping):
            return given
        return {**{key: given[key] for key in given if key != "groups"}, "graph": free_graph(given["groups"])}

    def make_splits(self) -> list[Split]:
        world, how, lengths = self.actual_world, self.published, tuple(range(2, self.longest + 1))
        train = Ranks(walks(world, "train"), world.tables)
        reserved = self._reserved
        inputs = self._inputs(train)
        held_back = Chains.join([_everywhere(functions, self.symbols) for functions in reserved.values()])
        banned = {length: _numbers(train, length, [held_back, inputs]) for length in lengths}
        left = {length: train.total(length) - len(banned[length]) for length in lengths}
        pool = Pool(train, self._counts(train, left), self._iid(left), self.sampled, inside=True, banned=banned)
        held, take, kept_out = pool.split(self.arranged("iid"), stream("held out", self.drawn_by()))
        singles = every(Ranks(everything(world), world.tables), 1)
        extra = singles[np.isin(singles.functions[:, 0], [world.members(group)[0] for group in list(world.groups)[1:]])]
        listed = Chains.join([singles, *[extra] * how.repeats])
        rule, one_too = grammar.fault_in_training, grammar.or_single(grammar.fault_in_training)
        found = [
            Split(
                Condition("train", f"compositions of up to {self.longest} tables, and every table alone"),
                Lot(train, take, self.sampled, listed, kept_out),
                (1, *lengths),
                one_too,
            ),
            Split(Condition("iid", f"2 … {self.longest} tables, kept out of training"), held, lengths, rule),
        ]
        for span in self.ranges:
            longer = tuple(range(span[0], span[1] + 1))
            rows = how.rows * len(longer) if how.each_length else how.rows
            found.append(
                Split(
                    Condition(_range_name(span), f"{span[0]} … {span[1]} tables, more than in training"),
                    self._some(train, longer, rows),
                    longer,
                    rule,
                )
            )
        return [*found, *self._others(train, reserved, inputs, lengths)]

    def _others(
        self, train: Ranks, reserved: Mapping[int, Ints], inputs: Chains, lengths: tuple[int, ...]
    ) -> Iterator[Split]:
        """What else is tested: compositions and inputs held back, and compositions with an extra table."""
        world, how = self.actual_world, self.published
        draws = stream("reserved inputs", self.drawn_by()).block()
        tested = [
            _everywhere(functions, self.symbols)
            if how.every_input
            else Chains.of((draws.integers(self.symbols, len(functions)), functions))
            for functions in reserved.values()
        ]
        accidents = min(reserved) < 2
        also = "; by accident also the empty one and some of a single table, which training has" if accidents else ""
        yield Split(
            Condition(
                "ood/reserved", f"compositions held back from training{also}", () if accidents else ("functions",)
            ),
            Lot(train, {}, self.sampled, Chains.join(tested)),
            tuple(reserved),
            grammar.any_fault,
        )
        if len(inputs):
            yield Split(
                Condition("ood/inputs", "training's compositions at symbols held back", ("functions", "start")),
                Lot(train, {}, self.sampled, inputs),
                lengths,
                grammar.fault_in_training,
            )
        names = list(world.groups)
        for group in names[1:]:
            ranks = Ranks(walks(world, "test", [names[0], group]), world.tables)
            yield Split(
                Condition(
                    f"ood/table={group}", "compositions with a table that training shows only alone", ("transition",)
                ),
                self._some(ranks, lengths, how.rows),
                lengths,
                grammar.fault_in_testing,
            )
        alone = Ranks(everything(world), world.tables)
        yield Split(
            Condition("probe/singles", "every table alone, at every symbol"),
            Lot(alone, {1: alone.total(1)}, "uniform"),
            (1,),
            grammar.singles_fault,
        )

    def _some(self, ranks: Ranks, lengths: Sequence[int], rows: int) -> Lot:
        return Lot(ranks, allocate({length: ranks.total(length) for length in lengths}, rows, 1), self.sampled)

    def _iid(self, left: Mapping[int, int]) -> int:
        if self.iid_size is not None:
            return self.iid_size
        iid = self.published.iid
        return int(iid) if iid >= 1 else int(iid * sum(left.values()))

    def _counts(self, train: Ranks, left: Mapping[int, int]) -> dict[int, int]:
        """How many examples of each length are drawn, for training and both IID sets."""
        wanted, share = self.train_size, self.published.train
        if wanted is None and share is None:
            return dict(left)
        if wanted is None:
            wanted = int((share or 0) * sum(train.total(length) for length in left))
        wanted += 2 * self._iid(left)
        found = allocate(left, wanted, 0.5) if self.sampled == "uniform" else expect(left, wanted)
        if sum(found.values()) < wanted:
            raise shortage("train and iid", left, found, wanted, ", half of each length at most")
        return found

    @property
    def _composed(self) -> Ints:
        """The tables that are composed: those of the first group."""
        return self.actual_world.members(next(iter(self.actual_world.groups)))

    @cached_property
    def _reserved(self) -> dict[int, Ints]:
        """The compositions held back from training, by length."""
        members, named = self._composed, stream("reserved", self.drawn_by())
        many, how = len(members), self.published
        if how.held_back is None:
            shortest = 0 if self.preset == "released" else 2
            numbers = {
                length: subset(named.block(length), many**length, min(200, ceil(many**length / 4)))
                for length in range(shortest, self.longest + 1)
            }
        else:
            ends = np.cumsum([many**length for length in range(2, self.longest + 1)])
            chosen = np.sort(subset(named.block(), int(ends[-1]), how.held_back))
            which = np.searchsorted(ends, chosen, side="right")
            numbers = {
                2 + place: chosen[which == place] - (ends[place] - many ** (2 + place))
                for place in np.unique(which).tolist()
            }
        return {length: members[_digits(found, many, length)] for length, found in numbers.items()}

    def _inputs(self, train: Ranks) -> Chains:
        """Of every composition that is not held back, the symbols that are."""
        count = self.published.inputs
        if not count:
            return Chains.join([])
        parts, named = [], stream("inputs", self.drawn_by())
        for length in range(2, self.longest + 1):
            members = self._composed
            functions = members[_digits(np.arange(len(members) ** length), len(members), length)]
            gone = {tuple(row) for row in self._reserved.get(length, np.empty((0, length), np.int64)).tolist()}
            functions = functions[[tuple(row) not in gone for row in functions.tolist()]]
            start = named.block(length).permutations(len(functions), self.symbols)[:, :count]
            parts.append(Chains.of((start.reshape(-1), np.repeat(functions, count, axis=0))))
        return Chains.join(parts)

    def artefacts(self, condition: str) -> Sequence[Artefact]:
        found = [forbidden(self.trained)] if condition in ("train", "iid") else []
        if condition == "ood/reserved":
            found.append(included((1,), min(self._reserved) < 2))
        return found


def free_graph(groups: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """One group composed freely; each of the others only in testing, with the first or itself."""
    first, *others = groups
    edges = [{"source": first, "target": first, "split": "both"}]
    for other in others:
        for source, target in ((first, other), (other, first), (other, other)):
            edges.append({"source": source, "target": target, "split": "test"})
    return {"groups": dict(groups), "edges": edges}


def _range_name(span: tuple[int, int]) -> str:
    return f"ood/length={span[0]}-{span[1]}"


def _digits(numbers: Numbers, base: int, length: int) -> Ints:
    """Numbers written with `length` digits, (B, length)."""
    found: Ints = numbers[:, None] // base ** np.arange(length)[::-1] % base
    return found


def _everywhere(functions: Ints, symbols: int) -> Chains:
    """Compositions at every symbol."""
    return Chains.of((np.tile(np.arange(symbols), len(functions)), np.repeat(functions, symbols, axis=0)))


def _numbers(ranks: Ranks, length: int, parts: Sequence[Chains]) -> Numbers:
    """The numbers of those examples that have a length, sorted."""
    found = [part[part.length == length] for part in parts]
    return np.sort(np.concatenate([ranks.rank(part.start, part.functions[:, :length]) for part in found]))

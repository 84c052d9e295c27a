"""Tiny tasks for tests: one that is clean, and others that each have one planted fault."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from unseen.randomness import Draws, stream
from unseen.spec import Field, Spec, Stream, Target
from unseen.tasks.base import Array, Artefact, DataSeed, Examples, Shortcut, Split, Task


class Clean(Task):
    """Do the first token's bit q and the last token's bit q + 1 differ? Nothing simpler tells the answer.

    6 tokens of 8 bits, and q given once: one of the first three quarters of the bits, or (unseen) of the last.
    """

    name: str = "standin/clean"
    width: int = 8
    tokens: int = 6
    evaluation_size: int | None = None

    @cached_property
    def spec(self) -> Spec:
        fields = Field("bits", "bits", self.width, "tokens"), Field("query", "category", self.width)
        return Spec((Stream("tokens", self.tokens),), fields, Target("binary"))

    @property
    def splits(self) -> Mapping[str, Split]:
        return {
            "train": Split("train", "the first three quarters of the queries"),
            "iid": Split("iid", "as train"),
            "ood/query": Split("ood/query", "the last quarter of the queries", ("query",)),
            "ood/longer": Split("ood/longer", "three tokens more"),
        }

    def size(self, split: str) -> int | None:
        self.get_split(split)
        return None if split == "train" else self.evaluation_size

    def queries(self, split: str) -> tuple[int, int]:
        seen = self.width * 3 // 4
        return (seen, self.width) if split == "ood/query" else (0, seen)

    def labels(self, draws: Draws, query: Array) -> Array:
        return draws.bernoulli(0.5, self.block)

    def generate(self, split: str, draws: Draws) -> Examples:
        low, high = self.queries(split)
        query = low + draws.integers(high - low, self.block)
        label = self.labels(draws, query)
        length = self.tokens + (3 if split == "ood/longer" else 0)
        bits = draws.bernoulli(0.5, (self.block, length, self.width)).astype(np.uint8)
        rows = np.arange(self.block)
        bits[rows, -1, (query + 1) % self.width] = bits[rows, 0, query] ^ label
        half = np.where(query < self.width // 2, "low", "upper")
        return Examples({"bits": bits, "query": query}, label[:, None].astype(np.uint8), {"query": query, "half": half})

    def solve(self, examples: Examples) -> Array:
        answers = []
        for tokens, q in zip(examples.inputs["bits"].tolist(), examples.inputs["query"].tolist(), strict=True):
            answers.append([tokens[0][q] != tokens[-1][(q + 1) % self.width]])
        return np.array(answers, np.uint8).reshape(-1, 1)

    def describe(self, examples: Examples, index: int) -> str:
        return f"query {examples.inputs['query'][index]}: {'yes' if examples.targets[index, 0] else 'no'}"


# Wrong answers and wrong forms


class WrongLabel(Clean):
    """About one label in 1 000 is wrong."""

    def generate(self, split: str, draws: Draws) -> Examples:
        examples = super().generate(split, draws)
        examples.targets[500] ^= 1
        return examples


class WrongForm(Clean):
    """One of several faults of form."""

    name: str = "standin/form"
    fault: str

    def generate(self, split: str, draws: Draws) -> Examples:
        examples = super().generate(split, draws)
        inputs, targets, factors = dict(examples.inputs), examples.targets, dict(examples.factors)
        if self.fault == "dtype":
            inputs["bits"] = inputs["bits"].astype(np.float32)
        elif self.fault == "range":
            inputs["query"] = inputs["query"] + self.width
        elif self.fault == "missing":
            del inputs["query"]
        elif self.fault == "extra":
            inputs["hint"] = examples.targets
        elif self.fault == "target":
            targets = targets[:, 0]
        elif self.fault == "factor":
            factors["query"] = factors["query"].astype(object)
        return Examples(inputs, targets, factors)


class Crashing(Clean):
    """A part that raises: `generate` on one split, `solve`, `shortcuts` or `ceilings`."""

    name: str = "standin/crash"
    part: str

    def crash(self, part: str) -> None:
        if part == self.part:
            raise ZeroDivisionError(f"planted in {part}")

    def generate(self, split: str, draws: Draws) -> Examples:
        self.crash(f"generate {split}")
        return super().generate(split, draws)

    def solve(self, examples: Examples) -> Array:
        self.crash("solve")
        return super().solve(examples)

    def shortcuts(self, split: str) -> Sequence[Shortcut]:
        self.crash("shortcuts")
        return ()

    def ceilings(self, split: str) -> Mapping[str, float]:
        self.crash("ceilings")
        return {}


# Impure streams


class BatchDependent(Clean):
    """The stream depends on how many examples are asked for."""

    def sample(self, split: str, n: int, start: int = 0, data_seed: DataSeed = 0) -> Examples:
        named = stream("batch", split, data_seed, n)
        blocks = range((start + n) // self.block + 1)
        return Examples.concat([self.generate(split, named.block(b)) for b in blocks])[start : start + n]


_CALLS = itertools.count()


class Stateful(Clean):
    """The stream depends on how often it was asked before."""

    def generate(self, split: str, draws: Draws) -> Examples:
        return super().generate(split, stream("state", next(_CALLS)).block())


class ProcessDependent(Clean):
    """The stream depends on the process."""

    def generate(self, split: str, draws: Draws) -> Examples:
        return super().generate(split, stream("process", os.getpid(), draws.words(1).tolist()).block())


class SameForAllSeeds(Clean):
    """The data seed makes no difference."""

    def sample(self, split: str, n: int, start: int = 0, data_seed: DataSeed = 0) -> Examples:
        return super().sample(split, n, start)


class ShiftedSeeds(Clean):
    """Data seed 1 is data seed 0, some examples later."""

    def sample(self, split: str, n: int, start: int = 0, data_seed: DataSeed = 0) -> Examples:
        shift = 700 if data_seed == 1 else 0
        return super().sample(split, n, start + shift, 0 if data_seed == 1 else data_seed)


class TrainingAgain(Clean):
    """`iid` is `train` over again."""

    def sample(self, split: str, n: int, start: int = 0, data_seed: DataSeed = 0) -> Examples:
        return super().sample("train" if split == "iid" else split, n, start, data_seed)


class Repeating(Clean):
    """The first 20 examples of a block come twice in it."""

    def generate(self, split: str, draws: Draws) -> Examples:
        index = np.arange(self.block)
        return super().generate(split, draws)[np.where(index < 40, index // 2, index)]


# Leaks


class LeakyBit(Clean):
    """Bit 5 of token 3 gives the label away with 55 %."""

    def generate(self, split: str, draws: Draws) -> Examples:
        examples = super().generate(split, draws)
        told, bits = draws.bernoulli(0.1, self.block), examples.inputs["bits"]
        bits[:, 3, 5] = np.where(told, examples.targets[:, 0], bits[:, 3, 5])
        return examples


class LeakyCounts(Clean):
    """Yes has slightly more active bits in half of the columns and fewer in the others: no column tells much."""

    name: str = "standin/counts"
    width: int = 16

    def generate(self, split: str, draws: Draws) -> Examples:
        examples = super().generate(split, draws)
        yes, bits = examples.targets[:, 0].astype(np.bool_), examples.inputs["bits"]
        for column in range(self.width):
            changed = np.flatnonzero(draws.bernoulli(0.15, self.block) & yes)
            bits[changed, 1 + draws.integers(self.tokens - 2, len(changed)), column] = column % 2
        return examples


class LeakyQuery(Clean):
    """The query alone gives the label away with 60 %."""

    def labels(self, draws: Draws, query: Array) -> Array:
        return draws.bernoulli(0.4, self.block) ^ (query % 2 == 0)


class DeclaredLeakyQuery(LeakyQuery):
    """The same, declared as a ceiling."""

    def ceilings(self, split: str) -> Mapping[str, float]:
        return {"input-blind": 0.6}


class Unbalanced(Clean):
    """Yes in 60 %."""

    def labels(self, draws: Draws, query: Array) -> Array:
        return draws.bernoulli(0.6, self.block)


class DeclaredUnbalanced(Unbalanced):
    """The same, declared as a ceiling."""

    def ceilings(self, split: str) -> Mapping[str, float]:
        return {"majority": 0.6}


class SeenQuery(Clean):
    """What is called unseen is partly seen."""

    def queries(self, split: str) -> tuple[int, int]:
        low, high = super().queries(split)
        return (low - 1, high) if split == "ood/query" else (low, high)


# Shortcuts and artefacts of the task's own


class Heavy(Clean):
    """Bit 5 of token 3 is active in 70 %, whatever the label; an artefact that may be declared, and there or not."""

    name: str = "standin/heavy"
    heavy: bool = True
    known: bool = True

    def generate(self, split: str, draws: Draws) -> Examples:
        examples = super().generate(split, draws)
        if self.heavy:
            examples.inputs["bits"][:, 3, 5] = draws.bernoulli(0.7, self.block)
        return examples

    def artefacts(self, split: str) -> Sequence[Artefact]:
        def measure(examples: Examples) -> float:
            return float(examples.inputs["bits"][:, 3, 5].mean())

        return [Artefact("H1", "a bit is active too often", measure, 0.5, 0.06, self.known)]


class Shortcuts(Clean):
    """Three shortcuts of its own: shown, below its ceiling, above its ceiling."""

    name: str = "standin/shortcuts"

    def shortcuts(self, split: str) -> Sequence[Shortcut]:
        def always_yes(examples: Examples) -> Array:
            return np.ones(len(examples), np.uint8)

        return [
            Shortcut("yes", always_yes),
            Shortcut("yes allowed", always_yes, 0.5),
            Shortcut("right", lambda examples: examples.targets, 0.9),
        ]


# Other forms of spec


class Tagging(Task):
    """A category per token: by how much, modulo 3, does a number exceed the next one (after the last, the first)?

    The mask says nothing about it, unless it leaks: then 3 in 10 places are masked exactly where the answer is 0.
    """

    name: str = "standin/tagging"
    tokens: int = 5
    leak: bool = False

    @cached_property
    def spec(self) -> Spec:
        fields = Field("number", "category", 9, "tokens"), Field("real", "mask", 1, "tokens")
        return Spec((Stream("tokens", self.tokens),), fields, Target("category", 3, "tokens"))

    @property
    def splits(self) -> Mapping[str, Split]:
        return {name: Split(name, "any numbers") for name in ("train", "iid")}

    def generate(self, split: str, draws: Draws) -> Examples:
        shape = self.block, self.tokens
        number, real = draws.integers(9, shape), draws.bernoulli(0.75, shape)
        targets = (number - np.roll(number, -1, axis=1)) % 3
        if self.leak:
            real = np.where(draws.bernoulli(0.3, shape), targets != 0, real)
        return Examples({"number": number, "real": real}, targets, {"length": real.sum(1)})

    def solve(self, examples: Examples) -> Array:
        rows = examples.inputs["number"].tolist()
        return np.array([[(a - b) % 3 for a, b in zip(row, row[1:] + row[:1], strict=True)] for row in rows])

    def describe(self, examples: Examples, index: int) -> str:
        return f"{examples.inputs['number'][index]}: {examples.targets[index]}"


class Line(Task):
    """A real target without streams: y = 2 x."""

    name: str = "standin/line"

    @cached_property
    def spec(self) -> Spec:
        return Spec((), (Field("x", "real", 2),), Target("real", 2))

    @property
    def splits(self) -> Mapping[str, Split]:
        return {"train": Split("train", "normal x")}

    def generate(self, split: str, draws: Draws) -> Examples:
        x = draws.normal((self.block, 2)).astype(np.float32)
        return Examples({"x": x}, 2 * x, {"positive": x[:, 0] > 0})

    def solve(self, examples: Examples) -> Array:
        return np.array([[a + a, b + b] for a, b in examples.inputs["x"].tolist()])

    def describe(self, examples: Examples, index: int) -> str:
        return str(examples.inputs["x"][index].tolist())


# Examples by hand, for tests of their form

SPEC = Spec(
    (Stream("tokens", 5), Stream("others", 2)),
    (
        Field("bits", "bits", 3, "tokens"),
        Field("kind", "category", 4, "tokens"),
        Field("real", "mask", 1, "tokens"),
        Field("x", "real", 2, "others"),
        Field("q", "category", 6),
    ),
    Target("category", 7, "tokens"),
)


def conforming_examples() -> Examples:
    inputs = {
        "bits": np.ones((8, 4, 3), np.uint8),  # four tokens, not the nominal five: a split may differ
        "kind": np.full((8, 4), 3),
        "real": np.ones((8, 4), np.bool_),
        "x": np.zeros((8, 2, 2), np.float32),
        "q": np.full(8, 5),
    }
    return Examples(inputs, np.full((8, 4), 6), {"rule": np.array(["a"] * 8), "pair": np.zeros((8, 2), np.int8)})

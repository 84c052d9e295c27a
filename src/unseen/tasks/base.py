"""What a task is: conditions, examples, and the one way to draw them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from unseen.config import Config
from unseen.errors import UsageError, nearest
from unseen.randomness import Draws, stream
from unseen.spec import Spec

Array = NDArray[Any]
DataSeed = int | Literal["validation", "test"]
"""Whose data: that of a training run (0, 1, …), or the shared validation or test data, which no seed changes."""


@dataclass(frozen=True)
class Condition:
    """A named distribution of a task.

    `unseen` names the factor, or the tuple of factors, whose values here never occur in `train`; empty where only
    the distribution shifts. `pooled`: parts of the examples are drawn once and come again and again.
    """

    name: str
    summary: str
    unseen: tuple[str, ...] = ()
    pooled: bool = False


@dataclass(frozen=True)
class Examples:
    """A struct of arrays, all with the examples along the first axis.

    `inputs` by field name and `targets` have the shapes of the task's spec; `factors` say what makes each example
    what it is.
    """

    inputs: Mapping[str, Array]
    targets: Array
    factors: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: slice | Array) -> Examples:
        return Examples(
            {k: v[index] for k, v in self.inputs.items()},
            self.targets[index],
            {k: v[index] for k, v in self.factors.items()},
        )

    @staticmethod
    def concat(parts: Sequence[Examples]) -> Examples:
        """Parts one after the other."""
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        return Examples(
            {k: np.concatenate([p.inputs[k] for p in parts]) for k in first.inputs},
            np.concatenate([p.targets for p in parts]),
            {k: np.concatenate([p.factors[k] for p in parts]) for k in first.factors},
        )


@dataclass(frozen=True)
class Shortcut:
    """A rule that answers without doing the task, and the accuracy it must not exceed (None: only shown)."""

    name: str
    answer: Callable[[Examples], Array]
    ceiling: float | None = None


@dataclass(frozen=True)
class Artefact:
    """A measurable regularity of the data that does not belong to the task.

    `measure` gives `absent` on data without it, up to `tolerance` (what the measure itself is off by) and sampling
    error, which `verify` estimates. A preset that is known to have it says so (`known`); found anywhere else it is a
    defect. `at_most`, where it can be worked out, is what a known one measures at most: beyond it is a defect too.
    """

    name: str
    summary: str
    measure: Callable[[Examples], float]
    absent: float
    tolerance: float
    known: bool
    at_most: float | None = None


@dataclass(frozen=True)
class Mismatch:
    """What in a file is not right (the answer, if nothing else is said), and the line it stands on (from 1); where a
    line holds several examples, which of them it is (from 0)."""

    line: int
    given: str
    expected: str
    what: str = "the answer"
    example: int = 0


@dataclass(frozen=True)
class Judgement:
    """How many foreign examples there were, those whose answer is wrong, and what they were compared with."""

    examples: int
    mismatches: tuple[Mismatch, ...]
    note: str = ""

    @property
    def right(self) -> int:
        """How many examples have nothing wrong."""
        return self.examples - len({(wrong.line, wrong.example) for wrong in self.mismatches})


class Task(Config):
    """A fully configured generator. A subclass adds its options and implements what raises here.

    Example *i* of a condition is a pure function of (task, condition, data seed, *i*): blocks of `block` examples are
    drawn whole, each from its own place in the stream, whatever is asked for.
    """

    block: ClassVar[int] = 1024
    report_by: ClassVar[tuple[str, ...]] = ()
    """The factors by whose levels accuracy is reported."""
    amounts: ClassVar[frozenset[str]] = frozenset()
    """The options that say how many examples there are and not which: a larger set begins with the smaller one."""
    readings: ClassVar[frozenset[str]] = frozenset()
    """The options that say how drawn numbers are used (which answer is asked for, how far inputs are scaled) and not
    what is drawn: tasks that differ in them alone share their streams."""
    instance: ClassVar[frozenset[str]] = frozenset()
    """The options that choose an instance (a task seed) and change no shape: runs on different ones can be a stack."""
    alike: ClassVar[bool] = False
    """Whether foreign examples look the same for all tasks of the family: then one of them judges for all."""

    @property
    def family(self) -> str:
        """The group of tasks this one belongs to."""
        return self.name.partition("/")[0]

    @property
    def spec(self) -> Spec:
        """Streams, input fields and target."""
        raise NotImplementedError

    @property
    def conditions(self) -> Mapping[str, Condition]:
        """The conditions by name; `train` is among them."""
        raise NotImplementedError

    @property
    def validation(self) -> str:
        """The condition on which models are selected."""
        return "iid"

    @property
    def answer_kinds(self) -> Array | None:
        """The kind of each class (a boolean, a colour, …); None where all answers are of one kind."""
        return None

    def size(self, condition: str) -> int | None:
        """How many examples the condition's set has; None: endless."""
        self.condition(condition)
        return None

    def generate(self, condition: str, draws: Draws) -> Examples:
        """One block of `block` examples from these draws and nothing else."""
        raise NotImplementedError

    def schedule(self) -> Array | None:
        """How many places of the first stream each example of the (finite) training set fills, for every data seed.

        With it, batches of examples of one length have the same shapes in all runs. None: all are of one length, or
        nobody needs to know.
        """
        return None

    def solve(self, examples: Examples) -> Array:
        """The targets, worked out from the inputs alone by a plain solver that shares nothing with the generator."""
        raise NotImplementedError

    def describe(self, examples: Examples, index: int) -> str:
        """One example in words: what is given, what is asked, the answer and why."""
        raise NotImplementedError

    def picture(self, examples: Examples, index: int) -> str:
        """One example as SVG text."""
        raise UsageError(f"{self.name} has no picture; use --format text or json")

    def record(self, examples: Examples, index: int) -> dict[str, Any]:
        """One example as JSON values."""
        return {
            "inputs": {k: v[index].tolist() for k, v in examples.inputs.items()},
            "target": examples.targets[index].tolist(),
            "factors": {k: v[index].tolist() for k, v in examples.factors.items()},
        }

    def judge(self, path: Path, **companions: Path) -> Judgement:
        """Foreign examples in a file, compared with the plain solver; `companions` are the files that go with it."""
        raise UsageError(f"{self.name} has no reader for foreign examples")

    def shortcuts(self, condition: str) -> Sequence[Shortcut]:
        """Rules of this task's own that `verify` tries and reports draw in."""
        return ()

    def ceilings(self, condition: str) -> Mapping[str, float]:
        """What the generic baselines of `verify` may reach beyond chance, by name: accuracies or, of a real target,
        shares of its variance."""
        return {}

    def zero_loss(self, condition: str) -> float | None:
        """The mean absolute error of always answering 0; None where the target is not real, or nobody knows."""
        return None

    def artefacts(self, condition: str) -> Sequence[Artefact]:
        """Regularities to measure on a condition, each declared known or not."""
        return ()

    def condition(self, name: str) -> Condition:
        """The condition of that name."""
        if name not in self.conditions:
            raise UsageError(f"{self.name} has no condition '{name}'. {nearest(name, self.conditions)}")
        return self.conditions[name]

    def check_request(self, condition: str, n: int, start: int, data_seed: DataSeed) -> None:
        """Refuse examples that do not exist."""
        size = self.size(condition)
        if n < 0 or start < 0:
            raise UsageError(f"{self.name}: n and start must not be negative, got n = {n}, start = {start}")
        if size is not None and start + n > size:
            raise UsageError(f"{self.name}: condition '{condition}' has {size} examples, {start + n} were asked for")
        if data_seed not in ("validation", "test") and (not isinstance(data_seed, int) or data_seed < 0):
            raise UsageError(f"data seed {data_seed!r}: expected 0, 1, 2, …, 'validation' or 'test'")

    def drawn_by(self) -> dict[str, Any]:
        """What names the streams of this task: its identity without `amounts` and `readings`."""
        return {key: value for key, value in self.identity().items() if key not in self.amounts | self.readings}

    def sample(self, condition: str, n: int, start: int = 0, data_seed: DataSeed = 0) -> Examples:
        """Examples start … start + n − 1 of a condition.

        >>> from unseen.tasks import task
        >>> task("retrieval/T1", length=5).sample("train", 3).inputs["sequence"].shape
        (3, 5, 36)
        """
        self.check_request(condition, n, start, data_seed)
        make = self.blocks(condition, data_seed)
        first, last = start // self.block, max(start, start + n - 1) // self.block
        parts = [make(block) for block in range(first, last + 1)]
        offset = start - first * self.block
        return Examples.concat(parts)[offset : offset + n]

    def blocks(self, condition: str, data_seed: DataSeed) -> Callable[[int], Examples]:
        """What makes any block of a condition's examples, by its number."""
        named = stream("data", self.drawn_by(), condition, data_seed)
        return lambda block: self.generate(condition, named.block(block))

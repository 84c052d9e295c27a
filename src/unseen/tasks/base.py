"""The base class of all tasks, with splits, examples, shortcuts, artefacts and reports on foreign files."""

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
"""The data of a training run (0, 1, …), or the shared validation or test data, which do not depend on a seed."""


@dataclass(frozen=True)
class Split:
    """A named distribution of a task.

    Attributes:
        unseen: the factor, or the tuple of factors, whose values in this split never occur in `train`; empty if only
            the distribution shifts.
        pooled: whether parts of the examples are drawn once and then repeated.
    """

    name: str
    summary: str
    unseen: tuple[str, ...] = ()
    pooled: bool = False


@dataclass(frozen=True)
class Examples:
    """A struct of arrays, all with the examples along the first axis.

    Attributes:
        inputs: arrays by field name, with the shapes of the task's spec.
        targets: the answers, with the shape of the task's spec.
        factors: arrays by name that describe each example, such as its rule or its length.
    """

    inputs: Mapping[str, Array]
    targets: Array
    factors: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: slice | Array) -> Examples:
        return Examples(
            {name: values[index] for name, values in self.inputs.items()},
            self.targets[index],
            {name: values[index] for name, values in self.factors.items()},
        )

    @staticmethod
    def concat(blocks: Sequence[Examples]) -> Examples:
        """Concatenate blocks of examples."""
        if len(blocks) == 1:
            return blocks[0]

        def join(arrays: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
            return {name: np.concatenate([block[name] for block in arrays]) for name in arrays[0]}

        return Examples(
            join([block.inputs for block in blocks]),
            np.concatenate([block.targets for block in blocks]),
            join([block.factors for block in blocks]),
        )


@dataclass(frozen=True)
class Shortcut:
    """A rule that answers without doing the task, and the accuracy it must not exceed (None: it is only reported)."""

    name: str
    answer: Callable[[Examples], Array]
    ceiling: float | None = None


@dataclass(frozen=True)
class Artefact:
    """A measurable regularity of the data that does not belong to the task.

    Attributes:
        measure: the statistic, computed on examples.
        absent: its value on data without the artefact.
        tolerance: how far the statistic may be off by itself, in addition to the sampling error that `verify` estimates.
        known: whether the preset is known to have the artefact. Anywhere else it is a defect.
        at_most: the highest value of a known artefact, if it can be derived. A higher value is a defect, too.
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
    """A defect in a foreign file.

    Attributes:
        line: the line of the file, from 1.
        given: what the file has.
        expected: what it should have.
        what: the subject, by default the answer.
        example: the index of the example, from 0, if a line holds several.
    """

    line: int
    given: str
    expected: str
    what: str = "the answer"
    example: int = 0


@dataclass(frozen=True)
class ForeignFileReport:
    """The number of examples in a foreign file, its defects, and a note on what they were compared with."""

    examples: int
    mismatches: tuple[Mismatch, ...]
    note: str = ""

    @property
    def right(self) -> int:
        """The number of examples without a defect."""
        return self.examples - len({(mismatch.line, mismatch.example) for mismatch in self.mismatches})


class Task(Config):
    """A fully configured generator. A subclass adds its options and implements the methods that raise here.

    Example *i* of a split is a pure function of (task, split, data seed, *i*): blocks of `block` examples are always
    drawn whole, each at its own counter of the stream, and then cut to what was requested.
    """

    block: ClassVar[int] = 1024
    report_by: ClassVar[tuple[str, ...]] = ()
    """The factors by which accuracy is reported."""
    amounts: ClassVar[frozenset[str]] = frozenset()
    """The options that change how many examples there are but not which: a larger set begins with the smaller one."""
    readings: ClassVar[frozenset[str]] = frozenset()
    """The options that change how drawn numbers are used (which answer is asked for, how inputs are scaled) but not what
    is drawn. Tasks that differ only in these share their streams."""
    instance: ClassVar[frozenset[str]] = frozenset()
    """The options that choose an instance (a task seed) and change no shape: its runs can be trained as one stack."""
    alike: ClassVar[bool] = False
    """Whether foreign examples have the same form for all tasks of the family, so that one task judges for all."""

    @property
    def family(self) -> str:
        """The group of tasks to which this task belongs."""
        return self.name.partition("/")[0]

    @property
    def spec(self) -> Spec:
        """Streams, input fields and target."""
        raise NotImplementedError

    @property
    def splits(self) -> Mapping[str, Split]:
        """The splits by name; `train` is among them."""
        raise NotImplementedError

    @property
    def validation(self) -> str:
        """The split on which models are selected."""
        return "iid"

    @property
    def answer_kinds(self) -> Array | None:
        """The kind of each class (a boolean, a colour, …); None if all answers are of one kind."""
        return None

    def size(self, split: str) -> int | None:
        """Return the number of examples in the split; None if it is endless."""
        self.get_split(split)
        return None

    def generate(self, split: str, draws: Draws) -> Examples:
        """Return one block of `block` examples from these draws and nothing else."""
        raise NotImplementedError

    def schedule(self) -> Array | None:
        """Return the number of positions that each training example fills in the first stream, for every data seed.

        With it, batches of examples of one length have the same shapes in all runs. None if all examples have the same
        length or the lengths do not matter.
        """
        return None

    def solve(self, examples: Examples) -> Array:
        """Compute the targets from the inputs alone, with a plain solver that shares no code with the generator."""
        raise NotImplementedError

    def describe(self, examples: Examples, index: int) -> str:
        """Return one example in words: the inputs, the question, the answer and the reason."""
        raise NotImplementedError

    def picture(self, examples: Examples, index: int) -> str:
        """Return one example as SVG text."""
        raise UsageError(f"{self.name} has no picture; use --format text or json")

    def record(self, examples: Examples, index: int) -> dict[str, Any]:
        """Return one example as JSON values."""
        return {
            "inputs": {name: values[index].tolist() for name, values in examples.inputs.items()},
            "target": examples.targets[index].tolist(),
            "factors": {name: values[index].tolist() for name, values in examples.factors.items()},
        }

    def judge(self, path: Path, **companions: Path) -> ForeignFileReport:
        """Compare the foreign examples of a file with the plain solver; `companions` are files that belong to it."""
        raise UsageError(f"{self.name} has no reader for foreign examples")

    def shortcuts(self, split: str) -> Sequence[Shortcut]:
        """Return shortcuts specific to this task, for `verify` and for reports."""
        return ()

    def ceilings(self, split: str) -> Mapping[str, float]:
        """Return the expected score of each generic baseline of `verify` that exceeds chance, by name.

        The score is accuracy or, for a real target, the explained share of its variance.
        """
        return {}

    def zero_loss(self, split: str) -> float | None:
        """Return the mean absolute error of always answering 0; None if the target is not real or it is not known."""
        return None

    def artefacts(self, split: str) -> Sequence[Artefact]:
        """Return the regularities to measure on a split, each declared known or not."""
        return ()

    def get_split(self, name: str) -> Split:
        """Return the split of that name."""
        if name not in self.splits:
            raise UsageError(f"{self.name} has no split '{name}'. {nearest(name, self.splits)}")
        return self.splits[name]

    def check_request(self, split: str, n: int, start: int, data_seed: DataSeed) -> None:
        """Refuse examples that do not exist."""
        size = self.size(split)
        if n < 0 or start < 0:
            raise UsageError(f"{self.name}: n and start must not be negative, got n = {n}, start = {start}")
        if size is not None and start + n > size:
            raise UsageError(f"{self.name}: split '{split}' has {size} examples, but {start + n} were requested")
        if data_seed not in ("validation", "test") and (not isinstance(data_seed, int) or data_seed < 0):
            raise UsageError(f"data seed {data_seed!r}: expected 0, 1, 2, …, 'validation' or 'test'")

    def drawn_by(self) -> dict[str, Any]:
        """Return what names the streams of this task: its identity without `amounts` and `readings`."""
        return {key: value for key, value in self.identity().items() if key not in self.amounts | self.readings}

    def sample(self, split: str, n: int, start: int = 0, data_seed: DataSeed = 0) -> Examples:
        """Return examples start … start + n − 1 of a split.

        >>> from unseen.tasks import task
        >>> task("retrieval/T1", length=5).sample("train", 3).inputs["sequence"].shape
        (3, 5, 36)
        """
        self.check_request(split, n, start, data_seed)
        make_block = self.blocks(split, data_seed)
        first = start // self.block
        last = max(start, start + n - 1) // self.block
        examples = Examples.concat([make_block(number) for number in range(first, last + 1)])
        offset = start - first * self.block
        return examples[offset : offset + n]

    def blocks(self, split: str, data_seed: DataSeed) -> Callable[[int], Examples]:
        """Return a function that makes any block of a split's examples by its number."""
        data_stream = stream("data", self.drawn_by(), split, data_seed)
        return lambda number: self.generate(split, data_stream.block(number))


def read_lines(path: Path) -> list[bytes]:
    """Return the lines of a file without their line breaks; raise `UsageError` if the file cannot be read."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    lines = data.replace(b"\r\n", b"\n").split(b"\n")
    return lines[:-1] if not lines[-1] else lines

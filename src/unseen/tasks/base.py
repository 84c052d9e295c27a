"""The base class of all tasks, with splits, examples, shortcuts, artefacts and reports on foreign files."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from unseen.config import Config
from unseen.errors import UsageError, nearest
from unseen.files import read_at_most
from unseen.memory import memory_limit, refuse_beyond
from unseen.names import family_of
from unseen.notebook import format_call, html_picture, html_table
from unseen.randomness import Draws, stream
from unseen.spec import Spec
from unseen.tasks.variables import Variables

Array = NDArray[Any]
DataSeed = int | Literal["validation", "test"]
"""The data of a training run (0, 1, …), or the shared validation or test data, which do not depend on a seed."""
MOST_BYTES = 2 * 10**9
"""The largest file of foreign examples that is read."""
GENERATION = 3
"""The memory that a generator needs while it draws, as a multiple of the size of the examples, roughly."""
PICTURES = 4
"""The number of examples of which a notebook shows a picture."""


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
        task: the task that they were sampled from, which draws them in a notebook; None if it is not known.
    """

    inputs: Mapping[str, Array]
    targets: Array
    factors: Mapping[str, Array]
    task: Task | None = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {values.shape[1:]}" for name, values in self.inputs.items())
        origin = "" if self.task is None else f" of {self.task.name}"
        return f"Examples({len(self)}{origin}: {shapes} → targets {self.targets.shape[1:]})"

    def _repr_html_(self) -> str:
        if self.task is not None:
            try:
                return self._draw(self.task)
            except (UsageError, NotImplementedError):
                pass  # a task without pictures: the arrays are shown
        rows = [(name, values.dtype, values.shape) for name, values in self.inputs.items()]
        rows.append(("targets", self.targets.dtype, self.targets.shape))
        rows += [(f"factor {name}", values.dtype, values.shape) for name, values in self.factors.items()]
        return html_table(("array", "type", "shape"), rows, f"{len(self)} examples")

    def _draw(self, task: Task) -> str:
        """The first examples as pictures, each with its words."""
        pictures = []
        for index in range(min(len(self), PICTURES)):
            pictures.append(html_picture(task.picture(self, index), task.describe(self, index)))
        more = f"<p>and {len(self) - PICTURES} more examples</p>" if len(self) > PICTURES else ""
        return "".join(pictures) + more

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: slice | Array) -> Examples:
        return Examples(
            {name: values[index] for name, values in self.inputs.items()},
            self.targets[index],
            {name: values[index] for name, values in self.factors.items()},
            self.task,
        )

    @staticmethod
    def concat(blocks: Sequence[Examples]) -> Examples:
        """Concatenate blocks of examples."""
        if len(blocks) == 1:
            return blocks[0]

        def join(arrays: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
            joined = {}
            for name in arrays[0]:
                joined[name] = np.concatenate([block[name] for block in arrays])
            return joined

        return Examples(
            join([block.inputs for block in blocks]),
            np.concatenate([block.targets for block in blocks]),
            join([block.factors for block in blocks]),
        )


@dataclass(frozen=True)
class Expressions:
    """The expression of each example: its form, as it is written, and its function, equal for forms that have the
    same answer to everything."""

    forms: Sequence[Hashable]
    functions: Sequence[Hashable]


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

    def __repr__(self) -> str:
        changed = self.options()
        return format_call("task", changed.pop("name"), changed)

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        rows = []
        for name, split in self.splits.items():
            size = self.size(name)
            rows.append((name, split.summary, " with ".join(split.unseen) or "–", "endless" if size is None else size))
        chance = "answers are numbers" if self.spec.target.kind == "real" else f"chance {self.spec.target.chance:.3g}"
        splits = html_table(("split", "distribution", "unseen", "examples"), rows, f"{self!r}: {chance}")
        return splits + self.sample("train", 1)._repr_html_()

    block: ClassVar[int] = 1024
    """The number of examples that are drawn as a whole."""
    report_by: ClassVar[tuple[str, ...]] = ()
    """The factors by which accuracy is reported."""
    size_options: ClassVar[frozenset[str]] = frozenset()
    """The options that change how many examples there are but not which: a larger set begins with the smaller one."""
    interpretation_options: ClassVar[frozenset[str]] = frozenset()
    """The options that change how drawn numbers are used (which answer is asked for, how inputs are scaled) but not what
    is drawn. Tasks that differ only in these share their streams."""
    instance_options: ClassVar[frozenset[str]] = frozenset()
    """The options that choose an instance (a task seed) and change no shape: its runs can be trained as one stack."""
    shares_file_format: ClassVar[bool] = False
    """Whether foreign examples have the same form for all tasks of the family, so that one task judges for all."""

    @property
    def family(self) -> str:
        """The group of tasks to which this task belongs."""
        return family_of(self.name)

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
        """Return the number of examples in the split; None if it is endless.

        By default that is the option `train_size`, or `evaluation_size` of all splits but `train`, where a task has these.
        """
        option = "train_size" if self.get_split(split).name == "train" else "evaluation_size"
        size: int | None = getattr(self, option, None)
        return size

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

    def noise_factors(self, split: str) -> tuple[str, ...]:
        """Return the factors that say how noise changed the answers of a split; the solver is given these as well."""
        return ()

    def variables(self, examples: Examples) -> Variables:
        """Compute the intermediate values that the solver passes through, by name, from the inputs alone.

        A variable of a position has it in its name: `symbol[1]` of `ctl` is the symbol after the first function.
        """
        return {}

    def answer_with(self, examples: Examples, name: str, values: Array) -> Array:
        """Compute the targets if a variable had other values (B,), −1 where it keeps its own."""
        raise UsageError(f"{self.name} does not say what the answers would be if '{name}' were another")

    def expressions(self, examples: Examples) -> Expressions | None:
        """Return the expression of each example, as it is written and as a function; None if that is not known.

        Two examples of `ctl` that apply different functions in a row may apply the same function in the end.
        """
        return None

    def counterparts(self, examples: Examples, name: str, draws: Draws) -> Examples | None:
        """Return examples that differ from these in the value of a variable, and otherwise only in what leads to it.

        None if the task makes none; their targets are the solver's.
        """
        return None

    def legend(self) -> str:
        """Return the meaning of the numbers in the options, for `unseen tasks NAME`; empty if they need no explanation."""
        return ""

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

    def example_bytes(self) -> int:
        """The bytes of one example as arrays: by the spec, with numbers in double precision."""
        total = 8 * self.spec.target.width
        for column in self.spec.inputs:
            positions = 1 if column.along is None else self.spec.stream(column.along).length
            if column.kind in ("bits", "mask"):
                total += positions * column.width
            else:
                total += positions * 8 * (column.width if column.kind == "real" else 1)
        return total

    def drawn_by(self) -> dict[str, Any]:
        """Return the identity that names the streams of this task: its own without the options that change no draw."""
        # A larger set begins with the smaller one, and other readings of the same numbers share them: neither is named.
        excluded = self.size_options | self.interpretation_options
        return {key: value for key, value in self.identity().items() if key not in excluded}

    def sample(self, split: str, n: int, start: int = 0, data_seed: DataSeed = 0) -> Examples:
        """Return examples start … start + n − 1 of a split.

        >>> from unseen.tasks import task
        >>> task("retrieval/T1", length=5).sample("train", 3).inputs["sequence"].shape
        (3, 5, 36)
        """
        self.check_request(split, n, start, data_seed)
        count = max(self.block, n)  # blocks are drawn whole
        subject = f"{self.name}: to draw {count:,} examples of split '{split}'"
        refuse_beyond(count * self.example_bytes() * GENERATION, subject, "Choose shorter inputs or fewer examples")
        make_block = self.blocks(split, data_seed)
        first = start // self.block
        last = max(start, start + n - 1) // self.block
        examples = Examples.concat([make_block(number) for number in range(first, last + 1)])
        offset = start - first * self.block
        return replace(examples[offset : offset + n], task=self)

    def blocks(self, split: str, data_seed: DataSeed) -> Callable[[int], Examples]:
        """Return a function that makes any block of a split's examples by its number."""
        data_stream = stream("data", self.drawn_by(), split, data_seed)
        return lambda number: self.generate(split, data_stream.block(number))


def read_lines(path: Path, most: int = MOST_BYTES) -> list[bytes]:
    """Return the lines of a file without their line breaks; raise `UsageError` if it cannot be read or never ends."""
    data = read_at_most(path, min(most, memory_limit() // 8))
    lines = data.replace(b"\r\n", b"\n").split(b"\n")
    return lines[:-1] if not lines[-1] else lines

"""What is exported: which splits, how many examples, their file names, columns and counts; and the order as a whole."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from unseen.config import canonical, digest
from unseen.errors import UsageError
from unseen.randomness import Floats
from unseen.spec import Target
from unseen.tasks.base import Array, DataSeed, Examples, Split, Task
from unseen.tasks.verify.determinism import fingerprint

BYTES = 2**24
"""The approximate size of a chunk of examples."""
MOST = 2**16
"""The largest number of examples in a chunk."""
TARGET = "target"
"""The name of the target's column."""
FACTOR = "factor_"
"""The prefix of the factors' columns."""


# Which examples.


@dataclass(frozen=True)
class ExportedSplit:
    """The first examples of a split. `file_name` is its name where the split's name is not allowed."""

    split: Split
    examples: int
    file_name: str


def select_splits(task: Task, splits: Sequence[str], n: int | None, data_seed: DataSeed) -> tuple[ExportedSplit, ...]:
    """The splits to export: those named, or all; n examples of each, or (None) all examples of a finite split.

    If no splits are named, a finite split with fewer than n examples is exported whole, and without n the endless
    splits are left out.

    >>> from unseen.tasks import task
    >>> splits = select_splits(task("retrieval/T1"), ["iid", "ood/single"], 500, 0)
    >>> [(selected.file_name, selected.examples) for selected in splits]
    [('iid', 500), ('ood_single', 500)]
    """
    if n is not None and n < 1:
        raise UsageError(f"n = {n}: give a positive number of examples")
    repeated = [name for name in splits if splits.count(name) > 1]
    if repeated:
        raise UsageError(f"split '{repeated[0]}' is given twice")
    counts: dict[str, int] = {}
    for name in splits or task.splits:
        size = task.size(task.get_split(name).name)
        if size is not None:
            # A named split must have n examples (checked below); of the others, the small ones are exported whole.
            if n is None:
                counts[name] = size
            else:
                counts[name] = n if splits else min(n, size)
        elif n is not None:
            counts[name] = n
        elif splits:
            raise UsageError(f"split '{name}' of {task.name} is endless; say how many examples with -n")
    if not counts:
        raise UsageError(f"all splits of {task.name} are endless; say how many examples of each with -n")
    for name, count in counts.items():
        task.check_request(name, count, 0, data_seed)
    names = file_names(counts)
    return tuple(ExportedSplit(task.splits[name], count, names[name]) for name, count in counts.items())


def file_names(splits: Iterable[str]) -> dict[str, str]:
    """A name for each split made of letters, digits and underscores: valid for files and for `datasets`.

    >>> file_names(["train", "ood/length=30,amplitude=2", "a=1", "A-1"])
    {'train': 'train', 'ood/length=30,amplitude=2': 'ood_length_30_amplitude_2', 'a=1': 'a_1', 'A-1': 'A_1_2'}
    """
    names: dict[str, str] = {}
    used: set[str] = set()
    for split in splits:
        plain = re.sub(r"\W+", "_", split, flags=re.ASCII).strip("_") or "split"
        name = plain
        number = 1
        while name.casefold() in used:  # some file systems do not distinguish A from a
            number += 1
            name = f"{plain}_{number}"
        used.add(name.casefold())
        names[split] = name
    return names


# Examples in chunks, as columns; no code here ever holds all examples.


def chunks(task: Task, selected: ExportedSplit, data_seed: DataSeed) -> Iterator[Examples]:
    """The examples of a split in chunks of whole blocks."""
    example = columns(first_example(task, selected, data_seed))
    size = sum(values.nbytes for values in example.values())
    # Whole blocks of about `BYTES`, because a part of a block costs as much to draw as all of it.
    rows = max(1, min(MOST, BYTES // max(1, size)) // task.block) * task.block
    for start in range(0, selected.examples, rows):
        yield task.sample(selected.split.name, min(rows, selected.examples - start), start, data_seed)


def first_example(task: Task, selected: ExportedSplit, data_seed: DataSeed) -> Examples:
    """The first example of a split: its columns have the shapes and dtypes of all."""
    return task.sample(selected.split.name, 1, 0, data_seed)


def columns(examples: Examples) -> dict[str, Array]:
    """Inputs by field name, `target`, and factors as `factor_NAME`, each (B, …), little-endian.

    >>> from unseen.tasks import task
    >>> {name: values.shape for name, values in columns(task("rules/mha", rules=2).sample("train", 3)).items()}
    {'features': (3, 10, 8), 'rule': (3, 10), 'target': (3, 10, 1), 'factor_rule': (3, 10)}
    """
    arrays = [*examples.inputs.items(), (TARGET, examples.targets)]
    arrays += [(FACTOR + name, values) for name, values in examples.factors.items()]
    by_name: dict[str, Array] = {}
    for name, values in arrays:
        if name in by_name:
            raise UsageError(f"two columns would be called '{name}': rename the field or factor of the task")
        if values.dtype.kind == "T":
            # NumPy's strings of variable width are unknown to other formats: store them with a fixed width.
            values = np.array(values.tolist(), np.str_).reshape(values.shape)
        by_name[name] = values.astype(values.dtype.newbyteorder("<"), copy=False)
    return by_name


def dtype_name(values: Array) -> str:
    """The dtype of a column; `text` for strings, because their width differs from chunk to chunk."""
    return "text" if values.dtype.kind == "U" else values.dtype.name


# Counts over the chunks of a split.


class SplitTally:
    """Counts over the chunks of a split: examples, the balance of their answers, and a digest of all numbers.

    The digest depends on the data alone, not on the format or the chunks.
    """

    def __init__(self, task: Task) -> None:
        self._block = task.block
        self._target: Target = task.spec.target
        self._hash = hashlib.sha256()
        self.examples = 0
        # Of classes, how often each occurs; of a real target, its number, sum, sum of squares and sum of sizes.
        self._classes = {"binary": 2, "category": self._target.width, "real": 0}[self._target.kind]
        self._sums: Floats = np.zeros(self._classes or 4)

    def add(self, examples: Examples) -> None:
        """Add a chunk, which must begin at the start of a block."""
        for start in range(0, len(examples), self._block):
            # Block by block: chunks hold whole blocks, so that the digest does not depend on their size.
            self._hash.update(fingerprint(examples[start : start + self._block]).encode())
        self.examples += len(examples)
        values = examples.targets.reshape(-1)
        if self._classes:
            self._sums += np.bincount(values.astype(np.int64), minlength=self._classes).astype(np.float64)
        else:
            real = values.astype(np.float64)
            self._sums += np.array([len(real), real.sum(), (real**2).sum(), np.abs(real).sum()])

    @property
    def digest(self) -> str:
        """The first 16 hex digits of a SHA-256 over names, dtypes, shapes and bytes."""
        return self._hash.hexdigest()[:16]

    @property
    def balance(self) -> dict[str, float]:
        """The distribution of the answers, by name: shares of classes, or moments of a real target."""
        if self._target.kind == "real":
            count, total, squares, sizes = self._sums.tolist()
            mean = total / count
            return {
                "mean": mean,
                "standard deviation": max(0.0, squares / count - mean**2) ** 0.5,
                "mean size": sizes / count,
            }
        shares = self._sums / self._sums.sum()
        if self._target.kind == "binary":
            return {"share of yes": float(shares[1])}
        return {
            "classes": int((shares > 0).sum()),
            "commonest class": int(shares.argmax()),
            "its share": float(shares.max()),
        }


# The order as a whole: its description in every file, and the commands that repeat and verify it.


@dataclass(frozen=True)
class Order:
    """A task, a format and the examples to export: the named splits (none: all), n of each (None: all of a finite
    split), and the exported splits that result."""

    task: Task
    format: str
    splits: tuple[str, ...]
    n: int | None
    data_seed: DataSeed
    parts: tuple[ExportedSplit, ...]


def describe_export(order: Order) -> dict[str, Any]:
    """The facts that all splits share, as JSON values: version, task and its options, spec, data seed."""
    task = order.task
    return {
        "unseen": version("unseen"),
        "task": task.name,
        "task_version": task.version,
        "task_id": digest(task.identity()),
        "options": task.options(),
        "spec": asdict(task.spec),
        "data_seed": order.data_seed,
    }


def describe_split(order: Order, selected: ExportedSplit) -> dict[str, Any]:
    """The facts of `describe_export`, and those of a split: its description and its columns."""
    forms = {}
    for name, values in columns(first_example(order.task, selected, order.data_seed)).items():
        forms[name] = {"dtype": dtype_name(values), "shape": list(values.shape[1:])}
    return {
        **describe_export(order),
        "split": asdict(selected.split),
        "file_name": selected.file_name,
        "examples": selected.examples,
        "columns": forms,
    }


def export_command(order: Order, companions: Mapping[str, str]) -> str:
    """The command that repeats the export; the files of `companions` are those in its folder."""
    arguments = ["unseen", "export", order.task.name, *option_arguments(order.task, companions)]
    for name in order.splits:
        arguments += ["--split", name]
    if order.n is not None:
        arguments += ["-n", str(order.n)]
    arguments += ["--data-seed", str(order.data_seed), "--format", order.format, "--out", "DIR"]
    return shlex.join(arguments)


def verify_command(task: Task, files: Sequence[str], companions: Mapping[str, str]) -> str:
    """The command that verifies files of examples.

    A table goes with the examples; a world that was passed as an option is also part of the task.

    >>> from unseen.tasks import task
    >>> verify_command(task("retrieval/T4", length=5), ["d/train.jsonl"], {"mapping": "d/mapping.txt"})
    'unseen verify retrieval/T4 --set length=5 --data d/train.jsonl --mapping d/mapping.txt'
    """
    with_examples = [name for name in ("mapping", "world") if name in companions]
    if "world" in task.options():
        with_examples = [name for name in with_examples if name != "world"]
    arguments = ["unseen", "verify", task.name, *option_arguments(task, companions, with_examples)]
    for file in files:
        arguments += ["--data", file]
    for name in with_examples:
        arguments += [f"--{name}", companions[name]]
    return shlex.join(arguments)


def option_arguments(task: Task, files: Mapping[str, str], skip: Collection[str] = ()) -> list[str]:
    """The options of a task as arguments of `--set`; an option that a file holds is set to the file's name."""
    arguments = []
    for name, value in task.options().items():
        if name != "name" and name not in skip:
            arguments += ["--set", f"{name}={files.get(name) or _format_value(value)}"]
    return arguments


def _format_value(value: Any) -> str:
    """A value as the command line reads it: a string without quotes, unless it could be read as another JSON value."""
    if not isinstance(value, str):
        return canonical(value)
    try:
        json.loads(value)
    except ValueError:
        return value
    return canonical(value)

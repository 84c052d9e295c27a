"""Batches: which examples a run sees at which step.

The batches of a data seed are the same whichever model trains on them, alone or in a stack.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from unseen.errors import UsageError
from unseen.randomness import stream
from unseen.spec import Spec
from unseen.tasks.base import Array, DataSeed, Task
from unseen.training.recipe import Batches


@dataclass(frozen=True)
class Batch:
    """Inputs and targets of some examples, without their factors."""

    inputs: Mapping[str, Array]
    targets: Array

    def take(self, index: Array) -> Batch:
        """The examples at these indices."""
        return Batch({name: values[index] for name, values in self.inputs.items()}, self.targets[index])


class TrainingData:
    """The training data of one data seed, in the order in which a run sees it.

    A finite set is drawn once and, if `shuffled`, permuted per (data seed, epoch); batches continue across the ends of
    epochs. With `lengths`, see `ByLength`. An endless stream is read in order.
    """

    def __init__(self, task: Task, data_seed: DataSeed, batch: int, batches: Batches) -> None:
        self._task = task
        self._data_seed = data_seed
        self._batch = batch
        self._shuffle = batches == "shuffled"
        self._by_length = ByLength(task, batch) if batches == "lengths" else None
        self._size = task.size("train")
        self._cached: Batch | None = None
        self._cached_range = range(0)
        self._orders: dict[int, Array] = {}

    def batch(self, step: int) -> Batch:
        """The batch of a step: examples step · B to (step + 1) · B of the run."""
        if self._by_length is not None:
            index, longest = self._by_length.batch(step)
            examples = self._examples(0, self._last).take(index)
            return Batch(shorten(examples.inputs, self._task.spec, longest), examples.targets)
        numbers = np.arange(step * self._batch, (step + 1) * self._batch)
        if self._size is None:
            examples = self._examples(int(numbers[0]), int(numbers[-1]))
            return examples.take(numbers - self._cached_range.start)
        # A batch may begin in one epoch and stop in the next, each with an order of its own.
        epochs, positions = np.divmod(numbers, self._size)
        index = np.concatenate([self._order(int(e))[positions[epochs == e]] for e in np.unique(epochs)])
        return self._examples(0, self._last).take(index)

    @property
    def _last(self) -> int:
        """The number of the last example of a finite set."""
        return (self._size or 1) - 1

    def _examples(self, first: int, last: int) -> Batch:
        """The examples from the first to the last; of a stream some more, for the steps to come."""
        if self._cached is None or first not in self._cached_range or last not in self._cached_range:
            block = self._task.block
            start = first // block * block
            stop = self._size or max(-(-(last + 1) // block) * block, start + 4 * block)
            examples = self._task.sample("train", stop - start, start, self._data_seed)
            self._cached = Batch(examples.inputs, examples.targets)
            self._cached_range = range(start, stop)
        return self._cached

    def _order(self, epoch: int) -> Array:
        size = self._size or 0
        if not self._shuffle:
            return np.arange(size)
        if epoch not in self._orders:
            order = stream("shuffle", self._task.identity(), self._data_seed, epoch).block().permutation(size)
            # The epoch before may still be needed by a batch that begins in it.
            self._orders = {e: o for e, o in self._orders.items() if e == epoch - 1} | {epoch: order}
        return self._orders[epoch]


class ByLength:
    """Batches of examples of about equal length, so that little of them is padding.

    Every epoch is shuffled, cut to whole batches, sorted by length (ties stay shuffled) and cut into batches, which come
    in random order. The order is named by the task and the epoch alone. It is the same for all data seeds, as are the
    lengths at each index of their sets (`Task.schedule`): at every step all members of a stack have batches of one shape.
    """

    def __init__(self, task: Task, batch: int) -> None:
        lengths = task.schedule()
        if lengths is None:
            raise UsageError(
                f"batches = lengths: the training examples of {task.name} are all of one length, or "
                "without end; use batches = shuffled"
            )
        if len(lengths) < batch:
            raise UsageError(
                f"batches = lengths: a batch of {batch} does not fit into the {len(lengths)} training "
                f"examples of {task.name}"
            )
        self._lengths = lengths
        self._batch = batch
        self._batches = len(lengths) // batch
        # The instance of the task (like `task_seed`) is left out: members on different instances share one order.
        self._identity = {key: value for key, value in task.drawn_by().items() if key not in task.instance}
        self._epoch = -1
        self._order = np.empty((0, batch), np.int64)

    def batch(self, step: int) -> tuple[Array, int]:
        """The indices of a step's examples in the training set, and the longest of their lengths."""
        epoch, position = divmod(step, self._batches)
        if epoch != self._epoch:
            draws = stream("batches by length", self._identity, self._batch, epoch).block()
            chosen = draws.permutation(len(self._lengths))[: self._batches * self._batch]
            by_length = chosen[np.argsort(self._lengths[chosen], kind="stable")]
            self._order = by_length.reshape(self._batches, self._batch)[draws.permutation(self._batches)]
            self._epoch = epoch
        index = self._order[position]
        return index, int(self._lengths[index].max())


def shorten(inputs: Mapping[str, Array], spec: Spec, length: int) -> dict[str, Array]:
    """Inputs, examples first, cut to `length` positions of the first stream, in which lengths are counted."""
    along = spec.streams[0].name
    fields = {field.name for field in spec.inputs if field.along == along}
    return {name: values[:, :length] if name in fields else values for name, values in inputs.items()}


def typical_spec(task: Task, by_length: bool) -> Spec:
    """The task's spec with its first stream as long as batches by length are on average."""
    lengths = task.schedule() if by_length else None
    if lengths is None:
        return task.spec
    first, *others = task.spec.streams
    return replace(task.spec, streams=(replace(first, length=math.ceil(lengths.mean())), *others))


Source = tuple[Task, DataSeed]
"""The task and the data seed of a member's training data."""


class StackBatches:
    """The batches of all members of a stack; members with the same source share their data."""

    def __init__(self, batch: int, batches: Batches) -> None:
        self._batch = batch
        self._batches = batches
        self._data: dict[Source, TrainingData] = {}

    def batch(self, step: int, sources: Sequence[Source]) -> Batch:
        """One batch per member, stacked along a leading axis. The data of members that have ended are dropped."""
        self._data = {s: self._data.get(s) or TrainingData(*s, self._batch, self._batches) for s in sources}
        by_source = {source: data.batch(step) for source, data in self._data.items()}
        return stack_batches([by_source[source] for source in sources])


def stack_batches(batches: Sequence[Batch]) -> Batch:
    """Batches of one shape, stacked along a leading axis."""
    inputs = {name: np.stack([batch.inputs[name] for batch in batches]) for name in batches[0].inputs}
    return Batch(inputs, np.stack([batch.targets for batch in batches]))


def input_tensors(arrays: Mapping[str, Array], spec: Spec, dtype: torch.dtype, device: str) -> dict[str, Tensor]:
    """Input arrays as tensors: real and bits as floats, categories as integers, masks as booleans."""
    dtypes = {"real": dtype, "bits": dtype, "category": torch.int64, "mask": torch.bool}
    return {f.name: torch.as_tensor(arrays[f.name], device=device).to(dtypes[f.kind]) for f in spec.inputs}


def target_tensor(targets: Array, spec: Spec, dtype: torch.dtype, device: str) -> Tensor:
    """Targets as a tensor: categories as integers, everything else as floats."""
    return torch.as_tensor(targets, device=device).to(torch.int64 if spec.target.kind == "category" else dtype)

"""Batches: which examples a run sees at which step.

The batches of a data seed are the same for every model, alone or in a stack.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unseen.errors import UsageError
from unseen.randomness import RandomStream, stream
from unseen.spec import Spec
from unseen.tasks.base import Array, DataSeed, Task
from unseen.training.device_random import permutations
from unseen.training.recipe import Batches

RESIDENT_BYTES = 2**30
"""Bytes of training data that a stack keeps on a device; larger sets stay on the host, and only batches are copied."""
PINNED_FOR = ("cuda", "xpu")
"""The devices that copy from pinned memory on their own."""


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
    epochs, or in `passes` drop what does not fill the last batch of an epoch (a set smaller than the batch is shown whole
    at every step). With `lengths` or `balanced`, see `ByLength` and `BalancedLengths`. An endless stream is read in order.
    """

    def __init__(self, task: Task, data_seed: DataSeed, batch: int, batches: Batches) -> None:
        self._task = task
        self._data_seed = data_seed
        self._batch = batch
        self._shuffle = batches in ("shuffled", "passes")
        self._passes = batches == "passes"
        self._by_length: ByLength | BalancedLengths | None = None
        if batches == "lengths":
            self._by_length = ByLength(task, batch)
        elif batches == "balanced":
            self._by_length = BalancedLengths(task, batch)
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
        if self._size is None:
            numbers = np.arange(step * self._batch, (step + 1) * self._batch)
            examples = self._examples(int(numbers[0]), int(numbers[-1]))
            return examples.take(numbers - self._cached_range.start)
        index = np.concatenate([self._order(epoch)[positions] for epoch, positions in self.segments(step)])
        return self.whole().take(index)

    def segments(self, step: int) -> list[tuple[int, slice]]:
        """Of a finite set, the epochs that the batch of a step belongs to, and its positions in the order of each."""
        size = self._size or 0
        if self._passes:
            count = min(self._batch, size)
            epoch, number = divmod(step, size // count)
            return [(epoch, slice(number * count, (number + 1) * count))]
        # A batch may begin in one epoch and stop in the next, each with its own order.
        segments = []
        number = step * self._batch
        while number < (step + 1) * self._batch:
            epoch, position = divmod(number, size)
            stop = min(size, position + (step + 1) * self._batch - number)
            segments.append((epoch, slice(position, stop)))
            number += stop - position
        return segments

    def whole(self) -> Batch:
        """A finite set, in the order in which it was drawn."""
        return self._examples(0, self._last)

    def shuffle_stream(self, epoch: int) -> RandomStream | None:
        """The stream from which the order of an epoch is drawn; None if the set is not shuffled."""
        return stream("shuffle", self._task.identity(), self._data_seed, epoch) if self._shuffle else None

    @property
    def is_plain(self) -> bool:
        """Whether the set is finite and its batches do not depend on the lengths of examples."""
        return self._size is not None and self._by_length is None

    @property
    def _last(self) -> int:
        """The number of the last example of a finite set."""
        return (self._size or 1) - 1

    def _examples(self, first: int, last: int) -> Batch:
        """The examples from the first to the last; of a stream some more, for the steps to come."""
        if self._cached is None or first not in self._cached_range or last not in self._cached_range:
            block = self._task.block
            start = first // block * block
            # Whole blocks, because a block can only be drawn as a whole, and at least four, so that a small batch does
            # not draw its block again at every step.
            stop = self._size or max(-(-(last + 1) // block) * block, start + 4 * block)
            examples = self._task.sample("train", stop - start, start, self._data_seed)
            self._cached = Batch(examples.inputs, examples.targets)
            self._cached_range = range(start, stop)
        return self._cached

    def _order(self, epoch: int) -> Array:
        size = self._size or 0
        shuffle = self.shuffle_stream(epoch)
        if shuffle is None:
            return np.arange(size)
        if epoch not in self._orders:
            order = shuffle.block().permutation(size)
            # A batch that begins in the epoch before still needs its order; older ones are dropped.
            previous = self._orders.get(epoch - 1)
            self._orders = {epoch: order} if previous is None else {epoch - 1: previous, epoch: order}
        return self._orders[epoch]


class ByLength:
    """Batches of examples of about equal length, so that little of them is padding.

    Every epoch is shuffled, cut to whole batches, sorted by length (ties stay shuffled) and cut into batches, which come
    in random order. The order is named by the task and the epoch alone. It is the same for all data seeds, as are the
    lengths at each index of their sets (`Task.schedule`): at every step all members of a stack have batches of one shape.
    """

    def __init__(self, task: Task, batch: int) -> None:
        lengths = _scheduled_lengths(task, "lengths")
        if len(lengths) < batch:
            raise UsageError(
                f"batches = lengths: a batch of {batch} does not fit into the {len(lengths)} training "
                f"examples of {task.name}"
            )
        self._lengths = lengths
        self._batch = batch
        self._batches = len(lengths) // batch
        self._identity = _shared_identity(task)
        self._epoch = -1
        self._order = np.empty((0, batch), np.int64)

    def batch(self, step: int) -> tuple[Array, int]:
        """The indices of a step's examples in the training set, and the longest of their lengths."""
        epoch, position = divmod(step, self._batches)
        if epoch != self._epoch:
            draws = stream("batches by length", self._identity, self._batch, epoch).block()
            # The permutation comes first and decides which examples the epoch leaves out; a stable sort keeps its order
            # among examples of one length.
            chosen = draws.permutation(len(self._lengths))[: self._batches * self._batch]
            by_length = chosen[np.argsort(self._lengths[chosen], kind="stable")]
            self._order = by_length.reshape(self._batches, self._batch)[draws.permutation(self._batches)]
            self._epoch = epoch
        index = self._order[position]
        return index, int(self._lengths[index].max())


class BalancedLengths:
    """Batches in which every length occurs equally often, however rare it is in the training set.

    Where a batch can't be divided by the number of lengths, the examples that remain go to the lengths in turn. The
    examples of a length are shown in random order, all of them before any is shown again. Like `ByLength`, the order is
    named by the task alone, and at every step all members of a stack have batches of one shape.
    """

    def __init__(self, task: Task, batch: int) -> None:
        self._lengths = _scheduled_lengths(task, "balanced")
        self._batch = batch
        self._levels = np.unique(self._lengths)
        self._examples = [np.flatnonzero(self._lengths == length) for length in self._levels]
        self._identity = _shared_identity(task)
        self._orders: dict[tuple[int, int], Array] = {}

    def batch(self, step: int) -> tuple[Array, int]:
        """The indices of a step's examples in the training set, and the longest of their lengths."""
        chosen: list[Array] = []
        used: dict[tuple[int, int], Array] = {}
        for level, examples in enumerate(self._examples):
            # The examples of this length are numbered over the whole run; a round shows each of them once.
            numbers = np.arange(self._count_before(level, step), self._count_before(level, step + 1))
            rounds, positions = np.divmod(numbers, len(examples))
            for number in np.unique(rounds):
                key = (level, int(number))
                used[key] = self._orders[key] if key in self._orders else self._order(*key)
                chosen.append(examples[used[key][positions[rounds == number]]])
        self._orders = used  # the next step continues with these
        index = np.concatenate(chosen)
        return index, int(self._lengths[index].max())

    def _count_before(self, level: int, step: int) -> int:
        """The number of examples of a length in all batches before a step."""
        levels = len(self._levels)
        per_length, remaining = divmod(self._batch, levels)
        # Over all steps, the remaining examples of the batches are dealt to the lengths in turn: card number i goes to
        # length i modulo `levels`. Of the cards dealt so far, this length has those from number `level` on, rounded up.
        dealt = step * remaining
        return step * per_length + max(0, -(-(dealt - level) // levels))

    def _order(self, level: int, number: int) -> Array:
        """The order in which the examples of a length are shown for the `number`-th time."""
        draws = stream("balanced batches", self._identity, int(self._levels[level]), number).block()
        return draws.permutation(len(self._examples[level]))


def _scheduled_lengths(task: Task, batches: Batches) -> Array:
    """The length of every training example; a task without lengths is refused."""
    lengths = task.schedule()
    if lengths is None:
        raise UsageError(
            f"batches = {batches}: the training examples of {task.name} are all of one length, or "
            "without end; use batches = shuffled"
        )
    return lengths


def _shared_identity(task: Task) -> dict[str, Any]:
    """The identity of a task's generator without the options of its instance (like `task_seed`).

    Members on different instances share one order of batches.
    """
    return {key: value for key, value in task.drawn_by().items() if key not in task.instance_options}


def shorten(inputs: Mapping[str, Array], spec: Spec, length: int) -> dict[str, Array]:
    """Inputs, examples first, cut to `length` positions of the first stream, in which lengths are counted."""
    along = spec.streams[0].name
    fields = {field.name for field in spec.inputs if field.along == along}
    return {name: values[:, :length] if name in fields else values for name, values in inputs.items()}


def typical_spec(task: Task, batches: Batches) -> Spec:
    """The task's spec with its first stream as long as batches are on average: by length, or with all lengths in each."""
    lengths = task.schedule() if batches in ("lengths", "balanced") else None
    if lengths is None:
        return task.spec
    length = math.ceil(lengths.mean()) if batches == "lengths" else int(lengths.max())
    first, *others = task.spec.streams
    return replace(task.spec, streams=(replace(first, length=length), *others))


Source = tuple[Task, DataSeed]
"""The task and the data seed of a member's training data."""


class DeviceData:
    """A finite training set that is kept on a device, where its order is made for each epoch and its batches are taken."""

    def __init__(self, data: TrainingData, device: str) -> None:
        self._data = data
        whole = data.whole()
        self._tensors = {name: copy_to_device(values, device) for name, values in whole.inputs.items()}
        self._targets = copy_to_device(whole.targets, device)
        self._orders: dict[int, Tensor] = {}

    def batch(self, step: int) -> tuple[dict[str, Tensor], Tensor]:
        """The inputs and targets of a step, as they were drawn: `TrainingData.batch`, bit for bit."""
        segments = self._data.segments(step)
        # The last epoch of this batch is the first of the next one.
        self._orders = {epoch: self._order(epoch) for epoch, _ in segments}
        index = torch.cat([self._orders[epoch][positions] for epoch, positions in segments])
        return {name: values[index] for name, values in self._tensors.items()}, self._targets[index]

    def _order(self, epoch: int) -> Tensor:
        if epoch in self._orders:
            return self._orders[epoch]
        shuffle = self._data.shuffle_stream(epoch)
        if shuffle is None:
            return torch.arange(len(self._targets), device=self._targets.device)
        return permutations([shuffle], len(self._targets), self._targets.device)[0]


class StackBatches:
    """The batches of all members of a stack; members with the same source share their data."""

    def __init__(self, batch: int, batches: Batches) -> None:
        self._batch = batch
        self._batches = batches
        self._data: dict[Source, TrainingData] = {}
        self._on_device: dict[Source, DeviceData] = {}

    def tensors(
        self, step: int, sources: Sequence[Source], spec: Spec, dtype: torch.dtype, device: str
    ) -> tuple[dict[str, Tensor], Tensor]:
        """The inputs and the targets of one batch per member, on a device, members first."""
        if torch.device(device).type != "cpu":
            return self.device_tensors(step, sources, spec, dtype, device)
        batch = self.batch(step, sources)
        return input_tensors(batch.inputs, spec, dtype, device), target_tensor(batch.targets, spec, dtype, device)

    def device_tensors(
        self, step: int, sources: Sequence[Source], spec: Spec, dtype: torch.dtype, device: str
    ) -> tuple[dict[str, Tensor], Tensor]:
        """`tensors` for a device other than the CPU: a batch that several members share (one data seed) is copied once."""
        distinct = list(dict.fromkeys(sources))
        inputs: Mapping[str, Array | Tensor]
        targets: Array | Tensor
        if self._stays_on_device(distinct, device):
            source_inputs, source_targets = zip(
                *(self._on_device[source].batch(step) for source in distinct), strict=True
            )
            inputs = {name: torch.stack([tensors[name] for tensors in source_inputs]) for name in source_inputs[0]}
            targets = torch.stack(source_targets)
        else:
            batch = self.batch(step, distinct)
            inputs = batch.inputs
            targets = batch.targets
        tensors = input_tensors(inputs, spec, dtype, device)
        target = target_tensor(targets, spec, dtype, device)
        if len(distinct) == len(sources):
            return tensors, target
        rows = copy_to_device(np.array([distinct.index(source) for source in sources]), device)
        return {name: values[rows] for name, values in tensors.items()}, target[rows]

    def _stays_on_device(self, sources: Sequence[Source], device: str) -> bool:
        """Whether the training sets of these sources are kept on the device; if so, they are there afterwards."""
        self._take_data(sources)
        if not all(data.is_plain for data in self._data.values()):
            return False
        first = next(iter(self._data.values())).whole()
        size = sum(values.nbytes for values in (*first.inputs.values(), first.targets))
        if size * len(self._data) > RESIDENT_BYTES:
            return False
        self._on_device = {s: self._on_device.get(s) or DeviceData(self._data[s], device) for s in sources}
        return True

    def _take_data(self, sources: Sequence[Source]) -> None:
        """Make the data of these sources, if they are new; the data of members that have ended are dropped."""
        # Members with one data seed share one entry: their data are drawn once, and their batches are equal by
        # construction.
        self._data = {s: self._data.get(s) or TrainingData(*s, self._batch, self._batches) for s in sources}

    def batch(self, step: int, sources: Sequence[Source]) -> Batch:
        """One batch per member, stacked along a leading axis."""
        self._take_data(sources)
        by_source = {source: data.batch(step) for source, data in self._data.items()}
        return stack_batches([by_source[source] for source in sources])


def stack_batches(batches: Sequence[Batch]) -> Batch:
    """Batches of one shape, stacked along a leading axis."""
    inputs = {}
    for name in batches[0].inputs:
        inputs[name] = np.stack([batch.inputs[name] for batch in batches])
    return Batch(inputs, np.stack([batch.targets for batch in batches]))


def copy_to_device(values: Array | Tensor, device: str) -> Tensor:
    """An array as a tensor on a device. The copy to a GPU does not wait for it: it goes through pinned memory, of which
    torch's allocator keeps a buffer for each copy under way. So the next batch is drawn while the device is at work."""
    tensor = torch.as_tensor(values)
    if tensor.device.type == "cpu" and torch.device(device).type in PINNED_FOR:
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def input_tensors(
    arrays: Mapping[str, Array | Tensor], spec: Spec, dtype: torch.dtype, device: str
) -> dict[str, Tensor]:
    """Input arrays as tensors: real and bits as floats, categories as integers, masks as booleans."""
    dtypes = {"real": dtype, "bits": dtype, "category": torch.int64, "mask": torch.bool}
    return {f.name: copy_to_device(arrays[f.name], device).to(dtypes[f.kind]) for f in spec.inputs}


def target_tensor(targets: Array | Tensor, spec: Spec, dtype: torch.dtype, device: str) -> Tensor:
    """Targets as a tensor: categories as integers, everything else as floats."""
    return copy_to_device(targets, device).to(torch.int64 if spec.target.kind == "category" else dtype)

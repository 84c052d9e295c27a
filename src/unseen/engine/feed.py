"""Batches: `batch(step)` of one data seed, the same whatever trains on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from unseen.randomness import stream
from unseen.spec import Spec
from unseen.tasks.base import Array, DataSeed, Examples, Task


@dataclass(frozen=True)
class Batch:
    """Inputs and targets of one training step."""

    inputs: Mapping[str, Array]
    targets: Array


class Feed:
    """The training data of one data seed, in the order in which a run sees it.

    A finite set is drawn once and permuted per (data seed, epoch); the batches run on over the epochs' ends. An
    endless stream is read in order.
    """

    def __init__(self, task: Task, data_seed: DataSeed, batch: int, shuffle: bool) -> None:
        self._task, self._data_seed, self._batch, self._shuffle = task, data_seed, batch, shuffle
        self._size = task.size("train")
        self._start, self._buffer = 0, _empty(task)
        self._epochs: dict[int, Array] = {}

    def batch(self, step: int) -> Batch:
        """The batch of a step: examples step · B … of the run."""
        first = step * self._batch
        if self._size is None:
            return self._read(first)
        if len(self._buffer) == 0:
            self._buffer = self._task.sample("train", self._size, data_seed=self._data_seed)
        epochs, places = np.divmod(np.arange(first, first + self._batch), self._size)
        index = np.concatenate([self._order(int(e))[places[epochs == e]] for e in np.unique(epochs)])
        return _take(self._buffer, index)

    def _order(self, epoch: int) -> Array:
        if not self._shuffle:
            return np.arange(self._size or 0)
        if epoch not in self._epochs:
            named = stream("shuffle", self._task.identity(), self._data_seed, epoch)
            order = named.block().permutation(self._size or 0)
            self._epochs = {e: o for e, o in self._epochs.items() if e == epoch - 1} | {epoch: order}
        return self._epochs[epoch]

    def _read(self, first: int) -> Batch:
        last = first + self._batch
        if not self._start <= first <= last <= self._start + len(self._buffer):
            block = self._task.block
            self._start = first // block * block
            count = max(-(-last // block) * block - self._start, 4 * block)
            self._buffer = self._task.sample("train", count, self._start, self._data_seed)
        return _take(self._buffer, np.arange(first - self._start, last - self._start))


class Feeds:
    """The batches of all members of a stack; members of one data seed share one feed."""

    def __init__(self, task: Task, batch: int, shuffle: bool) -> None:
        self._task, self._batch, self._shuffle = task, batch, shuffle
        self._feeds: dict[DataSeed, Feed] = {}

    def batch(self, step: int, data_seeds: Sequence[DataSeed]) -> Batch:
        """One batch per member, stacked along a leading axis."""
        for data_seed in data_seeds:
            if data_seed not in self._feeds:
                self._feeds[data_seed] = Feed(self._task, data_seed, self._batch, self._shuffle)
        drawn = {d: self._feeds[d].batch(step) for d in dict.fromkeys(data_seeds)}
        parts = [drawn[d] for d in data_seeds]
        return Batch({k: np.stack([p.inputs[k] for p in parts]) for k in parts[0].inputs},
                     np.stack([p.targets for p in parts]))


def tensors(arrays: Mapping[str, Array], spec: Spec, dtype: torch.dtype, device: str) -> dict[str, Tensor]:
    """Input arrays as tensors: real and bits as floats, categories as integers, masks as booleans."""
    kinds = {"real": dtype, "bits": dtype, "category": torch.int64, "mask": torch.bool}
    return {f.name: torch.as_tensor(arrays[f.name], device=device).to(kinds[f.kind]) for f in spec.inputs}


def target_tensor(targets: Array, spec: Spec, dtype: torch.dtype, device: str) -> Tensor:
    """Targets as a tensor: categories as integers, everything else as floats."""
    kind = torch.int64 if spec.target.kind == "category" else dtype
    return torch.as_tensor(targets, device=device).to(kind)


def _take(examples: Examples, index: Array) -> Batch:
    return Batch({k: v[index] for k, v in examples.inputs.items()}, examples.targets[index])


def _empty(task: Task) -> Examples:
    return task.sample("train", 0)

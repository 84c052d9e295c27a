"""Batches: `batch(step)` of one data seed, the same whatever trains on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from unseen.engine.lengths import ByLength, shorten
from unseen.engine.recipe import Batches
from unseen.randomness import stream
from unseen.spec import Spec
from unseen.tasks.base import Array, DataSeed, Task


@dataclass(frozen=True)
class Batch:
    """Inputs and targets, without the factors: what training needs."""

    inputs: Mapping[str, Array]
    targets: Array

    def take(self, index: Array) -> Batch:
        """The examples at these places."""
        return Batch({k: v[index] for k, v in self.inputs.items()}, self.targets[index])


class Feed:
    """The training data of one data seed, in the order in which a run sees it.

    A finite set is drawn once and, if `shuffled`, permuted per (data seed, epoch); the batches run on over the epochs'
    ends. By `lengths`, see `ByLength`. An endless stream is read in order.
    """

    def __init__(self, task: Task, data_seed: DataSeed, batch: int, batches: Batches) -> None:
        self._task, self._data_seed, self._batch, self._shuffle = task, data_seed, batch, batches == "shuffled"
        self._by_length = ByLength(task, batch) if batches == "lengths" else None
        self._size = task.size("train")
        self._drawn: Batch | None = None
        self._range = range(0)
        self._epochs: dict[int, Array] = {}

    def batch(self, step: int) -> Batch:
        """The batch of a step: examples step · B … of the run."""
        if self._by_length is not None:
            index, longest = self._by_length.batch(step)
            taken = self._whole().take(index)
            return Batch(shorten(taken.inputs, self._task.spec, longest), taken.targets)
        wanted = np.arange(step * self._batch, (step + 1) * self._batch)
        if self._size is None:
            return self._stretch(wanted).take(wanted - self._range.start)
        epochs, places = np.divmod(wanted, self._size)
        index = np.concatenate([self._order(int(e))[places[epochs == e]] for e in np.unique(epochs)])
        return self._whole().take(index)

    def _whole(self) -> Batch:
        """All examples of a finite set."""
        return self._stretch(np.array([0, (self._size or 1) - 1]))

    def _stretch(self, wanted: Array) -> Batch:
        """The examples from the first to the last wanted one, and some more of a stream for the steps to come."""
        first, last = int(wanted[0]), int(wanted[-1])
        if self._drawn is None or first not in self._range or last not in self._range:
            block = self._task.block
            start = first // block * block
            end = self._size or max(-(-(last + 1) // block) * block, start + 4 * block)
            drawn = self._task.sample("train", end - start, start, self._data_seed)
            self._drawn, self._range = Batch(drawn.inputs, drawn.targets), range(start, end)
        return self._drawn

    def _order(self, epoch: int) -> Array:
        size = self._size or 0
        if not self._shuffle:
            return np.arange(size)
        if epoch not in self._epochs:
            order = stream("shuffle", self._task.identity(), self._data_seed, epoch).block().permutation(size)
            self._epochs = {e: o for e, o in self._epochs.items() if e == epoch - 1} | {epoch: order}
        return self._epochs[epoch]


Source = tuple[Task, DataSeed]
"""Where a member's training data come from."""


class Feeds:
    """The batches of all members of a stack; members of one source share one feed."""

    def __init__(self, batch: int, batches: Batches) -> None:
        self._batch, self._batches = batch, batches
        self._feeds: dict[Source, Feed] = {}

    def batch(self, step: int, sources: Sequence[Source]) -> Batch:
        """One batch per member, stacked along a leading axis. Feeds of members that have ended are let go."""
        self._feeds = {s: self._feeds.get(s) or Feed(*s, self._batch, self._batches) for s in sources}
        drawn = {s: feed.batch(step) for s, feed in self._feeds.items()}
        parts = [drawn[s] for s in sources]
        return Batch(
            {k: np.stack([p.inputs[k] for p in parts]) for k in parts[0].inputs}, np.stack([p.targets for p in parts])
        )


def tensors(arrays: Mapping[str, Array], spec: Spec, dtype: torch.dtype, device: str) -> dict[str, Tensor]:
    """Input arrays as tensors: real and bits as floats, categories as integers, masks as booleans."""
    kinds = {"real": dtype, "bits": dtype, "category": torch.int64, "mask": torch.bool}
    return {f.name: torch.as_tensor(arrays[f.name], device=device).to(kinds[f.kind]) for f in spec.inputs}


def target_tensor(targets: Array, spec: Spec, dtype: torch.dtype, device: str) -> Tensor:
    """Targets as a tensor: categories as integers, everything else as floats."""
    kind = torch.int64 if spec.target.kind == "category" else dtype
    return torch.as_tensor(targets, device=device).to(kind)

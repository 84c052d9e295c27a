"""Tasks as `torch.utils.data` datasets. Items are dicts of tensors: the input fields by name, and `target`.

Example *i* is a pure function of (task, split, data seed, *i*), so it is the same in every worker process, for any
number of workers; the random generators of the workers are not used.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from itertools import count

import torch
from torch import Tensor
from torch.utils import data

from unseen.errors import UsageError
from unseen.export.splits import TARGET
from unseen.tasks import task as make
from unseen.tasks.base import DataSeed, Task
from unseen.training.batches import input_tensors, target_tensor

Item = dict[str, Tensor]
CHUNK_BLOCKS = 4
"""How many blocks are generated at a time."""


class _Source:
    """Chunks of examples of one split as tensors, by number."""

    def __init__(self, task: Task | str, split: str, data_seed: DataSeed, last: int | None) -> None:
        self.task = make(task) if isinstance(task, str) else task
        self.split = self.task.get_split(split).name
        self.data_seed = data_seed
        size = self.task.size(split)
        self.examples = size if last is None else last
        self.task.check_request(split, self.examples or 0, 0, data_seed)
        if any(field.name == TARGET for field in self.task.spec.inputs):
            raise UsageError(f"{self.task.name} has an input field '{TARGET}', which is the name of the answer here")
        self.rows = CHUNK_BLOCKS * self.task.block

    def chunk(self, number: int) -> Item:
        """The examples from number · rows on as one batch; the last chunk of a finite split is shorter."""
        start = number * self.rows
        stop = start + self.rows if self.examples is None else min(start + self.rows, self.examples)
        examples = self.task.sample(self.split, stop - start, start, self.data_seed)
        spec = self.task.spec
        return {
            **input_tensors(examples.inputs, spec, torch.float32, "cpu"),
            TARGET: target_tensor(examples.targets, spec, torch.float32, "cpu"),
        }


class MapDataset(data.Dataset[Item]):
    """The first n examples of a split (default: all of a finite one), in any order.

    Chunks are cached, so that later epochs cost nothing; n examples must fit into memory. Each worker process generates
    the chunks that it needs.

    >>> examples = MapDataset("retrieval/T1", "train", n=100)
    >>> len(examples), {name: tuple(value.shape) for name, value in examples[7].items()}
    (100, {'sequence': (10, 36), 'query': (36,), 'target': (1,)})
    """

    def __init__(self, task: Task | str, split: str = "train", n: int | None = None, data_seed: DataSeed = 0) -> None:
        self._source = _Source(task, split, data_seed, n)
        if self._source.examples is None:
            raise UsageError(
                f"split '{split}' of {self._source.task.name} is endless: give n, or take an IterableDataset"
            )
        self._length = self._source.examples
        self._cache: dict[int, Item] = {}

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Item:
        position = operator.index(index)
        if position < 0:
            position += self._length
        if not 0 <= position < self._length:
            raise IndexError(f"example {index} of {self._length}")
        number, row = divmod(position, self._source.rows)
        if number not in self._cache:
            self._cache[number] = self._source.chunk(number)
        return {name: values[row] for name, values in self._cache[number].items()}

    def __getstate__(self) -> dict[str, object]:
        """The state for a spawned worker process, without the cache."""
        return {**self.__dict__, "_cache": {}}


class IterableDataset(data.IterableDataset[Item]):
    """The examples of a split in order from `start` on: without end, or once through a finite split.

    Chunks are distributed over worker processes, which together yield each example exactly once. Every iteration begins
    at `start` again.

    >>> first = next(iter(IterableDataset("rules/mlp", "train")))
    >>> {name: tuple(value.shape) for name, value in first.items()}
    {'x': (2,), 'rule': (), 'target': (1,)}
    """

    def __init__(
        self, task: Task | str, split: str = "train", n: int | None = None, data_seed: DataSeed = 0, start: int = 0
    ) -> None:
        if start < 0 or (n is not None and n < 0):
            raise UsageError(f"start = {start}, n = {n}: neither may be negative")
        self._source = _Source(task, split, data_seed, None if n is None else start + n)
        self._start = start

    def __iter__(self) -> Iterator[Item]:
        worker = data.get_worker_info()
        worker_id, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        rows = self._source.rows
        examples = self._source.examples
        for number in count(self._start // rows + worker_id, workers):
            if examples is not None and number * rows >= examples:
                return
            chunk = self._source.chunk(number)
            for row in range(max(0, self._start - number * rows), len(chunk[TARGET])):
                yield {name: values[row] for name, values in chunk.items()}


__all__ = ["IterableDataset", "MapDataset"]

"""Tasks as `torch.utils.data` datasets. Items are dicts of tensors: the input fields by name, and `target`.

Example *i* is a pure function of (task, condition, data seed, *i*), so it is the same in every worker process and
whatever their number; nothing is drawn from a worker's own generator.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from itertools import count

import torch
from torch import Tensor
from torch.utils import data

from unseen.engine.feed import target_tensor, tensors
from unseen.errors import UsageError
from unseen.export.chunks import TARGET
from unseen.tasks import task as make
from unseen.tasks.base import DataSeed, Task

Item = dict[str, Tensor]
STRETCH = 4
"""How many blocks are drawn at a time."""


class _Source:
    """Stretches of examples of one condition as tensors, by their number."""

    def __init__(self, task: Task | str, condition: str, data_seed: DataSeed, last: int | None) -> None:
        self.task = make(task) if isinstance(task, str) else task
        self.condition, self.data_seed = self.task.condition(condition).name, data_seed
        size = self.task.size(condition)
        self.examples = size if last is None else last
        self.task.check_request(condition, self.examples or 0, 0, data_seed)
        if any(field.name == TARGET for field in self.task.spec.inputs):
            raise UsageError(f"{self.task.name} has an input field '{TARGET}', which is the name of the answer here")
        self.rows = STRETCH * self.task.block

    def stretch(self, number: int) -> Item:
        """The examples number · rows … as one batch; the last stretch of a finite set is shorter."""
        start = number * self.rows
        end = start + self.rows if self.examples is None else min(start + self.rows, self.examples)
        drawn = self.task.sample(self.condition, end - start, start, self.data_seed)
        spec = self.task.spec
        return {
            **tensors(drawn.inputs, spec, torch.float32, "cpu"),
            TARGET: target_tensor(drawn.targets, spec, torch.float32, "cpu"),
        }


class MapDataset(data.Dataset[Item]):
    """The first n examples of a condition (default: all of a finite one), in any order.

    What was drawn once is kept, so that epochs cost nothing; n examples must fit into memory. Worker processes draw
    what they are asked for themselves.

    >>> examples = MapDataset("retrieval/T1", "train", n=100)
    >>> len(examples), {name: tuple(value.shape) for name, value in examples[7].items()}
    (100, {'sequence': (10, 36), 'query': (36,), 'target': (1,)})
    """

    def __init__(
        self, task: Task | str, condition: str = "train", n: int | None = None, data_seed: DataSeed = 0
    ) -> None:
        self._source = _Source(task, condition, data_seed, n)
        if self._source.examples is None:
            raise UsageError(
                f"condition '{condition}' of {self._source.task.name} is endless: give n, or take an IterableDataset"
            )
        self._length = self._source.examples
        self._kept: dict[int, Item] = {}

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Item:
        place = operator.index(index)
        place = place + self._length if place < 0 else place
        if not 0 <= place < self._length:
            raise IndexError(f"example {index} of {self._length}")
        number, row = divmod(place, self._source.rows)
        if number not in self._kept:
            self._kept[number] = self._source.stretch(number)
        return {name: values[row] for name, values in self._kept[number].items()}

    def __getstate__(self) -> dict[str, object]:
        """What a worker process that is started afresh gets: not what was drawn."""
        return {**self.__dict__, "_kept": {}}


class IterableDataset(data.IterableDataset[Item]):
    """The examples of a condition in order from `start` on: without end, or once through a finite set.

    Worker processes share them out by stretches: together they yield each example exactly once. Every iteration begins
    at `start` again.

    >>> first = next(iter(IterableDataset("rules/mlp", "train")))
    >>> {name: tuple(value.shape) for name, value in first.items()}
    {'x': (2,), 'rule': (), 'target': (1,)}
    """

    def __init__(
        self, task: Task | str, condition: str = "train", n: int | None = None, data_seed: DataSeed = 0, start: int = 0
    ) -> None:
        if start < 0 or (n is not None and n < 0):
            raise UsageError(f"start = {start}, n = {n}: neither may be negative")
        self._source, self._start = _Source(task, condition, data_seed, None if n is None else start + n), start

    def __iter__(self) -> Iterator[Item]:
        worker = data.get_worker_info()
        mine, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        rows, end = self._source.rows, self._source.examples
        first = self._start // rows
        for number in count(first + mine, workers):
            if end is not None and number * rows >= end:
                return
            drawn = self._source.stretch(number)
            for row in range(max(0, self._start - number * rows), len(drawn[TARGET])):
                yield {name: values[row] for name, values in drawn.items()}


__all__ = ["IterableDataset", "MapDataset"]

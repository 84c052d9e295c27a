"""Batches of examples of about one length, so that little of them is padding."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from unseen.errors import UsageError
from unseen.randomness import stream
from unseen.spec import Spec
from unseen.tasks.base import Array, Task


class ByLength:
    """Which examples each step sees: every epoch is shuffled, cut to whole batches, sorted by length (ties stay
    shuffled) and cut; its batches come in random order.

    The order is named by the task and the epoch alone. It is the same for all data seeds, like the lengths at the
    places of their sets (`Task.schedule`): at every step all members of a stack have batches of one shape.
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
        self._lengths, self._batch, self._batches = lengths, batch, len(lengths) // batch
        self._named = {key: value for key, value in task.drawn_by().items() if key not in task.instance}
        self._epoch, self._order = -1, np.empty((0, batch), np.int64)

    def batch(self, step: int) -> tuple[Array, int]:
        """The places of a step's examples in the training set, and the longest of their lengths."""
        epoch, place = divmod(step, self._batches)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, self._arrange(epoch)
        index = self._order[place]
        return index, int(self._lengths[index].max())

    def _arrange(self, epoch: int) -> Array:
        draws = stream("batches by length", self._named, self._batch, epoch).block()
        kept = draws.permutation(len(self._lengths))[: self._batches * self._batch]
        cut = kept[np.argsort(self._lengths[kept], kind="stable")].reshape(self._batches, self._batch)
        shuffled: Array = cut[draws.permutation(self._batches)]
        return shuffled


def shorten(inputs: Mapping[str, Array], spec: Spec, places: int) -> dict[str, Array]:
    """Inputs, examples first, with so many places of the (first) stream that lengths are counted in."""
    along = spec.streams[0].name
    cut = {field.name for field in spec.inputs if field.along == along}
    return {name: values[:, :places] if name in cut else values for name, values in inputs.items()}


def typical(task: Task, by_length: bool) -> Spec:
    """The task's spec, its first stream as long as its batches are on average."""
    spec, lengths = task.spec, task.schedule() if by_length else None
    if lengths is None:
        return spec
    first, *others = spec.streams
    return replace(spec, streams=(replace(first, length=math.ceil(lengths.mean())), *others))

"""Where the members of a stack come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unseen.engine.predict import draw
from unseen.engine.stack import Stack
from unseen.tasks.base import DataSeed, Examples, Task


@dataclass(frozen=True)
class Origin:
    """Whose data each member of a stack was trained on, and how to build the stack of the models they began as.

    `initial` is called only if somebody wants to see them: members in the same order, not yet trained.
    """

    data_seeds: Sequence[DataSeed]
    initial: Callable[[], Stack]


def shown(task: Task, condition: str, n: int, origin: Origin | None) -> Examples | list[Examples]:
    """What the members of a stack answer on a condition: its test data, the same for all.

    On `train` each has its own if it is known where it comes from: the first n examples it was trained on, or the whole
    set if that is smaller. (Of endless data a very short run has seen fewer; the others come next in its stream.)
    """
    if origin is None or condition != "train":
        return draw(task, condition, n, "test")
    each = {seed: draw(task, condition, n, seed) for seed in dict.fromkeys(origin.data_seeds)}
    return [each[seed] for seed in origin.data_seeds]

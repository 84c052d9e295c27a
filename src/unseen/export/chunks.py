"""Examples a stretch at a time, as columns: nothing here ever holds all of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unseen.errors import UsageError
from unseen.export.parts import Part
from unseen.tasks.base import Array, DataSeed, Examples, Task

BYTES = 2**24
"""About how large a stretch is."""
MOST = 2**16
"""How many examples a stretch has at most, however small they are."""
TARGET, FACTOR = "target", "factor_"
"""The name of the target's column, and what the names of the factors' columns begin with."""


def chunks(task: Task, part: Part, data_seed: DataSeed) -> Iterator[Examples]:
    """The examples of a part in stretches of whole blocks."""
    rows = chunk_rows(task, one_example(task, part, data_seed))
    for start in range(0, part.examples, rows):
        yield task.sample(part.condition.name, min(rows, part.examples - start), start, data_seed)


def chunk_rows(task: Task, one: Examples) -> int:
    """How many examples, a multiple of the task's block, come to about `BYTES`."""
    size = sum(values.nbytes for values in columns(one).values())
    return max(1, min(MOST, BYTES // max(1, size)) // task.block) * task.block


def one_example(task: Task, part: Part, data_seed: DataSeed) -> Examples:
    """The first example of a part: its columns have the shapes and dtypes of all."""
    return task.sample(part.condition.name, 1, 0, data_seed)


def columns(examples: Examples) -> dict[str, Array]:
    """Inputs by field name, `target`, and factors as `factor_NAME`, each (B, …), low bytes first.

    >>> from unseen.tasks import task
    >>> {name: values.shape for name, values in columns(task("rules/mha", rules=2).sample("train", 3)).items()}
    {'features': (3, 10, 8), 'rule': (3, 10), 'target': (3, 10, 1), 'factor_rule': (3, 10)}
    """
    named = [*examples.inputs.items(), (TARGET, examples.targets)]
    named += [(FACTOR + name, values) for name, values in examples.factors.items()]
    found = {name: _plain(values) for name, values in named}
    if len(found) < len(named):
        names = [name for name, _ in named]
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"two columns would be called '{twice}': rename the field or factor of the task")
    return found


def _plain(values: Array) -> Array:
    """The same values in a dtype that every format knows; text of any kind has a fixed width."""
    if values.dtype.kind == "T":
        values = np.array(values.tolist(), np.str_).reshape(values.shape)
    return values.astype(values.dtype.newbyteorder("<"), copy=False)

"""Columns as Arrow arrays, and Parquet: one file for each condition, a row group for each stretch."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

from unseen.config import canonical
from unseen.errors import UsageError
from unseen.export.chunks import columns
from unseen.export.order import Format, about_part
from unseen.export.parts import Part
from unseen.tasks.base import Array, Examples, Task

KEY = "unseen"
"""Where in a file's metadata its origin stands, as JSON."""


def arrow_array(values: Array) -> Any:
    """An array (B, …) as an Arrow array of B values, or of B lists of lists of …"""
    import pyarrow as pa

    flat = values.reshape(-1)
    found = pa.array(flat.tolist(), pa.string()) if values.dtype.kind == "U" else pa.array(flat)
    for axis in range(values.ndim - 1, 0, -1):
        offsets = np.arange(prod(values.shape[:axis]) + 1, dtype=np.int32) * np.int32(values.shape[axis])
        found = pa.ListArray.from_arrays(pa.array(offsets), found)
    return found


class Parquet(Format):
    """Arrays are lists (of lists); the schema's metadata say what they are and where they come from."""

    suffix = ".parquet"

    @classmethod
    def check(cls, task: Task) -> None:
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise UsageError("Parquet needs the extra 'export': pip install 'unseen[export]'") from None

    def write(self, part: Part, stretches: Iterable[Examples]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        origin = {KEY: canonical(about_part(self.order, part))}
        tables = (
            pa.table({name: arrow_array(values) for name, values in columns(examples).items()}, metadata=origin)
            for examples in stretches
        )
        first = next(tables)
        with pq.ParquetWriter(self.folder / self.file(part), first.schema, compression="zstd") as writer:
            writer.write_table(first, row_group_size=len(first))
            for table in tables:
                writer.write_table(table, row_group_size=len(table))

"""Hugging Face `datasets`: a `DatasetDict` on disk, a split for each condition, for `datasets.load_from_disk`."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from unseen.config import canonical
from unseen.errors import UsageError
from unseen.export.arrow import arrow_array
from unseen.export.chunks import columns, one_example
from unseen.export.order import Format, about_part
from unseen.export.origins import paper
from unseen.export.parts import Part
from unseen.tasks.base import Array, Examples, Task


class HuggingFace(Format):
    """Arrays of two and more axes are `Array2D` …: lists of lists would take a hundred times as long to read.

    What the metadata of a Parquet file say stands in `info.description` of each split, as JSON.
    """

    card = True

    @classmethod
    def check(cls, task: Task) -> None:
        try:
            import datasets  # noqa: F401
        except ImportError:
            raise UsageError("hf needs the extra 'export': pip install 'unseen[export]'") from None

    def write(self, part: Part, stretches: Iterable[Examples]) -> None:
        import pyarrow as pa

        self._spool.mkdir(exist_ok=True)
        schema = self._features.arrow_schema
        with pa.OSFile(str(self._spool / part.split), "wb") as file, pa.ipc.new_stream(file, schema) as stream:
            for examples in stretches:
                found = [_stored(schema.field(name).type, values) for name, values in columns(examples).items()]
                stream.write_batch(pa.RecordBatch.from_arrays(found, schema=schema))

    def close(self) -> None:
        from datasets import Dataset, DatasetDict, DatasetInfo, NamedSplit

        splits = {}
        for part in self.order.parts:
            info = DatasetInfo(
                description=canonical(about_part(self.order, part)),
                license="apache-2.0",
                citation=paper(self.order.task),
                features=self._features,
            )
            # Read from the disk as it is needed: the set need not fit into memory.
            splits[part.split] = Dataset.from_file(str(self._spool / part.split), info, NamedSplit(part.split))
        with _no_bars():
            DatasetDict(splits).save_to_disk(self.folder)
        shutil.rmtree(self._spool)

    @property
    def _spool(self) -> Path:
        return self.folder / ".arrow"

    @cached_property
    def _features(self) -> Any:
        """The same for all splits, as a `DatasetDict` should have it: where shapes differ, the type leaves it open."""
        from datasets import Features

        firsts = [columns(one_example(self.order.task, part, self.order.data_seed)) for part in self.order.parts]
        return Features({name: _feature([first[name] for first in firsts]) for name in firsts[0]})


def _feature(values: list[Array]) -> Any:
    """The type of a column, given an example of it from every split."""
    import datasets

    dtype = "string" if values[0].dtype.kind == "U" else values[0].dtype.name
    shapes = {one.shape[1:] for one in values}
    first, *rest = values[0].shape[1:] or (0,)
    arrays = {2: datasets.Array2D, 3: datasets.Array3D, 4: datasets.Array4D, 5: datasets.Array5D}
    alike = len({shape[1:] for shape in shapes}) == 1 and all(size for shape in shapes for size in shape)
    if len(rest) + 1 in arrays and alike and dtype != "string":
        return arrays[len(rest) + 1](shape=(first if len(shapes) == 1 else None, *rest), dtype=dtype)
    found = datasets.Value(dtype)
    for _ in values[0].shape[1:]:
        found = datasets.List(found)
    return found


def _stored(kind: Any, values: Array) -> Any:
    import pyarrow as pa

    found = arrow_array(values)
    if isinstance(kind, pa.ExtensionType):
        return pa.ExtensionArray.from_storage(kind, found.cast(kind.storage_type))
    return found.cast(kind)


@contextmanager
def _no_bars() -> Iterator[None]:
    """Bars are the command line's to draw."""
    import datasets

    shown = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            datasets.enable_progress_bars()

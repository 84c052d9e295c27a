"""The file formats: JSON lines, TSV, NPZ, Parquet and Hugging Face datasets. Each writes a split chunk by chunk."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from unseen.config import canonical
from unseen.errors import UsageError
from unseen.export.families import family_lines, paper
from unseen.export.splits import ExportedSplit, Order, columns, describe_split, first_example
from unseen.tasks.base import Array, Examples, Task
from unseen.tasks.retrieval.files import format_tsv
from unseen.tasks.retrieval.task import Retrieval

_STEP = 2**24
"""How many bytes are copied at a time."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The date of every file in an archive, so that the same examples have the same bytes."""


class ExportFormat:
    """How the splits of an order are written; subclasses set `suffix`, the ending of their file names."""

    suffix = ""
    card = False
    """Whether a data card belongs to the format."""

    def __init__(self, order: Order, folder: Path) -> None:
        self.order = order
        self.folder = folder

    @classmethod
    def check(cls, task: Task) -> None:
        """Raise an error if the format does not suit the task, or if a package that it needs is missing."""

    def write(self, selected: ExportedSplit, chunks: Iterable[Examples]) -> None:
        """Write one split, chunk by chunk."""
        raise NotImplementedError

    def close(self) -> None:
        """Called after all splits are written."""

    @classmethod
    def file(cls, selected: ExportedSplit) -> str:
        """The name of the file or folder that holds a split."""
        return selected.file_name + cls.suffix


# Text.


class JsonLines(ExportFormat):
    """The JSON lines of the task's family, as `unseen verify --data` reads them."""

    suffix = ".jsonl"

    def write(self, selected: ExportedSplit, chunks: Iterable[Examples]) -> None:
        with (self.folder / self.file(selected)).open("wb") as file:
            for examples in chunks:
                file.write(family_lines(self.order.task, examples, selected.split.name))


class Tsv(ExportFormat):
    """Three lines per example, as the retrieval data were published."""

    suffix = ".tsv"

    @classmethod
    def check(cls, task: Task) -> None:
        if not isinstance(task, Retrieval):
            raise UsageError(
                f"tsv is the format of the published retrieval data, and {task.name} is none of them; "
                "use jsonl, npz, parquet or hf"
            )

    def write(self, selected: ExportedSplit, chunks: Iterable[Examples]) -> None:
        with (self.folder / self.file(selected)).open("wb") as file:
            for examples in chunks:
                file.write(format_tsv(examples))


# NPZ.


class Npz(ExportFormat):
    """One NumPy archive per split with an array per column: `numpy.load(FILE)[column]`; no pickle.

    An archive holds its arrays one after the other, while examples come row by row. So each column grows in a file of
    its own, and the archive is made of these files at the end.
    """

    suffix = ".npz"

    def write(self, selected: ExportedSplit, chunks: Iterable[Examples]) -> None:
        spools: dict[str, ArraySpool] = {}
        folder = self.folder / f".{selected.file_name}"
        folder.mkdir()
        for examples in chunks:
            for name, values in columns(examples).items():
                if name not in spools:
                    spools[name] = ArraySpool(folder / str(len(spools)), values)
                spools[name].add(values)
        with zipfile.ZipFile(self.folder / self.file(selected), "w") as archive:
            for name, spool in spools.items():
                member = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
                member.compress_type = zipfile.ZIP_DEFLATED
                member.external_attr = 0o644 << 16  # the file permissions
                with archive.open(member, "w", force_zip64=True) as opened:
                    spool.pack(opened)
        shutil.rmtree(folder)


class ArraySpool:
    """The rows of one column so far, in a file without a header."""

    def __init__(self, path: Path, first: Array) -> None:
        self._path = path
        self._dtype = first.dtype
        self._shape = first.shape[1:]
        self._rows = 0
        path.touch()

    def add(self, values: Array) -> None:
        """Append rows. Text may be wider than before; then the rows in the file are widened, too."""
        dtype = np.promote_types(self._dtype, values.dtype).newbyteorder("<")
        if dtype != self._dtype:
            self._widen(dtype)
        with self._path.open("ab") as file:
            file.write(np.ascontiguousarray(values, self._dtype).data)
        self._rows += len(values)

    def _widen(self, dtype: np.dtype[Any]) -> None:
        wider = self._path.with_suffix(".wider")
        count = max(1, _STEP // self._dtype.itemsize)
        with self._path.open("rb") as old, wider.open("wb") as new:
            while block := old.read(count * self._dtype.itemsize):
                new.write(np.frombuffer(block, self._dtype).astype(dtype).data)
        wider.replace(self._path)
        self._dtype = dtype

    def pack(self, member: Any) -> None:
        """Write the column as an `.npy` file and delete the rows."""
        header = {
            "descr": np.lib.format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": (self._rows, *self._shape),
        }
        np.lib.format.write_array_header_2_0(member, header)
        with self._path.open("rb") as file:
            shutil.copyfileobj(file, member, _STEP)
        self._path.unlink()


# Arrow: Parquet and Hugging Face datasets.

KEY = "unseen"
"""The key of the description (JSON) in the metadata of a Parquet file."""


def arrow_array(values: Array) -> Any:
    """An array (B, …) as an Arrow array of B values, or of B (nested) lists."""
    import pyarrow as pa

    flat = values.reshape(-1)
    array = pa.array(flat.tolist(), pa.string()) if values.dtype.kind == "U" else pa.array(flat)
    # From the last axis to the second, wrap the array into lists of equal length.
    for axis in range(values.ndim - 1, 0, -1):
        offsets = np.arange(prod(values.shape[:axis]) + 1, dtype=np.int32) * np.int32(values.shape[axis])
        array = pa.ListArray.from_arrays(pa.array(offsets), array)
    return array


class Parquet(ExportFormat):
    """One file per split with a row group per chunk. Arrays are nested lists; the schema's metadata describe them."""

    suffix = ".parquet"

    @classmethod
    def check(cls, task: Task) -> None:
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise UsageError("Parquet needs the extra 'export': pip install 'unseen[export]'") from None

    def write(self, selected: ExportedSplit, chunks: Iterable[Examples]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        metadata = {KEY: canonical(describe_split(self.order, selected))}
        writer = None
        try:
            for examples in chunks:
                arrays = {name: arrow_array(values) for name, values in columns(examples).items()}
                table = pa.table(arrays, metadata=metadata)
                if writer is None:
                    path = self.folder / self.file(selected)
                    writer = pq.ParquetWriter(path, table.schema, compression="zstd")
                writer.write_table(table, row_group_size=len(table))
        finally:
            if writer is not None:
                writer.close()


class HuggingFace(ExportFormat):
    """A `DatasetDict` on disk, for `datasets.load_from_disk`.

    Arrays of two and more axes are `Array2D` …, because nested lists would take a hundred times as long to read. The
    description that a Parquet file has in its metadata is in `info.description` of each split, as JSON.
    """

    card = True

    @classmethod
    def check(cls, task: Task) -> None:
        try:
            import datasets  # noqa: F401
        except ImportError:
            raise UsageError("hf needs the extra 'export': pip install 'unseen[export]'") from None

    def write(self, selected: ExportedSplit, chunks: Iterable[Examples]) -> None:
        import pyarrow as pa

        self._spool.mkdir(exist_ok=True)
        schema = self._features.arrow_schema
        path = str(self._spool / selected.file_name)
        with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, schema) as stream:
            for examples in chunks:
                arrays = [_cast(values, schema.field(name).type) for name, values in columns(examples).items()]
                stream.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))

    def close(self) -> None:
        from datasets import Dataset, DatasetDict, DatasetInfo, NamedSplit

        splits = {}
        for selected in self.order.parts:
            info = DatasetInfo(
                description=canonical(describe_split(self.order, selected)),
                license="apache-2.0",
                citation=paper(self.order.task),
                features=self._features,
            )
            # Memory-mapped: the data need not fit into memory.
            path = str(self._spool / selected.file_name)
            splits[selected.file_name] = Dataset.from_file(path, info, NamedSplit(selected.file_name))
        with _no_progress_bars():
            DatasetDict(splits).save_to_disk(self.folder)
        shutil.rmtree(self._spool)

    @property
    def _spool(self) -> Path:
        return self.folder / ".arrow"

    @cached_property
    def _features(self) -> Any:
        """The types of the columns. All splits of a `DatasetDict` share them, so a length that differs stays open."""
        from datasets import Features

        examples = []
        for selected in self.order.parts:
            examples.append(columns(first_example(self.order.task, selected, self.order.data_seed)))
        features = {}
        for name in examples[0]:
            features[name] = _feature([example[name] for example in examples])
        return Features(features)


def _feature(values: list[Array]) -> Any:
    """The type of a column, from its first value in every split."""
    import datasets

    dtype = "string" if values[0].dtype.kind == "U" else values[0].dtype.name
    axes = values[0].ndim - 1
    shapes = {value.shape[1:] for value in values}
    arrays = {2: datasets.Array2D, 3: datasets.Array3D, 4: datasets.Array4D, 5: datasets.Array5D}
    # An `Array2D` … may leave only its first axis open, and none may be empty.
    same_inner = len({shape[1:] for shape in shapes}) == 1
    if axes in arrays and same_inner and dtype != "string" and all(0 not in shape for shape in shapes):
        length = values[0].shape[1] if len(shapes) == 1 else None
        return arrays[axes](shape=(length, *values[0].shape[2:]), dtype=dtype)
    feature = datasets.Value(dtype)
    for _ in range(axes):
        feature = datasets.List(feature)
    return feature


def _cast(values: Array, arrow_type: Any) -> Any:
    import pyarrow as pa

    array = arrow_array(values)
    if isinstance(arrow_type, pa.ExtensionType):
        return pa.ExtensionArray.from_storage(arrow_type, array.cast(arrow_type.storage_type))
    return array.cast(arrow_type)


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    """Disable the bars of `datasets`; the command line draws its own."""
    import datasets

    enabled = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if enabled:
            datasets.enable_progress_bars()

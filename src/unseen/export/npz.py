"""NPZ: one NumPy archive for each condition, an array for each column.

An archive holds its arrays one after the other, while examples come row by row. So each column grows in a file of its
own, and these are packed in the end.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from unseen.export.chunks import columns
from unseen.export.order import Format
from unseen.export.parts import Part
from unseen.tasks.base import Array, Examples

_STEP = 2**24
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The date of every member: the same examples give the same bytes."""


class Npz(Format):
    """`numpy.load(FILE)[column]`; no pickle."""

    suffix = ".npz"

    def write(self, part: Part, stretches: Iterable[Examples]) -> None:
        spools: dict[str, _Spool] = {}
        folder = self.folder / f".{part.split}"
        folder.mkdir()
        for examples in stretches:
            for name, values in columns(examples).items():
                if name not in spools:
                    spools[name] = _Spool(folder / str(len(spools)), values)
                spools[name].add(values)
        with zipfile.ZipFile(self.folder / self.file(part), "w") as archive:
            for name, spool in spools.items():
                member = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
                member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                with archive.open(member, "w", force_zip64=True) as opened:
                    spool.pack(opened)
        shutil.rmtree(folder)


class _Spool:
    """The rows of one column so far, in a file without a header."""

    def __init__(self, path: Path, first: Array) -> None:
        self._path, self._dtype, self._shape, self._rows = path, first.dtype, first.shape[1:], 0
        path.touch()

    def add(self, values: Array) -> None:
        """More rows. Text may be wider than any before: then what is there is widened."""
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
        """The column as an `.npy` file, and away with the rows."""
        header = {
            "descr": np.lib.format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": (self._rows, *self._shape),
        }
        np.lib.format.write_array_header_2_0(member, header)
        with self._path.open("rb") as file:
            shutil.copyfileobj(file, member, _STEP)
        self._path.unlink()

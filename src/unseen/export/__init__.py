"""Examples in the files that others read. Called, it writes a folder of them: `unseen.export(TASK, DIR, "parquet")`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unseen.export.write import Exported
    from unseen.tasks.base import DataSeed, Task


class _Room(ModuleType):
    """A package that can be called: `unseen.export` names both this room and what it is for."""

    def __call__(
        self,
        task: Task | str,
        out: str | Path,
        format: str,
        *,
        conditions: Sequence[str] = (),
        n: int | None = None,
        data_seed: DataSeed = 0,
    ) -> Exported:
        """Write conditions of a task (default: all finite ones, with `n` all) to a new folder; see `export.write`."""
        from unseen.export.write import write_export

        return write_export(task, out, format, conditions, n, data_seed)


sys.modules[__name__].__class__ = _Room

"""An export from beginning to end: check, write to a temporary folder, count, describe, and rename the folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unseen.errors import UsageError, nearest
from unseen.export.card import write_card
from unseen.export.families import JUDGED, Companions, write_companions
from unseen.export.folder import new_folder
from unseen.export.formats import ExportFormat, HuggingFace, JsonLines, Npz, Parquet, Tsv
from unseen.export.splits import (
    ExportedSplit,
    Order,
    SplitTally,
    chunks,
    describe_export,
    export_command,
    select_splits,
    verify_command,
)
from unseen.tasks import task as make
from unseen.tasks.base import DataSeed, Examples, Task

FORMATS: dict[str, type[ExportFormat]] = {
    "jsonl": JsonLines,
    "npz": Npz,
    "parquet": Parquet,
    "hf": HuggingFace,
    "tsv": Tsv,
}
MANIFEST = "export.json"
"""The description of the export: the last file of every export."""

OnProgress = Callable[[ExportedSplit, int], None]
"""Called with a split and the number of its examples that were written since the last call."""


@dataclass(frozen=True)
class Exported:
    """A finished export: its folder, its splits, the file of each, and the command that verifies it, if there is one."""

    folder: Path
    parts: tuple[ExportedSplit, ...]
    files: tuple[Path, ...]
    verify: str | None


def write_export(
    task: Task | str,
    out: str | Path,
    format: str,
    splits: Sequence[str] = (),
    n: int | None = None,
    data_seed: DataSeed = 0,
    on_progress: OnProgress | None = None,
) -> Exported:
    """Write splits of a task (default: all finite ones, whole; with n all, n examples each) to a new folder.

    `format` is `jsonl`, `npz`, `parquet`, `hf` or `tsv`. The folder appears when it is complete.

        unseen.export("ctl/A", "ctl-a", "parquet", splits=["iid", "ood/transition"])
    """
    task = make(task) if isinstance(task, str) else task
    if format not in FORMATS:
        raise UsageError(f"unknown format '{format}'. {nearest(format, FORMATS)}")
    out = Path(out)
    file_format = FORMATS[format]
    order = Order(task, format, tuple(splits), n, data_seed, select_splits(task, splits, n, data_seed))
    file_format.check(task)
    with new_folder(out) as folder:
        companions = write_companions(task, folder)
        writer = file_format(order, folder)
        tallies = {selected.split.name: SplitTally(task) for selected in order.parts}
        for selected in order.parts:
            writer.write(selected, _counted(order, selected, tallies[selected.split.name], on_progress))
        writer.close()
        if file_format.card:
            (folder / "README.md").write_text(write_card(order, tallies, companions), encoding="utf-8")
        manifest = _manifest(order, file_format, tallies, companions)
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    files = tuple(out / file_format.file(selected) for selected in order.parts)
    return Exported(out, order.parts, files, _verify_command(order, file_format, str(out), companions))


def _counted(
    order: Order, selected: ExportedSplit, tally: SplitTally, on_progress: OnProgress | None
) -> Iterator[Examples]:
    for examples in chunks(order.task, selected, order.data_seed):
        tally.add(examples)
        yield examples
        if on_progress is not None:
            on_progress(selected, len(examples))


def _verify_command(order: Order, file_format: type[ExportFormat], folder: str, companions: Companions) -> str | None:
    """The command that verifies the files; None if `verify` does not read them."""
    if file_format not in (JsonLines, Tsv) or not isinstance(order.task, JUDGED):
        return None
    companion_paths = {option: str(Path(folder, file)) for option, file in companions.items()}
    files = [str(Path(folder, file_format.file(selected))) for selected in order.parts]
    return verify_command(order.task, files, companion_paths)


def _manifest(
    order: Order, file_format: type[ExportFormat], tallies: dict[str, SplitTally], companions: Companions
) -> dict[str, Any]:
    entries = []
    for selected in order.parts:
        split = selected.split
        entries.append(
            {
                "split": split.name,
                "file_name": selected.file_name,
                "file": file_format.file(selected),
                "examples": selected.examples,
                "summary": split.summary,
                "unseen": list(split.unseen),
                "balance": tallies[split.name].balance,
                "digest": tallies[split.name].digest,
            }
        )
    return {
        **describe_export(order),
        "format": order.format,
        "parts": entries,
        "companions": companions,
        "command": export_command(order, companions),
        "verify": _verify_command(order, file_format, "", companions),
    }

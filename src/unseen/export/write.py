"""An export from beginning to end: refuse, write beside, count, describe, and only then give it its name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from unseen.errors import UsageError, nearest
from unseen.export.arrow import Parquet
from unseen.export.card import write_card
from unseen.export.chunks import chunks
from unseen.export.commands import export_command, verify_command
from unseen.export.families import Companions, form
from unseen.export.folder import new_folder
from unseen.export.hugging_face import HuggingFace
from unseen.export.npz import Npz
from unseen.export.order import Format, Order, about, make_order
from unseen.export.parts import Part
from unseen.export.tally import Tally
from unseen.export.text import JsonLines, Tsv
from unseen.tasks import task as make
from unseen.tasks.base import DataSeed, Examples, Task

FORMATS: dict[str, type[Format]] = {
    "jsonl": JsonLines,
    "npz": Npz,
    "parquet": Parquet,
    "hf": HuggingFace,
    "tsv": Tsv,
}
MANIFEST = "export.json"
"""What was asked for and what was written: the last file of every export."""

OnProgress = Callable[[Part, int], None]
"""Called with a part and how many more of its examples are written."""


@dataclass(frozen=True)
class Exported:
    """A finished export: its folder, its parts, what holds each, and the command that proves it, where there is one."""

    folder: Path
    parts: tuple[Part, ...]
    files: tuple[Path, ...]
    verify: str | None


def write_export(
    task: Task | str,
    out: str | Path,
    format: str,
    conditions: Sequence[str] = (),
    n: int | None = None,
    data_seed: DataSeed = 0,
    on_progress: OnProgress | None = None,
) -> Exported:
    """Write conditions of a task (default: all finite ones, whole; with n all, n examples each) to a new folder.

    `format` is `jsonl`, `npz`, `parquet`, `hf` or `tsv`. The folder appears when everything is in it.

        unseen.export("ctl/A", "ctl-a", "parquet", conditions=["iid", "ood/transition"])
    """
    task = make(task) if isinstance(task, str) else task
    if format not in FORMATS:
        raise UsageError(f"unknown format '{format}'. {nearest(format, FORMATS)}")
    out, kind = Path(out), FORMATS[format]
    order = make_order(task, format, conditions, n, data_seed)
    kind.check(task)
    with new_folder(out) as folder:
        companions = form(task).companions(task, folder)
        files = kind(order, folder)
        tallies = {part.condition.name: Tally(task) for part in order.parts}
        for part in order.parts:
            files.write(part, _counted(order, part, tallies[part.condition.name], on_progress))
        files.close()
        if kind.card:
            (folder / "README.md").write_text(write_card(order, tallies, companions), encoding="utf-8")
        manifest = _manifest(order, kind, tallies, companions)
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    paths = tuple(out / kind.file(part) for part in order.parts)
    return Exported(out, order.parts, paths, _verify(order, kind, str(out), companions))


def _counted(order: Order, part: Part, tally: Tally, on_progress: OnProgress | None) -> Iterator[Examples]:
    for examples in chunks(order.task, part, order.data_seed):
        tally.add(examples)
        yield examples
        if on_progress is not None:
            on_progress(part, len(examples))


def _verify(order: Order, kind: type[Format], folder: str, companions: Companions) -> str | None:
    """The command that judges the files; None where `verify` does not read them."""
    if kind not in (JsonLines, Tsv) or not form(order.task).judged:
        return None
    beside = {option: str(Path(folder, file)) for option, file in companions.items()}
    return verify_command(order.task, [str(Path(folder, kind.file(part))) for part in order.parts], beside)


def _manifest(order: Order, kind: type[Format], tallies: dict[str, Tally], companions: Companions) -> dict[str, object]:
    parts = [
        {
            "condition": part.condition.name,
            "split": part.split,
            "file": kind.file(part),
            "examples": part.examples,
            "summary": part.condition.summary,
            "unseen": list(part.condition.unseen),
            "balance": tallies[part.condition.name].balance,
            "digest": tallies[part.condition.name].digest,
        }
        for part in order.parts
    ]
    return {
        **about(order),
        "format": order.format,
        "parts": parts,
        "companions": companions,
        "command": export_command(order, companions),
        "verify": _verify(order, kind, "", companions),
    }

"""Event files for TensorBoard: a folder per run, curves by step, axes and options as hyper-parameters."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

from unseen.studies.sinks import Memory, News, Run

LONGEST = 150
"""Characters of a folder's name before the id."""
_ID = 16


class TensorBoard:
    """One event file per run, appended to. The memory is its length: what a kill left behind that is cut off."""

    live = True

    def __init__(self, path: Path) -> None:
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.plugins.hparams import summary_v2
        from tensorboard.summary.writer import record_writer

        self._path = path
        # A folder ends in the id of its run, by which it is found whatever it was called before.
        self._folders = {folder.name[-_ID:]: folder for folder in path.iterdir() if folder.is_dir()}
        self._event, self._summary, self._hparams = event_pb2.Event, summary_pb2.Summary, summary_v2.hparams_pb
        self._writer = record_writer.RecordWriter

    def holds(self, cell: str, memory: Memory) -> bool:
        """Whether the file is at least as long as it was left."""
        file = self._folders[cell] / _file(cell) if cell in self._folders else None
        return file is not None and file.is_file() and file.stat().st_size >= memory.get("bytes", 0)

    def write(self, run: Run, news: News, memory: Memory) -> Memory:
        """Append events; of a run that has ended, its records too, as `summary/…` at the last step."""
        events: list[Any] = []
        if not memory:
            events += [
                self._event(file_version="brain.Event:2"),
                self._event(summary=self._hparams(dict(run.config), trial_id=run.cell)),
            ]
        events += [self._scalar(step, name, value) for step, name, value in news.points]
        if news.summary:
            events += [self._scalar(news.step, f"summary/{name}", value) for name, value in news.summary.items()]
        name = re.sub(r"[^\w.=+-]+", "_", run.name)[:LONGEST]
        folder, now = self._folders.setdefault(run.cell, self._path / f"{name}-{run.cell}"), time.time()
        folder.mkdir(exist_ok=True)
        file = folder / _file(run.cell)
        with file.open("r+b" if file.exists() else "wb") as opened:
            opened.truncate(memory.get("bytes", 0))
            opened.seek(0, 2)
            writer = self._writer(opened)
            for event in events:
                event.wall_time = now
                writer.write(event.SerializeToString())
            opened.flush()
            return {"bytes": opened.tell()}

    def close(self) -> None:
        """Every file is closed already."""

    def _scalar(self, step: int, name: str, value: float) -> Any:
        return self._event(step=step, summary=self._summary(value=[{"tag": name, "simple_value": value}]))


def _file(cell: str) -> str:
    return f"events.out.tfevents.{cell}"

"""Event files for TensorBoard: a folder per run, curves by step, axes and options as hyper-parameters."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

from unseen.errors import UsageError
from unseen.tracking import RunUpdate, State, TrackedRun

LONGEST_NAME = 150
"""Characters of a folder's name before the id."""
_ID_LENGTH = 16


class TensorBoard:
    """One event file per run. The state is the length of the file: what a killed process wrote beyond it is cut off."""

    live = True

    def __init__(self, path: Path) -> None:
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.plugins.hparams import summary_v2
        from tensorboard.summary.writer import record_writer

        self._path = path
        # The name of a folder ends in the id of its run, by which it is found even if the rest has changed.
        self._folders = {folder.name[-_ID_LENGTH:]: folder for folder in path.iterdir() if folder.is_dir()}
        self._event = event_pb2.Event
        self._summary = summary_pb2.Summary
        self._hparams = summary_v2.hparams_pb
        self._writer = record_writer.RecordWriter

    def holds(self, trial: str, state: State) -> bool:
        """Whether the file is at least as long as it was left."""
        if trial not in self._folders:
            return False
        file = self._folders[trial] / _file_name(trial)
        return file.is_file() and file.stat().st_size >= state.get("bytes", 0)

    def write(self, run: TrackedRun, update: RunUpdate, state: State) -> State:
        """Append events; for a run that has ended also its records, as `summary/…` at the last step."""
        events: list[Any] = []
        if not state:
            events.append(self._event(file_version="brain.Event:2"))
            events.append(self._event(summary=self._hparams(dict(run.config), trial_id=run.trial)))
        events += [self._scalar(step, name, value) for step, name, value in update.points]
        events += [self._scalar(update.step, f"summary/{name}", value) for name, value in update.summary.items()]
        name = re.sub(r"[^\w.=+-]+", "_", run.name)[:LONGEST_NAME]
        folder = self._folders.setdefault(run.trial, self._path / f"{name}-{run.trial}")
        folder.mkdir(exist_ok=True)
        path = folder / _file_name(run.trial)
        if path.is_symlink():  # it is opened and cut off, so what it leads to would be
            raise UsageError(f"{path} is a symbolic link; give another directory for the logs")
        now = time.time()
        with path.open("r+b" if path.exists() else "wb") as file:
            # What a killed process wrote after the last saved state is written again.
            file.truncate(state.get("bytes", 0))
            file.seek(0, 2)
            writer = self._writer(file)
            for event in events:
                event.wall_time = now
                writer.write(event.SerializeToString())
            file.flush()
            return {"bytes": file.tell()}

    def close(self) -> None:
        """Nothing to do: every file is closed."""

    def _scalar(self, step: int, name: str, value: float) -> Any:
        return self._event(step=step, summary=self._summary(value=[{"tag": name, "simple_value": value}]))


def _file_name(trial: str) -> str:
    return f"events.out.tfevents.{trial}"

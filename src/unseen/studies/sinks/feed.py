"""From a store to a sink: what the one has and the other has not."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock, Timeout

from unseen.errors import UsageError
from unseen.studies.cell import words
from unseen.studies.database import FILE
from unseen.studies.sinks import Memory, News, Run, Sink, open_sink
from unseen.studies.store import ENDED, Store

MEMORY = "unseen.json"
"""Beside the logs: how far each run is. Without it everything is written again, over what is there."""
OFTEN = 100
"""The memory is saved after so many runs: what is done again after a kill."""


class Feed:
    """A store, a sink, and the memory between them: `with Feed(DIR, "tensorboard", LOGS) as feed: feed.update()`.

    One process at a time writes logs. Whatever is damaged or missing of the memory is written again.
    """

    def __init__(self, store: Path, tool: str, logs: Path) -> None:
        self._store, self._tool, self._logs = Path(store), tool, logs
        try:
            logs.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(logs / "unseen.lock")
            self._lock.acquire(blocking=False)
        except Timeout:
            raise UsageError(
                f"{logs} is being written by another process; wait for it, or give another directory"
            ) from None
        except OSError as error:
            raise UsageError(f"{logs} can't be written: {error.strerror}") from error
        try:
            self._runs = _remembered(logs, tool)
            self._sink: Sink = open_sink(tool, logs)
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the tool and of the logs."""
        try:
            self._sink.close()
        finally:
            self._lock.release()

    def stamp(self) -> list[tuple[int, int]]:
        """Changes whenever something is written to the store: to look inside is not free."""
        files = (self._store / FILE, self._store / f"{FILE}-wal")
        return [(file.stat().st_mtime_ns, file.stat().st_size) for file in files if file.is_file()]

    def update(self, on_run: Callable[[], None] = lambda: None) -> int:
        """Write what is new; returns to how many runs something was added. `on_run` hears of each."""
        written = 0
        with Store.read(self._store) as store:
            work = store.work
            study = str(work.get("study") or " · ".join(words(work[p]) for p in ("task", "model") if p in work))
            for row in store.entries().drop_duplicates("cell").to_dict("records"):
                if self._visit(store, study, row):
                    written += 1
                    on_run()
                    if written % OFTEN == 0:
                        self._save()
        if written:
            self._save()
        return written

    def _visit(self, store: Store, study: str, row: dict[Any, Any]) -> bool:
        cell, status = str(row["cell"]), str(row["status"])
        step = int(row["step"])
        reached, memory = [step, status], self._runs.get(cell, {})
        if memory and not self._sink.holds(cell, memory.get("sink", {})):
            memory = {}
        if memory.get("reached") == reached or (status == "pending" and not self._sink.live):
            return False
        known = memory.get("step", -1) if self._sink.live else -1
        points = [
            (at, f"{condition}/{metric}", math.nan if value is None else value)
            for _, at, condition, metric, value in store.rows("curves", cell)
            if at > known
        ]
        summary = _summary(store, cell) if status in ENDED else {}
        if not points and status == "pending":
            return False
        points.sort(key=lambda point: point[0])
        news = News(step, points, "" if status == "pending" else status, summary)
        kept = self._sink.write(_run(study, row), news, memory.get("sink", {}))
        self._runs[cell] = {"reached": reached, "step": points[-1][0] if points else known, "sink": kept}
        return True

    def _save(self) -> None:
        temporary = self._logs / f"{MEMORY}.partial"
        temporary.write_text(json.dumps({"tool": self._tool, "runs": self._runs}))
        temporary.replace(self._logs / MEMORY)


def _remembered(logs: Path, tool: str) -> dict[str, Memory]:
    """How far each run was. A damaged memory is none; that of another tool is a mistake."""
    held: Any = None
    with suppress(OSError, ValueError):
        held = json.loads((logs / MEMORY).read_text())
    if not isinstance(held, dict) or not isinstance(held.get("runs"), dict):
        return {}
    if held.get("tool") != tool:
        raise UsageError(f"{logs} holds logs for {held.get('tool')}; give {tool} a directory of its own")
    return dict(held["runs"])


def _run(study: str, row: dict[Any, Any]) -> Run:
    """One row of a store's entries as a run."""
    levels = json.loads(row["levels"])
    parts = {part: json.loads(row[part]) for part in ("task", "model", "recipe")}
    config = {
        **levels,
        "seed": row["seed"],
        "data_seed": row["data_seed"],
        **{part: options["name"] for part, options in parts.items()},
        **{
            f"{part}.{key}": value
            for part, options in parts.items()
            for key, value in options.items()
            if key not in ("name", "version")
        },
    }
    if row["scale"]:
        config["scale"] = row["scale"]
    name = " ".join([*(f"{axis}={level}" for axis, level in levels.items()), f"seed={row['seed']}"])
    plain = {k: v if isinstance(v, str | int | float | bool) else json.dumps(v) for k, v in config.items()}
    return Run(str(row["cell"]), name, study, plain)


def _summary(store: Store, cell: str) -> dict[str, float]:
    """The records of a cell on whole conditions; those of single levels of factors are many, and stay in the store."""
    return {
        f"{selection}/{condition}/{metric}": math.nan if value is None else value
        for _, selection, condition, factor, _, metric, value, _, _ in store.rows("records", cell)
        if not factor
    }

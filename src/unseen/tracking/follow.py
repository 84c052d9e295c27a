"""Keep a tracker's logs up to date with a store: once (`LogWriter.update`), or beside a run (`follow`)."""

from __future__ import annotations

import json
import math
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from unseen.errors import UsageError, format_error
from unseen.files import write_atomically
from unseen.store.schema import FILE
from unseen.store.store import ENDED, Store
from unseen.studies.trial import format_options
from unseen.tracking import RunUpdate, State, TrackedRun, Tracker, open_tracker, parse_track

STATE_FILE = "unseen.json"
"""Beside the logs: how far each run has been written. Without it everything is written again, over what is there."""
LOCK_FILE = "unseen.lock"
SAVE_EVERY = 100
"""The state is saved after this many runs; a kill repeats at most these."""
SECONDS = 5.0
"""Between two updates beside a run."""
PATIENCE = 60.0
"""How long a tracker may make no progress after the end of the run before it is abandoned."""


class LogWriter:
    """Writes what a store has and the logs of a tracker do not have yet:
    `with LogWriter(DIR, "tensorboard", LOGS) as writer: writer.update()`.

    One process at a time writes to a log directory. If the state is missing or damaged, runs are written again.
    """

    def __init__(self, store: Path, tool: str, logs: Path) -> None:
        self._store = Path(store)
        self._tool = tool
        self._logs = logs
        _check_logs(logs)
        try:
            logs.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(logs / LOCK_FILE)
            self._lock.acquire(blocking=False)
        except Timeout:
            raise UsageError(
                f"{logs} is being written by another process; wait for it, or give another directory"
            ) from None
        except OSError as error:
            raise UsageError(f"{logs} can't be written: {error.strerror}") from error
        try:
            self._states = _read_states(logs, tool)
            self._tracker: Tracker = open_tracker(tool, logs)
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the tracker and unlock the logs."""
        try:
            self._tracker.close()
        finally:
            self._lock.release()

    def stamp(self) -> list[tuple[int, int]]:
        """A value that changes whenever the store is written; cheaper than opening it."""
        files = (self._store / FILE, self._store / f"{FILE}-wal")
        return [(file.stat().st_mtime_ns, file.stat().st_size) for file in files if file.is_file()]

    def update(self, on_run: Callable[[], None] = lambda: None) -> int:
        """Write what is new and return the number of runs written; `on_run` is called after each."""
        count = 0
        with Store.read(self._store) as store:
            work = store.work
            components = [format_options(work[component]) for component in ("task", "model") if component in work]
            study = str(work.get("study") or " · ".join(components))
            # A trial has an entry for every scale and evaluation, and is one run of the tracker.
            for entry in store.entries().drop_duplicates("trial").to_dict("records"):
                if self._write_run(store, study, entry):
                    count += 1
                    on_run()
                    if count % SAVE_EVERY == 0:
                        self._save_states()
        if count:
            self._save_states()
        return count

    def _write_run(self, store: Store, study: str, entry: dict[Any, Any]) -> bool:
        """Write what is new about one run; False if there is nothing."""
        trial = str(entry["trial"])
        status = str(entry["status"])
        reached = [int(entry["step"]), status]
        state = self._states.get(trial, {})
        if "tracker" not in state or not self._tracker.holds(trial, state["tracker"]):
            state = {}  # written from the start, over what is there
        if state.get("reached") == reached or (status == "pending" and not self._tracker.live):
            return False
        last_step = state.get("step", -1) if self._tracker.live else -1
        points = []
        for _, step, split, metric, value in store.rows("curves", trial):
            if step > last_step:
                points.append((step, f"{split}/{metric}", math.nan if value is None else value))
        if not points and status == "pending":
            return False
        points.sort(key=lambda point: point[0])
        # Records on whole splits only: those of single factor levels are many, and stay in the store.
        summary = {}
        if status in ENDED:
            for _, selection, split, factor, _, metric, value, _, _ in store.rows("records", trial):
                if not factor:
                    summary[f"{selection}/{split}/{metric}"] = math.nan if value is None else value
        update = RunUpdate(int(entry["step"]), points, "" if status == "pending" else status, summary)
        tracker_state = self._tracker.write(_describe_run(study, entry), update, state.get("tracker", {}))
        self._states[trial] = {
            "reached": reached,
            "step": points[-1][0] if points else last_step,
            "tracker": tracker_state,
        }
        return True

    def _save_states(self) -> None:
        write_atomically(self._logs / STATE_FILE, json.dumps({"tool": self._tool, "runs": self._states}))


@contextmanager
def follow(store: Path, tracks: Sequence[str], seconds: float = SECONDS) -> Iterator[None]:
    """Keep every track (`tensorboard`, `mlflow:DIR`) up to date while the context is open, and complete it at the end.

    Mistakes that show at the start (an unknown tracker, a missing package, a directory in use) are errors; a failure
    later is one warning at the end and does not affect the run.
    """
    with ExitStack() as stack:
        for track in tracks:
            stack.enter_context(_follow_one(store, track, seconds))
        yield


@contextmanager
def _follow_one(store: Path, track: str, seconds: float) -> Iterator[None]:
    tool, logs = parse_track(track, store)
    follower = _Follower(LogWriter(store, tool, logs), seconds)
    follower.start()
    try:
        yield
    finally:
        problem = follower.finish()
        if problem:
            warnings.warn(
                f"the logs for {tool} are incomplete: {problem}. The run itself is not affected; `unseen track "
                f"{store} --to {tool} --out {logs}` writes what is missing",
                stacklevel=2,
            )


class _Follower(threading.Thread):
    """Updates logs until it is told to finish, or something goes wrong. A thread, so that a slow tracker does not hold
    up the run; it reads the store rather than a queue, so that a kill loses nothing."""

    def __init__(self, writer: LogWriter, seconds: float) -> None:
        super().__init__(name="unseen-tracker", daemon=True)
        self._writer = writer
        self._seconds = seconds
        self._finishing = threading.Event()
        self._problem = ""
        self._last_progress = time.monotonic()

    def run(self) -> None:
        for action in (self._update_until_finished, self._writer.close):
            try:
                action()
            except BaseException as error:  # a tracker may raise anything, even SystemExit; the run must go on
                self._problem = self._problem or format_error(error)

    def _update_until_finished(self) -> None:
        finishing = False
        stamp_before = None
        while not finishing:
            finishing = self._finishing.wait(self._seconds)
            stamp = self._writer.stamp()  # taken before the update: what is written during it is seen by the next one
            # A file may change twice within a tick of its clock, so the last update is never skipped.
            if finishing or stamp != stamp_before:
                self._writer.update(self._note_progress)
            stamp_before = stamp

    def _note_progress(self) -> None:
        self._last_progress = time.monotonic()

    def finish(self) -> str:
        """Wait for the last update as long as it makes progress; returns what went wrong, or an empty text."""
        self._note_progress()
        self._finishing.set()
        while self.is_alive() and time.monotonic() < self._last_progress + PATIENCE:
            self.join(0.2)
        if not self._problem and self.is_alive():
            return f"no progress for {PATIENCE:.0f} seconds"
        return self._problem


def _check_logs(logs: Path) -> None:
    """Refuse a directory in which a file of ours would replace somebody else's, before anything is written."""
    if logs.exists() and not logs.is_dir():
        raise UsageError(f"{logs} is a file; give a directory for the logs")
    for name in (STATE_FILE, LOCK_FILE):
        if (logs / name).is_symlink():
            raise UsageError(f"{logs / name} is a symbolic link; give another directory for the logs")
    content: Any = {"tool": ""}
    with suppress(OSError, ValueError):  # one that a kill or a full disk damaged is written again
        content = json.loads((logs / STATE_FILE).read_text())
    if not isinstance(content, dict) or "tool" not in content:
        raise UsageError(f"{logs / STATE_FILE} is not of our making; give another directory for the logs")


def _read_states(logs: Path, tool: str) -> dict[str, State]:
    """How far each run has been written. A damaged file counts as missing; a file of another tracker is an error."""
    content: Any = None
    with suppress(OSError, ValueError):
        content = json.loads((logs / STATE_FILE).read_text())
    if not isinstance(content, dict) or not isinstance(content.get("runs"), dict):
        return {}
    if content.get("tool") != tool:
        raise UsageError(f"{logs} holds logs for {content.get('tool')}; give {tool} a directory of its own")
    return dict(content["runs"])


def _describe_run(study: str, entry: dict[Any, Any]) -> TrackedRun:
    """An entry of the store as a run, with its axes, seeds and options as configuration."""
    levels = json.loads(entry["levels"])
    components = {component: json.loads(entry[component]) for component in ("task", "model", "recipe")}
    config = {**levels, "seed": entry["seed"], "data_seed": entry["data_seed"]}
    for component, options in components.items():
        config[component] = options["name"]
    for component, options in components.items():
        for key, value in options.items():
            if key not in ("name", "version"):
                config[f"{component}.{key}"] = value
    if entry["scale"]:
        config["scale"] = entry["scale"]
    for key, value in config.items():
        if not isinstance(value, str | int | float | bool):
            config[key] = json.dumps(value)
    name = " ".join([*(f"{axis}={level}" for axis, level in levels.items()), f"seed={entry['seed']}"])
    return TrackedRun(str(entry["trial"]), name, study, config)

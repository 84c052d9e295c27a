"""Work exchanged through files on a shared disk: a runner and its pilots, without a connection between them.

    EXCHANGE/current               the name of the session of the runner that is at work
    EXCHANGE/SESSION/todo/N        a chunk to do; the runner writes it, a pilot claims it by renaming it
    EXCHANGE/SESSION/taken/N       a chunk that a pilot works on
    EXCHANGE/SESSION/ticks/N       the heartbeat of that pilot, rewritten now and then, with the step it has reached
    EXCHANGE/SESSION/done/N        the outcome
    EXCHANGE/SESSION/stop          there is no more to do: end the chunk under way after its step

A chunk goes from `todo` to `taken` to `done`, each time by a rename, which succeeds for one process only: no chunk is
done by two, and none is seen half-written. There is no way back. If the heartbeat of a taken chunk stops, the runner
considers the pilot lost and writes the same work under a new number; whatever the lost pilot still writes under the old
number is not read any more. Likewise every runner begins a session of its own, so that outcomes meant for a runner that
was killed can't be mistaken for its successor's. What is lost in either way is computed again, to the same bits.

A pilot that has had nothing to do for minutes leaves, whether the runner is gone or the rest of the study is in other
hands: it would hold a core or a GPU for nothing. The runner submits new pilots if there is more work than pilots.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from unseen.files import PARTIAL

# A disk that hundreds of pilots share bears some operations a second of each process, not dozens.
HEARTBEAT_SECONDS = 5.0
"""Seconds between two heartbeats of a pilot."""
POLL_SECONDS = 1.0
"""Seconds between two looks at the folder of chunks to do."""
FOLDERS = ("todo", "taken", "ticks", "done")


def write_message(path: Path, data: bytes) -> None:
    """Write a file that others see whole or not at all. Not synced: what a power cut takes is computed again."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}{PARTIAL}")
    temporary.write_bytes(data)
    temporary.replace(path)


def begin_session(exchange: Path) -> Path:
    """A new session, which the pilots of an earlier one join as well."""
    name = f"{time.time_ns():x}-{os.getpid()}"
    session = exchange / name
    for folder in FOLDERS:
        (session / folder).mkdir(parents=True)
    write_message(exchange / "current", name.encode())
    return session


def current_session(exchange: Path) -> Path | None:
    """The session of the runner that is at work, or was last."""
    try:
        return exchange / (exchange / "current").read_text()
    except OSError:
        return None


def claim(session: Path) -> Path | None:
    """The oldest chunk to do, claimed; None if there is none."""
    try:
        names = sorted((entry.name for entry in (session / "todo").iterdir() if entry.name.isdecimal()), key=int)
    except OSError:
        return None
    for name in names:
        taken = session / "taken" / name
        with suppress(OSError):  # another pilot was faster
            (session / "todo" / name).rename(taken)
            return taken
    return None


class Pilot:
    """Claims chunks and does them until told to stop, or until there has been none for a while."""

    def __init__(self, exchange: Path, patience: float) -> None:
        from unseen.running.chunk import Worker

        self._exchange = exchange
        self._patience = patience
        self._worker = Worker()
        self._stop = threading.Event()

    def stop(self) -> None:
        """End the chunk under way after its current step, and then the pilot."""
        self._stop.set()

    def run(self) -> None:
        """Do chunks."""
        idle_since = time.monotonic()
        while not self._stop.is_set() and time.monotonic() < idle_since + self._patience:
            session = current_session(self._exchange)
            if session is not None and (session / "stop").exists():
                return
            taken = None if session is None else claim(session)
            if session is None or taken is None:
                self._stop.wait(POLL_SECONDS)
                continue
            self._do(session, taken)
            idle_since = time.monotonic()

    def _do(self, session: Path, taken: Path) -> None:
        from unseen.running.chunk import Tick
        from unseen.running.messages import pack_outcome, unpack_chunk
        from unseen.store.schema import Outcome

        ticket = int(taken.name)
        # Several seconds may pass before the first step: the heartbeat comes from a thread of its own.
        state: dict[str, Any] = {"step": 0, "best": None, "job": job_name(os.environ)}
        ended = threading.Event()

        def send_heartbeats() -> None:
            number = 0
            while not ended.is_set():
                with suppress(OSError):
                    write_message(session / "ticks" / taken.name, json.dumps({**state, "number": number}).encode())
                number += 1
                ended.wait(HEARTBEAT_SECONDS)

        def on_tick(tick: Tick) -> bool:
            state.update(step=tick.step, best=tick.best)
            return self._stop.is_set() or stopped()

        stopped = _checked_seldom(lambda: (session / "stop").exists())
        thread = threading.Thread(target=send_heartbeats, daemon=True)
        thread.start()
        try:
            outcome = self._worker.do(unpack_chunk(taken.read_bytes()), on_tick)
        except Exception:  # a class that can't be imported here
            outcome = Outcome(ticket, error=traceback.format_exc())
        with suppress(FileNotFoundError):  # the runner has ended, and removed its session
            write_message(session / "done" / taken.name, pack_outcome(outcome))
        ended.set()
        thread.join()
        taken.unlink(missing_ok=True)


def job_name(environment: Mapping[str, str]) -> str | None:
    """This job, as Slurm's commands call it; None outside of a job.

    A task of an array is ARRAY_TASK. Its own number won't do: that of one task is also the number of the whole array, and
    to requeue that would end all its other tasks.

    >>> job_name({"SLURM_JOB_ID": "7", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "1"})
    '7_1'
    """
    if "SLURM_ARRAY_JOB_ID" in environment:
        return f"{environment['SLURM_ARRAY_JOB_ID']}_{environment['SLURM_ARRAY_TASK_ID']}"
    return environment.get("SLURM_JOB_ID")


def _checked_seldom(check: Callable[[], bool]) -> Callable[[], bool]:
    """The answer of a check that is made at most once in a while."""
    last = time.monotonic()

    def answer() -> bool:
        nonlocal last
        if time.monotonic() < last + HEARTBEAT_SECONDS:
            return False
        last = time.monotonic()
        return check()

    return answer


def main(exchange: str, patience: str) -> None:
    """A pilot as a job of Slurm: `python -m unseen.running.executors.exchange EXCHANGE SECONDS`.

    SIGUSR1, which Slurm sends some time before the limit, saves the chunk under way and puts the job back into the queue.
    SIGTERM saves it and ends the job.
    """
    requeue = threading.Event()
    stop = threading.Event()
    pilots: list[Pilot] = []

    def on_signal(number: int, frame: Any) -> None:
        if number == signal.SIGUSR1:
            requeue.set()
        stop.set()
        for pilot in pilots:
            pilot.stop()

    for number in (signal.SIGUSR1, signal.SIGTERM):  # before torch is imported, which takes seconds
        signal.signal(number, on_signal)
    pilots.append(Pilot(Path(exchange), float(patience)))
    if not stop.is_set():
        pilots[0].run()
    job = job_name(os.environ)
    if requeue.is_set() and job is not None:
        sys.stdout.write(f"job {job}: the time limit is near; saved, and back into the queue\n")
        sys.stdout.flush()
        os.execvp("scontrol", ["scontrol", "requeue", job])


if __name__ == "__main__":
    main(*sys.argv[1:])

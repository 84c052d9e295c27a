"""Killing a run, its workers or both with SIGKILL, and how far it has come."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
from pathlib import Path


def workers_of(pid: int) -> list[int]:
    """The children of a process, as the system lists them."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def steps_done(out: Path) -> int:
    """Steps that the store has counted, over all trials."""
    try:
        with sqlite3.connect(f"file:{out}/store.sqlite?mode=ro", uri=True) as database:
            return int(database.execute("SELECT total(end - begin) FROM chunks").fetchone()[0])
    except sqlite3.Error:
        return 0


def kill(pid: int, whom: str, chance: random.Random) -> bool:
    """Kill the runner, one of its workers, or all; whether there was anybody to kill."""
    workers = workers_of(pid)
    victims = {"runner": [pid], "worker": workers and [chance.choice(workers)], "all": [pid, *workers]}[whom]
    for victim in victims:
        os.kill(victim, signal.SIGKILL)
    return bool(victims)

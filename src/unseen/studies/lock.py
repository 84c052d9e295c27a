"""One writer per store: a lock of the operating system, with its owner's name for the message."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from filelock import FileLock, Timeout

from unseen.errors import UsageError


def take_lock(path: Path) -> FileLock:
    """The lock of a store's directory, or an error that names who has it. It is given up with the process."""
    lock, owner = FileLock(path / "store.lock"), path / "store.owner"
    try:
        lock.acquire(blocking=False)
    except Timeout:
        named = owner.read_text() if owner.is_file() else "another process"
        raise UsageError(f"{path} is being written by {named}; wait for it, or stop it") from None
    owner.write_text(f"process {os.getpid()} on {socket.gethostname()}")
    return lock

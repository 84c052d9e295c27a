"""Files of a store, weights and checkpoints: written whole or not at all, read back as they were written or refused."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from unseen.errors import CheckFailed


def sha(data: bytes) -> str:
    """The hash that a store notes of a file."""
    return hashlib.sha256(data).hexdigest()


def put(store: Path, folder: str, name: str, data: bytes) -> tuple[str, str]:
    """Write a file under a temporary name, sync it and rename it; its path inside the store, and its hash."""
    target = store / folder / name
    temporary = target.with_suffix(".partial")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
        _sync_folder(target.parent)
    except OSError:
        temporary.unlink(missing_ok=True)  # on a full disk every byte counts
        raise
    return f"{folder}/{name}", sha(data)


def get(store: Path, file: str, sha256: str) -> bytes:
    """What a file holds, if it is what was written."""
    path = store / file
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise CheckFailed(f"{path} is missing, though the store names it") from None
    except OSError as error:
        raise CheckFailed(f"{path} can't be read: {error.strerror}") from error
    if sha(data) != sha256:
        raise CheckFailed(f"{path} is damaged: its contents are not what the store recorded")
    return data


def _sync_folder(folder: Path) -> None:
    """A new name in a folder, too, must outlive a power cut."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)

"""What was worked out once and is kept between calls, as JSON in the user's cache directory."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")
SECTIONS = 8
"""So many sections are held at most, those that were written last."""


class Kept(Generic[T]):
    """Dataclasses by key. What holds under other circumstances (another machine, other code) is in other sections of
    the file. A damaged file is ignored, with a warning; one that can't be written does no harm.
    """

    def __init__(self, path: Path | None, section: str, read: Callable[[Any], T], lost: str) -> None:
        """`read` makes an entry of its JSON, or raises; `lost` says what becomes of a damaged file's entries."""
        self._path, self._section, self._make, self._lost = path, section, read, lost
        self.known, self._new = self._read().get(section, {}), dict[str, T]()

    def add(self, key: str, value: T) -> None:
        """Know something new."""
        self.known[key] = self._new[key] = value

    def save(self) -> None:
        """Write what is new beside what others have written meanwhile, whole or not at all."""
        if self._path is None or not self._new:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said when it was read first
            held = self._read()
        held[self._section] = held.pop(self._section, {}) | self._new
        self._new = {}
        held = dict(list(held.items())[-SECTIONS:])
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(
                json.dumps(
                    {
                        section: {k: asdict(v) for k, v in entries.items()}  # type: ignore[call-overload]
                        for section, entries in held.items()
                    }
                )
            )
            temporary.replace(self._path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()

    def _read(self) -> dict[str, dict[str, T]]:
        if self._path is None:
            return {}
        try:
            text = self._path.read_text()
        except (OSError, UnicodeDecodeError):
            return {}
        try:
            return {
                section: {k: self._make(v) for k, v in entries.items()} for section, entries in json.loads(text).items()
            }
        except (ValueError, TypeError, KeyError, AttributeError):
            warnings.warn(f"{self._path} is damaged and is ignored; {self._lost}", stacklevel=4)
            return {}


def kept_path(name: str) -> Path | None:
    """A file in the user's cache directory; None: this user has no home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unseen" / name
    except RuntimeError:
        return None


@cache
def code_state(*rooms: str) -> str:
    """Which torch this is, and which code of ours: its version, and a digest of the files of these rooms. Numbers that
    follow from code must not outlive it, nor a change in a checkout that has a version of its own.
    """
    home, read = Path(__file__).parents[1], hashlib.sha256()
    for file in sorted(file for room in rooms for file in (home / room).rglob("*.py")):
        read.update(f"{file.relative_to(home)}\0".encode() + file.read_bytes())
    return f"torch {version('torch')}, unseen {version('unseen')} {read.hexdigest()[:8]}"

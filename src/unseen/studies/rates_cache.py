"""Measured rates, kept between calls in the user's cache directory."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from unseen.studies.provenance import cpu_name


@dataclass(frozen=True)
class Rate:
    """What one kind of step takes: seconds per member and step by stack size, seconds to draw an example.

    `asked` is the largest size that was asked for; it may have been left out because it took too long.

    >>> round(Rate({1: 0.010, 5: 0.006}, draw=0.0, asked=5).step(3), 4)
    0.0067
    """

    steps: Mapping[int, float]
    draw: float
    asked: int

    def step(self, members: int) -> float:
        """Seconds per member of one step of a stack of so many: between measured sizes, whole steps lie on a line."""
        tried = sorted(self.steps)
        if members >= tried[-1]:
            return self.steps[tried[-1]]
        return float(np.interp(members, tried, [size * self.steps[size] for size in tried])) / members

    def longer(self, by: float) -> Rate:
        """The rate of a kind whose step takes so many seconds more (or, negative, less) for each member."""
        return Rate({size: seconds + by for size, seconds in self.steps.items()}, self.draw, self.asked)


class RatesCache:
    """Rates by kind, for this processor, this torch and one thread. A damaged file is ignored, with a warning; one
    that can't be written does no harm.
    """

    def __init__(self, path: Path | None = None, device: str = "cpu") -> None:
        self._path = path or default_path()
        self._machine = f"{cpu_name()}, {device}, 1 thread, torch {version('torch')}, unseen {version('unseen')}"
        self.known, self._new = self._read().get(self._machine, {}), dict[str, Rate]()

    def covers(self, kind: str, size: int) -> bool:
        """The kind is known for stacks up to this size."""
        return kind in self.known and self.known[kind].asked >= size

    def add(self, kind: str, rate: Rate) -> None:
        """Know a newly measured rate."""
        self.known[kind] = self._new[kind] = rate

    def save(self) -> None:
        """Write what is new beside what others have written meanwhile, whole or not at all."""
        if self._path is None or not self._new:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said when it was read first
            held = self._read()
        held[self._machine] = held.get(self._machine, {}) | self._new
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps({m: {k: asdict(r) for k, r in rates.items()} for m, rates in held.items()}))
            temporary.replace(self._path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()

    def _read(self) -> dict[str, dict[str, Rate]]:
        if self._path is None:
            return {}
        try:
            text = self._path.read_text()
        except (OSError, UnicodeDecodeError):
            return {}
        try:
            return {m: {k: _rate(r) for k, r in rates.items()} for m, rates in json.loads(text).items()}
        except (ValueError, TypeError, KeyError, AttributeError):
            warnings.warn(f"{self._path} is damaged and is ignored; the rates are measured anew", stacklevel=4)
            return {}


def default_path() -> Path | None:
    """`rates.json` in the user's cache directory; None: this user has no home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unseen" / "rates.json"
    except RuntimeError:
        return None


def _rate(said: Mapping[str, Any]) -> Rate:
    rate = Rate({int(k): float(v) for k, v in said["steps"].items()}, float(said["draw"]), int(said["asked"]))
    if not rate.steps or min(rate.steps) < 1 or not all(0 < s < float("inf") for s in rate.steps.values()):
        raise ValueError(f"no times of steps: {said}")
    if not 0 <= rate.draw < float("inf"):
        raise ValueError(f"no time to draw an example: {said}")
    return rate

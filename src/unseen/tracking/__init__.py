"""Experiment trackers: write the results of a store for TensorBoard, MLflow and Weights & Biases. No network access.

A tracker never hears from a run directly. It is fed from the store (`follow`), so it holds exactly what the store
holds, even if a process was killed in between; and a tracker that fails is a warning, never the end of a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from unseen.errors import UsageError, nearest

TRACKERS = {"tensorboard": "TensorBoard", "mlflow": "MLflow", "wandb": "WandB"}
"""The class of each tracker, in the module of the tracker's name."""
_MISSING = "{} needs the extra 'tracking': pip install 'unseen[tracking]'"
State = dict[str, Any]
"""The state that a tracker keeps of a run between two updates, as JSON values."""


@dataclass(frozen=True)
class TrackedRun:
    """A trial as a run of the tracker: its id, a readable name, the study, and its axes, seeds and options."""

    trial: str
    name: str
    study: str
    config: Mapping[str, str | int | float | bool]


@dataclass(frozen=True)
class RunUpdate:
    """The part of a run that is in the store and not yet in the tracker: the current step; points (step, name, value) by step; how
    the run ended (empty if it has not); and, once it has ended, its records by name (`best/iid/accuracy`)."""

    step: int
    points: Sequence[tuple[int, str, float]]
    ending: str
    summary: Mapping[str, float]


class Tracker(Protocol):
    """Writes runs to `path`. A run that is written again from an empty state is there once, not twice."""

    live: bool
    """Whether runs in progress are written; otherwise a run is written when it has ended."""

    def __init__(self, path: Path) -> None: ...

    def holds(self, trial: str, state: State) -> bool:
        """Whether the files that this state of a run describes still exist."""

    def write(self, run: TrackedRun, update: RunUpdate, state: State) -> State:
        """Add an update to a run and return the new state; an empty state means that the run is new or incomplete."""

    def close(self) -> None:
        """Release files and processes."""


def open_tracker(name: str, path: Path) -> Tracker:
    """Open a tracker; a missing package is an error that names the extra."""
    tracker: type[Tracker] = getattr(import_module(f"unseen.tracking.{name}"), TRACKERS[name])
    try:
        return tracker(path)
    except ImportError as error:
        raise UsageError(f"{_MISSING.format(name)} ({error})") from None


def check_installed(name: str) -> None:
    """Refuse a tracker whose package is missing."""
    if find_spec(name) is None:
        raise UsageError(_MISSING.format(name))


def check_track(track: str, out: Path | None) -> None:
    """Refuse an unusable `track` before anything is created."""
    name, logs = parse_track(track, out)
    check_installed(name)
    if logs.exists() and not logs.is_dir():
        raise UsageError(f"--track {track}: {logs} is a file; give a directory for the logs")


def parse_track(track: str, out: Path | None) -> tuple[str, Path]:
    """The tracker and the directory of `tensorboard` or `tensorboard:logs`; the default is inside the results.

    >>> parse_track("wandb:logs", None) == ("wandb", Path("logs"))
    True
    >>> parse_track("mlflow", Path("runs")) == ("mlflow", Path("runs/tracking/mlflow"))
    True
    """
    name, _, folder = track.partition(":")
    if name not in TRACKERS:
        hint = nearest(name, TRACKERS)
        if "," in name:
            hint = "Give each on its own: --track tensorboard --track mlflow, or track=['tensorboard', 'mlflow']"
        raise UsageError(f"unknown tracker '{name}'. {hint}")
    if folder:
        return name, Path(folder)
    if out is None:
        raise UsageError(f"track = '{track}': the results are not kept in a directory; give out=…, or '{name}:DIR'")
    return name, out / "tracking" / name

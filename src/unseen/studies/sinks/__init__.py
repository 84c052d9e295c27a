"""Sinks: what a store holds, in the files of TensorBoard, MLflow and Weights & Biases. No network, no telemetry.

A sink is never told by a run: it is fed from the store (`feed`), after the store was told, so what it holds is what
the store holds, once, whatever was killed in between; and a sink that fails is a warning, never the end of a run
(`follow`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from unseen.errors import UsageError, nearest

SINKS = {"tensorboard": "TensorBoard", "mlflow": "MLflow", "wandb": "WandB"}
"""The sinks by name, each a class of the module of that name."""
MISSING = "{} needs the extra 'tracking': pip install 'unseen[tracking]'"
Memory = dict[str, Any]
"""What is remembered of a run between two visits, as JSON values."""


@dataclass(frozen=True)
class Run:
    """A cell as a tool's run: its id, a name for people, the study, and its axes, seeds and options."""

    cell: str
    name: str
    study: str
    config: Mapping[str, str | int | float | bool]


@dataclass(frozen=True)
class News:
    """What a store has of a run that a sink has not: the step it is at; points (step, name, value) in the order of
    steps; how it ended (empty: it goes on); and, once it has ended, its records by name (`best/iid/accuracy`)."""

    step: int
    points: Sequence[tuple[int, str, float]]
    ending: str
    summary: Mapping[str, float]


class Sink(Protocol):
    """Writes runs to `path`. Written again from no memory, a run is there once, as if it had been written once."""

    live: bool
    """Whether a run is written while it goes on; else when it has ended."""

    def __init__(self, path: Path) -> None: ...

    def holds(self, cell: str, memory: Memory) -> bool:
        """Whether the files that this memory of a run is about are still there."""

    def write(self, run: Run, news: News, memory: Memory) -> Memory:
        """Add news to a run, and say what to remember; an empty memory: of a run that is new, or was left half
        written."""

    def close(self) -> None:
        """Nothing more will come."""


def open_sink(name: str, path: Path) -> Sink:
    """The sink of a tool; one that is not installed is an error that names the extra."""
    found: type[Sink] = getattr(import_module(f"unseen.studies.sinks.{name}"), SINKS[name])
    try:
        return found(path)
    except ImportError as error:
        raise UsageError(f"{MISSING.format(name)} ({error})") from None


def check(track: str, out: Path | None) -> None:
    """Refuse a track that can't be kept, before anything is made for it."""
    name, _ = where(track, out)
    if find_spec(name) is None:
        raise UsageError(MISSING.format(name))


def where(track: str, out: Path | None) -> tuple[str, Path]:
    """The tool and the directory of `tensorboard` or `tensorboard:logs`; without one it is inside that of the records.

    >>> where("wandb:logs", None) == ("wandb", Path("logs"))
    True
    >>> where("mlflow", Path("runs")) == ("mlflow", Path("runs/tracking/mlflow"))
    True
    """
    name, _, folder = track.partition(":")
    if name not in SINKS:
        several = "Give each on its own: --track tensorboard --track mlflow, or track=['tensorboard', 'mlflow']"
        raise UsageError(f"unknown sink '{name}'. {several if ',' in name else nearest(name, SINKS)}")
    if folder:
        return name, Path(folder)
    if out is None:
        raise UsageError(f"track = '{track}': the records are kept nowhere; give out=…, or '{name}:DIR'")
    return name, out / "tracking" / name

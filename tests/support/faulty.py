"""Stand-ins that go wrong, a study made of them, and a look at the processes behind a run.

Importing this module registers the task `faulty/T1` and the model `stubborn`; workers import it with their first chunk.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from unseen.config import Config
from unseen.models import MODELS
from unseen.models.context import NO_CONTEXT
from unseen.spec import Spec
from unseen.studies.grid import Grid
from unseen.studies.study import Study
from unseen.tasks import TASKS
from unseen.tasks.base import DataSeed, Examples
from unseen.tasks.retrieval.task import Retrieval

HEALED = "UNSEEN_TESTS_HEALED"
"""The environment variable that takes all faults away."""


def raises(drawn: Examples, start: int) -> Examples:
    raise ValueError("these training data can't be drawn")


def not_finite(drawn: Examples, start: int) -> Examples:
    """Few enough for some steps without."""
    sequence = drawn.inputs["sequence"].astype(np.float32)
    sequence[:4] = np.nan
    return Examples({**drawn.inputs, "sequence": sequence}, drawn.targets, drawn.factors)


def exits(drawn: Examples, start: int) -> Examples:
    os._exit(3)


def killed(drawn: Examples, start: int) -> Examples:
    """As the kernel does with a process when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)
    return drawn


def memory(drawn: Examples, start: int) -> Examples:
    """A real refusal of the system, once the process may not grow any more."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, before[1]))
    try:
        np.ones(1 << 32, dtype=np.uint8)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    return drawn


def late(drawn: Examples, start: int) -> Examples:
    """Only when an endless stream is read on."""
    return raises(drawn, start) if start else drawn


FAULTS: Mapping[str, Callable[[Examples, int], Examples]] = {
    f.__name__: f for f in (raises, not_finite, exits, killed, memory, late)
}


class Faulty(Retrieval):
    """T1, but the training data of data seed i have the i-th fault, until the system is healed."""

    block: ClassVar[int] = 64

    name: Literal["faulty/T1"]
    faults: tuple[str, ...] = ()

    def sample(self, split: str, n: int, start: int = 0, data_seed: DataSeed = 0) -> Examples:
        drawn = super().sample(split, n, start, data_seed)
        wrong = split == "train" and isinstance(data_seed, int) and data_seed < len(self.faults)
        if not wrong or not self.faults[data_seed] or HEALED in os.environ:
            return drawn
        return FAULTS[self.faults[data_seed]](drawn, start)


class Stubborn(nn.Module):
    """A model that can't be used."""

    class Options(Config):
        name: str = "stubborn"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        self.answer = nn.Linear(spec.field("query").width, 1)

    def forward(self, inputs: dict[str, torch.Tensor], ctx: object = NO_CONTEXT) -> torch.Tensor:
        raise RuntimeError("this model answers nothing")


TASKS.add("faulty/T1", "support.faulty:Faulty", "goes wrong on request")
MODELS.add("stubborn", "support.faulty:Stubborn", "never answers")

PLAIN = {"name": "retrieval-transformer", "positions": "none", "self_attention": False}


def study(
    faults: Sequence[str] = (),
    seeds: Sequence[int] = range(3),
    models: Mapping[str, Any] | None = None,
    name: str = "faulty",
    train_size: int | None = 500,
    **recipe: Any,
) -> Study:
    """A study of one shape per model: seeds of T1 with these faults."""
    grid = Grid(
        axes={"variant": {label: {"model": model} for label, model in (models or {"plain": PLAIN}).items()}},
        base={
            "task": {
                "name": "faulty/T1",
                "length": 3,
                "train_size": train_size,
                "evaluation_size": 300,
                "faults": tuple(faults),
            },
            "recipe": {"steps": 40, "batch": 10, "validate_every": 10, "validation_examples": 100, **recipe},
            "evaluation": {"examples": 300},
        },
        seeds=seeds,
    )
    return Study(name, 1, "Do tests fail well?", {"smoke": None}, lambda scale: [grid])


ALL = ("", "raises", "killed", "not_finite", "exits", "", "memory", "")
"""Half of the seeds in each of two stacks: the first is broken up by an exception, the second by two deaths."""
HEALTHY = [seed for seed, fault in enumerate(ALL) if not fault]
STUDY = study(ALL, range(len(ALL)))


def processes(pid: int) -> list[int]:
    """The workers of a runner, as the system lists them."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in children.read_text().split()]
        except OSError:
            continue  # the thread is gone
    return [child for child in found if b"executors.worker" in _command(child)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""

"""What a data card says about a condition besides its size: how far shortcuts get, and which artefacts it has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unseen.tasks.base import Artefact, DataSeed, Examples, Task
from unseen.tasks.verify.baselines import Score, baselines, score
from unseen.tasks.verify.checks import Case, measured
from unseen.tasks.verify.regressions import regressions

MOST = 4096
"""How many examples of a condition are looked at."""
FEWEST = 200
"""With fewer, a baseline that is fitted on one half and scored on the other says nothing."""


@dataclass(frozen=True)
class Shortcut:
    """How far a rule gets that does not do the task, and how far the task says it may get (None: nothing said)."""

    name: str
    score: Score
    ceiling: float | None


@dataclass(frozen=True)
class Found:
    """An artefact, what was measured, and how far that may lie from absence by chance."""

    artefact: Artefact
    value: float
    margin: float

    @property
    def present(self) -> bool:
        """Whether it was seen."""
        return abs(self.value - self.artefact.absent) > self.margin


@dataclass(frozen=True)
class Measured:
    """The findings on the first examples of a condition."""

    examples: int
    shortcuts: tuple[Shortcut, ...]
    artefacts: tuple[Found, ...]


def measure(task: Task, condition: str, data_seed: DataSeed) -> Measured:
    """Shortcuts and artefacts on up to `MOST` examples of a condition; on fewer than `FEWEST`, none."""
    size = task.size(condition)
    count = MOST if size is None else min(size, MOST)
    if count < FEWEST:
        return Measured(count, (), ())
    examples = task.sample(condition, count, 0, data_seed)
    artefacts = tuple(Found(one, *measured(one, examples)) for one in task.artefacts(condition))
    return Measured(count, tuple(_shortcuts(task, condition, examples)), artefacts)


def _shortcuts(task: Task, condition: str, examples: Examples) -> list[Shortcut]:
    ceilings, allowed, found = task.ceilings(condition), 0.0, list[Shortcut]()
    case = Case(task, task.condition(condition), examples, examples)
    fitted = regressions if task.spec.target.kind == "real" else baselines
    for name, reached in fitted(task.spec, case.distinct):
        allowed = max(allowed, ceilings.get(name, 0.0))  # what a weaker one may reach, a stronger one may, too
        found.append(Shortcut(name, reached, allowed or None))
    for one in task.shortcuts(condition):
        answers = np.asarray(one.answer(examples)).reshape(examples.targets.shape)
        found.append(Shortcut(one.name, score(answers == examples.targets), one.ceiling))
    return found

"""Cosines between what the functions of a CTL++ world return, from the weights that a store keeps."""

from __future__ import annotations

from dataclasses import dataclass

from unseen.errors import CheckFailed, UsageError
from unseen.randomness import Floats
from unseen.report.source import Source
from unseen.tasks.ctl.task import Lookup
from unseen.tasks.ctl.world import World

SELECTIONS = ("last", "best")
"""The paper's figures are of the last weights; a store may keep others only."""


@dataclass(frozen=True)
class Cosines:
    """The cosines (symbol, F, F), NaN where a function does not return the symbol; the world; and whose weights."""

    matrices: Floats
    world: World
    selection: str

    @property
    def groups(self) -> list[str]:
        """The group of each function."""
        names = list(self.world.groups)
        return [names[group] for group in self.world.group_of]


def cosines(source: Source, cell: str) -> Cosines | None:
    """Those of a run; None where its weights are not kept, can't be read, or are of another release."""
    for selection in SELECTIONS:
        found = _cosines(source, cell, selection)
        if found is not None:
            return found
    return None


def _cosines(source: Source, cell: str, selection: str) -> Cosines | None:
    # Only here is anything of the engine needed: a trained model is run on examples, never trained.
    from unseen.engine import represent
    from unseen.engine.stack import Stack
    from unseen.engine.threads import one_thread
    from unseen.studies.trained import trained

    try:
        run = trained(source.directory, cell, selection=selection)
    except (UsageError, CheckFailed):
        return None
    stack = Stack([run.module])
    if not isinstance(run.task, Lookup) or represent.why_not(stack, run.task):
        return None
    with one_thread():
        return Cosines(represent.cosines(stack, run.task)[0], run.task.actual_world, selection)

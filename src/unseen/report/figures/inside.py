"""A look inside trained runs, where a store keeps weights. A model is run on examples here, never trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from unseen.errors import CheckFailed, UsageError
from unseen.report.source import Source
from unseen.tasks.base import Task

if TYPE_CHECKING:
    from unseen.engine.stack import Stack

Seen = TypeVar("Seen")


def look_inside(
    source: Source, cell: str, selections: Sequence[str], look: Callable[[Stack, Task], Seen | None]
) -> tuple[Seen, str] | None:
    """What `look` finds in a run, and in which of its weights: the first of `selections` that is kept. None where none
    is, where they can't be read or are of another release, and where there is nothing to see. A model that is not ours
    is not looked into: to look at a store must not run the code that it names."""
    # Only here is anything of the engine needed, and so torch.
    from unseen.engine.stack import Stack
    from unseen.engine.threads import one_thread
    from unseen.studies.trained import trained

    for selection in selections:
        try:
            found = trained(source.directory, cell, selection=selection, only_ours=True)
        except (UsageError, CheckFailed):
            continue
        with one_thread():
            seen = look(Stack([found.module]), found.task)
        return None if seen is None else (seen, selection)
    return None

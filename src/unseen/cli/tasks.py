"""`unseen tasks`: list the tasks."""

from __future__ import annotations

from unseen.cli.output import print_registry


def tasks() -> None:
    """List the tasks, one line each."""
    from unseen.tasks import TASKS

    print_registry(TASKS, "unseen show NAME prints examples; unseen verify NAME checks the task.")

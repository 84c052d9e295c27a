"""`unseen tasks`: what there is to learn."""

from __future__ import annotations

from unseen.cli.listing import listing


def tasks() -> None:
    """List the tasks, one line each."""
    from unseen.tasks import TASKS

    listing(TASKS, "unseen show NAME prints examples; unseen verify NAME proves them.")

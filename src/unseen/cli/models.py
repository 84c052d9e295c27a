"""`unseen models`: what there is to train."""

from __future__ import annotations

from unseen.cli.listing import listing


def models() -> None:
    """List the models, one line each."""
    from unseen.models import MODELS

    listing(
        MODELS,
        "unseen train TASK NAME --out DIR trains one; its options: --set key=value. NAME may be a class of "
        "your own: module:Class.",
    )

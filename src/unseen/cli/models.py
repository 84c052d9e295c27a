"""`unseen models`: list the models."""

from __future__ import annotations

from unseen.cli.output import print_registry


def models() -> None:
    """List the models, one line each."""
    from unseen.models import MODELS

    print_registry(
        MODELS,
        "unseen train TASK NAME --out DIR trains a model; --set key=value changes its options. NAME may also be a "
        "class of your own: module:Class.",
    )

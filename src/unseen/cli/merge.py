"""`unseen merge`: combine result directories of one study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def merge(
    sources: Annotated[list[Path], typer.Argument(help="Directories that `run` or `train` wrote.")],
    into: Annotated[Path, typer.Option(help="The directory to merge into: new, or one of the same study.")],
) -> None:
    """Combine result directories of the same study, skipping duplicates.

    Examples:

    unseen merge runs/monday runs/tuesday --into runs/both
    """
    from unseen.cli.output import count_of
    from unseen.store.merge import merge_paths

    for path, merged in merge_paths(list(dict.fromkeys(sources)), into).items():
        messages = [f"{count_of(merged.taken_over, 'run')} added"]
        if merged.same:
            messages.append(f"{merged.same} already there")
        if merged.different:
            messages.append(f"{merged.different} already there with other numbers (another machine?), left unchanged")
        typer.echo(f"{path}: {', '.join(messages)}")

"""`unseen merge`: combine result directories of one study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unseen.errors import UsageError


def merge(
    sources: Annotated[list[Path], typer.Argument(help="Directories that `run` or `train` wrote.")],
    into: Annotated[Path, typer.Option(help="The directory to merge into: new, or one of the same study.")],
) -> None:
    """Combine result directories of the same study, skipping duplicates.

    Examples:

    unseen merge runs/monday runs/tuesday --into runs/both
    """
    from unseen.store.merge import merge as merge_stores
    from unseen.store.store import Store

    # All sources are opened before the target is created: a wrong one leaves nothing behind.
    for path in sources:
        with Store.read(path) as source:
            if not source.work:
                raise UsageError(f"{path} holds nothing yet")
    with Store.write(into) as target:
        for path in sources:
            with Store.read(path) as source:
                merged = merge_stores(target, source)
            messages = [f"{merged.taken} runs added"]
            if merged.same:
                messages.append(f"{merged.same} were there already")
            if merged.different:
                messages.append(
                    f"{merged.different} were there with other numbers (another machine?) and were left unchanged"
                )
            typer.echo(f"{path}: {', '.join(messages)}")

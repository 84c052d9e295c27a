"""`unseen merge`: the stores of one study, filled in several places, as one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def merge(
    sources: Annotated[list[Path], typer.Argument(help="Directories that `run` or `train` wrote.")],
    into: Annotated[Path, typer.Option(help="The directory that takes them over: new, or one of the same study.")],
) -> None:
    """Put stores of one study together: every run that has ended is taken over once.

    Examples:

    unseen merge runs/monday runs/tuesday --into runs/both
    """
    from unseen.errors import UsageError
    from unseen.studies.merge import merge as merge_stores
    from unseen.studies.store import Store

    # All sources are opened before the target is made: a wrong one leaves nothing behind.
    for path in sources:
        with Store.read(path) as source:
            if not source.work:
                raise UsageError(f"{path} holds nothing yet")
    with Store.write(into) as target:
        for path in sources:
            with Store.read(path) as source:
                done = merge_stores(target, source)
            said = [
                f"{done.taken} runs taken over",
                f"{done.same} were there already" if done.same else "",
                f"{done.different} were there with other numbers (another machine?) and stay as they were"
                if done.different
                else "",
            ]
            typer.echo(f"{path}: {', '.join(part for part in said if part)}")

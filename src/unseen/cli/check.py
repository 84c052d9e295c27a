"""`unseen check`: does a plug-in keep the contract?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from unseen.cli.verify import COLOURS
from unseen.errors import CheckFailed

if TYPE_CHECKING:
    from unseen.kit.check import Row

_WIDTH = 16


def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Packages or names of plug-ins (default: all installed ones); a model may be module:Class.",
            metavar="[PACKAGE|NAME]...",
        ),
    ] = None,
    n: Annotated[int, typer.Option("-n", help="Examples per split of a task.")] = 10_000,
) -> None:
    """Check plug-ins against the contract of tasks, models and studies. Exits with 1 if a check fails.

    Examples:

    unseen check

    unseen check unseen-sums slow-reader mine:Model
    """
    from unseen.kit.check import check as check_plugins

    console = Console(highlight=False, soft_wrap=True)
    printed: list[str] = []

    def print_row(row: Row) -> None:
        package = f" ({row.plugin.package})" if row.plugin.package else ""
        title = f"{row.plugin.kind} {row.plugin.name}{package}"
        if title not in printed:
            printed.append(title)
            console.print(Text(title, style="bold"))
        status = Text(f"  {row.status:<6}", style=COLOURS[row.status])
        console.print(status + Text(f"{row.check:<{_WIDTH}} {row.reason}", style=""))

    rows = check_plugins(*(names or ()), n=n, on_row=print_row)
    if rows.failures:
        raise CheckFailed(f"{len(rows.failures)} of {len(rows)} checks failed")
    console.print(Text(f"{len(rows)} checks passed", style=COLOURS["ok"]))

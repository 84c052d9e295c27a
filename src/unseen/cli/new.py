"""`unseen new`: a plug-in of your own, to begin with."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Kind(StrEnum):
    """What a plug-in brings."""

    task = "task"
    model = "model"
    study = "study"


def new(
    kind: Annotated[Kind, typer.Argument(help="What it brings.")],
    name: Annotated[
        str, typer.Argument(help="What it is called, like slow-reader; a task may name its family, like sums/modulo.")
    ],
    out: Annotated[Path | None, typer.Option(help="A new or empty folder (default: unseen-NAME).")] = None,
) -> None:
    """Write a small plug-in package that works: code to change, tests that pass, an entry point.

    Examples:

    unseen new task sums

    unseen new model slow-reader --out reader
    """
    from unseen.kit.new import first_command
    from unseen.kit.new import new as write

    names, folder = write(kind.value, name, out)
    for line in (
        f"{folder}: the {names.kind} {names.name}, in the package {names.package}",
        "",
        f"cd {folder}",
        "pip install -e '.[test]'",
        "pytest",
        f"unseen check {names.package}",
        first_command(names),
    ):
        typer.echo(line)

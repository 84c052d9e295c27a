"""`unseen new`: write a small plug-in package to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

PluginKind = Literal["task", "model", "study"]


def new(
    kind: Annotated[PluginKind, typer.Argument(help="What the plug-in registers.")],
    name: Annotated[str, typer.Argument(help="Its name, like slow-reader; a task may name its family: sums/modulo.")],
    out: Annotated[Path | None, typer.Option(help="A new or empty folder (default: unseen-NAME).")] = None,
) -> None:
    """Write a small working plug-in package: code to change, tests that pass, an entry point.

    Examples:

    unseen new task sums

    unseen new model slow-reader --out reader
    """
    from unseen.kit.new import first_command
    from unseen.kit.new import new as write_plugin

    names, folder = write_plugin(kind, name, out)
    typer.echo(f"{folder}: the {names.kind} {names.name}, in the package {names.package}\n")
    for command in (
        f"cd {folder}",
        "pip install -e '.[test]'",
        "pytest",
        f"unseen check {names.package}",
        first_command(names),
    ):
        typer.echo(command)

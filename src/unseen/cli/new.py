"""`unseen new`: write a small plug-in package, or a file of claims, to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from unseen.cli.complete import complete_study
from unseen.errors import UsageError

NewKind = Literal["task", "model", "study", "claim"]


def new(
    kind: Annotated[NewKind, typer.Argument(help="What the plug-in registers; or claim, a YAML file of claims.")],
    name: Annotated[str, typer.Argument(help="Its name, like slow-reader; a task may name its family: sums/modulo.")],
    out: Annotated[
        Path | None,
        typer.Option(help="A new or empty folder (default: unseen-NAME); of a claim, a new file (default: NAME.yaml)."),
    ] = None,
    study: Annotated[
        str | None,
        typer.Option(
            help="Of a claim: the study it is about, a name or a file (default: quickstart).",
            autocompletion=complete_study,
        ),
    ] = None,
) -> None:
    """Write a small working plug-in package: code to change, tests that pass, an entry point. Or a file of claims.

    Examples:

    unseen new task sums

    unseen new model slow-reader --out reader

    unseen new claim attention-helps --study my_study.yaml
    """
    if kind == "claim":
        from unseen.kit.new_claim import DEFAULT_STUDY, write_claim

        file = write_claim(name, study or DEFAULT_STUDY, out)
        typer.echo(f"{file}: a claim about {study or DEFAULT_STUDY}, to change\n")
        typer.echo(f"unseen claims DIR --file {file}")
        return
    if study is not None:
        raise UsageError("--study belongs to a claim: unseen new claim NAME --study STUDY")
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

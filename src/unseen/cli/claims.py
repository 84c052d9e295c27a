"""`unseen claims`: what the papers claim, and what the records of a directory say to it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from unseen.cli.output import write


class Format(StrEnum):
    """How to print claims."""

    table = "table"
    markdown = "markdown"
    json = "json"


def claims(
    directories: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[DIRECTORY]...", help="Directories that `run` wrote; none: list the claims."),
    ] = None,
    claim: Annotated[str | None, typer.Option(help="One claim with all its parts and numbers.")] = None,
    format: Annotated[Format, typer.Option(help="For people, for documents, or for programs.")] = Format.table,
    out: Annotated[Path | None, typer.Option(help="A file to write instead of printing.")] = None,
) -> None:
    """List the papers' claims, or judge them by the records of directories; they may be asked while a run is going on.

    Of several directories each claim is judged by the one in which its study was run.

    Examples:

    unseen claims

    unseen claims --claim retrieval/C5

    unseen claims runs/table2

    unseen claims runs/table2 runs/rules --format markdown --out claims.md
    """
    names = [claim] if claim is not None else []
    write(_judged(directories, names, format) if directories else _listed(names, format), out)


def _listed(names: list[str], format: Format) -> str:
    from unseen.studies.claims import ledger

    found = ledger.claims(names)
    if format is Format.json:
        return _json([ledger.claim_data(one) for one in found])
    if format is Format.markdown:
        return ledger.list_markdown(found)
    return "\n".join(ledger.describe(one, parts=bool(names)) for one in found)


def _judged(directories: list[Path], names: list[str], format: Format) -> str:
    from unseen.studies.claims import ledger
    from unseen.studies.claims.judged import judged, own
    from unseen.studies.claims.page import as_page

    ledger.claims(names)  # a wrong name is refused before anything is read
    found = own([judged(directory, names) for directory in dict.fromkeys(directories)])
    if format is Format.json:
        return _json(
            {
                "verdicts": [
                    {**ledger.as_data(verdict), "directory": one.directory, "ran": one.study}
                    for one in found
                    for verdict in one.verdicts
                ],
                "deviations": [
                    {"directory": one.directory, "ran": one.study, "scale": scale, "deviations": list(phrases)}
                    for one in found
                    for scale, phrases in one.deviations.items()
                ],
            }
        )
    if format is Format.markdown and len(found) > 1 and not names:
        return as_page(found)
    show = ledger.as_markdown if format is Format.markdown else ledger.as_table
    shown = [show(one.verdicts, one.deviations, parts=bool(names)) for one in found]
    if len(found) < 2:
        return "".join(shown)
    mark = "## " if format is Format.markdown else "== "
    return "\n\n".join(
        f"{mark}{one.directory} ({one.study or 'a single train'})\n\n{text}"
        for one, text in zip(found, shown, strict=True)
        if one.verdicts
    )


def _json(data: Any) -> str:
    import json

    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)

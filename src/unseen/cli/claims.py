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
    directory: Annotated[Path | None, typer.Argument(help="A directory that `run` wrote; none: list them.")] = None,
    claim: Annotated[str | None, typer.Option(help="One claim with all its parts and numbers.")] = None,
    format: Annotated[Format, typer.Option(help="For people, for documents, or for programs.")] = Format.table,
    out: Annotated[Path | None, typer.Option(help="A file to write instead of printing.")] = None,
) -> None:
    """List the papers' claims, or judge them by the records of a directory; it may be asked while a run is going on.

    Examples:

    unseen claims

    unseen claims --claim retrieval/C5

    unseen claims runs/table2

    unseen claims runs/table2 --format markdown --out claims.md
    """
    names = [claim] if claim is not None else []
    write(_listed(names, format) if directory is None else _judged(directory, names, format), out)


def _listed(names: list[str], format: Format) -> str:
    from unseen.studies.claims import ledger

    found = ledger.claims(names)
    if format is Format.json:
        return _json([ledger.claim_data(one) for one in found])
    if format is Format.markdown:
        return ledger.list_markdown(found)
    return "\n".join(ledger.describe(one, parts=bool(names)) for one in found)


def _judged(directory: Path, names: list[str], format: Format) -> str:
    from unseen.studies.claims import ledger
    from unseen.studies.store import Store
    from unseen.studies.tables import cells_table

    ledger.claims(names)  # a wrong name is refused before anything is read
    with Store.read(directory) as store:
        (records, entries), study = store.tables(), store.work.get("study", "")
        found = ledger.verdicts(records, cells_table(entries), names, store.points)
    deviations = {scale: _deviations(study, scale) for scale in dict.fromkeys(one.scale for one in found) if scale}
    if format is Format.json:
        return _json({"verdicts": [ledger.as_data(one) for one in found], "deviations": deviations})
    if format is Format.markdown:
        return ledger.as_markdown(found, deviations, parts=bool(names))
    return ledger.as_table(found, deviations, parts=bool(names))


def _deviations(study: str, scale: str) -> list[str]:
    """How the study deviates from the paper at a scale, if it is one that this release knows."""
    from unseen.errors import UsageError
    from unseen.studies.study import study as find

    try:
        return find(study).deviations(scale)
    except UsageError:
        return [f"not known: {study} is not in the catalogue"]


def _json(data: Any) -> str:
    import json

    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)

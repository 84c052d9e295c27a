"""`unseen claims`: the claims of the papers, and the verdicts on them by the records of directories."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from unseen.cli.output import write_output


class ClaimsFormat(StrEnum):
    """How to print claims."""

    table = "table"
    markdown = "markdown"
    json = "json"


def claims(
    directories: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[DIRECTORY]...", help="Directories that `run` wrote. Without any, list the claims."),
    ] = None,
    claim: Annotated[str | None, typer.Option(help="Show one claim with all its criteria and numbers.")] = None,
    format: Annotated[
        ClaimsFormat, typer.Option(help="For people, for documents, or for programs.")
    ] = ClaimsFormat.table,
    out: Annotated[Path | None, typer.Option(help="Write to this file instead of printing.")] = None,
) -> None:
    """List the papers' claims, or judge them by the records of directories, also while a run is going on.

    If several directories are given, each claim is judged by the one in which its study was run.

    Examples:

    unseen claims

    unseen claims --claim retrieval/C5

    unseen claims runs/table2

    unseen claims runs/table2 runs/rules --format markdown --out claims.md
    """
    names = [claim] if claim is not None else []
    write_output(_format_verdicts(directories, names, format) if directories else _format_claims(names, format), out)


def _format_claims(names: list[str], format: ClaimsFormat) -> str:
    from unseen.claims import judge, render

    claims = judge.load_claims(names)
    if format is ClaimsFormat.json:
        return _json([render.claim_data(claim) for claim in claims])
    if format is ClaimsFormat.markdown:
        return render.list_claims_markdown(claims)
    return "\n".join(render.describe_claim(claim, criteria=bool(names)) for claim in claims)


def _format_verdicts(directories: list[Path], names: list[str], format: ClaimsFormat) -> str:
    from unseen.claims import judge, page, render

    judge.load_claims(names)  # a wrong name is refused before anything is read
    stores = judge.keep_home_verdicts([judge.judge_store(path, names) for path in dict.fromkeys(directories)])
    if format is ClaimsFormat.json:
        verdicts, deviations = [], []
        for store in stores:
            origin = {"directory": store.directory, "ran": store.study}
            verdicts += [{**render.judged_data(judged), **origin} for judged in store.verdicts]
            for scale, phrases in store.deviations.items():
                deviations.append({**origin, "scale": scale, "deviations": list(phrases)})
        return _json({"verdicts": verdicts, "deviations": deviations})
    if format is ClaimsFormat.markdown and len(stores) > 1 and not names:
        return page.format_page(stores)
    format_store = render.format_markdown if format is ClaimsFormat.markdown else render.format_table
    mark = "## " if format is ClaimsFormat.markdown else "== "
    texts = []
    for store in stores:
        text = format_store(store.verdicts, store.deviations, criteria=bool(names))
        if len(stores) == 1:
            return text
        if store.verdicts:
            texts.append(f"{mark}{store.directory} ({store.study or 'a single train'})\n\n{text}")
    return "\n\n".join(texts)


def _json(data: Any) -> str:
    import json

    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)

"""`unseen claims`: the claims of the papers, and the verdicts on them by the records of directories."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from unseen.cli.output import check_output, write_output
from unseen.errors import UsageError


class ClaimsFormat(StrEnum):
    """How to print claims."""

    table = "table"
    markdown = "markdown"
    json = "json"


def claims(
    directories: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="Directories that `run` wrote, or records files. Without any: the records of the package.",
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="Judge the claims of this YAML file instead (see `unseen new claim`).")
    ] = None,
    claim: Annotated[str | None, typer.Option(help="Show one claim with all its criteria and numbers.")] = None,
    all: Annotated[
        bool, typer.Option("--all", help="List every claim with its source, statement and verdict.")
    ] = False,
    format: Annotated[ClaimsFormat, typer.Option(help="Output format.")] = ClaimsFormat.table,
    out: Annotated[Path | None, typer.Option(help="Write to this file instead of printing.")] = None,
) -> None:
    """Judge the papers' claims by the records that come with the package, or by your own directories and records files.

    Directories can be judged while a run is going on. If several are given, each claim is judged by the one in which
    its study was run.

    Examples:

    unseen claims

    unseen claims --claim retrieval/C5

    unseen claims runs/table2

    unseen claims runs/mine --file my_claims.yaml

    unseen claims runs/table2 runs/rules --format markdown --out claims.md
    """
    names = [claim] if claim is not None else []
    check_output(out, format)
    if file is not None and not directories:
        raise UsageError("--file needs a directory whose records judge its claims: unseen claims DIR --file FILE")
    if all and directories:
        raise UsageError("--all lists the papers' claims; a directory is judged without it")
    if directories:
        text = _format_verdicts(directories, names, format, file)
    elif names or all or format is not ClaimsFormat.table:
        text = _format_shipped(names, format)
    else:
        from unseen.claims.judge_studies import judge_shipped
        from unseen.claims.screen import format_screen
        from unseen.cli.option_text import text_width

        text = format_screen(judge_shipped(), text_width() if out is None else 100)
    write_output(text, out)


def _format_shipped(names: list[str], format: ClaimsFormat) -> str:
    """Claims one by one, or all of them, with the verdicts of the records that come with the package."""
    from unseen.claims import judge, page, render
    from unseen.claims.judge_studies import judge_shipped
    from unseen.cli.option_text import text_width

    claims = judge.load_claims(names)
    selected = {claim.name for claim in claims}
    stores = judge_shipped(names)
    if format is ClaimsFormat.markdown:
        return page.format_page(stores) if stores and not names else render.list_claims_markdown(claims)
    pairs = [pair for pair in page.pair_claims(stores) if pair[1].claim.name in selected]
    if format is ClaimsFormat.json:
        return _json([{**render.judged_data(judged), "ran": store.study} for store, judged in pairs])
    texts = []
    for claim in claims:
        run = [judged for _, judged in pairs if judged.claim.name == claim.name and judged.verdict != "not run"]
        if run and names:  # the verdict repeats statement and criteria, with the numbers
            texts.append(render.format_table(run, {}, criteria=True, columns=min(render.WIDTH, text_width())))
            continue
        texts.append(render.describe_claim(claim, criteria=bool(names)))
        if names:
            texts.append(f"  would run it: {render.describe_command(claim)}")
        elif run:
            texts += [f"  {judged.verdict} ({render.describe_kind(judged)}, {judged.scale})" for judged in run]
    return "\n".join(texts)


def _format_verdicts(directories: list[Path], names: list[str], format: ClaimsFormat, file: Path | None) -> str:
    from unseen.claims import page, render
    from unseen.claims.judge_studies import judge_store, keep_home_verdicts
    from unseen.cli.option_text import text_width
    from unseen.studies.study import is_catalogued

    stores = keep_home_verdicts([judge_store(path, names, file) for path in dict.fromkeys(directories)])
    if format is ClaimsFormat.json:
        verdicts = []
        deviations = []
        for store in stores:
            origin = {"directory": store.directory, "ran": store.study}
            verdicts += [{**render.judged_data(judged), **origin} for judged in store.verdicts]
            for scale, phrases in store.deviations.items():
                deviations.append({**origin, "scale": scale, "deviations": list(phrases)})
        return _json({"verdicts": verdicts, "deviations": deviations})
    if format is ClaimsFormat.markdown and len(stores) > 1 and not names:
        return page.format_page(stores)
    format_table = partial(render.format_table, columns=min(render.WIDTH, text_width()))
    format_store = render.format_markdown if format is ClaimsFormat.markdown else format_table
    mark = "## " if format is ClaimsFormat.markdown else "== "
    texts = []
    for store in stores:
        nothing_judged = all(judged.verdict == "not run" for judged in store.verdicts)
        if format is ClaimsFormat.table and not names and nothing_judged and not is_catalogued(store.study):
            texts.append(
                f"{store.directory}: no claim of a paper could be judged from these runs "
                f"({len(store.verdicts)} about the same tasks were tried; --format json gives the reasons).\n"
                "To judge one of yours: unseen new claim NAME --study FILE, then unseen claims DIR --file NAME.yaml"
            )
            continue
        text = format_store(store.verdicts, store.deviations, criteria=bool(names))
        if len(stores) == 1:
            return text
        if store.verdicts:
            texts.append(f"{mark}{store.directory} ({store.study or 'a single train'})\n\n{text}")
    return "\n\n".join(texts)


def _json(data: Any) -> str:
    import json

    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)

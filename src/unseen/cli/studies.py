"""`unseen studies`: list the studies, or describe one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from unseen.cli.complete import complete_study

if TYPE_CHECKING:
    from unseen.studies.grid import Level
    from unseen.studies.study import Study


def studies(
    name: Annotated[
        str | None,
        typer.Argument(help="A study to describe: a name, or a YAML or Python file.", autocompletion=complete_study),
    ] = None,
) -> None:
    """List the studies with their scales, one line each; or show the question, axes and claims of one study.

    Examples:

    unseen studies

    unseen studies retrieval-table2

    unseen studies my_study.yaml
    """
    from unseen.cli.option_text import wrap, wrap_entry
    from unseen.studies.study import study

    if name is not None:
        typer.echo("\n".join(_describe_study(study(name))))
        return
    from unseen.studies.catalog import STUDIES

    entries = sorted(STUDIES, key=lambda entry: entry.name)
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        scales = []
        for scale, minutes in study(entry.name).scales.items():
            scales.append(scale if minutes is None else f"{scale} {minutes:g} min")
        typer.echo("\n".join(wrap_entry(entry.name, f"{entry.summary} · {', '.join(scales)}", width, "")))
    hint = (
        "unseen studies NAME describes a study; unseen plan NAME estimates its cost; unseen run NAME --out DIR runs it. "
        "Minutes are for two cores."
    )
    typer.echo("\n" + "\n".join(wrap(hint)), err=True)


def _describe_study(study: Study) -> list[str]:
    """The question, size, axes, claims and deviations of a study."""
    from unseen.claims.user_claims import check_study_claims, list_axes
    from unseen.cli.option_text import wrap
    from unseen.cli.output import count_of
    from unseen.studies.deviations import levels_in_use
    from unseen.studies.study import is_catalogued

    entries = {scale: study.entries(scale) for scale in study.scales}
    check_study_claims(study, list_axes(entry.levels for entry in chain(*entries.values())))
    lines = [f"{study.name}@{study.version}"]
    if study.question:
        lines += wrap(study.question)
    lines += ["", "scales"]
    for scale, scale_entries in entries.items():
        seeds = len({entry.trial.seed for entry in scale_entries})
        minutes = study.scales[scale]
        budget = "" if minutes is None else f", within {minutes:g} min on two cores"
        lines += wrap(f"{scale:<8}{len(scale_entries)} trials, {count_of(seeds, 'seed')}{budget}", "  ", " " * 8)
    lines += ["", "axes"]
    levels = {scale: levels_in_use(scale_entries) for scale, scale_entries in entries.items()}
    lines += _describe_axes(levels)
    if study.claims:
        lines += ["", *wrap(f"claims: {', '.join(study.claims)}", hanging="  ")]
    lines += ["", "deviations from the paper" if is_catalogued(study.name) else "notes and differences"]
    if study.notes:
        lines += wrap(f"every scale: {'; '.join(study.notes)}", "  ", "  ")
    nothing = "nothing else" if study.notes else "none"
    for scale in study.scales:
        deviations = [deviation for deviation in study.deviations(scale) if deviation not in study.notes]
        lines += wrap(f"{scale}: {'; '.join(deviations) or nothing}", "  ", "  ")
    return lines


def _describe_axes(levels: Mapping[str, Mapping[str, Sequence[Level]]]) -> list[str]:
    """The levels on every axis by scale; scales with the same levels, in any order, share a line."""
    from unseen.cli.option_text import wrap

    lines = []
    for axis in dict.fromkeys(chain.from_iterable(levels.values())):
        groups: dict[frozenset[Level], list[str]] = {}
        for scale, used in levels.items():
            groups.setdefault(frozenset(used.get(axis, ())), []).append(scale)
        for scales in groups.values():
            text = ", ".join(map(str, levels[scales[0]].get(axis, ()))) or "none"
            suffix = "" if len(scales) == len(levels) else f"   ({', '.join(scales)})"
            lines += wrap(f"{axis}: {text}{suffix}", "  ", "  ")
    return lines

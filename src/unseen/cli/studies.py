"""`unseen studies`: what there is to run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from unseen.studies.study import Study


def studies(
    name: Annotated[str | None, typer.Argument(help="A study to look into: a name, or a YAML or Python file.")] = None,
) -> None:
    """List the studies with their scales, one line each; or show what one of them asks, varies and claims.

    Examples:

    unseen studies

    unseen studies retrieval-table2

    unseen studies my_study.yaml
    """
    from unseen.studies.study import study

    if name is not None:
        typer.echo("\n".join(_page(study(name))))
        return
    from unseen.studies.catalog import STUDIES

    found = {entry: study(entry.name) for entry in sorted(STUDIES, key=lambda e: e.name)}
    width = max(len(entry.name) for entry in found)
    for entry, one in found.items():
        typer.echo(f"{entry.name:<{width}}  {entry.summary} · {_scales(one)}")
    typer.echo(
        "\nunseen studies NAME shows one; unseen plan NAME prices it; unseen run NAME --out DIR runs it. "
        "Minutes are on two cores.",
        err=True,
    )


def _scales(one: Study) -> str:
    """`smoke 1 min, mini 45 min, full`."""
    return ", ".join(scale if minutes is None else f"{scale} {minutes:g} min" for scale, minutes in one.scales.items())


def _page(one: Study) -> list[str]:
    """Question, size, axes, claims and deviations of a study."""
    from unseen.studies.deviations import levels_in_use

    entries = {scale: one.entries(scale) for scale in one.scales}
    lines = [f"{one.name}@{one.version}", *([one.question] if one.question else []), "", "scales"]
    for scale, found in entries.items():
        seeds = len({entry.cell.seed for entry in found})
        minutes = one.scales[scale]
        budget = "" if minutes is None else f", within {minutes:g} min on two cores"
        lines.append(f"  {scale:<8}{len(found)} cells, {seeds} seed{'s' * (seeds != 1)}{budget}")
    lines += ["", "axes"]
    levels = {scale: levels_in_use(found) for scale, found in entries.items()}
    for axis in dict.fromkeys(axis for used in levels.values() for axis in used):
        by_scale = {scale: ", ".join(map(str, used.get(axis, []))) for scale, used in levels.items()}
        for text in dict.fromkeys(by_scale.values()):
            where = [scale for scale, said in by_scale.items() if said == text]
            shown = "" if len(where) == len(by_scale) else f"   ({', '.join(where)})"
            lines.append(f"  {axis}: {text or 'none'}{shown}")
    if one.claims:
        lines += ["", f"claims: {', '.join(one.claims)}"]
    deviations = {"every scale": list(one.notes)}
    deviations |= {scale: [said for said in one.deviations(scale) if said not in one.notes] for scale in one.scales}
    return [
        *lines,
        "",
        "deviations",
        *(
            f"  {where}: {'; '.join(said) or 'nothing else'}"
            for where, said in deviations.items()
            if said or where in one.scales
        ),
    ]

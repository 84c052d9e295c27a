"""Votes of the modularity paper (figures 3, 8 and their like): which family is best in how many experiments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from unseen.metrics.votes import CONDITIONS, EXPERIMENT, vote_table
from unseen.report import theme
from unseen.report.figure import Drawing
from unseen.report.figures.rules_runs import FAMILIES, read
from unseen.report.source import Source
from unseen.studies.claims.rules import DUELS, EXPERIMENTS, SHARES

WORDS = {"id": "In distribution", "ood": "Out of distribution"}
CONTESTS = {"all": "All families", "joint against none": "Modular against Monolithic"}
PRINTED: Mapping[str, Mapping[str, float]] = {"all": SHARES, "joint against none": DUELS}
"""In distribution, over the whole study."""
COUNTED, FLIPPED, PAPER = "counted", "flipped", "printed"
_LEAST = 0.06
"""The share from which there is room for its number."""


def votes(
    source: Source, conditions: tuple[str, ...], architecture: str = "", setting: str = "", printed: bool = False
) -> Drawing | None:
    """Stacked bars of shares for each contest and condition, of all runs or of a part of them.

    Beside them what they would be if RNN classification were counted the wrong way round, where it is in them, and
    what the paper prints.
    """
    study = read(source)
    if study is not None and architecture:
        study = study.parts.get((architecture, setting))
    if study is None:
        return None
    tested = {CONDITIONS[name][one] for name in conditions for one in study.runs["architecture"].unique()}
    used = study.scores[study.scores["condition"].isin(tested)]
    table = vote_table(
        used, experiment=(*EXPERIMENT, *study.pooled), conditions={name: CONDITIONS[name] for name in conditions}
    )
    if table.empty or not table["experiments"].any():
        return None
    frame = _bars(table, printed, bool((used["architecture"].eq("rnn") & used["setting"].eq("classification")).any()))
    return Drawing(
        _chart(frame),
        frame.drop(columns=["start", "end", "middle", "text"]),
        (*_counts(table), *study.notes(used, sorted(tested), mark="")),
    )


def _bars(table: pd.DataFrame, printed: bool, recurrent: bool) -> pd.DataFrame:
    """A row per segment: where it starts and ends, and the bar it is in."""
    parts = []
    for (condition, contest), own in table.groupby(["condition", "contest"], sort=False):
        name = WORDS[str(condition)]
        kinds = [(COUNTED, name, own["share"], own["votes"])]
        if recurrent:
            kinds.append((FLIPPED, f"{name}, RNN class. flipped", own["flipped_share"], own["flipped"]))
        if printed and condition == "id":
            share = own["gating"].map(PRINTED[str(contest)])
            kinds.append((PAPER, "Printed in the paper", share, share * EXPERIMENTS))
        for kind, bar, share, number in kinds:
            parts.append(own.assign(kind=kind, bar=bar, share=share, votes=number))
    frame = pd.concat(parts, ignore_index=True)
    of_runs = frame["kind"] != PAPER
    frame = frame.assign(
        family=frame["gating"].map(theme.title_of),
        column=frame["contest"].map(CONTESTS),
        experiments=frame["experiments"].where(of_runs, EXPERIMENTS),
        runs=frame["runs"].where(of_runs, 0),
        end=frame.groupby(["contest", "bar"], sort=False)["share"].cumsum(),
    )
    frame = frame.assign(
        start=frame["end"] - frame["share"],
        middle=frame["end"] - frame["share"] / 2,
        text=[f"{100 * share:.1f}" if share >= _LEAST else "" for share in frame["share"]],
    )
    return frame[
        [
            "column",
            "bar",
            "kind",
            "condition",
            "contest",
            "family",
            "share",
            "votes",
            "significant",
            "ties",
            "undecided",
            "experiments",
            "incomplete",
            "runs",
            "still_learning",
            "start",
            "end",
            "middle",
            "text",
        ]
    ]


def _chart(frame: pd.DataFrame) -> Any:
    alt = theme.load_altair()
    families = [family for family in FAMILIES if (frame["family"] == family).any()]
    bars = list(dict.fromkeys(frame.sort_values("condition", kind="stable")["bar"]))
    y = alt.Y("bar:N", sort=bars, title=None, axis=alt.Axis(ticks=False, domain=False, labelPadding=8))
    x = alt.X(
        "start:Q",
        title="share of votes",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1]),
    )
    colour = alt.Color(
        "family:N",
        scale=theme.colour_scale(families),
        sort=families,
        title=None,
        legend=alt.Legend(orient="top", symbolType="square"),
    )
    hints = [
        alt.Tooltip("family:N", title="model"),
        alt.Tooltip("share:Q", title="share", format=".1%"),
        alt.Tooltip("votes:Q", title="votes", format=".5~g"),
        alt.Tooltip("significant:Q", title="beyond luck"),
        alt.Tooltip("experiments:Q", title="experiments"),
        alt.Tooltip("runs:Q", title="runs"),
        alt.Tooltip("still_learning:Q", title="still learning"),
    ]
    base = alt.Chart()
    segments = base.mark_bar(height=24).encode(x=x, x2="end:Q", y=y, color=colour, tooltip=hints)
    # On the coloured bar, so the ink of the paper does not apply.
    numbers = base.mark_text(fontWeight=600, fontSize=11.5).encode(
        x=alt.X("middle:Q", title="share of votes"),
        y=y,
        text="text:N",
        color={
            "condition": {"test": f"datum.family === '{theme.title_of('none')}'", "value": theme.GROUND["dark"]},
            "value": theme.GROUND["light"],
        },
    )
    return (
        alt.layer(segments, numbers, data=frame)
        .properties(width=330, height=alt.Step(34))
        .facet(column=alt.Column("column:N", sort=list(CONTESTS.values()), title=None), spacing=24)
    )


def _counts(table: pd.DataFrame) -> list[str]:
    """How many experiments voted, and how surely."""
    said = []
    for condition, own in table[table["contest"] == "all"].groupby("condition", sort=False):
        first = own.iloc[0]
        decided = int(first["experiments"]) - int(first["undecided"])
        ties = f"{int(first['ties'])} ties, shared equally; " if first["ties"] else ""
        said.append(
            f"{WORDS[str(condition)]}: {int(first['experiments'])} experiments voted, {int(first['runs'])} "
            f"runs of each family; {ties}{decided} were decided beyond the luck of seeds."
            + (f" {int(first['incomplete'])} lack a family." if first["incomplete"] else "")
        )
    return said

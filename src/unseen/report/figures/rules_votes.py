"""Votes of the modularity paper (figures 3, 8 and their like): which family is best in how many experiments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from unseen.analysis.votes import EXPERIMENT, SPLITS, vote_table
from unseen.claims.papers.rules import DUELS, EXPERIMENTS, SHARES
from unseen.report.charts import contrasting_ink, count_tooltips
from unseen.report.data import Source
from unseen.report.figure import Drawing
from unseen.report.figures.rules_runs import family_channels, read_runs
from unseen.report.theme import load_altair, title_of

DISTRIBUTIONS = {"id": "In distribution", "ood": "Out of distribution"}
CONTESTS = {"all": "All families", "joint against none": "Modular against Monolithic"}
PRINTED_SHARES: Mapping[str, Mapping[str, float]] = {"all": SHARES, "joint against none": DUELS}
"""In distribution, over the whole study."""
COUNTED, FLIPPED, PRINTED = "counted", "flipped", "printed"
_NUMBERED_SHARE = 0.06
"""The share from which on a segment has room for its number."""
COLUMNS = [
    *["column", "bar", "kind", "split", "contest", "family", "share", "votes", "significant", "ties", "undecided"],
    *["experiments", "incomplete", "runs", "not_converged", "start", "end", "middle", "text"],
]


def draw_votes(
    source: Source, splits: tuple[str, ...], architecture: str = "", setting: str = "", printed: bool = False
) -> Drawing | None:
    """Stacked bars of shares for each contest and split, of all runs or of one architecture and setting.

    Beside them the shares with the votes of RNN classification flipped, if there are any, and the printed ones.
    """
    study = read_runs(source, architecture, setting)
    if study is None:
        return None
    tested: set[str] = set()
    for split in splits:
        tested.update(SPLITS[split][model] for model in study.runs["architecture"].unique())
    scores = study.scores[study.scores["split"].isin(tested)]
    votes = vote_table(scores, experiment=(*EXPERIMENT, *study.pooled), splits={name: SPLITS[name] for name in splits})
    if votes.empty or not votes["experiments"].any():
        return None
    recurrent = bool((scores["architecture"].eq("rnn") & scores["setting"].eq("classification")).any())
    segments = _segments(votes, printed, recurrent)
    notes = (*_count_notes(votes), *study.notes(scores, sorted(tested), mark=""))
    return Drawing(_votes_chart(segments), segments.drop(columns=["start", "end", "middle", "text"]), notes)


def _segments(votes: pd.DataFrame, printed: bool, recurrent: bool) -> pd.DataFrame:
    """A row per segment of a bar: its bar, and where it starts and ends."""
    tables = []
    for (split, contest), group in votes.groupby(["split", "contest"], sort=False):
        name = DISTRIBUTIONS[str(split)]
        tables.append(group.assign(kind=COUNTED, bar=name))
        if recurrent:
            flipped = group.assign(kind=FLIPPED, bar=f"{name}, RNN class. flipped")
            tables.append(flipped.assign(share=group["flipped_share"], votes=group["flipped"]))
        if printed and split == "id":
            share = group["gating"].map(PRINTED_SHARES[str(contest)])
            of_paper = group.assign(kind=PRINTED, bar="Printed in the paper", share=share, votes=share * EXPERIMENTS)
            tables.append(of_paper.assign(experiments=EXPERIMENTS, runs=0))
    table = pd.concat(tables, ignore_index=True)
    table = table.assign(
        family=table["gating"].map(title_of),
        column=table["contest"].map(CONTESTS),
        # Segments of a bar lie one after the other.
        end=table.groupby(["contest", "bar"], sort=False)["share"].cumsum(),
    )
    table = table.assign(
        start=table["end"] - table["share"],
        middle=table["end"] - table["share"] / 2,
        text=[f"{100 * share:.1f}" if share >= _NUMBERED_SHARE else "" for share in table["share"]],
    )
    return table[COLUMNS]


def _votes_chart(segments: pd.DataFrame) -> Any:
    alt = load_altair()
    bars = list(dict.fromkeys(segments.sort_values("split", kind="stable")["bar"]))
    y = alt.Y("bar:N", sort=bars, title=None, axis=alt.Axis(ticks=False, domain=False, labelPadding=8))
    x_axis = alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1])
    x = alt.X("start:Q", title="share of votes", scale=alt.Scale(domain=[0, 1]), axis=x_axis)
    colour, _ = family_channels(segments, symbolType="square")
    tooltip = [
        alt.Tooltip("family:N", title="model"),
        alt.Tooltip("share:Q", format=".1%"),
        alt.Tooltip("votes:Q", format=".5~g"),
        alt.Tooltip("significant:Q", title="significant"),
        alt.Tooltip("experiments:Q"),
        *count_tooltips(),
    ]
    base = alt.Chart().encode(y=y)
    bar_segments = base.mark_bar(height=24).encode(x=x, x2="end:Q", color=colour, tooltip=tooltip)
    # The purple of the monolithic family is the brightest colour, so its numbers are dark.
    ink = contrasting_ink(f"datum.family === '{title_of('none')}'")
    numbers = base.mark_text(fontWeight=600, fontSize=11.5).encode(
        x=alt.X("middle:Q", title="share of votes"), text="text:N", color=ink
    )
    layered = alt.layer(bar_segments, numbers, data=segments).properties(width=330, height=alt.Step(34))
    return layered.facet(column=alt.Column("column:N", sort=list(CONTESTS.values()), title=None), spacing=24)


def _count_notes(votes: pd.DataFrame) -> list[str]:
    """How many experiments voted, and how many votes exceed the variation between seeds."""
    notes = []
    for split, group in votes[votes["contest"] == "all"].groupby("split", sort=False):
        first = group.iloc[0]
        experiments = int(first["experiments"])
        note = (
            f"{DISTRIBUTIONS[str(split)]}: {experiments} experiments voted, {int(first['runs'])} runs of each family; "
        )
        if first["ties"]:
            note += f"{int(first['ties'])} ties, shared equally; "
        note += f"{experiments - int(first['undecided'])} votes exceed the variation between seeds."
        if first["incomplete"]:
            note += f" {int(first['incomplete'])} lack a family."
        notes.append(note)
    return notes

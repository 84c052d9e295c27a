"""Models × abilities as a heat map, with the numbers in it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from unseen.report import theme
from unseen.report.exam_scores import REFERENCE, Exam, normalised, read
from unseen.report.figure import Drawing
from unseen.report.means import means
from unseen.report.source import Source
from unseen.studies.exam import ABILITIES, INSIDE, METRICS

UNLEARNED, NO_TRACE, MISSING = "not learned", "no trace", "not there"


def draw(source: Source) -> Drawing | None:
    """A row per model, those of the exam first; a column per ability."""
    found = read(source)
    if found is None:
        return None
    frame = _table(found)
    return Drawing(_chart(frame), frame, found.notes)


def _table(found: Exam) -> pd.DataFrame:
    """A line per model and ability: `score` (`low`, `high`), of how many `runs`, how many have `learned` and were
    `still_learning`, and what stands there as `text`."""
    both = pd.concat(
        [found.scores, found.reference.assign(model=found.reference["model"] + f" ({REFERENCE})")], ignore_index=True
    )
    rows = normalised(both, found.bounds)
    # A seed's score of an ability is the mean over its tests, of those that it has learned.
    counted = rows[(rows["ability"] == INSIDE) | (rows["learned"] == 1)]
    seeds = (
        counted.groupby(["model", "ability", "seed"], sort=False)
        .agg(value=("value", "mean"), still_learning=("still_learning", "max"))
        .reset_index()
    )
    mean = means(seeds, ["model", "ability"]).rename(columns={"mean": "score", "runs": "seeds"})
    amount = (
        rows.groupby(["model", "ability"], sort=False)
        .agg(runs=("seed", "size"), learned=("learned", "sum"))
        .reset_index()
    )
    order = list(dict.fromkeys(both["model"]))
    grid = pd.MultiIndex.from_product(
        [
            order,
            [
                one
                for one in ABILITIES
                if one in set(both["ability"]) or any(one == ability for _, ability in found.untraced)
            ],
        ],
        names=["model", "ability"],
    ).to_frame(index=False)
    frame = grid.merge(amount, how="left").merge(mean, how="left")
    frame[["runs", "learned", "still_learning"]] = frame[["runs", "learned", "still_learning"]].fillna(0).astype(int)
    return frame.assign(
        text=[_text(found, row) for row in frame.to_dict("records")],
        doubt=(frame["learned"] < frame["runs"]).astype(int),
    )


def _text(found: Exam, row: dict[Hashable, Any]) -> str:
    if pd.notna(row["score"]):
        return f"{row['score']:.2f}" + (" ○" if row["still_learning"] else "")
    if row["runs"]:
        return UNLEARNED
    reference = str(row["model"]).endswith(f"({REFERENCE})") and row["ability"] in METRICS
    return NO_TRACE if reference or (row["model"], row["ability"]) in found.untraced else MISSING


def _chart(frame: pd.DataFrame) -> Any:
    alt = theme.load_altair()
    plain = alt.Axis(labelAngle=-30, ticks=False, domain=False, orient="top")
    x = alt.X("ability:N", sort=[one for one in ABILITIES if one in set(frame["ability"])], title=None, axis=plain)
    y = alt.Y(
        "model:N",
        sort=list(dict.fromkeys(frame["model"])),
        title=None,
        axis=alt.Axis(ticks=False, domain=False, labelPadding=8),
    )
    known = frame[frame["score"].notna()]
    ink = {"condition": {"test": "datum.score > 0.6", "value": theme.GROUND["dark"]}, "value": theme.GROUND["light"]}
    tip = [
        alt.Tooltip("model:N"),
        alt.Tooltip("ability:N"),
        alt.Tooltip("score:Q", format=".3f"),
        alt.Tooltip("low:Q", title="95 % from", format=".3f"),
        alt.Tooltip("high:Q", title="to", format=".3f"),
        alt.Tooltip("runs:Q"),
        alt.Tooltip("learned:Q"),
        alt.Tooltip("still_learning:Q", title="still learning"),
    ]
    heat = (
        alt.Chart(known)
        .mark_rect()
        .encode(
            x=x,
            y=y,
            tooltip=tip,
            color=alt.Color(
                "score:Q",
                scale=alt.Scale(domain=[0, 1], scheme="viridis", clamp=True),
                legend=alt.Legend(title="chance to oracle", format=".1f", gradientLength=150),
            ),
        )
    )
    layers = [heat, alt.Chart(known).mark_text(fontWeight=600).encode(x=x, y=y, text="text:N", color=ink)]
    doubtful, empty = frame[frame["doubt"] == 1], frame[frame["score"].isna()]
    if len(doubtful):
        layers.append(
            alt.Chart(doubtful)
            .mark_rect(
                fill=None,
                stroke=theme.GREY,
                strokeDash=[3, 3],
                strokeWidth=1.5,
            )
            .encode(x=x, y=y, tooltip=tip)
        )
    if len(empty):
        layers.append(alt.Chart(empty).mark_text(fontSize=10).encode(x=x, y=y, text="text:N"))
    return alt.layer(*layers).properties(width=alt.Step(86), height=alt.Step(34))

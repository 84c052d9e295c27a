"""Abilities as rows: runs, means and intervals of the models of an exam, references, and what they lie between."""

from __future__ import annotations

from typing import Any

import pandas as pd

from unseen.report import theme
from unseen.report.exam_scores import CHANCE, REFERENCE, Exam, read
from unseen.report.figure import Drawing
from unseen.report.figures.rows import LEARNING, UNLEARNED, run_dots, spread
from unseen.report.means import means
from unseen.report.panels import ENDED
from unseen.report.references import ORACLE
from unseen.report.source import Source
from unseen.studies.exam import INSIDE, readings

WIDTH, LINE, LEAST = 520, 12, 30
NAMES = 4
"""Lines in which the names of references stand, so that neighbours do not touch."""
BOUNDS = {CHANCE: "cross", "ceiling": "triangle-left", ORACLE: "square"}
TITLES = {CHANCE: "chance", "ceiling": "best shortcut", ORACLE: "oracle"}
_SHOWN = ".1%"


def draw(source: Source) -> Drawing | None:
    """A row per ability and test."""
    found = read(source)
    if found is None:
        return None
    data = _table(found)
    rows = [name for one in readings(source.scale) if (name := label(one.ability, one.test)) in set(data["row"])]
    series = list(dict.fromkeys(found.scores["model"]))
    return Drawing(_chart(data, rows, series), data.drop(columns="row"), found.notes)


def label(ability: str, test: str) -> str:
    """The name of a row."""
    return f"{ability} · {test}"


def _table(found: Exam) -> pd.DataFrame:
    """A line per run, per mean of the exam's models and of the references, and per bound: `what` says which."""
    runs = found.scores.assign(what="run", state=_states(found.scores))
    by = ["ability", "test", "model"]
    counted = found.counted
    mean = [
        means(counted[counted["group"] == group], by).rename(columns={"mean": "value"}).assign(what=what)
        for group, what in (("exam", "mean"), (REFERENCE, REFERENCE))
    ]
    bounds = found.bounds.melt(["ability", "test", "shortcut"], list(BOUNDS), "what", "value").dropna(subset="value")
    bounds = bounds.assign(shortcut=bounds["shortcut"].where(bounds["what"] == "ceiling", ""))
    columns = [
        "what",
        "ability",
        "test",
        "model",
        "seed",
        "value",
        "low",
        "high",
        "runs",
        "still_learning",
        "state",
        "shortcut",
    ]
    whole = pd.concat([part for part in (runs, *mean, bounds) if len(part)], ignore_index=True).reindex(columns=columns)
    return whole.assign(row=[label(*both) for both in zip(whole["ability"], whole["test"], strict=True)])


def _states(scores: pd.DataFrame) -> list[str]:
    return [
        UNLEARNED if not learned and ability != INSIDE else LEARNING if still else ENDED
        for learned, ability, still in zip(scores["learned"], scores["ability"], scores["still_learning"], strict=True)
    ]


def _chart(data: pd.DataFrame, rows: list[str], series: list[str]) -> Any:
    alt = theme.load_altair()
    refs = data[data["what"] == REFERENCE]
    below = [f"reference {line}" for line in range(NAMES if len(refs) else 0)]
    # A line for each model, one for the bounds, and those of the references.
    within = [*series, "bounds", *below]
    height = max(LEAST, LINE * len(within))
    domain = [min(0.0, float(data["value"].min())), 1.0]
    x_scale = alt.Scale(domain=domain, nice=False)
    y = alt.Y(
        "row:N",
        sort=rows,
        title=None,
        scale=alt.Scale(domain=rows),
        axis=alt.Axis(ticks=False, domain=False, grid=True, labelPadding=8, bandPosition=0),
    )
    offset = alt.YOffset("offset:Q", scale=alt.Scale(domain=[-0.5, 0.5]))
    colour = alt.Color(
        "series:N",
        scale=theme.colour_scale(series),
        legend=alt.Legend(
            title=None, orient="top", direction="horizontal", columns=4, symbolType="circle", symbolOpacity=1
        ),
    )

    def x(column: str) -> Any:
        return alt.X(
            f"{column}:Q", scale=x_scale, axis=alt.Axis(format=".0%", title="score", domain=False, tickCount=5)
        )

    def placed(frame: pd.DataFrame, lines: Any) -> pd.DataFrame:
        kept = frame.assign(series=lines)
        return spread(kept if "seed" in kept and kept["seed"].notna().all() else kept.assign(seed=0), within)

    runs = data[data["what"] == "run"]
    mean = placed(data[data["what"] == "mean"].drop(columns="seed"), data["model"])
    bounds = placed(data[data["what"].isin(list(BOUNDS))].drop(columns="seed"), "bounds")
    # Bounds of a row share its line; each stands where it is, not beside the others.
    bounds = bounds.assign(offset=float(bounds["offset"].median()), bound=bounds["what"].map(TITLES))
    tip = [
        alt.Tooltip("row:N", title=" "),
        alt.Tooltip("model:N"),
        alt.Tooltip("value:Q", title="mean", format=_SHOWN),
        alt.Tooltip("low:Q", format=_SHOWN),
        alt.Tooltip("high:Q", format=_SHOWN),
        alt.Tooltip("runs:Q"),
        alt.Tooltip("still_learning:Q", title="still learning"),
    ]
    layers = [
        alt.Chart(bounds)
        .mark_point(size=55, strokeWidth=1.3, color=theme.GREY)
        .encode(
            x=x("value"),
            y=y,
            yOffset=offset,
            shape=alt.Shape(
                "bound:N",
                scale=alt.Scale(domain=list(TITLES.values()), range=list(BOUNDS.values())),
                legend=alt.Legend(title=None, orient="top", direction="horizontal"),
            ),
            tooltip=[
                alt.Tooltip("bound:N", title=" "),
                alt.Tooltip("shortcut:N"),
                alt.Tooltip("value:Q", format=_SHOWN),
            ],
        ),
        run_dots(alt, placed(runs, runs["model"]), series, _SHOWN).encode(
            x=x("value"), y=y, yOffset=offset, color=colour
        ),
        alt.Chart(mean[mean["low"].notna()])
        .mark_rule(strokeWidth=2.5, opacity=0.55)
        .encode(x=x("low"), x2=alt.X2("high:Q"), y=y, yOffset=offset, color=colour, tooltip=tip),
        alt.Chart(mean)
        .mark_tick(thickness=3, size=12, orient="vertical")
        .encode(x=x("value"), y=y, yOffset=offset, color=colour, tooltip=tip),
    ]
    if len(refs):
        rank = refs.groupby("row")["value"].rank(method="first").astype(int) % NAMES
        grey = placed(refs.drop(columns="seed"), [below[place] for place in rank])
        grey = grey.assign(offset=grey.groupby("series")["offset"].transform("median"))
        base = alt.Chart(grey).encode(x=x("value"), y=y, yOffset=offset, tooltip=tip)
        layers += [
            base.mark_tick(thickness=2, size=9, orient="vertical", color=theme.GREY),
            base.mark_text(align="left", dx=3, fontSize=9, color=theme.GREY).encode(text="model:N"),
        ]
    return alt.layer(*layers).resolve_scale(shape="independent").properties(width=WIDTH, height=height * len(rows))

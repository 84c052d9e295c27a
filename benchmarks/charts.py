"""What the figures of a run look like: what stacking gains, what is left to the limits, how time grows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from benchmarks.rows import Row
from unseen.report.theme import colour_scale, load_altair

FAMILIES = ("retrieval", "rules", "ctl", "gcog", "generic")
_WIDTH, _HEIGHT = 300, 190
_OF_STACK = re.compile(r"(speed-up|product share|roofline share) S=(\d+)")
_POINT = re.compile(r"(.+)=(\d+)")
Figures = Mapping[str, Sequence[Row]]


@dataclass(frozen=True)
class Drawn:
    """A chart without ink of its own, and the table behind it."""

    title: str
    caption: str
    chart: Any
    data: pd.DataFrame


def charts(figures: Figures) -> dict[str, Drawn]:
    """All charts that there are figures for, by the place they have in the page."""
    made: dict[str, Callable[[Figures], Drawn | None]] = {"speed-up": speed_up, "shares": shares, "growth": growth}
    found = {name: make(figures) for name, make in made.items()}
    return {name: drawn for name, drawn in found.items() if drawn is not None}


def by_stack(rows: Sequence[Row]) -> pd.DataFrame:
    """One row per case and size of a stack: family, model, case, S, and what is said of it."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for row in rows:
        if match := _OF_STACK.fullmatch(row.figure):
            members, model = int(match[2]), row.case.partition(" ")[0]
            family = model.partition("-")[0]
            found.setdefault(
                (row.case, members),
                {
                    "family": family if family in FAMILIES and model != family else "generic",
                    "model": model,
                    "case": row.case,
                    "S": members,
                },
            )[match[1]] = row.value
    return pd.DataFrame(list(found.values()))


def speed_up(figures: Figures) -> Drawn | None:
    """What a stack gains over a plain loop of the same module, over its size."""
    data = by_stack(figures.get("steps", ()))
    if data.empty:
        return None
    alt = load_altair()

    def panel(rows: pd.DataFrame) -> Any:
        base = alt.Chart(rows).encode(
            x=alt.X("S:Q", scale=alt.Scale(type="log", base=2), axis=alt.Axis(values=[1, 4, 16, 64])),
            y=alt.Y(
                "speed-up:Q",
                scale=alt.Scale(type="log", base=2),
                title="times a plain loop",
                axis=alt.Axis(format="~r"),
            ),
            color=_colour("model", rows["model"]),
            detail="case:N",
            tooltip=["case", "S", alt.Tooltip("speed-up", format=".2f")],
        )
        even = alt.Chart(rows).mark_rule(strokeDash=[4, 4]).encode(y=alt.datum(1))
        return alt.layer(even, base.mark_line(), base.mark_point(filled=True, size=40))

    return Drawn(
        "Stacking against a plain loop",
        "How many times as fast a model's step is in a stack of S as in a plain PyTorch loop of the same "
        "module, one line for each case. Below the dashed line stacking does not pay.",
        _panels(data, "family", panel),
        data,
    )


def shares(figures: Figures) -> Drawn | None:
    """How near the best stack of each case is to the machine's limits."""
    data = by_stack(figures.get("steps", ()))
    if data.empty:
        return None
    alt = load_altair()
    best = data.loc[data.groupby("case", sort=False)["product share"].idxmax()]
    kinds = {"product share": "products alone", "roofline share": "products, memory and functions"}
    long = best.melt(["family", "case", "S"], list(kinds), "limit", "share").replace({"limit": kinds})
    y = alt.Y("case:N", title=None, sort=None, axis=alt.Axis(labelLimit=420))
    drawn = (
        alt.Chart(long)
        .mark_point(filled=True, size=70)
        .encode(
            y=y,
            x=alt.X("share:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"), title="share of the limit"),
            color=alt.Color("limit:N", title=None, scale=colour_scale(kinds.values()), legend=alt.Legend(orient="top")),
            tooltip=["case", "S", "limit", alt.Tooltip("share", format=".0%")],
        )
    )
    between = alt.Chart(best).mark_rule().encode(y=y, x="product share:Q", x2="roofline share:Q")
    return Drawn(
        "What is left to the limits",
        "The rate of each model's matrix products, at its best size of stack, as a share of one large product "
        "measured in turn; and the time that its products, the bytes it moves and the functions it works out "
        "need at least, as a share of the time it takes. The rest is overhead.",
        alt.layer(between, drawn).properties(width=_WIDTH, height=alt.Step(20)),
        long,
    )


def growth(figures: Figures) -> Drawn | None:
    """How time grows with what is asked for: a line for each curve, its exponent beside its name."""
    exponents = {row.case: row.value for row in figures.get("growth", ()) if row.figure == "exponent"}
    points = [
        (row, match)
        for row in figures.get("growth", ())
        if " over " in row.case and (match := _POINT.fullmatch(row.figure))
    ]
    if not points:
        return None
    data = pd.DataFrame(
        [
            {
                "over": match[1],
                "curve": row.case.partition(" over ")[0] + f", exponent {exponents.get(row.case, 0):.2f}",
                "size": int(match[2]),
                "time": row.value,
                "unit": row.unit,
            }
            for row, match in points
        ]
    )
    alt = load_altair()

    def panel(rows: pd.DataFrame) -> Any:
        base = alt.Chart(rows).encode(
            x=alt.X("size:Q", scale=alt.Scale(type="log"), title=rows["over"].iloc[0], axis=alt.Axis(format="~s")),
            y=alt.Y("time:Q", scale=alt.Scale(type="log"), title=rows["unit"].iloc[0], axis=alt.Axis(format="~g")),
            color=_colour("curve", rows["curve"]),
            tooltip=["curve", "size", alt.Tooltip("time", format=".3g"), "unit"],
        )
        return alt.layer(base.mark_line(), base.mark_point(filled=True, size=40))

    return Drawn(
        "How time grows",
        "Time against size, both on scales of powers. The exponent is the slope over the larger half of the "
        "sizes: 1 is in proportion, 0 is not at all.",
        _panels(data, "over", panel),
        data,
    )


def _colour(name: str, labels: pd.Series[str]) -> Any:
    alt = load_altair()
    return alt.Color(
        f"{name}:N",
        title=None,
        scale=colour_scale(labels),
        legend=alt.Legend(orient="bottom", columns=1, labelLimit=_WIDTH),
    )


def _panels(data: pd.DataFrame, by: str, panel: Callable[[pd.DataFrame], Any]) -> Any:
    """A panel with colours of its own for each part of the data, two side by side."""
    alt = load_altair()
    parts = [
        panel(rows).properties(width=_WIDTH, height=_HEIGHT, title=str(name))
        for name, rows in data.groupby(by, sort=False)
    ]
    return alt.concat(*parts, columns=2, spacing=30).resolve_scale(color="independent")

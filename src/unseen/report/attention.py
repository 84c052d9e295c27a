"""Where a model looks: the query over the tokens of single examples, and the tokens over each other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import pandas as pd

from unseen.randomness import Floats
from unseen.report.save import PICTURES, check_path, save_chart
from unseen.report.theme import GROUND, load_altair
from unseen.tasks.base import Array

DECODER, ENCODER = "decoder.attention", "encoder.attention"
STEP = 26


def attention_figure(
    maps: Mapping[str, Array], right: Array, factors: Mapping[str, Array], out: str | Path, title: str
) -> Path:
    """Draw attention maps and write them (.svg, .pdf, .png or .json).

    `maps` has `decoder.attention` (example, token), `encoder.attention` (example, head, token, token; of the
    looking tokens perhaps the last alone), or both; `right` says of each example whether it was answered right,
    `factors` what it is: its `scenario`, and the `positions` of the queried features.
    """
    path = Path(out)
    check_path(path, PICTURES)
    words = {
        DECODER: "Examples: where the query looks; letters are tokens with the queried features.",
        ENCODER: "Tokens: how they look at each other, the mean over these examples.",
    }
    return save_chart(
        attention_chart(maps, right, factors), path, title, [text for name, text in words.items() if name in maps]
    )


def attention_chart(maps: Mapping[str, Array], right: Array, factors: Mapping[str, Array]) -> Any:
    """The maps side by side; no title, no ink of its own."""
    alt = load_altair()
    panels = []
    if DECODER in maps:
        panels.append(_decoder(alt, decoder_cells(maps[DECODER], right, factors)))
    if ENCODER in maps:
        mean: Floats = np.asarray(maps[ENCODER], np.float64).mean(axis=0)
        panels += [_encoder(alt, head, number if len(mean) > 1 else None) for number, head in enumerate(mean)]
    return alt.hconcat(*panels, spacing=44).resolve_scale(fill="shared")


def decoder_cells(weights: Array, right: Array, factors: Mapping[str, Array]) -> pd.DataFrame:
    """One row per example and token: its `weight`, and the letters of the queried `features` that the token has.

    Examples stand by scenario; a row is called by its number and scenario.
    """
    count, tokens = weights.shape
    scenario = np.asarray(factors.get("scenario", np.full(count, "")))
    letters = np.full((count, tokens), "", object)
    for feature, places in enumerate(np.asarray(factors.get("positions", np.full((count, 0), -1))).T):
        for example in np.flatnonzero((places >= 0) & (places < tokens)):
            letters[example, places[example]] += ascii_lowercase[feature % 26]
    order = np.argsort(scenario, kind="stable")
    names = np.array([f"{example + 1} {scenario[example]}".strip() for example in range(count)], object)
    each = np.repeat(order, tokens)
    return pd.DataFrame(
        {
            "example": names[each],
            "token": np.tile(np.arange(1, tokens + 1), count),
            "weight": weights[order].ravel().round(4),
            "features": letters[order].ravel(),
            "answer": np.where(np.asarray(right)[each] == 1, "right", "wrong"),
        }
    )


def _decoder(alt: Any, cells: pd.DataFrame) -> Any:
    rows = list(dict.fromkeys(cells["example"]))
    step = STEP if len(rows) <= 24 else max(6, 24 * STEP // len(rows))
    x = alt.X("token:O", title="token", axis=_axis(alt))
    y = alt.Y("example:N", sort=rows, title="example", axis=alt.Axis(ticks=False, domain=False, grid=False))
    base = alt.Chart(cells)
    heat = base.mark_rect().encode(
        x=x, y=y, fill=_fill(alt), tooltip=["example:N", "token:O", "weight:Q", "features:N", "answer:N"]
    )
    # The ink of a letter goes with the colour under it, not with the paper.
    ink = alt.condition("datum.weight > 0.6", alt.value(GROUND["dark"]), alt.value(GROUND["light"]))
    letters = base.mark_text(fontSize=12, fontWeight=600).encode(x=x, y=y, text="features:N", color=ink)
    wrong = cells[(cells["answer"] == "wrong") & (cells["token"] == 1)]
    told = (
        alt.Chart(wrong)
        .mark_text(align="left", dx=6, fontSize=11)
        .encode(x=alt.value(STEP * cells["token"].max()), y=y, text="answer:N")
    )
    return alt.layer(heat, letters, told).properties(width=alt.Step(STEP), height=alt.Step(step))


def _encoder(alt: Any, mean: Floats, head: int | None) -> Any:
    rows, tokens = mean.shape
    first = tokens - rows + 1  # a model may keep the rows of the tokens that are read alone: the last ones
    cells = pd.DataFrame(
        {
            "from": np.repeat(np.arange(first, tokens + 1), tokens),
            "to": np.tile(np.arange(1, tokens + 1), rows),
            "weight": mean.ravel().round(4),
        }
    )
    title = "looks at token" if head is None else f"looks at token (head {head + 1})"
    return (
        alt.Chart(cells)
        .mark_rect()
        .encode(
            x=alt.X("to:O", title=title, axis=_axis(alt)),
            y=alt.Y("from:O", title="token", axis=_axis(alt)),
            fill=_fill(alt),
            tooltip=["from:O", "to:O", "weight:Q"],
        )
        .properties(width=alt.Step(STEP), height=alt.Step(STEP))
    )


def _axis(alt: Any) -> Any:
    return alt.Axis(labelAngle=0, ticks=False, domain=False, grid=False)


def _fill(alt: Any) -> Any:
    return alt.Fill(
        "weight:Q",
        scale=alt.Scale(domain=[0, 1], scheme="viridis"),
        legend=alt.Legend(title="attention", gradientLength=120),
    )

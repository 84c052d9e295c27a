"""How alike functions with the same outcome are to a model: one matrix of cosines per output symbol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unseen.errors import UsageError
from unseen.metrics.grouping import adjusted_rand, complete_linkage_clusters
from unseen.randomness import Floats, Ints
from unseen.report.save import PICTURES, check_path, save_chart
from unseen.report.theme import GROUND, colour_scale, load_altair

ACROSS, SIZE = 4, 216
"""Panels in a row; the width of one in pixels, or nearly: cells have whole ones, or seams would show between them."""


def cosine_figure(
    matrices: Mapping[str, Floats], names: Sequence[str], groups: Sequence[str], out: str | Path, title: str
) -> Path:
    """Draw a panel per output symbol that a function has, and write it to `out` (.svg, .pdf, .png or .json).

    `matrices` has the cosines (F, F) by symbol, NaN in the rows and columns of functions without that outcome; `names`
    and `groups` are those of the functions. In a panel functions stand by cluster, then as they are numbered; their
    names have the colour of their group, and each cluster a frame.
    """
    path = Path(out)
    check_path(path, PICTURES)
    for symbol, matrix in matrices.items():
        if matrix.shape != (len(names), len(names)) or len(groups) != len(names):
            raise UsageError(
                f"expected cosines of {len(names)} functions with a group each, got a matrix of shape "
                f"{matrix.shape} at symbol {symbol} and {len(groups)} groups"
            )
    cells = cosine_cells(matrices, names, groups)
    if cells.empty:
        raise UsageError("no function has a state at any symbol: there is nothing to draw")
    return save_chart(
        cosine_chart(cells),
        path,
        title,
        [
            "Cosines between the states that enter the classifier, for any two functions with the same outcome.",
            "Frames: clusters (complete linkage, cut at half the largest distance).",
        ],
    )


def cosine_cells(matrices: Mapping[str, Floats], names: Sequence[str], groups: Sequence[str]) -> pd.DataFrame:
    """One row per symbol and pair of functions, in the order in which they are drawn: `symbol`, `first` and `second`
    with their groups and clusters (numbered from 1), the `cosine`, and the `agreement` of clusters and groups at the
    symbol (the adjusted Rand index: 1 if they are the same, about 0 by chance)."""
    found = []
    for symbol, matrix in matrices.items():
        shown, cluster = order(matrix)
        if not len(shown):
            continue
        named, grouped = np.array(names, object)[shown], np.array(groups, object)[shown]
        first, second = np.repeat(np.arange(len(shown)), len(shown)), np.tile(np.arange(len(shown)), len(shown))
        found.append(
            pd.DataFrame(
                {
                    "symbol": symbol,
                    "first": named[first],
                    "second": named[second],
                    "first_group": grouped[first],
                    "second_group": grouped[second],
                    "first_cluster": cluster[first],
                    "second_cluster": cluster[second],
                    "cosine": matrix[np.ix_(shown, shown)].ravel().round(4),
                    "agreement": adjusted_rand(cluster, grouped.astype(str)),
                }
            )
        )
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def order(matrix: Floats) -> tuple[Ints, Ints]:
    """The functions with a state by cluster, then as they are numbered; and the cluster of each, from 1.

    >>> order(np.array([[1, 0, np.nan, 0.9], [0, 1, np.nan, 0.1], [np.nan] * 4, [0.9, 0.1, np.nan, 1]]))
    (array([0, 3, 1]), array([1, 1, 2]))
    """
    here = np.flatnonzero(np.isfinite(np.diagonal(matrix)))
    if not len(here):
        return here, here
    clusters = complete_linkage_clusters(matrix[np.ix_(here, here)])
    by_cluster = np.argsort(clusters, kind="stable")
    return here[by_cluster], clusters[by_cluster] + 1


def cosine_chart(cells: pd.DataFrame) -> Any:
    """A panel per symbol of a table of `cosine_cells`; no title, no ink of its own."""
    labels = [f"group {group}" for group in dict.fromkeys(sorted(cells["first_group"]))]
    step = max(5, SIZE // cells["first"].nunique())
    panels = [_panel(str(symbol), own, labels, step) for symbol, own in cells.groupby("symbol", sort=False)]
    return load_altair().concat(*panels, columns=ACROSS, spacing=26).resolve_scale(fill="shared", color="shared")


def _panel(symbol: str, cells: pd.DataFrame, labels: Sequence[str], step: int) -> Any:
    alt = load_altair()
    functions = cells.drop_duplicates("first").reset_index(drop=True)
    number = len(functions)

    def at(name: str, channel: Any) -> Any:
        return channel(f"{name}:Q", axis=None, scale=alt.Scale(domain=[0, number], nice=False, reverse=name == "y"))

    x, y = at("x", alt.X), at("y", alt.Y)
    place = np.arange(number)
    squares = cells.assign(x=np.tile(place, number), y=np.repeat(place, number))
    heat = (
        alt.Chart(squares.assign(x2=squares["x"] + 1, y2=squares["y"] + 1))
        .mark_rect()
        .encode(
            x=x,
            x2="x2:Q",
            y=y,
            y2="y2:Q",
            tooltip=[
                alt.Tooltip(name)
                for name in ("symbol:N", "first:N", "first_group:N", "second:N", "second_group:N", "cosine:Q")
            ],
            fill=alt.Fill(
                "cosine:Q",
                scale=alt.Scale(domain=[0, 1], clamp=True, scheme="viridis"),
                legend=alt.Legend(title="cosine", gradientLength=120),
            ),
        )
    )
    spans = functions.groupby("first_cluster", sort=False)["first"].size().cumsum()
    frames = pd.DataFrame({"x": [0, *spans[:-1]], "x2": spans, "y": [0, *spans[:-1]], "y2": spans})
    framed = (
        alt.Chart(frames)
        .mark_rect(filled=False, stroke=GROUND["dark"], strokeWidth=1.8)
        .encode(x=x, x2="x2:Q", y=y, y2="y2:Q")
    )
    words = alt.Chart(
        pd.DataFrame(
            {
                "name": functions["first"].astype(str),
                "x": place + 0.5,
                "y": place + 0.5,
                "group": "group " + functions["first_group"].astype(str),
            }
        )
    )
    ink = alt.Color(
        "group:N", scale=colour_scale(labels), sort=list(labels), title=None, legend=alt.Legend(symbolType="square")
    )
    size = min(11, step + 1)
    above = words.mark_text(baseline="bottom", fontSize=size, fontWeight=600).encode(
        x=x, y=alt.value(-3), text="name:N", color=ink
    )
    left = words.mark_text(align="right", fontSize=size, fontWeight=600).encode(
        x=alt.value(-4), y=y, text="name:N", color=ink
    )
    clusters = f"{len(frames)} cluster{'s' if len(frames) != 1 else ''}"
    said = f"{clusters}, agreement with groups {cells['agreement'].iloc[0]:.2f}".replace("-", "−")
    return alt.layer(heat, framed, above, left).properties(
        width=step * number,
        height=step * number,
        title=alt.Title(
            f"returns {symbol}",
            subtitle=said if len(labels) > 1 else clusters,
            fontSize=13,
            subtitleFontSize=11,
            offset=20,
            subtitlePadding=2,
            anchor="start",
        ),
    )

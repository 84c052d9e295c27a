"""The CTL++ paper's figures 3 and 9 to 11: do functions of different groups return the same symbol alike?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from unseen.metrics.grouping import adjusted_rand, complete_linkage_clusters
from unseen.randomness import Floats, Ints
from unseen.report import theme
from unseen.report.cosines import order
from unseen.report.figure import Drawing
from unseen.report.figures.ctl_pairs import chosen, described
from unseen.report.figures.ctl_weights import Cosines, cosines
from unseen.report.source import Source

ACROSS, SIZE = 4, 216
"""Panels in a row; the width of one, or nearly: cells have whole pixels, or seams would show between them."""


def matrices(source: Source, task: str, worst: bool, two: bool = False) -> Drawing | None:
    """A panel per symbol for the best or the worst NDR; or of `two` symbols, those whose clusters agree with the groups
    the most and the least. None where the store keeps no weights of that run."""
    run = chosen(source, task, worst)
    found = cosines(source, str(run["cell"])) if run is not None else None
    if run is None or found is None:
        return None
    symbols = [symbol for symbol, matrix in enumerate(found.matrices) if len(order(matrix)[0])]
    if not symbols:
        return None
    agreements = {symbol: _agreement(found, symbol) for symbol in symbols}
    if two and len(symbols) > 2:
        ranked = sorted(symbols, key=lambda symbol: -agreements[symbol])
        symbols = [ranked[0], ranked[-1]]
    tables = [_cells(found, symbol).assign(agreement=agreements[symbol]) for symbol in symbols]
    labels = [f"group {group}" for group in dict.fromkeys(found.groups)]
    chart = _concatenated([_panel(table, found, symbol, labels, agreements[symbol])
                           for table, symbol in zip(tables, symbols, strict=True)])
    data = pd.concat(tables, ignore_index=True).drop(columns=["x", "y"]).assign(
        runs=1, cell=run["cell"], seed=run["seed"])
    said = [described(run) + (", still learning." if run["still_learning"] == 1 else ".")]
    if found.selection != "last":
        said.append("The store keeps the best weights only; these are theirs, not the last ones'.")
    return Drawing(chart, data, tuple(said))


def _agreement(found: Cosines, symbol: int) -> float:
    """How far the clusters at a symbol are the groups: 1 if they are the same, about 0 by chance."""
    here = np.flatnonzero(np.isfinite(np.diagonal(found.matrices[symbol])))
    clusters = complete_linkage_clusters(found.matrices[symbol][np.ix_(here, here)])
    return float(adjusted_rand(clusters, found.world.group_of[here]))


def _cells(found: Cosines, symbol: int) -> pd.DataFrame:
    """One row per pair of functions, in the order in which they are drawn."""
    matrix: Floats = found.matrices[symbol]
    shown, borders = order(matrix)
    names, groups = np.array(found.world.names, object)[shown], np.array(found.groups, object)[shown]
    cluster: Ints = np.repeat(np.arange(1, len(borders)), np.diff(borders))
    place, number = np.arange(len(shown)), len(shown)
    first, second = np.repeat(place, number), np.tile(place, number)
    return pd.DataFrame({
        "symbol": str(found.world.symbols[symbol]), "first": names[first], "second": names[second],
        "first_group": groups[first], "second_group": groups[second], "first_cluster": cluster[first],
        "second_cluster": cluster[second], "cosine": matrix[np.ix_(shown, shown)].ravel().round(4), "x": second,
        "y": first})


def _panel(cells: pd.DataFrame, found: Cosines, symbol: int, labels: Sequence[str], agreement: float) -> Any:
    alt = theme.load_altair()
    number = int(cells["x"].max()) + 1
    step = max(5, SIZE // len(found.world.names))

    def at(name: str, channel: Any) -> Any:
        return channel(f"{name}:Q", axis=None, scale=alt.Scale(domain=[0, number], nice=False, reverse=name[0] == "y"))

    x, y = at("x", alt.X), at("y", alt.Y)
    heat = alt.Chart(cells.assign(x2=cells["x"] + 1, y2=cells["y"] + 1)).mark_rect().encode(
        x=x, x2="x2:Q", y=y, y2="y2:Q",
        tooltip=[alt.Tooltip(name) for name in ("symbol:N", "first:N", "first_group:N", "second:N", "second_group:N",
                                                "cosine:Q")],
        fill=alt.Fill("cosine:Q", scale=alt.Scale(domain=[0, 1], clamp=True, scheme="viridis"),
                      legend=alt.Legend(title="cosine", gradientLength=120)))
    borders = order(found.matrices[symbol])[1]
    frames = pd.DataFrame({"x": borders[:-1], "x2": borders[1:], "y": borders[:-1], "y2": borders[1:]})
    framed = alt.Chart(frames).mark_rect(filled=False, stroke=theme.GROUND["dark"], strokeWidth=1.8).encode(
        x=x, x2="x2:Q", y=y, y2="y2:Q")
    own = cells[cells["x"] == 0]
    named = pd.DataFrame({"name": own["first"], "group": "group " + own["first_group"].astype(str),
                          "x": own["y"] + 0.5, "y": own["y"] + 0.5})
    words = alt.Chart(named)
    ink = alt.Color("group:N", scale=theme.colour_scale(labels), sort=list(labels), title=None,
                    legend=alt.Legend(symbolType="square"))
    size = min(11, step + 1)
    above = words.mark_text(baseline="bottom", fontSize=size, fontWeight=600).encode(
        x=x, y=alt.value(-3), text="name:N", color=ink)
    left = words.mark_text(align="right", fontSize=size, fontWeight=600).encode(
        x=alt.value(-4), y=y, text="name:N", color=ink)
    count = len(borders) - 1
    return alt.layer(heat, framed, above, left).properties(
        width=step * number, height=step * number,
        title=alt.Title(f"returns {found.world.symbols[symbol]}", fontSize=13, subtitleFontSize=11, offset=20,
                        subtitlePadding=2, subtitle=f"{count} cluster{'s' if count != 1 else ''}, agreement with "
                                                    f"groups {agreement:.2f}".replace("-", "−")))


def _concatenated(panels: list[Any]) -> Any:
    return theme.load_altair().concat(*panels, columns=ACROSS, spacing=26).resolve_scale(fill="shared", color="shared")

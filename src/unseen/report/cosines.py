"""How alike functions with the same outcome are to a model: one matrix of cosines per output symbol."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from unseen.errors import UsageError
from unseen.metrics.grouping import complete_linkage_clusters
from unseen.randomness import Floats, Ints
from unseen.report.save import PICTURES, check_path, save_chart
from unseen.report.theme import COLOURS, GROUND, INK, load_altair

if TYPE_CHECKING:
    from altair import VConcatChart

ACROSS, SIZE = 4, 240
"""Panels in a row; the width of one in pixels, or nearly: cells have whole ones, or seams would show between them."""


def cosine_figure(matrices: Mapping[str, Floats], names: Sequence[str], groups: Sequence[str], out: str | Path,
                  title: str) -> Path:
    """Draw a panel per output symbol and write it to `out` (.svg, .pdf, .png, or .json with its data).

    `matrices` has the cosines (F, F) by symbol, NaN in the rows and columns of functions without that outcome; `names`
    and `groups` are those of the functions. In a panel functions stand by cluster, then as they are numbered; their
    names have the colour of their group, and each cluster a frame.
    """
    path = Path(out)
    check_path(path, PICTURES)
    for symbol, matrix in matrices.items():
        if matrix.shape != (len(names), len(names)) or len(groups) != len(names):
            raise UsageError(f"expected cosines of {len(names)} functions with a group each, got a matrix of shape "
                             f"{matrix.shape} at symbol {symbol} and {len(groups)} groups")
    return save_chart(cosine_chart(matrices, names, groups), path, title, [
        "Cosines between the states that enter the classifier, for any two functions with the same outcome.",
        "Frames: clusters (complete linkage, cut at half the largest distance)."])


def cosine_chart(matrices: Mapping[str, Floats], names: Sequence[str], groups: Sequence[str]) -> VConcatChart:
    """The figure itself; no title of its own."""
    alt = load_altair()
    colours = {group: COLOURS[place % len(COLOURS)] for place, group in enumerate(dict.fromkeys(groups))}
    panels = [_panel(alt, symbol, matrix, names, [colours[group] for group in groups])
              for symbol, matrix in matrices.items()]
    together = alt.concat(*panels, columns=ACROSS, spacing=18)
    chart: VConcatChart = alt.vconcat(_key(alt, colours), together, spacing=14)
    return chart


def order(matrix: Floats) -> tuple[Ints, Ints]:
    """The functions with a state by cluster, then as they are numbered; and where clusters begin, and the last ends.

    >>> order(np.array([[1, 0, np.nan, 0.9], [0, 1, np.nan, 0.1], [np.nan] * 4, [0.9, 0.1, np.nan, 1]]))
    (array([0, 3, 1]), array([0, 2, 3]))
    """
    here = np.flatnonzero(np.isfinite(np.diagonal(matrix)))
    if not len(here):
        return here, np.zeros(1, np.int64)
    clusters = complete_linkage_clusters(matrix[np.ix_(here, here)])
    return here[np.argsort(clusters, kind="stable")], np.concatenate([[0], np.cumsum(np.bincount(clusters))])


def _panel(alt: Any, symbol: str, matrix: Floats, names: Sequence[str], colours: Sequence[str]) -> Any:
    shown, borders = order(matrix)
    places, named = np.arange(len(shown)), np.array([names[f] for f in shown], object)
    step, size = max(5, SIZE // len(matrix)), max(len(shown), 1)
    axis = alt.Axis(title=None, values=[place + 0.5 for place in range(len(shown))], labelFontSize=min(11, step),
                    labelExpr=f"{json.dumps(named.tolist())}[floor(datum.value)]", labelOverlap=False,
                    labelPadding=2, labelFontWeight=600, labelColor=_label_colours([colours[f] for f in shown]),
                    labelAngle=0, grid=False, ticks=False, domain=False)
    x, y = (channel(f"{name}:Q", axis=axis, scale=alt.Scale(domain=[0, size], nice=False, reverse=name == "y"))
            for name, channel in (("x", alt.X), ("y", alt.Y)))
    cells = pd.DataFrame({"x": np.tile(places, len(shown)), "y": np.repeat(places, len(shown)),
                          "first": np.repeat(named, len(shown)), "second": np.tile(named, len(shown)),
                          "cosine": matrix[np.ix_(shown, shown)].ravel().round(4)})
    frames = pd.DataFrame({"x": borders[:-1], "x2": borders[1:], "y": borders[:-1], "y2": borders[1:]})
    heat = alt.Chart(cells.assign(x2=cells.x + 1, y2=cells.y + 1)).mark_rect().encode(
        x=x, x2="x2:Q", y=y, y2="y2:Q", tooltip=["first:N", "second:N", "cosine:Q"],
        color=alt.Color("cosine:Q", scale=alt.Scale(domain=[0, 1], clamp=True, scheme="viridis"),
                        legend=alt.Legend(title="cosine", gradientLength=120)))
    lines = alt.Chart(frames).mark_rect(filled=False, stroke=GROUND["dark"], strokeWidth=1.6).encode(
        x=x, x2="x2:Q", y=y, y2="y2:Q")
    count = len(borders) - 1
    words = f"{count} cluster{'s' if count != 1 else ''}" if len(shown) else "no function has it"
    return alt.layer(heat, lines).properties(
        width=step * size, height=step * size,
        title=alt.Title(f"outcome {symbol}", subtitle=words, fontSize=13, subtitleFontSize=11, anchor="start",
                        offset=4))


def _key(alt: Any, colours: Mapping[str, str]) -> Any:
    """The groups' names in their colours, in a line."""
    words = [{"group": f"■ group {group}", "x": 90 * place} for place, group in enumerate(colours)]
    return alt.Chart(alt.InlineData(values=words)).mark_text(align="left", fontSize=12, fontWeight=600).encode(
        x=alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, 90 * len(words)], nice=False)), text="group:N",
        color=alt.Color("group:N", legend=None, scale=alt.Scale(domain=[word["group"] for word in words],
                                                                range=list(colours.values()))),
    ).properties(width=90 * len(words), height=14)


def _label_colours(colours: Sequence[str]) -> dict[str, Any]:
    """The colour of the label at each place of an axis."""
    tests = [{"test": f"indexof({[p for p, own in enumerate(colours) if own == colour]}, floor(datum.value)) >= 0",
              "value": colour} for colour in dict.fromkeys(colours)]
    return {"condition": tests, "value": INK["light"]}

"""The look of figures and pages: one colour per model everywhere, on a light or a dark page. Needs the extra `report`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from unseen.errors import UsageError

Paper = Literal["light", "dark"]

BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, YELLOW, GREY = COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#B8A800",
    "#8A8F98",
)
"""The colour-blind safe palette of Okabe and Ito, with a darker yellow that is visible on white."""

TITLES = {"none": "Monolithic", "joint": "Modular", "operation": "Modular-op", "truth": "GT-Modular"}
"""Names shown to readers instead of the level of the axis `gating`."""

MODEL_COLOURS: dict[str, str] = {
    # rules
    "GT-Modular": GREEN,
    "Modular-op": BLUE,
    "Modular": VERMILION,
    "Monolithic": PURPLE,
    "Random": GREY,
    # retrieval
    "T−Pos−Att": GREY,
    "T+Pos−Att": ORANGE,
    "T−Pos+Att": BLUE,
    "T+Pos+Att": GREEN,
    "LSTM": VERMILION,
    "LSTM+Att": PURPLE,
    "Bi-LSTM": PURPLE,
    # ctl
    "ctl-bilstm": VERMILION,
    "ctl-transformer": BLUE,
    "ctl-ndr": GREEN,
    # gcog
    "gcog-rnn": GREY,
    "gcog-gru": ORANGE,
    "gcog-single-stream": PURPLE,
    "gcog-dual-stream": SKY,
    "gcog-cross-attention": BLUE,
    "gcog-perceiver": GREEN,
    "gcog-bert": VERMILION,
}
"""The colour of each model, gating or variant of the papers, the same in every figure."""

INK = {"light": "#22262E", "dark": "#E6E8EC"}
QUIET = {"light": "#6A707C", "dark": "#9AA1AD"}
FAINT = {"light": "#E4E6EA", "dark": "#333943"}
GROUND = {"light": "#FFFFFF", "dark": "#14171C"}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


def title_of(level: object, axis: str = "gating") -> str:
    """A level of an axis as readers see it.

    >>> title_of("joint"), title_of("gcog-rnn"), title_of(5), title_of("none", "positions")
    ('Modular', 'gcog-rnn', '5', 'none')
    """
    return TITLES.get(str(level), str(level)) if axis.endswith("gating") else str(level)


def palette(labels: Iterable[str]) -> dict[str, str]:
    """A colour for each label: the fixed colour of a known model, or the next colour that is still free.

    >>> palette(["gcog-gru", "mine"])
    {'gcog-gru': '#E69F00', 'mine': '#0072B2'}
    """
    unique = list(dict.fromkeys(labels))
    used = {MODEL_COLOURS[label] for label in unique if label in MODEL_COLOURS}
    free = [colour for colour in COLOURS if colour not in used] or list(COLOURS)
    colours: dict[str, str] = {}
    unknown = 0
    for label in unique:
        if label in MODEL_COLOURS:
            colours[label] = MODEL_COLOURS[label]
        else:
            colours[label] = free[unknown % len(free)]
            unknown += 1
    return colours


def colour_scale(labels: Iterable[str]) -> Any:
    """The palette of some labels as a scale for Altair."""
    colours = palette(labels)
    return load_altair().Scale(domain=list(colours), range=list(colours.values()))


def config(paper: Paper = "light") -> dict[str, Any]:
    """The Vega-Lite configuration of all charts on a light or dark page.

    Charts set only the colours of their data. Rules and text take their colour from here, so that a page can switch
    between light and dark without drawing other charts.
    """
    ink, quiet, faint = INK[paper], QUIET[paper], FAINT[paper]
    return {
        "background": "transparent" if paper == "dark" else GROUND[paper],
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            "labelColor": ink,
            "titleColor": quiet,
            "gridColor": faint,
            "domainColor": faint,
            "tickColor": faint,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "labelLimit": 260,
        },
        "header": {
            "labelColor": ink,
            "titleColor": quiet,
            "labelFontSize": 13,
            "labelFontWeight": 600,
            "titleFontWeight": "normal",
            "labelLimit": 400,
        },
        "legend": {
            "labelColor": ink,
            "titleColor": quiet,
            "labelFontSize": 12,
            "titleFontWeight": "normal",
            "labelLimit": 260,
        },
        "title": {
            "color": ink,
            "subtitleColor": quiet,
            "anchor": "start",
            "fontSize": 16,
            "subtitleFontSize": 12,
            "subtitlePadding": 6,
            "offset": 14,
        },
        "text": {"color": ink, "fontSize": 12},
        "rule": {"color": quiet},
    }


def load_altair() -> Any:
    """Return Altair, or raise an error that names the extra to install."""
    try:
        import altair
    except ImportError:
        raise UsageError("figures need the extra 'report': pip install 'unseen[report]'") from None
    return altair

"""How figures and pages look: one colour per model everywhere, on light and on dark paper. Needs the extra `report`."""

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
"""Okabe and Ito's colours, told apart by colour-blind readers; their yellow darkened, so that it shows on white."""

TITLES = {"none": "Monolithic", "joint": "Modular", "operation": "Modular-op", "truth": "GT-Modular"}
"""What people read instead of a level."""

OWN: dict[str, str] = {
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


def title_of(level: object) -> str:
    """A level as people read it.

    >>> title_of("joint"), title_of("gcog-rnn"), title_of(5)
    ('Modular', 'gcog-rnn', '5')
    """
    return TITLES.get(str(level), str(level))


def palette(labels: Iterable[str]) -> dict[str, str]:
    """A colour for each label: its own, or the next that none of these has.

    >>> palette(["gcog-gru", "mine"])
    {'gcog-gru': '#E69F00', 'mine': '#0072B2'}
    """
    wanted = list(dict.fromkeys(labels))
    taken = {OWN[label] for label in wanted if label in OWN}
    free = [colour for colour in COLOURS if colour not in taken] or list(COLOURS)
    strangers = [label for label in wanted if label not in OWN]
    return {label: OWN.get(label) or free[strangers.index(label) % len(free)] for label in wanted}


def colour_scale(labels: Iterable[str]) -> Any:
    """The same as a scale for Altair."""
    found = palette(labels)
    return load_altair().Scale(domain=list(found), range=list(found.values()))


def config(paper: Paper = "light") -> dict[str, Any]:
    """The Vega-Lite configuration of all charts: they name no ink of their own, so that a page can turn dark.

    Marks without a colour of their own (rules, text) are inked by it; a chart sets only the colours of its data.
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
    """Altair, or an error that says how to get it."""
    try:
        import altair
    except ImportError:
        raise UsageError("figures need the extra 'report': pip install 'unseen[report]'") from None
    return altair

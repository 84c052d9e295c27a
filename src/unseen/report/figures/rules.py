"""The list of figures of the modularity paper (Mittal, Bengio & Lajoie 2022), 2 to 91, and of ours about modules.

Figure 1 and table 1 are illustrations without numbers. All figures show the last weights; the 95 % intervals count the
choice of tasks as chance.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from unseen.analysis.votes import SPLITS
from unseen.report.data import Source
from unseen.report.figure import Drawing, Figure
from unseen.report.figures.rules_helps import FIGURES as HELPS
from unseen.report.figures.rules_performance import NAMES, draw_capacity, draw_curves, draw_overview
from unseen.report.figures.rules_specialization import (
    SIZES,
    draw_by_rules,
    draw_by_size,
    draw_example,
    draw_overall,
)
from unseen.report.figures.rules_votes import draw_votes
from unseen.report.sections.specialization import METRICS

_BLOCKS = {
    8: ("mlp", "classification"),
    16: ("mlp", "regression"),
    24: ("mha", "classification"),
    32: ("mha", "regression"),
    40: ("rnn", "classification"),
    48: ("rnn", "regression"),
}
"""The first figure of each block of eight: votes, performance in and out of distribution, and five metrics."""
_METRICS = ("collapse_avg", "collapse_worst", "inverse_mutual_information", "adaptation", "alignment")
"""The metrics in the order of those eight."""
_LENGTHS = {
    56: ("mha", "classification"),
    65: ("mha", "regression"),
    74: ("rnn", "classification"),
    83: ("rnn", "regression"),
}
"""The first figure of each block of nine: other lengths, then all lengths with inputs of another scale."""

_POINTS = (
    "Points are means over tasks and seeds with 95 % intervals that count the choice of tasks as chance; small "
    "dots are runs. An oracle scores 0. Last weights."
)
_VOTED = (
    "One vote per architecture, setting, search, number of rules, width and task: for the family whose mean over "
    "seeds is best. Bars replace the paper's pies. Last weights."
)
_BARS = (
    "Lower is better. Bars are means over tasks and seeds with 95 % intervals that count the choice of tasks as "
    "chance; dots are runs. Random sends every rule to all modules equally: a definition, not a run. Last weights."
)
_FLIPPED = (
    " The released aggregation gives the votes of RNN classification to the lowest accuracy; it is unknown whether the "
    "printed shares have this error, so the flipped count is drawn beside."
)


def _figure(number: int, title: str, caption: str, draw: Callable[[Source], Drawing | None]) -> Figure:
    return Figure(f"rules/figure{number}", title, f"figure {number}", caption, draw)


def _votes_figure(number: int, architecture: str, setting: str) -> Figure:
    caption = _VOTED + (_FLIPPED if (architecture, setting) == ("rnn", "classification") else "")
    draw = partial(draw_votes, splits=("id", "ood"), architecture=architecture, setting=setting)
    return _figure(number, f"{NAMES[architecture]}, {setting}: votes", caption, draw)


def _search_caption(architecture: str) -> str:
    return "; rows are the versions of the search" if architecture == "mha" else ""


def _metric_figure(number: int, architecture: str, setting: str, metric: str) -> Figure:
    sizes = ", ".join(f"{name.lower()}: width {width}" for width, name in SIZES.items())
    caption = f"A panel for each number of rules{_search_caption(architecture)}; {sizes}. {_BARS}"
    draw = partial(draw_by_size, architecture=architecture, setting=setting, metric=metric)
    return _figure(number, f"{NAMES[architecture]}, {setting}: {METRICS[metric]}", caption, draw)


def _performance_figure(number: int, architecture: str, setting: str, split: str, where: str) -> Figure:
    measured = "Error" if setting == "classification" else "Loss"
    caption = (
        f"{measured} against capacity, a panel for each number of rules{_search_caption(architecture)}. Parameters grow "
        f"with the square of the width; their numbers are in the data. {_POINTS}"
    )
    draw = partial(draw_capacity, architecture=architecture, setting=setting, split=split)
    return _figure(number, f"{NAMES[architecture]}, {setting}: {measured.lower()} {where}", caption, draw)


def _appendix() -> list[Figure]:
    """Figures 8 to 91, in order."""
    figures = []
    for number, (architecture, setting) in _BLOCKS.items():
        figures.append(_votes_figure(number, architecture, setting))
        for offset, split, where in (
            (1, "iid", "in distribution"),
            (2, SPLITS["ood"][architecture], "out of distribution"),
        ):
            figures.append(_performance_figure(number + offset, architecture, setting, split, where))
        for offset, metric in enumerate(_METRICS, 3):
            figures.append(_metric_figure(number + offset, architecture, setting, metric))
    for number, (architecture, setting) in _LENGTHS.items():
        splits = [(f"ood/length={length}", f"at length {length}") for length in (3, 5, 20, 30)]
        for length in (3, 5, 10, 20, 30):
            # 10 is the length of training, so there only the amplitude is new.
            split = "ood/amplitude=2" if length == 10 else f"ood/length={length},amplitude=2"
            splits.append((split, f"at length {length}, inputs doubled"))
        for offset, (split, where) in enumerate(splits):
            figures.append(_performance_figure(number + offset, architecture, setting, split, where))
    return figures


FIGURES: tuple[Figure, ...] = (
    Figure(
        "rules/figure2",
        "An activation matrix and its metrics",
        "figure 2",
        "Illustrative, as in the paper: the matrix is made up. Each row shows how a rule uses the modules; module 3 "
        "is never used. Framed: the best assignment, on which Alignment is based.",
        draw_example,
        illustrative=True,
    ),
    _figure(
        3,
        "Votes in distribution, over all runs",
        _VOTED + _FLIPPED,
        partial(draw_votes, splits=("id",), printed=True),
    ),
    _figure(
        4,
        "Errors and losses against the number of rules",
        "OoD: inputs doubled (MLP), and sequences of 30 tokens with inputs doubled (MHA, RNN). " + _POINTS,
        draw_overview,
    ),
    _figure(
        5,
        "Specialization against the number of rules",
        "Every run has the same weight, so MHA with two searches counts twice. " + _BARS,
        draw_by_rules,
    ),
    _figure(
        6,
        "Specialization over all runs",
        "Every run has the same weight. By definition Random has no collapse. " + _BARS,
        draw_overall,
    ),
    _figure(
        7,
        "Learning curves over all runs",
        "Means in distribution with 95 % bands that count the choice of tasks as chance. Runs trained for fewer "
        "steps than others keep their last value. Values are on a square-root axis. Errors in percent and losses "
        "averaged together are as in the paper; the other panels separate them.",
        draw_curves,
    ),
    *_appendix(),
    *HELPS,
)

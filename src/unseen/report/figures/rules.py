"""Figures of the modularity paper (Mittal, Bengio & Lajoie 2022): 2 to 91, one row of a table each.

Figure 1 and table 1 are drawings without numbers. All are of the last weights; 95 % intervals count the choice of tasks
as chance.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from unseen.metrics.votes import CONDITIONS
from unseen.report.figure import Drawing, Figure
from unseen.report.figures.rules_curves import curves
from unseen.report.figures.rules_example import example
from unseen.report.figures.rules_metrics import SIZES, by_rules, by_size, overall
from unseen.report.figures.rules_performance import NAMES, capacity, overview
from unseen.report.figures.rules_runs import METRICS
from unseen.report.figures.rules_votes import votes
from unseen.report.source import Source

Draw = Callable[[Source], Drawing | None]

_BLOCKS = {
    8: ("mlp", "classification"),
    16: ("mlp", "regression"),
    24: ("mha", "classification"),
    32: ("mha", "regression"),
    40: ("rnn", "classification"),
    48: ("rnn", "regression"),
}
"""The first figure of eight: votes, performance in and out of distribution, five metrics."""
_METRICS = ("collapse_avg", "collapse_worst", "inverse_mutual_information", "adaptation", "alignment")
"""The metrics in the order of those eight."""
_LENGTHS = {
    56: ("mha", "classification"),
    65: ("mha", "regression"),
    74: ("rnn", "classification"),
    83: ("rnn", "regression"),
}
"""The first figure of nine: other lengths, then all lengths with inputs of another scale."""
_TESTED = (
    *((f"ood/length={n}", f"length {n}") for n in (3, 5, 20, 30)),
    *(
        (f"ood/length={n},amplitude=2" if n != 10 else "ood/amplitude=2", f"length {n}, inputs doubled")
        for n in (3, 5, 10, 20, 30)
    ),
)

VOTES, PERFORMANCE, METRIC = "votes", "performance", "metric"
ROWS: tuple[tuple[int, str, str, str, str, str], ...] = tuple(
    sorted(
        row
        for number, (architecture, setting) in _BLOCKS.items()
        for row in (
            (number, VOTES, architecture, setting, "", ""),
            (number + 1, PERFORMANCE, architecture, setting, "iid", "in distribution"),
            (number + 2, PERFORMANCE, architecture, setting, CONDITIONS["ood"][architecture], "out of distribution"),
            *(
                (number + 3 + place, METRIC, architecture, setting, metric, METRICS[metric])
                for place, metric in enumerate(_METRICS)
            ),
        )
    )
) + tuple(
    (number + place, PERFORMANCE, architecture, setting, condition, words)
    for number, (architecture, setting) in _LENGTHS.items()
    for place, (condition, words) in enumerate(_TESTED)
)
"""(number, kind, architecture, setting, condition or metric, what people read for it): figures 8 to 91."""

_POINTS = (
    "Points are means over tasks and seeds with 95 % intervals that count the choice of tasks as chance; small "
    "dots are runs. An oracle scores 0. Last weights."
)
_VOTED = (
    "One vote per architecture, setting, search, number of rules, width and task: for the family whose mean over "
    "seeds is best. Bars in place of the paper's pies. Last weights."
)
_BARS = (
    "Low is good. Bars are means over tasks and seeds with 95 % intervals that count the choice of tasks as "
    "chance; dots are runs. Random sends every rule to all modules alike: a definition, not a run. Last weights."
)
_SIZES = ", ".join(f"{name.lower()}: width {width}" for width, name in SIZES.items())
_FLIPPED = (
    " The released aggregation gives the votes of RNN classification to the lowest accuracy; whether the "
    "printed shares have this fault can't be told, so the flipped count stands beside."
)


def _figure(number: int, title: str, caption: str, draw: Draw) -> Figure:
    return Figure(f"rules/figure{number}", title, f"figure {number}", caption, draw)


def _of_row(number: int, kind: str, architecture: str, setting: str, what: str, words: str) -> Figure:
    where = f"{NAMES[architecture]}, {setting}"
    if kind == VOTES:
        caption = _VOTED + (_FLIPPED if (architecture, setting) == ("rnn", "classification") else "")
        return _figure(
            number,
            f"{where}: votes",
            caption,
            partial(votes, conditions=("id", "ood"), architecture=architecture, setting=setting),
        )
    search = "; rows are the versions of the search" if architecture == "mha" else ""
    if kind == METRIC:
        return _figure(
            number,
            f"{where}: {words}",
            f"A panel for each number of rules{search}; {_SIZES}. {_BARS}",
            partial(by_size, architecture=architecture, setting=setting, metric=what),
        )
    measured = "Error" if setting == "classification" else "Loss"
    return _figure(
        number,
        f"{where}: {measured.lower()} {'at ' if words.startswith('length') else ''}{words}",
        f"{measured} against capacity, a panel for each number of rules{search}. Parameters grow with the "
        f"square of the width; their numbers are in the data. {_POINTS}",
        partial(capacity, architecture=architecture, setting=setting, condition=what),
    )


FIGURES: tuple[Figure, ...] = (
    _figure(
        2,
        "An activation matrix, and what the metrics say of it",
        "Illustrative, as in the paper: the matrix is made up. Each row says how a rule uses the modules; module 3 "
        "is never used. Framed: the best assignment, which Alignment is about.",
        example,
    ),
    _figure(
        3,
        "Votes in distribution, over all that was run",
        _VOTED + _FLIPPED,
        partial(votes, conditions=("id",), printed=True),
    ),
    _figure(
        4,
        "Errors and losses against the number of rules",
        "OoD: inputs doubled (MLP), and sequences of 30 tokens with inputs doubled (MHA, RNN). " + _POINTS,
        overview,
    ),
    _figure(
        5,
        "Specialization against the number of rules",
        "Every run weighs the same, so MHA with two searches counts twice. " + _BARS,
        by_rules,
    ),
    _figure(
        6,
        "Specialization over all that was run",
        "Every run weighs the same. By definition Random has no collapse. " + _BARS,
        overall,
    ),
    _figure(
        7,
        "Learning curves over all that was run",
        "Means in distribution with 95 % bands that count the choice of tasks as chance. Runs trained for fewer "
        "steps than others keep their last value. Values stand on a square-root axis. Errors in percent and losses "
        "averaged together are as in the paper; the other panels keep them apart.",
        curves,
    ),
    *(_of_row(*row) for row in ROWS),
)

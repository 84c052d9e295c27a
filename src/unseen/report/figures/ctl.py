"""Figures of the CTL++ paper (Csordás, Irie & Schmidhuber 2022): table 1, figures 3, 4 and 6 to 11; and one beside.

All are of the last weights. Figures 1, 2 and 5 have no numbers of runs.
"""

from __future__ import annotations

from functools import partial

from unseen.report.figure import Figure
from unseen.report.figures.ctl_cosines import matrices
from unseen.report.figures.ctl_grid import grid
from unseen.report.figures.ctl_pairs import gaps, pairs
from unseen.report.figures.ctl_runs import NAMES
from unseen.report.figures.ctl_table1 import table1
from unseen.report.figures.rows import PRINTED
from unseen.studies.catalog.ctl import BILSTM, NDR, TRANSFORMER

_GRIDS = {4: NDR, 7: TRANSFORMER, 8: BILSTM}
_MATRICES: dict[int, tuple[str, str, str, bool, bool]] = {
    3: (
        "Two symbols in the worst run on R",
        "the worst NDR on R; the symbols whose clusters agree with the groups the most and the least",
        "ctl/R",
        True,
        True,
    ),
    9: ("All symbols in the best run on R", "the best NDR on R", "ctl/R", False, False),
    10: ("All symbols in the worst run on R", "the worst NDR on R", "ctl/R", True, False),
    11: ("All symbols in the worst run on A", "the worst NDR on A", "ctl/A", True, False),
}


def _grid(number: int, model: str) -> Figure:
    return Figure(
        f"ctl/figure{number}",
        f"{NAMES[model]} on S: how much overlap it needs",
        f"figure {number}",
        "Accuracy on unseen transitions, mean ± sample standard deviation over seeds, by the functions of "
        "the bridge between two paths and the symbols at which both may enter it. Last weights.",
        partial(grid, model=model),
    )


def _matrix(number: int) -> Figure:
    title, which, task, worst, two = _MATRICES[number]
    return Figure(
        f"ctl/figure{number}",
        f"{title}: functions that return the same",
        f"figure {number}",
        f"Cosines between the states that enter the classifier, of any two functions that return the same "
        f"symbol: {which}. Among runs that have learned, if any have. Frames: clusters (complete linkage, "
        "cut at half the largest distance, so there are always two at least); names in the colour of their "
        "group.",
        partial(matrices, task=task, worst=worst, two=two),
    )


FIGURES: tuple[Figure, ...] = (
    Figure(
        "ctl/table1",
        "Accuracy in distribution and on unseen transitions",
        "table 1",
        f"Every dot is a run, the mark below it the mean with its 95 % interval. '{PRINTED}' what the paper prints "
        "for 25 seeds (of the Transformer: those 25 of 50 that converged), thin line its standard deviation. Last "
        "weights, all runs.",
        table1,
    ),
    _matrix(3),
    _grid(4, _GRIDS[4]),
    Figure(
        "ctl/figure6",
        "Which functions work together, in the worst run",
        "figure 6",
        "Accuracy on all pairs of functions, by the symbol between them: rows are the first function's cluster or "
        "group, columns the second's group. The worst NDR on R, among runs that have learned, if any have. Last "
        "weights.",
        pairs,
    ),
    *(_grid(number, _GRIDS[number]) for number in (7, 8)),
    *(_matrix(number) for number in (9, 10, 11)),
    Figure(
        "ctl/gap",
        "Groups kept apart, and accuracy on unseen transitions",
        "beside figures 3, 6 and 9 to 11",
        "A dot per run. Above: by how much functions of one group are more alike than those of different groups "
        "where they return the same symbol. Below: how much more of what works with a function its cluster explains "
        "than shuffled clusters would. Last weights.",
        gaps,
    ),
)

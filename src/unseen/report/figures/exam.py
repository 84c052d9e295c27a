"""Figures of the exam: what a model can do, between chance and the oracle, beside the reference backbones."""

from __future__ import annotations

from unseen.report.figure import Figure
from unseen.report.figures import exam_abilities, exam_matrix

FIGURES = (
    Figure(
        "exam/abilities",
        "Every ability",
        "ours",
        "Every dot is a run, hollow where it was still learning, a diamond where it has not learned in "
        "distribution. Ticks: means with their 95 % bootstrap intervals over runs; out of distribution of those "
        "that have learned. Grey, with their names: means of the reference backbones. Marked: chance, the best "
        "shortcut, the oracle. Weights best on validation.",
        exam_abilities.draw,
    ),
    Figure(
        "exam/matrix",
        "Models and abilities",
        "ours",
        "Means over the tests of an ability and over runs, 0 at chance and 1 at the oracle. Out of distribution of "
        "the runs that have learned in distribution. ○: some were still learning; a dashed frame: some runs had not "
        "learned, or none. Weights best on validation.",
        exam_matrix.draw,
    ),
)

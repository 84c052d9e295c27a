"""The figures of the gCOG paper, and ours on it."""

from __future__ import annotations

from functools import partial

from unseen.report.figure import Figure
from unseen.report.figures import gcog_answers as answers
from unseen.report.figures import gcog_models as models
from unseen.report.figures import gcog_pool as pool
from unseen.report.figures import gcog_splits as splits

_RUNS = "Every dot is a run, the mark below it the mean with its 95 % interval. "
_LAST = "The last weights of each run."
_CURVES = "Above: training loss and accuracy on fresh examples, against samples seen. Below: accuracy on the run's own "

FIGURES = (
    Figure(
        "gcog/figure2f",
        "How many numbers each model trains",
        "figure 2F",
        "Trained parameters of the models that were run.",
        models.draw_sizes,
    ),
    Figure(
        "gcog/figure3",
        "More distractors than in training",
        "figure 3",
        _CURVES + "training data, among as many distractors as trained (IID) and among more (OOD), each the mean "
        "over its numbers of distractors. " + _RUNS + _LAST,
        partial(splits.draw_splits, splits.FIGURE3),
    ),
    Figure(
        "gcog/figure4",
        "Operators with objects, or with each other, that they never met",
        "figure 4",
        _CURVES + "training data, on fresh questions of the kinds trained (IID) and on combinations that were not "
        "trained (OOD). " + _RUNS + _LAST,
        partial(splits.draw_splits, splits.FIGURE4),
    ),
    Figure(
        "gcog/figure5",
        "Deeper questions than in training",
        "figure 5",
        _CURVES + "training data and by the depth of the question. " + _RUNS + _LAST,
        partial(splits.draw_splits, splits.FIGURE5),
    ),
    Figure(
        "gcog/figure6",
        "More layers and more heads",
        "figure 6",
        "The BERT-like models by layers and heads: mean accuracy in distribution (IID) and on what is new (OOD), "
        "then OOD by layers and by heads, where a dot is a run. Numbers of distractors and depths, which the paper "
        "draws apart, are averaged. " + _LAST,
        models.draw_series,
    ),
    Figure(
        "gcog/figure7",
        "What training brings the states closer to",
        "figure 7",
        "How much closer to the stimuli, and to the targets, training brought the similarities of the states "
        "(distance before minus after; positive: closer). " + _RUNS + _LAST,
        models.draw_alignment,
    ),
    Figure(
        "gcog/figure9",
        "New trees, with relative positions",
        "figure 9",
        _CURVES + "training data, on fresh trees of the kinds trained (IID) and on others (OOD). " + _RUNS + _LAST,
        partial(splits.draw_splits, splits.FIGURE9),
    ),
    Figure(
        "gcog/figure10",
        "Deeper questions, with relative positions",
        "figure 10",
        _CURVES + "training data and by the depth of the question. " + _RUNS + _LAST,
        partial(splits.draw_splits, splits.FIGURE10),
    ),
    Figure(
        "gcog/figure11",
        "Deeper questions, trained on depth 1 alone",
        "figure 11",
        _CURVES + "training data and by the depth of the question. " + _RUNS + _LAST,
        partial(splits.draw_splits, splits.FIGURE11),
    ),
    Figure(
        "gcog/operators",
        "Which operators are right",
        "ours",
        "Accuracy by the operator whose answer is asked for, in distribution (IID) and on what is new (OOD). "
        + _RUNS
        + _LAST,
        answers.draw_operators,
    ),
    Figure(
        "gcog/kinds",
        "Which kinds of answers are right",
        "ours",
        "By the kind of the right answer: how many answers are right, and how many are at least of that kind. "
        + _RUNS
        + _LAST,
        answers.draw_kinds,
    ),
    Figure(
        "gcog/pool",
        "A fixed pool of questions, or fresh ones",
        "ours, on figure 4",
        "Accuracy on the run's own training data, on fresh questions and trees of the same kind (IID) and on new "
        "trees (OOD), by the number of different questions in training. " + _RUNS + _LAST,
        pool.draw_pool,
    ),
)

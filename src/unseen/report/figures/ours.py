"""Figures that fit any study, and the runs of `train`."""

from __future__ import annotations

from unseen.report.figure import Figure
from unseen.report.figures import (
    ours_conditions,
    ours_curves,
    ours_improvement,
    ours_seeds,
    ours_shares,
    ours_traces,
)

FIGURES = (
    Figure(
        "seeds",
        "Every seed",
        "ours",
        "Every dot is a run, hollow where it was still learning when training ended. Below: the mean with its 95 % "
        "bootstrap interval over runs. Dashed: what can be had without doing the task, and the oracle.",
        ours_seeds.draw,
    ),
    Figure(
        "conditions",
        "What changes outside the training distribution",
        "ours",
        "Means on every condition with their 95 % bootstrap intervals over runs, from the familiar on the left to "
        "the strange on the right. Dashed: the best that can be had without doing the task, and the oracle.",
        ours_conditions.draw,
    ),
    Figure(
        "curves",
        "Learning curves",
        "ours",
        "Means over runs on the validation data during training. Bands hold all runs (of more than 20 the middle "
        "95 %). Dots are the ends of runs, hollow where they were still learning. Dashed: the best that can be had "
        "without doing the task, and the oracle.",
        ours_curves.draw,
    ),
    Figure(
        "solved",
        "How many runs solve it",
        "ours",
        f"The share of runs with an accuracy of at least {ours_shares.SOLVED:.2f}, with Wilson's 95 % interval.",
        ours_shares.draw_solved,
    ),
    Figure(
        "profiles",
        "How many runs reach each score",
        "ours",
        "The share of runs at least as good as each score, with pointwise 95 % bootstrap bands.",
        ours_shares.draw_profiles,
    ),
    Figure(
        "improvement",
        "Which one is better",
        "ours",
        "The probability that a run of the row is better than a run of the column at the same place, a tie counting "
        "one half: the mean over places, from the places and seeds that both have.",
        ours_improvement.draw,
    ),
    Figure(
        "activation",
        "How modules share out the rules",
        "ours",
        "Activation matrices of the best and the worst run of each series, at the first place whose weights are "
        "kept: how much of each rule goes to each module. Framed: the best assignment of rules to modules. Weights "
        "best on validation, where they are kept.",
        ours_traces.draw_activation,
    ),
    Figure(
        "attention",
        "Where models look",
        "ours",
        "The best and the worst run of each series at the first place whose weights are kept. Left: where the query "
        "looks, example by example; letters are tokens with the queried features. Right, with self-attention: how "
        "tokens look at each other, the mean over these examples. Weights best on validation, where they are kept.",
        ours_traces.draw_attention,
    ),
)

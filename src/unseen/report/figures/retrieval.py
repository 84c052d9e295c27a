"""The tables and figures of the retrieval paper, and ours on it."""

from __future__ import annotations

from unseen.report.figure import Figure
from unseen.report.figures import retrieval_reading as reading
from unseen.report.figures import retrieval_tables as tables

_RUNS = "Every dot is a run, the mark below it the mean with its 95 % interval. "
_BEST = "The best weights of each run, on the paper's test (each queried feature occurs once)."

FIGURES = (
    Figure(
        "retrieval/table2",
        "What positions and self-attention give",
        "table 2",
        "Accuracy of the four variants on each task. " + _RUNS + _BEST,
        tables.draw_table2,
    ),
    Figure(
        "retrieval/table3",
        "Which of two tokens is read",
        "table 3",
        "The decoder's attention on the later minus that on the earlier of the two tokens that answer; beside the "
        "paper's, where the order is wrong. " + _RUNS + _BEST,
        tables.draw_table3,
    ),
    Figure(
        "retrieval/figure3",
        "Longer sequences",
        "figure 3",
        "Accuracy of models trained and tested at one length. Every dot is a run; lines join means with their 95 % "
        "intervals, where the paper has standard deviations. " + _BEST,
        tables.draw_lengths,
    ),
    Figure(
        "retrieval/positions",
        "Is a late feature harder to find?",
        "analysis of T1",
        "T1: accuracy on questions with answer yes, by the position of the queried feature. Every dot is a run; "
        "lines join means with their 95 % intervals. " + _BEST,
        reading.draw_positions,
    ),
    Figure(
        "retrieval/scenarios",
        "Which questions are missed",
        "analyses of T2 to T7",
        "Accuracy by scenario: whether the features of the question are there, in one token or two, in which order. "
        + _RUNS
        + _BEST,
        reading.draw_scenarios,
    ),
    Figure(
        "retrieval/reading",
        "Where the decoder looks",
        "analyses of T1 to T4",
        "Mean attention on single tokens; printed numbers are for all variants together. " + _RUNS + _BEST,
        reading.draw_reading,
    ),
    Figure(
        "retrieval/strategies",
        "How each seed solves its task",
        "ours",
        "Every dot is a run: how it reads (across) and how well it does (up). " + _BEST,
        reading.draw_strategies,
    ),
    Figure(
        "retrieval/noise",
        "Positions, or the dropout that comes with them",
        "ours, on table 2",
        "Accuracy with positions and embedding dropout crossed. " + _RUNS + _BEST,
        reading.draw_noise,
    ),
)

"""Figures on the gCOG paper: accuracy by operator and kind of answer, pools of questions, and the list of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from unseen.claims.papers import gcog_measures as measures
from unseen.claims.papers.gcog_measures import IID, OOD, OUTSIDE, SETTING, TRAINING
from unseen.report.charts import add_heading, stack_charts
from unseen.report.data import Source
from unseen.report.dot_plot import GUESSED, DotPanel, ValueAxis, dot_panels, panel_table
from unseen.report.figure import Drawing, Figure, run_notes
from unseen.report.figures import gcog_runs as data
from unseen.report.figures import gcog_splits as splits
from unseen.report.figures.gcog_models import draw_alignment, draw_layers, draw_sizes
from unseen.report.theme import title_of
from unseen.tasks.base import Task

OPERATOR, ANSWER_KIND, RIGHT_KIND = "operator", "answer_kind", "right_kind"
FIRST_KINDS = ("boolean", "location")
"""The kinds of answers that come first; the values of features follow."""
MAX_BLOCKS = 6
CHANCE_NOTE = f"'{GUESSED}' chance: a guess among the possible answers."
POOL_SPLITS = {TRAINING: "train", "IID, all questions": "iid", "IID, trees": "iid/depth=3", "OOD, trees": "ood/trees"}


# -- accuracy by operator and by kind of answer -----------------------------------------------------------------------


def draw_by_factor(source: Source, factor: str, metrics: Mapping[str, str]) -> Drawing | None:
    """Metrics by the levels of a factor, in and out of distribution, with a block for each setting of the study."""
    charts: list[Any] = []
    tables = []
    all_runs = []
    all_rows = []
    notes: list[str] = []
    settings = group_settings(source)
    for heading, runs in settings:
        rows = {metric: data.last_scores(source, runs, metric, factor) for metric in metrics}
        block = pd.concat(rows.values(), ignore_index=True)
        if block.empty or len(charts) == MAX_BLOCKS:
            continue
        task = runs["task"].iloc[0]
        # FIRST_KINDS come first, in their order; all other levels share the next rank and are sorted by name.
        levels = sorted(set(block["level"]), key=lambda level: ((*FIRST_KINDS, level).index(level), level))
        chance = chance_marks(source.task(runs["trial"].iloc[0]), factor, levels)
        panels = []
        for metric, title in metrics.items():
            distributions = data.by_distribution(rows[metric], task)
            for name in (IID, OOD):
                scores = distributions[name]
                if len(scores):
                    marks = chance if metric == "accuracy" else None
                    panels.append(DotPanel(f"{name}, {title}", scores.assign(row=scores["level"]), marks=marks))
        models = data.sort_models(block["series"])
        axis = ValueAxis("share of answers")
        width = min(300, 800 // len(panels) - 20)
        chart = dot_panels(panels, levels, models, axis, columns=len(panels), width=width)
        charts.append(add_heading(chart, heading if len(models) > 1 else f"{heading} · {models[0]}"))
        tables.append(panel_table(panels, factor, "model").assign(setting=heading))
        if chance is not None:
            notes.append(CHANCE_NOTE)
        notes += data.describe_unseen(source, runs, data.matching_splits(block, OUTSIDE[task]))
        all_runs.append(runs)
        all_rows.append(block)
    if not charts:
        return None
    if len(settings) > MAX_BLOCKS:
        notes.append(f"{MAX_BLOCKS} of {len(settings)} settings are drawn.")
    notes = [*run_notes(pd.concat(all_runs), pd.concat(all_rows), data.BOUND), *dict.fromkeys(notes)]
    return Drawing(stack_charts(charts), pd.concat(tables, ignore_index=True), tuple(notes))


def chance_marks(task: Task | None, factor: str, levels: Sequence[str]) -> pd.DataFrame | None:
    """The accuracy of a guess among the possible answers, as a mark for each level.

    >>> from unseen.tasks import task
    >>> chance_marks(task("gcog/distractor"), OPERATOR, ["Exist", "GetLocation"])["value"].tolist()
    [0.5, 0.01]
    """
    kinds = None if task is None else task.answer_kinds
    if kinds is None:
        return None
    operators = getattr(getattr(task, "domain", None), "operators", {})
    answers = [operators[level].answer if factor == OPERATOR else level for level in levels]
    sizes = pd.Series(kinds).value_counts()
    marks = pd.DataFrame({"row": list(levels), "value": [1 / sizes[kind] for kind in answers]})
    return marks.assign(mark=GUESSED, what="chance", say="chance")


def group_settings(source: Source) -> list[tuple[str, pd.DataFrame]]:
    """The runs on tasks of the paper in groups that differ only in model and seed, each with a heading."""
    runs = source.runs[source.runs["task"].isin(measures.TASKS)]
    axes = [axis for axis in source.axes if axis not in ("task", "model") and runs[axis].nunique() > 1]
    headings = []
    for run in runs.to_dict("records"):
        levels = [f"{axis} {title_of(run[axis], axis)}" for axis in axes if pd.notna(run[axis])]
        headings.append(" · ".join([run["task"], *levels]))
    groups = runs.groupby(pd.Series(headings, runs.index, dtype=object), sort=False)
    return [(str(heading), group) for heading, group in groups]


# -- pools of questions (the study `gcog-pool`) -----------------------------------------------------------------------


def draw_pool(source: Source) -> Drawing | None:
    """Accuracy by the number of different questions in training: a line of panels for each setting, pools in rows.

    All runs count in all means, because the figure compares what models learn from a pool with one budget.
    """
    runs = measures.pool_columns(source.runs)
    rows = data.last_scores(source, runs)
    if rows.empty:
        return None
    # A single model has no legend, and is named in the heading.
    single_model = runs["model"].nunique() == 1
    varied = [name for name in SETTING if (single_model if name == "model" else runs[name].nunique() > 1)]
    headings = []
    for run in rows.to_dict("records"):
        headings.append(" · ".join(str(run[name]) if name == "model" else f"{name} {run[name]}" for name in varied))
    pools = sort_pools(runs["pool"].tolist())
    models = data.sort_models(rows["series"])
    charts = []
    tables = []
    for heading, group in rows.groupby(pd.Series(headings, rows.index, dtype=object), sort=False):
        group_runs = runs[runs["trial"].isin(group["trial"])]
        panels = []
        for title, split in POOL_SPLITS.items():
            scores = group[group["split"] == split]
            if len(scores):
                references = data.references(source, group_runs, [split])
                scores = scores.assign(row=scores["pool"].astype(str))
                panels.append(DotPanel(title, scores, references, count_all=True))
        if not panels:
            continue
        present = set(group_runs["pool"].astype(str))
        shown_pools = [pool for pool in pools if pool in present]
        charts.append(add_heading(dot_panels(panels, shown_pools, models, columns=len(panels), width=160), heading))
        tables.append(panel_table(panels, "pool", "model").assign(setting=heading))
    if not charts:
        return None
    notes = run_notes(runs, rows, data.BOUND, counted=True)
    notes += data.describe_unseen(source, runs, ["ood/trees"])
    return Drawing(stack_charts(charts), pd.concat(tables, ignore_index=True), tuple(notes))


def sort_pools(pools: Sequence[object]) -> list[str]:
    """Pools from the smallest to the largest, then fresh questions.

    >>> sort_pools(["fresh", "20000", "2000"])
    ['2000', '20000', 'fresh']
    """
    sizes = {str(pool): float(str(pool)) if str(pool).isdigit() else float("inf") for pool in pools}
    return sorted(sizes, key=lambda pool: (sizes[pool], pool))


# -- the list of figures ----------------------------------------------------------------------------------------------

_DOTS = "Every dot is a run, the mark below it the mean with its 95 % interval. The last weights of each run."
_CURVES = (
    "Above: training loss and accuracy on fresh examples, against samples seen. Below: accuracy on the run's own "
    "training data"
)


def _splits_figure(number: int, title: str, below: str, blocks: Sequence[splits.SplitBlock]) -> Figure:
    caption = f"{_CURVES}{below}. {_DOTS}"
    return Figure(f"gcog/figure{number}", title, f"figure {number}", caption, partial(splits.draw_splits, blocks))


_BY_DEPTH = " and by the depth of the question"

FIGURES = (
    Figure(
        "gcog/figure2f",
        "The number of parameters of each model",
        "figure 2F",
        "Trained parameters of the models that were run.",
        draw_sizes,
    ),
    _splits_figure(
        3,
        "More distractors than in training",
        ", with as many distractors as in training (IID) and with more (OOD), each the mean over its numbers of "
        "distractors",
        splits.FIGURE3,
    ),
    _splits_figure(
        4,
        "New combinations of operators with objects or with each other",
        ", on fresh questions of the trained kinds (IID) and on combinations that were not trained (OOD)",
        splits.FIGURE4,
    ),
    _splits_figure(5, "Deeper questions than in training", _BY_DEPTH, splits.FIGURE5),
    Figure(
        "gcog/figure6",
        "More layers and more heads",
        "figure 6",
        "The BERT-like models by layers and heads: mean accuracy in distribution (IID) and out of distribution (OOD), "
        "then OOD by layers and by heads, where a dot is a run. Numbers of distractors and depths, which the paper "
        "draws separately, are averaged. The last weights of each run.",
        draw_layers,
    ),
    Figure(
        "gcog/figure7",
        "What training brings the states closer to",
        "figure 7",
        "How much closer to the stimuli, and to the targets, training brought the similarities of the states "
        f"(distance before minus after; positive: closer). {_DOTS}",
        draw_alignment,
    ),
    _splits_figure(
        9,
        "New trees, with relative positions",
        ", on fresh trees of the trained kinds (IID) and on others (OOD)",
        splits.FIGURE9,
    ),
    _splits_figure(10, "Deeper questions, with relative positions", _BY_DEPTH, splits.FIGURE10),
    _splits_figure(11, "Deeper questions, trained on depth 1 alone", _BY_DEPTH, splits.FIGURE11),
    Figure(
        "gcog/operators",
        "Accuracy by operator",
        "ours",
        f"Accuracy by the operator whose answer is asked for, in distribution (IID) and out of distribution (OOD). {_DOTS}",
        partial(draw_by_factor, factor=OPERATOR, metrics={"accuracy": "accuracy"}),
    ),
    Figure(
        "gcog/kinds",
        "Accuracy by kind of answer",
        "ours",
        f"By the kind of the right answer: the share of right answers, and of answers of the right kind. {_DOTS}",
        partial(draw_by_factor, factor=ANSWER_KIND, metrics={"accuracy": "accuracy", RIGHT_KIND: "of the right kind"}),
    ),
    Figure(
        "gcog/pool",
        "A fixed pool of questions, or fresh ones",
        "ours, on figure 4",
        "Accuracy on the run's own training data, on fresh questions and trees of the same kind (IID) and on new "
        f"trees (OOD), by the number of different questions in training. {_DOTS}",
        draw_pool,
    ),
)

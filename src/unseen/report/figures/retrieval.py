"""Tables and figures of the retrieval paper, and ours on it: the best weights on the paper's test.

Runs and scores are those that the claims of the family judge. Accuracy comes first, then the use of attention.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from unseen.analysis.attention import ANALYSES
from unseen.claims.papers import retrieval as claims
from unseen.claims.papers.retrieval import ATTENTION, BOTH, LENGTH, LSTM, LSTM_ATTENTION, TABLE2, TEST, VARIANTS
from unseen.names import name_in_family
from unseen.report.baselines import CHANCE, MAX_TASKS, mean_baselines, select_baselines, unseen_notes
from unseen.report.charts import ENDED, NOT_CONVERGED, concat_charts, widen
from unseen.report.data import Source
from unseen.report.dot_plot import PRINTED, DotPanel, ValueAxis, dot_panels, panel_table, panel_title, run_dots
from unseen.report.figure import Drawing, Figure, run_notes
from unseen.report.line_plot import NumberPanel, legend_channel, number_chart, number_table
from unseen.report.theme import load_altair

TASKS = tuple(f"retrieval/{name}" for name in claims.TABLE2)
MODELS = (*VARIANTS, LSTM, LSTM_ATTENTION)
LATER = {"R7/positive": "answer yes", "R7/wrong order": "wrong order"}
MARKS = f"'{PRINTED}' printed mean, thin line its standard deviation over five seeds."
SHORTCUTS = f"The dashed shortcut is the mean over up to {MAX_TASKS} lengths."
NOISE_ROWS = {
    ("none", "never"): "neither",
    ("none", "always"): "dropout alone",
    ("sinusoidal", "never"): "positions alone",
    ("sinusoidal", "always"): "positions and dropout",
}
"""The combinations of the axes `positions` and `embed_dropout`."""
ATTENTION_MEASURES = {
    "R1/correct": "T1: on the queried feature, if right",
    "R1/wrong": "T1: on the queried feature, if wrong",
    "R9/target": "T1: on the queried feature",
    "R4/yes/diff": "T2: lead of the first token",
    "R5/target": "T3: on the token that answers",
    "R6/favoured": "T4: on the favoured feature",
    "R6/other": "T4: on the other feature",
}
"""Means of attention over examples, with the titles of their panels."""
_LATER = ("R7/positive", "attention, later − earlier")
STRATEGIES = {
    "T1": ("R9/target", "attention on the queried feature"),
    "T2": ("R4/yes/diff", "lead of the first token"),
    "T3": ("R5/target", "attention on the token that answers"),
    "T4": ("R6/agreement where the rule errs", "agreement with one feature where that errs"),
    "T5": _LATER,
    "T6": _LATER,
    "T7": _LATER,
}
"""The measure that tells how a run solves each task, and its title."""


# -- runs and scores ---------------------------------------------------------------------------------------------------


def variant_runs(source: Source) -> pd.DataFrame:
    """The runs of a variant of the paper's models, with their `length` and the `short` name of their task."""
    runs = claims.columns(source.runs)
    runs = runs[runs["variant"].isin(MODELS)] if "variant" in runs else runs.iloc[:0]
    return runs.assign(short=runs["task"].map(name_in_family))


def table_runs(source: Source) -> pd.DataFrame:
    """Those at the length that is nearest to that of the paper's tables, as the claims choose it."""
    runs = variant_runs(source)
    if runs.empty:
        return runs
    lengths = runs["length"].astype(int)
    return runs[lengths == min(sorted(set(lengths)), key=lambda length: abs(length - LENGTH))]


def best_scores(
    source: Source, runs: pd.DataFrame, metric: str = "accuracy", factor: str = "", series: str = "variant"
) -> pd.DataFrame:
    """A metric of the best weights on the paper's test, overall or by the levels of a factor, joined to the runs.

    Adds `series`, and `state`, the state of the run. Rows without a value are left out.
    """
    if runs.empty:
        return runs
    rows = claims.select_test_records(source.records, metric, factor)
    state = np.where(runs["not_converged"] == 1, NOT_CONVERGED, ENDED)
    described = runs.assign(series=runs[series].astype(str), state=state)
    described = described.drop(columns=[name for name in ("level", "value") if name in described])
    scores = described.merge(rows[["trial", "level", "value"]], on="trial")
    return scores[scores["value"].notna()]


def sort_models(series: Iterable[str]) -> list[str]:
    """Distinct models in the order of the paper's table, others after them."""
    present = dict.fromkeys(series)
    return [*(name for name in MODELS if name in present), *(name for name in present if name not in MODELS)]


def baseline_references(source: Source, runs: pd.DataFrame) -> dict[str, float]:
    """Chance, the best shortcut and the oracle, averaged over the lengths of the runs."""
    return select_baselines(mean_baselines(source, runs["trial"], [TEST]))


def figure_notes(source: Source, runs: pd.DataFrame, rows: pd.DataFrame, *more: str) -> tuple[str, ...]:
    """The notes under a figure of `rows` of `runs`: on the runs, `more`, and what is unseen in the test."""
    unseen = unseen_notes(source.where(source.runs["trial"].isin(runs["trial"])), [TEST])
    return tuple(dict.fromkeys([*run_notes(runs, rows), *more, *unseen]))


def length_notes(runs: pd.DataFrame, printed: str = "") -> list[str]:
    """A note on the length if it is not the paper's; otherwise how printed numbers are drawn."""
    if has_paper_length(runs):
        return [printed] if printed else []
    lengths = " and ".join(map(str, sorted(set(runs["length"]))))
    return [f"Sequences of length {lengths}; the paper's numbers, for length {LENGTH}, are not drawn."]


def has_paper_length(runs: pd.DataFrame) -> bool:
    """Whether all runs are at the length for which the paper prints its numbers."""
    return bool(len(runs)) and bool((runs["length"] == LENGTH).all())


def accuracy_axis(rows: pd.DataFrame, *printed: float) -> ValueAxis:
    """Accuracies of a binary answer, from a little below chance or the lowest value that is drawn."""
    return ValueAxis("accuracy", (max(0.0, min([0.5, rows["value"].min(), *printed]) - 0.03), 1.0))


# -- accuracy ----------------------------------------------------------------------------------------------------------


def draw_table2(source: Source) -> Drawing | None:
    """Accuracy of the four variants, with a panel for each task."""
    runs = table_runs(source)
    runs = runs[runs["variant"].isin(VARIANTS)] if len(runs) else runs
    rows = best_scores(source, runs)
    if rows.empty:
        return None
    panels = []
    for task in TASKS:
        task_runs = runs[runs["task"] == task]
        scores = rows[rows["task"] == task]
        if scores.empty:
            continue
        name = name_in_family(task)
        marks = None
        if has_paper_length(task_runs):
            printed = zip(VARIANTS, TABLE2[name], strict=True)
            marks = _printed_marks([(variant, mean / 100, spread / 100) for variant, (mean, spread) in printed])
        panels.append(
            DotPanel(name, scores.assign(row=scores["series"]), baseline_references(source, task_runs), marks)
        )
    models = sort_models(rows["series"])
    axis = accuracy_axis(rows, *(panel.marks["low"].min() for panel in panels if panel.marks is not None))
    chart = dot_panels(panels, models, models, axis, columns=4, width=160)
    table = panel_table(panels, "variant").rename(columns={"panel": "task"})
    return Drawing(chart, table, figure_notes(source, runs, rows, *length_notes(runs, MARKS)))


def draw_table3(source: Source) -> Drawing | None:
    """Attention differences on tasks with two tokens to attend to: for positive answers, then for wrong order."""
    analysis = ANALYSES["R7"]
    runs = table_runs(source)
    if runs.empty:
        return None
    runs = runs[runs["variant"].isin(VARIANTS) & runs["task"].isin(analysis.tasks)]
    panels = []
    shown = []
    for metric, description in LATER.items():
        scores = best_scores(source, runs, metric)
        shown.append(scores)
        for task in analysis.tasks:
            rows = scores[scores["task"] == task] if len(scores) else scores
            if rows.empty:
                continue
            marks = None
            if metric == "R7/positive" and has_paper_length(runs[runs["task"] == task]):
                printed = []
                for number in analysis.published:
                    if number.task == task:
                        printed.append((number.variant.replace("-", "−"), number.value, number.spread or 0.0))
                marks = _printed_marks(printed)
            title = f"{name_in_family(task)}, {description}"
            panels.append(DotPanel(title, rows.assign(row=rows["series"]), {"both alike": 0.0}, marks))
    if not panels:
        return None
    rows = pd.concat(shown, ignore_index=True)
    models = sort_models(rows["series"])
    axis = ValueAxis("attention, later − earlier", (-1.0, 1.0), ".2f")
    chart = dot_panels(panels, models, models, axis, columns=3, width=210)
    notes = figure_notes(source, runs, rows, *length_notes(runs, MARKS))
    return Drawing(chart, panel_table(panels, "variant"), notes)


def _printed_marks(numbers: list[tuple[str, float, float]]) -> pd.DataFrame:
    """Printed means with their standard deviations, given as (variant, mean, deviation), as marks of a panel."""
    marks = pd.DataFrame(numbers, columns=["row", "value", "spread"])
    spread = marks.pop("spread")
    marks = marks.assign(low=marks["value"] - spread, high=marks["value"] + spread)
    return marks.assign(mark=PRINTED, what="printed", say="printed mean")


def draw_lengths(source: Source) -> Drawing | None:
    """Accuracy against length, with a panel for each task; None if there is one length."""
    runs = variant_runs(source)
    if runs.empty or runs["length"].nunique() < 2:
        return None
    rows = best_scores(source, runs)
    if rows.empty:
        return None
    rows = rows.assign(number=rows["length"].astype(float))
    models = sort_models(rows["series"])
    axis = accuracy_axis(rows)
    width = widen(185, 4, rows["task"].nunique())
    charts = []
    tables = []
    for task in TASKS:
        scores = rows[rows["task"] == task]
        if len(scores):
            panel = NumberPanel(name_in_family(task), scores, baseline_references(source, scores))
            charts.append(number_chart(panel, models, "length", axis, width=width))
            tables.append(number_table(panel, "variant", "length").rename(columns={"panel": "task"}))
    chart = concat_charts(charts, 4, {"column": 20, "row": 26})
    return Drawing(chart, pd.concat(tables, ignore_index=True), figure_notes(source, runs, rows, SHORTCUTS))


def draw_scenarios(source: Source) -> Drawing | None:
    """Accuracy by scenario, with a panel for each task."""
    runs = table_runs(source)
    rows = best_scores(source, runs, "accuracy", "scenario")
    if rows.empty:
        return None
    models = sort_models(rows["series"])
    width = widen(200, 3, rows["task"].nunique())
    panels = []
    charts = []
    for task in TASKS:
        scores = rows[rows["task"] == task]
        if len(scores):
            panel = DotPanel(name_in_family(task), scores.assign(row=scores["level"]), {CHANCE: 0.5})
            levels = sorted(set(scores["level"]), reverse=True)  # "yes" before "no"
            panels.append(panel)
            charts.append(dot_panels([panel], levels, models, columns=1, width=width))
    chart = concat_charts(charts, 3, {"column": 30, "row": 28})
    table = panel_table(panels, "scenario", "variant").rename(columns={"panel": "task"})
    return Drawing(chart, table, figure_notes(source, runs, rows, *length_notes(runs)))


def draw_noise(source: Source) -> Drawing | None:
    """Positions and the dropout that comes with them, crossed: two panels for each task."""
    runs = source.runs[source.runs["task"].isin(TASKS)]
    if runs.empty or not {"positions", "embed_dropout", "self_attention"} <= set(runs):
        return None
    combinations = runs[["positions", "embed_dropout"]].apply(tuple, axis=1)
    crossed = combinations.isin(list(NOISE_ROWS)) & runs["self_attention"].notna()
    runs = runs[crossed]
    attending = runs["self_attention"].map({True: "with self-attention", False: "without self-attention"})
    labelled = runs.assign(way=combinations[crossed].map(NOISE_ROWS), attending=attending)
    rows = best_scores(source, labelled, series="way")
    if rows.empty:
        return None
    labels = [name for name in NOISE_ROWS.values() if name in set(rows["series"])]
    axis = ValueAxis("accuracy", (max(0.0, float(np.floor(20 * rows["value"].min() - 0.2) / 20)), 1.0))
    panels = []
    for task in TASKS:
        for attention in ("without self-attention", "with self-attention"):
            scores = rows[(rows["task"] == task) & (rows["attending"] == attention)]
            if len(scores):
                title = f"{name_in_family(task)}, {attention}"
                references = baseline_references(source, runs[runs["task"] == task])
                panels.append(DotPanel(title, scores.assign(row=scores["series"]), references))
    chart = dot_panels(panels, labels, labels, axis, columns=2, width=300)
    return Drawing(chart, panel_table(panels, "way"), figure_notes(source, runs, rows))


# -- attention ---------------------------------------------------------------------------------------------------------


def draw_reading(source: Source) -> Drawing | None:
    """Where the decoder attends: a panel for each measure, with the numbers printed for all variants together."""
    runs = table_runs(source)
    panels = []
    tables = []
    for name, title in ATTENTION_MEASURES.items():
        rows = best_scores(source, runs, name)
        if len(rows):
            printed = _printed_references(name) if has_paper_length(runs) else {}
            panels.append(DotPanel(title, rows.assign(row=rows["series"]), printed))
            tables.append(rows)
    if not panels:
        return None
    shown = pd.concat(tables, ignore_index=True)
    models = sort_models(shown["series"])
    chart = dot_panels(panels, models, models, ValueAxis("attention", format=".2f"), columns=3, width=230)
    notes = figure_notes(source, runs[runs["task"].isin(shown["task"])], shown, *length_notes(runs))
    return Drawing(chart, panel_table(panels, "variant"), notes)


def _printed_references(name: str) -> dict[str, float]:
    """The number printed for all variants together; of a range its two bounds."""
    analysis, _, measure = name.partition("/")
    for number in ANALYSES[analysis].published:
        if number.measure == measure and number.variant == "all":
            if number.high is None:
                return {"printed": number.value}
            return {"printed from": number.value, "to": number.high}
    return {}


def draw_positions(source: Source) -> Drawing | None:
    """T1: accuracy by the position of the queried feature, for variants with and without self-attention."""
    runs = table_runs(source)
    rows = best_scores(source, runs, "R2/accuracy", "position")
    if rows.empty:
        return None
    rows = rows.assign(number=rows["level"].astype(float))
    transformer = rows["series"].isin(VARIANTS)
    with_attention = rows["series"].isin([ATTENTION, BOTH])
    groups = {
        "with self-attention": rows[with_attention],
        "without": rows[~with_attention & transformer],
        "LSTMs": rows[~transformer],
    }
    models = sort_models(rows["series"])
    axis = ValueAxis("accuracy", (max(0.0, float(np.floor(20 * rows["value"].min() - 0.2) / 20)), 1.0))
    width = widen(280, 3, sum(not group.empty for group in groups.values()))
    charts = []
    tables = []
    correlations = []
    for title, group in groups.items():
        if group.empty:
            continue
        panel = NumberPanel(title, group)
        charts.append(number_chart(panel, models, "position", axis, width=width))
        tables.append(number_table(panel, "variant", "position"))
        value = correlate(group)
        if not np.isnan(value):
            correlations.append(f"{title} {value:.2f}".replace(" -", " −"))
    notes = length_notes(runs)
    if correlations:
        notes.append(
            f"Correlation of position and accuracy over runs and positions: {', '.join(correlations)}; printed for "
            "length 10: −0.51 with self-attention, negligible without."
        )
    notes = [*figure_notes(source, runs[runs["task"] == "retrieval/T1"], rows, *notes)]
    return Drawing(concat_charts(charts, 3, 24), pd.concat(tables, ignore_index=True), tuple(notes))


def correlate(points: pd.DataFrame) -> float:
    """Pearson's correlation of `number` and `value`; NaN if either is constant.

    >>> correlate(pd.DataFrame({"number": [0, 1, 2], "value": [0.9, 0.8, 0.7]})).__round__(2)
    -1.0
    """
    if points["number"].nunique() < 2 or points["value"].nunique() < 2:
        return float("nan")
    return float(np.corrcoef(points["number"], points["value"])[0, 1])


def draw_strategies(source: Source) -> Drawing | None:
    """Each seed by its attention and its accuracy: seeds that settle on different strategies are apart."""
    runs = table_runs(source)
    accuracy = best_scores(source, runs)
    if accuracy.empty:
        return None
    alt = load_altair()
    models = sort_models(accuracy["series"])
    axis = accuracy_axis(accuracy)
    y_axis = alt.Axis(format=".0%", tickCount=5, domain=False)
    y = alt.Y("value:Q", title="accuracy", scale=axis.scale(), axis=y_axis)
    charts = []
    tables = []
    for task, (metric, title) in STRATEGIES.items():
        strategy = best_scores(source, runs[runs["short"] == task], metric)
        if strategy.empty:
            continue
        strategy = strategy[["trial", "value"]].rename(columns={"value": "strategy"})
        rows = accuracy.merge(strategy, on="trial")
        if rows.empty:
            continue
        lowest = -1 if metric == _LATER[0] else 0  # a difference
        x_axis = alt.Axis(tickCount=5, domain=False, format="~r")
        x = alt.X("strategy:Q", title=title, scale=alt.Scale(domain=[lowest, 1]), axis=x_axis)
        dots = run_dots(rows, models, axis.format).encode(x=x, y=y, color=legend_channel(models))
        charts.append(alt.layer(dots, panel_title(task)).properties(height=180))
        table = rows[["variant", "seed", "strategy", "value", "state"]]
        tables.append(table.assign(task=task, measure=metric, runs=1))
    if not charts:
        return None
    for chart in charts:
        chart.width = widen(175, 4, len(charts))
    table = pd.concat(tables, ignore_index=True)
    selected_runs = runs[runs["short"].isin(table["task"])]
    selected_rows = accuracy[accuracy["short"].isin(table["task"])]
    notes = figure_notes(source, selected_runs, selected_rows, *length_notes(runs))
    chart = concat_charts(charts, 4, {"column": 20, "row": 26})
    return Drawing(chart, table.rename(columns={"value": "accuracy"}), notes)


# -- the list of figures -----------------------------------------------------------------------------------------------

_DOTS = "Every dot is a run, the mark below it the mean with its 95 % interval. "
_LINES = "Every dot is a run; lines join means with their 95 % intervals"
_BEST = "The best weights of each run, on the paper's test (each queried feature occurs once)."

FIGURES = (
    Figure(
        "retrieval/table2",
        "The effect of positions and self-attention",
        "table 2",
        f"Accuracy of the four variants on each task. {_DOTS}{_BEST}",
        draw_table2,
    ),
    Figure(
        "retrieval/table3",
        "Which of two tokens is attended to",
        "table 3",
        "The decoder's attention on the later minus that on the earlier of the two tokens that decide the answer; beside "
        f"the paper's, for tokens in the wrong order. {_DOTS}{_BEST}",
        draw_table3,
    ),
    Figure(
        "retrieval/figure3",
        "Longer sequences",
        "figure 3",
        f"Accuracy of models trained and tested at one length. {_LINES}, where the paper has standard deviations. {_BEST}",
        draw_lengths,
    ),
    Figure(
        "retrieval/positions",
        "Is a late feature harder to find?",
        "analysis of T1",
        f"T1: accuracy on questions with answer yes, by the position of the queried feature. {_LINES}. {_BEST}",
        draw_positions,
    ),
    Figure(
        "retrieval/scenarios",
        "Which questions are missed",
        "analyses of T2 to T7",
        "Accuracy by scenario: whether the queried features are present, in one token or two, and in which order. "
        f"{_DOTS}{_BEST}",
        draw_scenarios,
    ),
    Figure(
        "retrieval/reading",
        "Where the decoder attends",
        "analyses of T1 to T4",
        f"Mean attention on single tokens; printed numbers are for all variants together. {_DOTS}{_BEST}",
        draw_reading,
    ),
    Figure(
        "retrieval/strategies",
        "How each seed solves its task",
        "ours",
        f"Every dot is a run: its attention (horizontal) and its accuracy (vertical). {_BEST}",
        draw_strategies,
    ),
    Figure(
        "retrieval/noise",
        "Positions, or the dropout that comes with them",
        "ours, on table 2",
        f"Accuracy with positions and embedding dropout crossed. {_DOTS}{_BEST}",
        draw_noise,
    ),
)

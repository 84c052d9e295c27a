"""How the models of the retrieval paper read a sequence: analyses R1 to R9 run by run, and the noise of positions."""

from __future__ import annotations

import numpy as np
import pandas as pd

from unseen.metrics.analyses import ANALYSES
from unseen.report import theme
from unseen.report.figure import Drawing
from unseen.report.figures import retrieval_runs as data
from unseen.report.figures.lines import Course, course_panel, course_table, legend
from unseen.report.figures.retrieval_tables import accuracy
from unseen.report.figures.rows import Measure, Panel, panel_title, row_panels, run_dots, table
from unseen.report.references import CHANCE
from unseen.report.source import Source
from unseen.studies.claims.retrieval import VARIANTS

READ = {
    "R1/correct": "T1: on the queried feature, if right",
    "R1/wrong": "T1: on the queried feature, if wrong",
    "R9/target": "T1: on the queried feature",
    "R4/yes/diff": "T2: lead of the first token",
    "R5/target": "T3: on the token that answers",
    "R6/favoured": "T4: on the favoured feature",
    "R6/other": "T4: on the other feature",
}
"""Measures of attention that a model has on average, and what they are in words."""
STRATEGIES = {
    "T1": ("R9/target", "attention on the queried feature"),
    "T2": ("R4/yes/diff", "lead of the first token"),
    "T3": ("R5/target", "attention on the token that answers"),
    "T4": ("R6/agreement where the rule errs", "agreement with one feature where that errs"),
    "T5": ("R7/positive", "attention, later − earlier"),
    "T6": ("R7/positive", "attention, later − earlier"),
    "T7": ("R7/positive", "attention, later − earlier"),
}
"""What tells how a run solves a task."""
NOISE = ("positions", "embed_dropout", "self_attention")
_NOISE_ROWS = {
    ("none", "never"): "neither",
    ("none", "always"): "dropout alone",
    ("sinusoidal", "never"): "positions alone",
    ("sinusoidal", "always"): "positions and dropout",
}


def draw_reading(source: Source) -> Drawing | None:
    """Where the decoder looks: a panel for each measure, with what is printed for all variants together."""
    runs = data.at_length(data.of_variants(source))
    found = {name: rows for name in READ if len(runs) and len(rows := data.best(source, runs, name))}
    if not found:
        return None
    panels = [
        Panel(READ[name], rows.assign(row=rows["series"]), _printed(name) if data.papers_length(runs) else {})
        for name, rows in found.items()
    ]
    shown = pd.concat(found.values(), ignore_index=True)
    models = data.order(shown["series"].tolist())
    chart = row_panels(panels, models, models, Measure("attention", shown=".2f"), columns=3, width=230)
    return Drawing(
        chart,
        table(panels, "variant"),
        data.notes(source, runs[runs["task"].isin(shown["task"])], shown, *data.length_note(runs)),
    )


def _printed(name: str) -> dict[str, float]:
    """What is printed for all variants together, by name; of a range its two ends."""
    analysis, _, measure = name.partition("/")
    for one in ANALYSES[analysis].published:
        if one.measure == measure and one.variant == "all":
            return {"printed": one.value} if one.high is None else {"printed from": one.value, "to": one.high}
    return {}


def draw_positions(source: Source) -> Drawing | None:
    """T1: accuracy by the position of the queried feature, variants with self-attention beside those without."""
    runs = data.at_length(data.of_variants(source))
    rows = data.best(source, runs, "R2/accuracy", "position") if len(runs) else runs
    if rows.empty:
        return None
    rows = rows.assign(number=rows["level"].astype(float))
    with_attention = rows["series"].str.endswith("+Att") & rows["series"].isin(VARIANTS)
    groups = {
        "with self-attention": rows[with_attention],
        "without": rows[~with_attention & rows["series"].isin(VARIANTS)],
        "LSTMs": rows[~rows["series"].isin(VARIANTS)],
    }
    models, measure = data.order(rows["series"].tolist()), Measure("accuracy", (_floor(rows["value"]), 1.0))
    courses = [Course(name, group) for name, group in groups.items() if len(group)]
    alt = theme.load_altair()
    chart = alt.concat(
        *(course_panel(course, models, "position", measure, width=280) for course in courses), columns=3, spacing=24
    ).resolve_scale(color="shared", fill="shared", shape="shared")
    found = {course.title: correlation(course.runs) for course in courses}
    told = ", ".join(f"{name} {value:.2f}".replace(" -", " −") for name, value in found.items() if not np.isnan(value))
    said = (
        [
            f"Correlation of position and accuracy over runs and positions: {told}; printed for length 10: −0.51 with "
            "self-attention, none to speak of without."
        ]
        if told
        else []
    )
    whole = pd.concat([course_table(course, "variant", "position") for course in courses], ignore_index=True)
    return Drawing(
        chart, whole, data.notes(source, runs[runs["task"] == "retrieval/T1"], rows, *data.length_note(runs), *said)
    )


def correlation(points: pd.DataFrame) -> float:
    """Pearson's, of `number` and `value`; NaN where either does not vary.

    >>> correlation(pd.DataFrame({"number": [0, 1, 2], "value": [0.9, 0.8, 0.7]})).__round__(2)
    -1.0
    """
    if points["number"].nunique() < 2 or points["value"].nunique() < 2:
        return float("nan")
    return float(np.corrcoef(points["number"], points["value"])[0, 1])


def _floor(values: pd.Series) -> float:
    return max(0.0, float(np.floor(20 * values.min() - 0.2) / 20))


def draw_scenarios(source: Source) -> Drawing | None:
    """Which questions are missed: accuracy by scenario, a panel for each task."""
    runs = data.at_length(data.of_variants(source))
    rows = data.best(source, runs, "accuracy", "scenario") if len(runs) else runs
    if rows.empty:
        return None
    models = data.order(rows["series"].tolist())
    charts, panels = [], []
    for task in data.TASKS:
        found = rows[rows["task"] == task]
        if len(found):
            panels.append(Panel(task.removeprefix("retrieval/"), found.assign(row=found["level"]), {CHANCE: 0.5}))
            levels = sorted(set(found["level"]), reverse=True)  # yes before no
            charts.append(row_panels(panels[-1:], levels, models, columns=1, width=200))
    alt = theme.load_altair()
    chart = alt.concat(*charts, columns=3, spacing={"column": 30, "row": 28}).resolve_scale(
        color="shared", fill="shared", shape="shared"
    )
    whole = table(panels, "scenario", "variant").rename(columns={"panel": "task"})
    return Drawing(chart, whole, data.notes(source, runs, rows, *data.length_note(runs)))


def draw_strategies(source: Source) -> Drawing | None:
    """Each seed by how it reads and how well it does: seeds that settle on different strategies stand apart."""
    runs = data.at_length(data.of_variants(source))
    right = data.best(source, runs) if len(runs) else runs
    if right.empty:
        return None
    alt = theme.load_altair()
    charts, tables, models = [], [], data.order(right["series"].tolist())
    measure = accuracy([right["value"].min()], [])
    for short, (metric, words) in STRATEGIES.items():
        how = data.best(source, runs[runs["short"] == short], metric)[["cell", "value"]]
        found = right.merge(how.rename(columns={"value": "strategy"}), on="cell")
        if found.empty:
            continue
        signed = metric.startswith("R7")
        x = alt.X(
            "strategy:Q",
            title=words,
            scale=alt.Scale(domain=[-1 if signed else 0, 1]),
            axis=alt.Axis(tickCount=5, domain=False, format="~r"),
        )
        y = alt.Y(
            "value:Q",
            title="accuracy",
            scale=alt.Scale(domain=list(measure.domain), nice=False),
            axis=alt.Axis(format=".0%", tickCount=5, domain=False),
        )
        dots = run_dots(alt, found, models, measure.shown).encode(x=x, y=y, color=legend(alt, models))
        charts.append(alt.layer(dots, panel_title(alt, short)).properties(width=175, height=180))
        told = found[["variant", "seed", "strategy", "value", "state"]]
        tables.append(told.assign(task=short, measure=metric, runs=1))
    if not charts:
        return None
    chart = alt.concat(*charts, columns=4, spacing={"column": 20, "row": 26}).resolve_scale(
        color="shared", fill="shared", shape="shared"
    )
    whole = pd.concat(tables, ignore_index=True)
    shown, meant = (one[one["short"].isin(whole["task"])] for one in (right, runs))
    return Drawing(
        chart, whole.rename(columns={"value": "accuracy"}), data.notes(source, meant, shown, *data.length_note(runs))
    )


def draw_noise(source: Source) -> Drawing | None:
    """Positions and the dropout that comes with them, crossed: a block for each task."""
    runs = source.runs[source.runs["task"].isin(data.TASKS)]
    if runs.empty or not set(NOISE) <= set(runs):
        return None
    known = runs[list(NOISE[:2])].apply(tuple, axis=1).isin(list(_NOISE_ROWS)) & runs["self_attention"].notna()
    runs = runs[known]
    crossed = runs.assign(
        way=[_NOISE_ROWS[pair] for pair in zip(runs["positions"], runs["embed_dropout"], strict=True)],
        attending=runs["self_attention"].map(lambda on: "with self-attention" if on else "without self-attention"),
    )
    rows = data.best(source, crossed, series="way")
    if rows.empty:
        return None
    ways = [name for name in _NOISE_ROWS.values() if name in set(rows["series"])]
    measure = Measure("accuracy", (_floor(rows["value"]), 1.0))
    panels = []
    for task in data.TASKS:
        for attending in ("without self-attention", "with self-attention"):
            found = rows[(rows["task"] == task) & (rows["attending"] == attending)]
            if len(found):
                lines = data.shortcut_lines(source, runs[runs["task"] == task])
                panels.append(
                    Panel(f"{task.removeprefix('retrieval/')}, {attending}", found.assign(row=found["series"]), lines)
                )
    chart = row_panels(panels, ways, ways, measure, columns=2, width=300)
    return Drawing(chart, table(panels, "way"), data.notes(source, runs, rows))

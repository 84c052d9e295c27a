"""Tables 2 and 3 and figure 3 of the retrieval paper: accuracy, attention differences, accuracy against length."""

from __future__ import annotations

import pandas as pd

from unseen.metrics.analyses import ANALYSES
from unseen.report import theme
from unseen.report.figure import Drawing
from unseen.report.figures import retrieval_runs as data
from unseen.report.figures.lines import Course, course_panel, course_table
from unseen.report.figures.rows import PRINTED, Measure, Panel, row_panels, table
from unseen.report.references import TASKS
from unseen.report.source import Source
from unseen.studies.claims.retrieval import TABLE2, VARIANTS

LATER = {"R7/positive": "answer yes", "R7/wrong order": "wrong order"}
MARKS = f"'{PRINTED}' printed mean, thin line its standard deviation over five seeds."
SHORTCUTS = f"The dashed shortcut is the mean over up to {TASKS} lengths."
ACROSS = 4


def draw_table2(source: Source) -> Drawing | None:
    """A panel for each task."""
    runs = data.at_length(data.of_variants(source))
    runs = runs[runs["variant"].isin(VARIANTS)] if len(runs) else runs
    rows = data.best(source, runs) if len(runs) else runs
    if rows.empty:
        return None
    panels = []
    for task in data.TASKS:
        own, found = runs[runs["task"] == task], rows[rows["task"] == task]
        if len(found):
            lines, marks = data.shortcut_lines(source, own), _table2(task) if data.papers_length(own) else None
            panels.append(Panel(_short(task), found.assign(row=found["series"]), lines, marks))
    models = data.order(rows["series"].tolist())
    measure = accuracy([panel.runs["value"].min() for panel in panels], [panel.marks for panel in panels])
    chart = row_panels(panels, models, models, measure, columns=ACROSS, width=160)
    return Drawing(
        chart,
        table(panels, "variant").rename(columns={"panel": "task"}),
        data.notes(source, runs, rows, *data.length_note(runs, MARKS)),
    )


def draw_table3(source: Source) -> Drawing | None:
    """Panels for the tasks with two tokens to attend to: where the answer is yes, then where their order is wrong."""
    runs = data.at_length(data.of_variants(source))
    runs = runs[runs["variant"].isin(VARIANTS) & runs["task"].isin(ANALYSES["R7"].tasks)] if len(runs) else runs
    found = {metric: data.best(source, runs, metric) for metric in LATER} if len(runs) else {}
    panels = []
    for metric, words in LATER.items():
        for task in ANALYSES["R7"].tasks:
            rows = found[metric][found[metric]["task"] == task] if found else pd.DataFrame()
            if len(rows):
                own = runs[runs["task"] == task]
                marks = _table3(task) if metric == "R7/positive" and data.papers_length(own) else None
                panels.append(
                    Panel(f"{_short(task)}, {words}", rows.assign(row=rows["series"]), {"both alike": 0.0}, marks)
                )
    if not panels:
        return None
    shown = pd.concat(found.values(), ignore_index=True)
    models = data.order(shown["series"].tolist())
    measure = Measure("attention, later − earlier", (-1.0, 1.0), ".2f")
    chart = row_panels(panels, models, models, measure, columns=3, width=210)
    return Drawing(chart, table(panels, "variant"), data.notes(source, runs, shown, *data.length_note(runs, MARKS)))


def draw_lengths(source: Source) -> Drawing | None:
    """Accuracy against length, a panel for each task; nothing where one length was meant."""
    runs = data.of_variants(source)
    if runs.empty or runs["length"].nunique() < 2:
        return None
    rows = data.best(source, runs)
    if rows.empty:
        return None
    rows = rows.assign(number=rows["length"].astype(float))
    models, alt = data.order(rows["series"].tolist()), theme.load_altair()
    measure = accuracy([rows["value"].min()], [])
    charts, tables = [], []
    for task in data.TASKS:
        found = rows[rows["task"] == task]
        if len(found):
            course = Course(_short(task), found, data.shortcut_lines(source, found))
            charts.append(course_panel(course, models, "length", measure, width=185))
            tables.append(course_table(course, "variant", "length").rename(columns={"panel": "task"}))
    chart = alt.concat(*charts, columns=ACROSS, spacing={"column": 20, "row": 26}).resolve_scale(
        color="shared", fill="shared", shape="shared"
    )
    return Drawing(chart, pd.concat(tables, ignore_index=True), data.notes(source, runs, rows, SHORTCUTS))


def accuracy(lowest: list[float], marks: list[pd.DataFrame | None]) -> Measure:
    """Accuracies of a binary answer, from a little below chance or the least that is drawn."""
    printed = [float(one["low"].min()) for one in marks if one is not None]
    return Measure("accuracy", (max(0.0, min([0.5, *lowest, *printed]) - 0.03), 1.0))


def _short(task: str) -> str:
    return task.removeprefix("retrieval/")


def _table2(task: str) -> pd.DataFrame:
    """The printed accuracies of a task as marks."""
    return _marks(
        [
            (variant, value / 100, spread / 100)
            for variant, (value, spread) in zip(VARIANTS, TABLE2[_short(task)], strict=True)
        ]
    )


def _table3(task: str) -> pd.DataFrame:
    """The printed differences of a task as marks."""
    return _marks(
        [
            (one.variant.replace("-", "−"), one.value, one.spread or 0.0)
            for one in ANALYSES["R7"].published
            if one.task == task
        ]
    )


def _marks(printed: list[tuple[str, float, float]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "row": row,
                "value": value,
                "low": value - spread,
                "high": value + spread,
                "mark": PRINTED,
                "what": "printed",
                "say": "printed mean",
            }
            for row, value, spread in printed
        ]
    )

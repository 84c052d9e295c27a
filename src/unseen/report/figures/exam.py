"""Figures of the exam: scores of a model by ability, between chance and the oracle, beside reference backbones."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from unseen.exam.exam import ABILITIES, INSIDE, METRICS, readings
from unseen.report.baselines import CHANCE, ORACLE
from unseen.report.charts import (
    ENDED,
    NOT_CONVERGED,
    NOT_LEARNED,
    colour_channel,
    contrasting_ink,
    count_tooltips,
    heat_scale,
    mean_tooltips,
    number_tooltips,
)
from unseen.report.data import Source, means
from unseen.report.dot_plot import run_dots, spread_dots
from unseen.report.exam_scores import REFERENCE, ExamResults, normalise_scores, read_exam
from unseen.report.figure import Drawing, Figure
from unseen.report.theme import GREY, load_altair

NAME_LINES = 4
"""Lines over which the names of references are distributed, so that neighbours do not overlap."""
BOUNDS = {CHANCE: ("chance", "cross"), "ceiling": ("best shortcut", "triangle-left"), ORACLE: ("oracle", "square")}
"""The columns of bounds, with their titles and symbols."""
NO_ACTIVATIONS, MISSING = "not reported", "missing"
"""The text of a cell without a score, because of activations that a model does not report or for another reason."""


# -- every ability ----------------------------------------------------------------------------------------------------


def draw_abilities(source: Source) -> Drawing | None:
    """A row per ability and test: runs, means with intervals, references and bounds."""
    results = read_exam(source)
    if results is None:
        return None
    table = _abilities_table(results)
    present = set(table["row"])
    rows = [_row_label(reading.ability, reading.test) for reading in readings(source.scale)]
    rows = [row for row in rows if row in present]
    models = list(dict.fromkeys(results.scores["model"]))
    return Drawing(_abilities_chart(table, rows, models), table.drop(columns="row"), results.notes)


def _row_label(ability: str, test: str) -> str:
    return f"{ability} · {test}"


def _abilities_table(results: ExamResults) -> pd.DataFrame:
    """A line per run, per mean of the exam's models and of the references, and per bound: `what` says which."""
    states = []
    scores = results.scores
    for learned, ability, not_converged in zip(
        scores["learned"], scores["ability"], scores["not_converged"], strict=True
    ):
        state = NOT_CONVERGED if not_converged else ENDED
        states.append(NOT_LEARNED if not learned and ability != INSIDE else state)
    tables = [scores.assign(what="run", state=states)]
    counted = results.counted
    for group, kind in (("exam", "mean"), (REFERENCE, REFERENCE)):
        mean = means(counted[counted["group"] == group], ["ability", "test", "model"])
        tables.append(mean.rename(columns={"mean": "value"}).assign(what=kind))
    bounds = results.bounds.melt(["ability", "test", "shortcut"], list(BOUNDS), "what", "value").dropna(subset="value")
    tables.append(bounds.assign(shortcut=bounds["shortcut"].where(bounds["what"] == "ceiling", "")))
    columns = ["what", "ability", "test", "model", "seed", "value", "low", "high"]
    columns += ["runs", "not_converged", "state", "shortcut"]
    table = pd.concat([rows for rows in tables if len(rows)], ignore_index=True).reindex(columns=columns)
    labels = [_row_label(ability, test) for ability, test in zip(table["ability"], table["test"], strict=True)]
    return table.assign(row=labels)


def _abilities_chart(table: pd.DataFrame, rows: list[str], models: list[str]) -> Any:
    alt = load_altair()
    references = table[table["what"] == REFERENCE]
    name_lines = [f"reference {line}" for line in range(NAME_LINES if len(references) else 0)]
    # Each row has a line for each model, one for the bounds, and those of the references.
    lines = [*models, "bounds", *name_lines]
    x_scale = alt.Scale(domain=[min(0.0, float(table["value"].min())), 1.0], nice=False)
    y_axis = alt.Axis(ticks=False, domain=False, grid=True, labelPadding=8, bandPosition=0)
    y = alt.Y("row:N", sort=rows, title=None, scale=alt.Scale(domain=rows), axis=y_axis)
    offset = alt.YOffset("offset:Q", scale=alt.Scale(domain=[-0.5, 0.5]))
    colour = colour_channel(models, "circle", direction="horizontal", columns=4)

    def x(column: str) -> Any:
        axis = alt.Axis(format=".0%", title="score", domain=False, tickCount=5)
        return alt.X(f"{column}:Q", scale=x_scale, axis=axis)

    def place_on_lines(frame: pd.DataFrame, series: Any) -> pd.DataFrame:
        return spread_dots(frame.drop(columns="seed").assign(series=series, seed=0), lines)

    runs = table[table["what"] == "run"]
    run_positions = spread_dots(runs.assign(series=runs["model"]), lines)
    averages = place_on_lines(table[table["what"] == "mean"], table["model"])
    bounds = place_on_lines(table[table["what"].isin(list(BOUNDS))], "bounds")
    # The bounds of a row share its line; they differ in value and are not spread.
    titles = {column: title for column, (title, _) in BOUNDS.items()}
    bounds = bounds.assign(offset=float(bounds["offset"].median()), bound=bounds["what"].map(titles))
    symbols = alt.Scale(domain=list(titles.values()), range=[symbol for _, symbol in BOUNDS.values()])
    legend = alt.Legend(title=None, orient="top", direction="horizontal")
    tooltip = [alt.Tooltip("row:N", title=" "), alt.Tooltip("model:N"), *mean_tooltips(".1%", "value")]
    layers = [
        alt.Chart(bounds)
        .mark_point(size=55, strokeWidth=1.3, color=GREY)
        .encode(
            x=x("value"),
            y=y,
            yOffset=offset,
            shape=alt.Shape("bound:N", scale=symbols, legend=legend),
            tooltip=[
                alt.Tooltip("bound:N", title=" "),
                alt.Tooltip("shortcut:N"),
                alt.Tooltip("value:Q", format=".1%"),
            ],
        ),
        run_dots(run_positions, models, ".1%").encode(x=x("value"), y=y, yOffset=offset, color=colour),
        alt.Chart(averages[averages["low"].notna()])
        .mark_rule(strokeWidth=2.5, opacity=0.55)
        .encode(x=x("low"), x2=alt.X2("high:Q"), y=y, yOffset=offset, color=colour, tooltip=tooltip),
        alt.Chart(averages)
        .mark_tick(thickness=3, size=12, orient="vertical")
        .encode(x=x("value"), y=y, yOffset=offset, color=colour, tooltip=tooltip),
    ]
    if len(references):
        rank = references.groupby("row")["value"].rank(method="first").astype(int) % NAME_LINES
        names = place_on_lines(references, [name_lines[line] for line in rank])
        # One height for all names of a line: spreading is only for runs.
        names = names.assign(offset=names.groupby("series")["offset"].transform("median"))
        base = alt.Chart(names).encode(x=x("value"), y=y, yOffset=offset, tooltip=tooltip)
        layers += [
            base.mark_tick(thickness=2, size=9, orient="vertical", color=GREY),
            base.mark_text(align="left", dx=3, fontSize=9, color=GREY).encode(text="model:N"),
        ]
    height = max(30, 12 * len(lines)) * len(rows)
    return alt.layer(*layers).resolve_scale(shape="independent").properties(width=520, height=height)


# -- models and abilities ---------------------------------------------------------------------------------------------


def draw_matrix(source: Source) -> Drawing | None:
    """A heat map with a row per model, those of the exam first, and a column per ability."""
    results = read_exam(source)
    if results is None:
        return None
    table = _matrix_table(results)
    return Drawing(_matrix_chart(table), table, results.notes)


def _matrix_table(results: ExamResults) -> pd.DataFrame:
    """A line per model and ability.

    Columns: `score` (`low`, `high`), the number of `runs`, of those that have `learned` and that were `not_converged`,
    and the `text` of the cell.
    """
    reference = results.reference.assign(model=results.reference["model"] + f" ({REFERENCE})")
    reference_models = set(reference["model"])
    scores = pd.concat([results.scores, reference], ignore_index=True)
    rows = normalise_scores(scores, results.bounds)
    # The score of a seed is its mean over the tests of an ability, of those that it has learned.
    counted = rows[(rows["ability"] == INSIDE) | (rows["learned"] == 1)]
    by_seed = counted.groupby(["model", "ability", "seed"], sort=False)
    seeds = by_seed.agg(value=("value", "mean"), not_converged=("not_converged", "max")).reset_index()
    mean = means(seeds, ["model", "ability"]).rename(columns={"mean": "score", "runs": "seeds"})
    groups = rows.groupby(["model", "ability"], sort=False)
    counts = groups.agg(runs=("seed", "size"), learned=("learned", "sum")).reset_index()
    present = set(scores["ability"]) | {ability for _, ability in results.untraced}
    abilities = [ability for ability in ABILITIES if ability in present]
    models = list(dict.fromkeys(scores["model"]))
    cells = pd.MultiIndex.from_product([models, abilities], names=["model", "ability"]).to_frame(index=False)
    table = cells.merge(counts, how="left").merge(mean, how="left")
    numbers = ["runs", "learned", "not_converged"]
    table[numbers] = table[numbers].fillna(0).astype(int)
    texts = [_cell_text(results, row, row["model"] in reference_models) for row in table.to_dict("records")]
    return table.assign(text=texts, doubt=(table["learned"] < table["runs"]).astype(int))


def _cell_text(results: ExamResults, row: dict[Hashable, Any], is_reference: bool) -> str:
    if pd.notna(row["score"]):
        return f"{row['score']:.2f}" + (" ○" if row["not_converged"] else "")
    if row["runs"]:
        return NOT_LEARNED
    unreported = (row["model"], row["ability"]) in results.untraced
    return NO_ACTIVATIONS if unreported or (is_reference and row["ability"] in METRICS) else MISSING


def _matrix_chart(table: pd.DataFrame) -> Any:
    alt = load_altair()
    abilities = [ability for ability in ABILITIES if ability in set(table["ability"])]
    x_axis = alt.Axis(labelAngle=-30, ticks=False, domain=False, orient="top")
    x = alt.X("ability:N", sort=abilities, title=None, axis=x_axis)
    y_axis = alt.Axis(ticks=False, domain=False, labelPadding=8)
    y = alt.Y("model:N", sort=list(dict.fromkeys(table["model"])), title=None, axis=y_axis)
    tooltip = [alt.Tooltip("model:N"), alt.Tooltip("ability:N"), *number_tooltips(".3f", "score", "low", "high")]
    tooltip += [alt.Tooltip("learned:Q"), *count_tooltips()]
    # Below the matrix: beside it, the legend of a single model is taller than the matrix and does not fit the page.
    legend = alt.Legend(
        title="chance to oracle", format=".1f", gradientLength=150, orient="bottom", direction="horizontal"
    )
    colour = alt.Color("score:Q", scale=heat_scale(clamp=True), legend=legend)
    scored = alt.Chart(table[table["score"].notna()]).encode(x=x, y=y)
    ink = contrasting_ink("datum.score > 0.6")
    layers = [
        scored.mark_rect().encode(tooltip=tooltip, color=colour),
        scored.mark_text(fontWeight=600).encode(text="text:N", color=ink),
    ]
    doubtful = table[table["doubt"] == 1]
    if len(doubtful):
        frame = alt.Chart(doubtful).mark_rect(fill=None, stroke=GREY, strokeDash=[3, 3], strokeWidth=1.5)
        layers.append(frame.encode(x=x, y=y, tooltip=tooltip))
    empty = table[table["score"].isna()]
    if len(empty):
        layers.append(alt.Chart(empty).mark_text(fontSize=10).encode(x=x, y=y, text="text:N"))
    return alt.layer(*layers).properties(width=alt.Step(86), height=alt.Step(34))


FIGURES = (
    Figure(
        "exam/abilities",
        "Every ability",
        "ours",
        "Every dot is a run, hollow if it had not converged, a diamond if it has not learned in distribution. Ticks: "
        "means with their 95 % intervals over runs; out of distribution of those that have learned. Grey, "
        "with names: means of the reference backbones. Marked: chance, the best shortcut, the oracle. Weights best on "
        "validation.",
        draw_abilities,
    ),
    Figure(
        "exam/matrix",
        "Models and abilities",
        "ours",
        "Means over the tests of an ability and over runs, 0 at chance and 1 at the oracle. Out of distribution of "
        "the runs that have learned in distribution. ○: some had not converged; a dashed frame: some or all runs had "
        "not learned. Weights best on validation.",
        draw_matrix,
    ),
)

"""Figures of the CTL++ paper (Csordás, Irie & Schmidhuber 2022): table 1, the grids of S, and the list of all.

All figures show the last weights. Figures 1, 2 and 5 of the paper have no numbers of runs.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import pandas as pd

from unseen.claims.papers import option_column
from unseen.claims.papers.ctl import TABLE1
from unseen.names import name_in_family
from unseen.report.baselines import CHANCE, ORACLE, mean_baselines, select_baselines
from unseen.report.charts import ENDED, NOT_CONVERGED, contrasting_ink, count_tooltips, heat_scale, number_tooltips
from unseen.report.data import Source, means
from unseen.report.dot_plot import PRINTED, DotPanel, dot_panels, panel_table
from unseen.report.figure import Drawing, Figure, count_runs
from unseen.report.figures.ctl_functions import draw_cosines, draw_gaps, draw_pairs
from unseen.report.figures.ctl_runs import IID, NAMES, OOD, accuracies, not_learned_notes, notes
from unseen.report.theme import load_altair
from unseen.studies.catalog.ctl import BILSTM, NDR, TRANSFORMER

TABLE1_TASKS = {f"ctl/{name}": f"{name}, groups {'alternate' if name == 'A' else 'repeat'}" for name in TABLE1}
PRINTED_IID = (1.0, 0.0)
"""Printed for all models on both tasks, except for a deviation of 0.01 of the NDR on R."""
GRID_TASK = "ctl/S"


def draw_table1(source: Source) -> Drawing | None:
    """A panel for each task and split: every run, means with intervals, printed numbers, chance and oracle."""
    runs = accuracies(source, TABLE1_TASKS)
    state = runs["not_converged"].eq(1).map({True: NOT_CONVERGED, False: ENDED})
    runs = runs.assign(series=runs["model"], row=runs["model"], state=state)
    panels = []
    tables = []
    for (task, task_title), (column, split, title) in product(
        TABLE1_TASKS.items(), (("iid", IID, "in distribution"), ("ood", OOD, "unseen transitions"))
    ):
        rows = runs.assign(value=runs[column])[(runs["task"] == task) & runs[column].notna()]
        if rows.empty:
            continue
        references = select_baselines(mean_baselines(source, rows["trial"], [split]))
        marks = _printed_marks(task, split, set(rows["model"]))
        panel = DotPanel(f"{task_title}: {title}", rows, references, marks)
        panels.append(panel)
        table = panel_table([panel]).assign(task=task, split=split)
        deviation = table["model"].map(rows.groupby("model")["value"].std())
        tables.append(table.assign(deviation=deviation.where(table["what"] == "mean")))
    if not panels:
        return None
    models = [model for model in NAMES if (runs["model"] == model).any()]
    chart = dot_panels(panels, models, models, columns=2, width=320)
    lines = [*not_learned_notes(runs), *notes(source, runs, TABLE1_TASKS)]
    return Drawing(chart, pd.concat(tables, ignore_index=True), tuple(lines))


def _printed_marks(task: str, split: str, models: set[str]) -> pd.DataFrame:
    """The paper's means and standard deviations as marks of a panel."""
    rows = []
    for model in sorted(models):  # a set has another order in every process, and the page must not
        mean, deviation = TABLE1[name_in_family(task)][model] if split == OOD else PRINTED_IID
        rows.append([model, mean, mean - deviation, min(1.0, mean + deviation), PRINTED, "printed", "printed mean"])
    return pd.DataFrame(rows, columns=["row", "value", "low", "high", "mark", "what", "say"])


def draw_grid(source: Source, model: str) -> Drawing | None:
    """A heat map on S: mean ± standard deviation over seeds of the accuracy on unseen transitions."""
    rows = accuracies(source, [GRID_TASK], [model])
    rows = rows[rows["ood"].notna()]
    # The options of the task, not the axes, which a study may call by other names.
    runs = source.runs.drop_duplicates("trial").set_index("trial")
    for option in ("bridge", "shared"):
        rows = rows.assign(**{option: rows["trial"].map(option_column(runs, f"task.{option}"))})
    rows = rows[rows["bridge"].notna() & rows["shared"].notna()].astype({"bridge": int, "shared": int})
    if rows.empty:
        return None
    rows = rows.assign(value=rows["ood"])
    by = ["bridge", "shared"]
    spread = rows.groupby(by)["value"].agg(deviation="std", worst="min", best="max").reset_index()
    table = means(rows, by).merge(spread, on=by).sort_values(by, ignore_index=True)
    lines = not_learned_notes(rows)
    baselines = mean_baselines(source, rows["trial"], [OOD])
    if baselines:
        lines.append(f"Chance is {baselines[CHANCE]:.3g}, an oracle has {baselines[ORACLE]:.0f}.")
    if table["runs"].nunique() > 1:
        lines.append(f"Squares are means over {table['runs'].min()} to {table['runs'].max()} runs.")
    lines += notes(source, rows, [GRID_TASK], [model], "○: ")
    return Drawing(_grid_chart(table), table.assign(model=model), tuple(lines))


def _grid_chart(table: pd.DataFrame) -> Any:
    alt = load_altair()
    texts = []
    for row in table.to_dict("records"):
        deviation = f" ± {row['deviation']:.2f}" if pd.notna(row["deviation"]) else ""
        texts.append(f"{row['mean']:.2f}{deviation}{' ○' if row['not_converged'] else ''}")
    axis = alt.Axis(labelAngle=0, ticks=False, domain=False)
    x = alt.X("shared:O", title="symbols shared at the bridge (k)", axis=axis)
    y = alt.Y("bridge:O", title="functions of the bridge (o)", sort="descending", axis=axis)
    base = alt.Chart(table.assign(text=texts, under=table["runs"].map(count_runs))).encode(x=x, y=y)
    legend = alt.Legend(title="accuracy", format=".1f", gradientLength=150)
    tooltip = [alt.Tooltip("bridge:O"), alt.Tooltip("shared:O")]
    tooltip += [*number_tooltips(".3f", "mean", "low", "high", "worst", "best"), *count_tooltips()]
    heat = base.mark_rect().encode(
        color=alt.Color("mean:Q", scale=heat_scale(), legend=legend),
        tooltip=tooltip,
    )
    ink = contrasting_ink("datum.mean > 0.6")
    numbers = base.mark_text(dy=-5, fontWeight=600).encode(text="text:N", color=ink)
    counts = base.mark_text(dy=11, fontSize=10).encode(text="under:N", color=ink)
    return alt.layer(heat, numbers, counts).properties(width=alt.Step(112), height=alt.Step(54))


# -- the list of figures ----------------------------------------------------------------------------------------------


def _grid_figure(number: int, model: str) -> Figure:
    return Figure(
        f"ctl/figure{number}",
        f"{NAMES[model]} on S: how much overlap it needs",
        f"figure {number}",
        "Accuracy on unseen transitions, mean ± sample standard deviation over seeds, by the number of functions of "
        "the bridge between two paths and of symbols at which both may enter it. Last weights.",
        partial(draw_grid, model=model),
    )


def _cosine_figure(number: int, title: str, task: str, worst: bool, two_symbols: bool = False) -> Figure:
    run = f"the {'worst' if worst else 'best'} NDR on {name_in_family(task)}"
    if two_symbols:
        run += "; the symbols whose clusters agree with the groups the most and the least"
    return Figure(
        f"ctl/figure{number}",
        f"{title}: functions that return the same",
        f"figure {number}",
        f"Cosines between the states that enter the classifier, of any two functions that return the same symbol: {run}. "
        "Among runs that have learned, if any have. Frames: clusters (complete linkage, cut at half the largest "
        "distance, so there are always at least two); names in the colour of their group.",
        partial(draw_cosines, task=task, worst=worst, two_symbols=two_symbols),
    )


FIGURES: tuple[Figure, ...] = (
    Figure(
        "ctl/table1",
        "Accuracy in distribution and on unseen transitions",
        "table 1",
        f"Every dot is a run, the mark below it the mean with its 95 % interval. '{PRINTED}': the number printed in the "
        "paper for 25 seeds (of the Transformer: those 25 of 50 that converged), thin line its standard deviation. Last "
        "weights, all runs.",
        draw_table1,
    ),
    _cosine_figure(3, "Two symbols in the worst run on R", "ctl/R", worst=True, two_symbols=True),
    _grid_figure(4, NDR),
    Figure(
        "ctl/figure6",
        "Which functions work together, in the worst run",
        "figure 6",
        "Accuracy on all pairs of functions, by the symbol between them: rows are the first function's cluster or "
        "group, columns the second's group. The worst NDR on R, among runs that have learned, if any have. Last "
        "weights.",
        draw_pairs,
    ),
    _grid_figure(7, TRANSFORMER),
    _grid_figure(8, BILSTM),
    _cosine_figure(9, "All symbols in the best run on R", "ctl/R", worst=False),
    _cosine_figure(10, "All symbols in the worst run on R", "ctl/R", worst=True),
    _cosine_figure(11, "All symbols in the worst run on A", "ctl/A", worst=True),
    Figure(
        "ctl/gap",
        "Separation of groups, and accuracy on unseen transitions",
        "beside figures 3, 6 and 9 to 11",
        "A dot per run. Above: by how much functions of one group are more similar than those of different groups "
        "when they return the same symbol. Below: how much better a function's cluster explains which pairs work than "
        "shuffled clusters. Last weights.",
        draw_gaps,
    ),
)

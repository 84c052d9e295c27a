"""How models of the CTL++ paper represent functions: cosines of states, pairs that work together, separated groups.

These are figures 3, 6 and 9 to 11 of the paper, and our figure on all seeds behind them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unseen.analysis.accuracy import CONVERGED
from unseen.analysis.representation import adjusted_rand, complete_linkage_clusters
from unseen.errors import UsageError
from unseen.randomness import Floats, Ints
from unseen.report.baselines import unseen_notes
from unseen.report.charts import NOT_CONVERGED, contrasting_ink, fill_channel, heat_scale
from unseen.report.data import Source
from unseen.report.export import PICTURES, check_path, save_chart
from unseen.report.figure import Drawing
from unseen.report.figures.activations import inspect_run
from unseen.report.figures.ctl_runs import NAMES, accuracies, last_records, notes
from unseen.report.theme import GROUND, colour_scale, load_altair
from unseen.tasks.base import Task
from unseen.tasks.ctl.task import Lookup

NDR, REPEATING = "ctl-ndr", "ctl/R"
MATRIX_WIDTH = 216
"""The approximate width of a matrix. Cells have a whole number of pixels, otherwise seams would be visible."""
COMPATIBILITY = "representation/compatibility"
PAIR_FACTORS = {"cluster,symbol": "first function by cluster", "transition,symbol": "first function by group"}
"""The rows of figure 6, (a) and (b)."""
MAX_SYMBOLS = 12
GAPS = {"representation/gap": "Groups apart", "representation/cluster_gain": "Clusters explain"}


# -- cosines between states of functions ------------------------------------------------------------------------------


def cosine_figure(
    matrices: Mapping[str, Floats], names: Sequence[str], groups: Sequence[str], out: str | Path, title: str
) -> Path:
    """Draw a panel per output symbol that a function has, and write the figure to `out` (.svg, .pdf, .png or .json).

    `matrices` has the cosines (functions, functions) by symbol, NaN in the rows and columns of functions without that
    outcome; `names` and `groups` are those of the functions. In a panel, functions are ordered by cluster; their names
    have the colour of their group, and each cluster has a frame.
    """
    path = Path(out)
    check_path(path, PICTURES)
    for symbol, matrix in matrices.items():
        if matrix.shape != (len(names), len(names)) or len(groups) != len(names):
            raise UsageError(
                f"expected cosines of {len(names)} functions with a group each, got a matrix of shape "
                f"{matrix.shape} at symbol {symbol} and {len(groups)} groups"
            )
    cells = cosine_cells(matrices, names, groups)
    if cells.empty:
        raise UsageError("no function has a state at any symbol: there is nothing to draw")
    subtitle = [
        "Cosines between the states that enter the classifier, for any two functions with the same outcome.",
        "Frames: clusters (complete linkage, cut at half the largest distance).",
    ]
    return save_chart(cosine_chart(cells), path, title, subtitle)


def cosine_cells(matrices: Mapping[str, Floats], names: Sequence[str], groups: Sequence[str]) -> pd.DataFrame:
    """One row per symbol and pair of functions, in the order in which they are drawn.

    Columns: `symbol`, `first` and `second` with their groups and clusters (from 1), the `cosine`, and the `agreement`
    of clusters and groups at the symbol (adjusted Rand index: 1 if they are the same, about 0 by chance).
    """
    tables = []
    for symbol, matrix in matrices.items():
        shown, clusters = order_functions(matrix)
        if not len(shown):
            continue
        shown_names = np.array(names, object)[shown]
        shown_groups = np.array(groups, object)[shown]
        first = np.repeat(np.arange(len(shown)), len(shown))
        second = np.tile(np.arange(len(shown)), len(shown))
        columns = {
            "symbol": symbol,
            "first": shown_names[first],
            "second": shown_names[second],
            "first_group": shown_groups[first],
            "second_group": shown_groups[second],
            "first_cluster": clusters[first],
            "second_cluster": clusters[second],
            "cosine": matrix[np.ix_(shown, shown)].ravel().round(4),
            "agreement": adjusted_rand(clusters, shown_groups.astype(str)),
        }
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def order_functions(matrix: Floats) -> tuple[Ints, Ints]:
    """The functions with a state, ordered by cluster and number; and the cluster of each, from 1.

    >>> order_functions(np.array([[1, 0, np.nan, 0.9], [0, 1, np.nan, 0.1], [np.nan] * 4, [0.9, 0.1, np.nan, 1]]))
    (array([0, 3, 1]), array([1, 1, 2]))
    """
    present = np.flatnonzero(np.isfinite(np.diagonal(matrix)))
    if not len(present):
        return present, present
    clusters = complete_linkage_clusters(matrix[np.ix_(present, present)])
    by_cluster = np.argsort(clusters, kind="stable")
    return present[by_cluster], clusters[by_cluster] + 1


def cosine_chart(cells: pd.DataFrame) -> Any:
    """A panel per symbol of a table of `cosine_cells`, without a title."""
    labels = [f"group {group}" for group in dict.fromkeys(sorted(cells["first_group"]))]
    step = max(5, MATRIX_WIDTH // cells["first"].nunique())
    panels = [_cosine_panel(str(symbol), group, labels, step) for symbol, group in cells.groupby("symbol", sort=False)]
    return load_altair().concat(*panels, columns=4, spacing=26).resolve_scale(fill="shared", color="shared")


def _cosine_panel(symbol: str, cells: pd.DataFrame, labels: Sequence[str], step: int) -> Any:
    alt = load_altair()
    functions = cells.drop_duplicates("first").reset_index(drop=True)
    count = len(functions)
    positions = np.arange(count)
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, count], nice=False, reverse=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[0, count], nice=False, reverse=True))
    square = {"x": x, "x2": "x2:Q", "y": y, "y2": "y2:Q"}
    squares = cells.assign(x=np.tile(positions, count), y=np.repeat(positions, count))
    squares = squares.assign(x2=squares["x"] + 1, y2=squares["y"] + 1)
    legend = alt.Legend(title="cosine", gradientLength=120)
    fields = ("symbol:N", "first:N", "first_group:N", "second:N", "second_group:N", "cosine:Q")
    heat = (
        alt.Chart(squares)
        .mark_rect()
        .encode(
            **square,
            fill=alt.Fill("cosine:Q", scale=heat_scale(clamp=True), legend=legend),
            tooltip=[alt.Tooltip(field) for field in fields],
        )
    )
    # Functions are ordered by cluster, so each cluster is a square on the diagonal.
    stops = functions.groupby("first_cluster", sort=False)["first"].size().cumsum()
    starts = [0, *stops[:-1]]
    frames = pd.DataFrame({"x": starts, "x2": stops, "y": starts, "y2": stops})
    framed = alt.Chart(frames).mark_rect(filled=False, stroke=GROUND["dark"], strokeWidth=1.8).encode(**square)
    group = "group " + functions["first_group"].astype(str)
    names = pd.DataFrame({"name": functions["first"].astype(str), "x": positions + 0.5, "y": positions + 0.5})
    ink = alt.Color(
        "group:N", scale=colour_scale(labels), sort=list(labels), title=None, legend=alt.Legend(symbolType="square")
    )
    base = alt.Chart(names.assign(group=group)).encode(text="name:N", color=ink)
    font = {"fontSize": min(11, step + 1), "fontWeight": 600}
    above = base.mark_text(baseline="bottom", **font).encode(x=x, y=alt.value(-3))
    left = base.mark_text(align="right", **font).encode(x=alt.value(-4), y=y)
    subtitle = f"{len(frames)} cluster{'' if len(frames) == 1 else 's'}"
    if len(labels) > 1:
        subtitle += f", agreement with groups {cells['agreement'].iloc[0]:.2f}".replace("-", "−")
    title = alt.Title(
        f"returns {symbol}",
        subtitle=subtitle,
        fontSize=13,
        subtitleFontSize=11,
        offset=20,
        subtitlePadding=2,
        anchor="start",
    )
    layered = alt.layer(heat, framed, above, left)
    return layered.properties(width=step * count, height=step * count, title=title)


def draw_cosines(source: Source, task: str, worst: bool, two_symbols: bool = False) -> Drawing | None:
    """A panel per symbol for the best or the worst NDR; None if the store has no weights of that run.

    With `two_symbols`, only the symbols whose clusters agree with the groups the most and the least.
    """
    run = extreme_run(source, task, worst)
    if run is None:
        return None
    # The paper's figures show the last weights; a store may hold only the best.
    result = inspect_run(source, str(run["trial"]), ("last", "best"), _cosines_of_model)
    if result is None:
        return None
    cells, selection = result
    if two_symbols:
        ranked = cells.drop_duplicates("symbol").sort_values("agreement", ascending=False, kind="stable")["symbol"]
        cells = cells[cells["symbol"].isin([ranked.iloc[0], ranked.iloc[-1]])]
    lines = [describe_run(run), *unseen_notes(source.where(source.runs["trial"] == run["trial"]), ["probe/singles"])]
    if selection != "last":
        lines.append("The store has the best weights only; these are shown instead of the last ones.")
    return Drawing(cosine_chart(cells), cells.assign(runs=1, trial=run["trial"], seed=run["seed"]), tuple(lines))


def _cosines_of_model(stack: Any, task: Task) -> pd.DataFrame | None:
    from unseen.training.analyses import ctl_representation

    if not isinstance(task, Lookup) or ctl_representation.unavailable(stack, task):
        return None
    world = task.actual_world
    group_names = list(world.groups)
    matrices = dict(zip(map(str, world.symbols), ctl_representation.cosines(stack, task)[0], strict=True))
    cells = cosine_cells(matrices, world.names, [group_names[group] for group in world.group_of])
    return cells if len(cells) else None


def extreme_run(source: Source, task: str, worst: bool) -> pd.Series | None:
    """The NDR run that is worst, or best, on unseen transitions of a task, among those that have learned if any have."""
    rows = accuracies(source, [task], [NDR])
    rows = rows[rows["ood"].notna()]
    learned = rows[rows["iid"] >= CONVERGED]
    rows = (learned if len(learned) else rows).sort_values(["ood", "seed"], kind="stable")
    return rows.iloc[0 if worst else -1] if len(rows) else None


def describe_run(run: pd.Series) -> str:
    """A sentence on a run and its accuracies."""
    return (
        f"{NAMES[NDR]} on {run['task']}, seed {run['seed']}: accuracy {run['iid']:.3f} in distribution, "
        f"{run['ood']:.3f} on unseen transitions{', not converged' if run['not_converged'] == 1 else ''}."
    )


# -- pairs of functions (figure 6) ------------------------------------------------------------------------------------


def draw_pairs(source: Source) -> Drawing | None:
    """Accuracy on pairs of functions, by the first one's cluster or group and the second's group."""
    run = extreme_run(source, REPEATING, worst=True)
    if run is None:
        return None
    tables = []
    for factor in PAIR_FACTORS:
        rows = last_records(source, [REPEATING], [NDR], factor)
        rows = rows[(rows["trial"] == run["trial"]) & (rows["metric"] == COMPATIBILITY)]
        # A level is written "first→second,symbol".
        pair_and_symbol = rows["level"].str.rsplit(",", n=1).str
        pair = pair_and_symbol[0].str.rsplit("→", n=1).str
        columns = {"part": factor, "first": pair[0], "second": pair[1], "symbol": pair_and_symbol[1]}
        tables.append(pd.DataFrame({**columns, "value": rows["value"], "pairs": rows["n"]}))
    table = pd.concat(tables, ignore_index=True)
    table = table[table["first"] != "-1"]  # functions without a state are in no cluster
    if table.empty:
        return None
    symbols = sorted(set(table["symbol"]))
    lines = [describe_run(run), "Pairs of functions from different groups are unseen."]
    if len(symbols) > MAX_SYMBOLS:
        lines.append(f"The first {MAX_SYMBOLS} of {len(symbols)} symbols; the others are in the data.")
    for factor, title in PAIR_FACTORS.items():
        if not (table["part"] == factor).any():
            lines.append(f"This store has no numbers for the {title}.")
    chart = _pairs_chart(table, symbols[:MAX_SYMBOLS])
    return Drawing(chart, table.assign(runs=1, trial=run["trial"], seed=run["seed"]), tuple(lines))


def _pairs_chart(table: pd.DataFrame, symbols: list[str]) -> Any:
    """A row of panels by cluster and one by group, with a panel per symbol."""
    alt = load_altair()
    table = table[table["symbol"].isin(symbols)]
    panels = alt.Column("panel:N", sort=[f"symbol {symbol}" for symbol in symbols], title=None)
    charts = []
    for factor, title in PAIR_FACTORS.items():
        rows = table[table["part"] == factor]
        if rows.empty:
            continue
        if factor == "cluster,symbol":
            label = rows["first"].map(lambda cluster: f"cluster {int(cluster) + 1}")
        else:
            label = "group " + rows["first"]
        rows = rows.assign(named=label, panel="symbol " + rows["symbol"], text=rows["value"].map("{:.2f}".format))
        x = alt.X("second:N", title="second", axis=alt.Axis(labelAngle=0, ticks=False, domain=False))
        y = alt.Y("named:N", title=title, axis=alt.Axis(ticks=False, domain=False))
        base = alt.Chart().encode(x=x, y=y)
        legend = alt.Legend(title="accuracy", format=".1f", gradientLength=110)
        tooltip = [
            alt.Tooltip("named:N", title="first"),
            alt.Tooltip("second:N"),
            alt.Tooltip("symbol:N"),
            alt.Tooltip("value:Q", title="accuracy", format=".3f"),
            alt.Tooltip("pairs:Q"),
        ]
        heat = base.mark_rect().encode(
            color=alt.Color("value:Q", scale=heat_scale(), legend=legend),
            tooltip=tooltip,
        )
        numbers = base.mark_text(fontSize=11).encode(text="text:N", color=contrasting_ink("datum.value > 0.6"))
        layered = alt.layer(heat, numbers, data=rows).properties(width=alt.Step(40), height=alt.Step(34))
        charts.append(layered.facet(column=panels, spacing=14))
    return alt.vconcat(*charts, spacing=24).resolve_scale(color="shared")


# -- separation of groups ---------------------------------------------------------------------------------------------


def draw_gaps(source: Source) -> Drawing | None:
    """Separation of groups, and how much clusters explain, against accuracy on unseen transitions; a dot per run."""
    tasks = ["ctl/A", REPEATING]
    rows = last_records(source, tasks)
    rows = rows[rows["metric"].isin(list(GAPS))].merge(accuracies(source, tasks)[["trial", "iid", "ood"]], on="trial")
    rows = rows[rows["ood"].notna() & rows["value"].notna()]
    if rows.empty:
        return None
    table = rows.assign(
        row=rows["metric"].map(GAPS),
        column=rows["task"],
        runs=1,
        learned=(rows["iid"] >= CONVERGED).astype(int),
        not_converged=(rows["not_converged"] == 1).astype(int),
    )
    table = table.sort_values(["metric", "task", "model", "seed"], ascending=[False, True, True, True])
    runs = table.drop_duplicates("trial")
    faint = int((runs["learned"] == 0).sum())
    lines = []
    if faint:
        lines.append(f"Faint: {faint} of {len(runs)} runs have an accuracy below {CONVERGED} in distribution.")
    columns = ["metric", "task", "model", "seed", "trial", "iid", "ood", "value", "learned", "not_converged", "runs"]
    lines += notes(source, table, tasks)
    return Drawing(_gaps_chart(table), table[columns].reset_index(drop=True), tuple(lines))


def _gaps_chart(table: pd.DataFrame) -> Any:
    alt = load_altair()
    models = [model for model in NAMES if (table["model"] == model).any()]
    x = alt.X(
        "ood:Q",
        title="accuracy on unseen transitions",
        scale=alt.Scale(domain=[0, 1.02], nice=False),
        axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1]),
    )
    legend = alt.Legend(orient="top", symbolType="circle", symbolOpacity=1)
    colour = alt.Color("model:N", scale=colour_scale(models), sort=models, title=None, legend=legend)
    zero_line = (
        alt.Chart()
        .transform_aggregate(groupby=["row", "column"])
        .transform_calculate(zero="0")
        .mark_rule(strokeDash=[5, 4], strokeWidth=1.2)
        .encode(y="zero:Q")
    )
    dots = (
        alt.Chart()
        .mark_point(size=64, strokeWidth=1.5)
        .encode(
            x=x,
            y=alt.Y("value:Q", title=None, axis=alt.Axis(tickCount=5)),
            color=colour,
            fill=fill_channel(models, "model"),
            opacity={"condition": {"test": "datum.learned > 0", "value": 0.85}, "value": 0.4},
            fillOpacity={"condition": {"test": "datum.not_converged > 0", "value": 0}, "value": 1},
            tooltip=[
                alt.Tooltip("model:N"),
                alt.Tooltip("seed:N"),
                alt.Tooltip("iid:Q", format=".3f"),
                alt.Tooltip("ood:Q", format=".3f"),
                alt.Tooltip("value:Q", format=".4f"),
                alt.Tooltip("not_converged:Q", title=NOT_CONVERGED),
            ],
        )
    )
    columns = alt.Column("column:N", sort=list(dict.fromkeys(table["column"])), title=None)
    rows = alt.Row("row:N", sort=list(dict.fromkeys(table["row"])), title=None)
    layered = alt.layer(zero_line, dots, data=table).properties(width=330, height=190)
    return layered.facet(column=columns, row=rows, spacing=20).resolve_scale(y="independent")

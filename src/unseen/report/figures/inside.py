"""Where a variable is in a model and whether it is used there: heat maps of sites and positions, with intervals over seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from unseen.names import find_ood
from unseen.report.baselines import unseen_notes
from unseen.report.charts import contrasting_ink, heat_scale, stack_charts
from unseen.report.data import Source
from unseen.report.export import PICTURES, check_path, save_chart
from unseen.report.figure import Drawing, Figure, run_notes
from unseen.report.inside_scores import EXCHANGE, MOVED, PROBE, tabulate_ablation, tabulate_inside
from unseen.report.layout import sort_splits
from unseen.report.theme import load_altair
from unseen.stats import mean_interval

TITLES = {
    "probe": "read off by a linear probe",
    "interchange": "used: answers follow an exchange",
    "moved": "an exchange moves the model's own answers, right or wrong",
}
_MEASURES = {PROBE: "probe", EXCHANGE: "interchange", MOVED: "moved"}


def inside_figure(table: pd.DataFrame, out: str | Path, title: str) -> Path:
    """Draw a panel per measure (`probe`, `interchange`) with the mean accuracy over seeds at every site and position, and
    its 95 % interval from three seeds.

    `table` has the columns `measure`, `seed`, `variable`, `site`, `position` and `accuracy`.
    """
    path = Path(out)
    check_path(path, PICTURES)
    seeds = table["seed"].nunique()
    chance = table.loc[table["measure"] == "probe", "chance"].mean() if "chance" in table else float("nan")
    intervals = " with its 95 % interval" if seeds > 2 else ""
    subtitle = [
        f"Variable {table['variable'].iloc[0]}. Mean of {seeds} seed{'s' * (seeds > 1)}{intervals}; chance of a probe "
        f"{chance:.2f}."
    ]
    return save_chart(inside_chart(average_accuracy(table)), path, title, subtitle)


def average_accuracy(table: pd.DataFrame) -> pd.DataFrame:
    """The mean over seeds with its interval: columns `measure`, `site`, `position`, `mean`, `low`, `high`, `runs`."""
    rows = []
    for key, group in table.groupby(["measure", "site", "position"], sort=False):
        interval = mean_interval(group["accuracy"], covers="initialisation").within(0.0, 1.0)
        rows.append((*key, float(group["accuracy"].mean()), interval.low, interval.high, len(group)))
    return pd.DataFrame(rows, columns=["measure", "site", "position", "mean", "low", "high", "runs"])


def inside_chart(cells: pd.DataFrame, heading: str = "") -> Any:
    """The heat maps of the measures side by side, with sites and positions in the order of the rows."""
    alt = load_altair()
    sites = list(dict.fromkeys(cells["site"]))
    positions = list(dict.fromkeys(cells["position"]))
    has_interval = bool(cells["low"].notna().any())
    panels = []
    for measure, title in TITLES.items():
        rows = cells[cells["measure"] == measure]
        if rows.empty:
            continue
        texts = [
            "" if low != low else f"{low:.2f}–{high:.2f}" for low, high in zip(rows["low"], rows["high"], strict=True)
        ]
        base = alt.Chart(rows.assign(interval=texts).drop(columns="values", errors="ignore")).encode(
            x=alt.X("position:N", sort=positions, title="position"), y=alt.Y("site:N", sort=sites, title=None)
        )
        heat = base.mark_rect().encode(
            fill=alt.Fill("mean:Q", scale=heat_scale(), legend=alt.Legend(title="accuracy")),
            tooltip=["site:N", "position:N", "mean:Q", "low:Q", "high:Q", "runs:Q"],
        )
        ink = contrasting_ink("datum.mean > 0.6")
        text = base.mark_text(fontSize=9, dy=-5 if has_interval else 0).encode(
            text=alt.Text("mean:Q", format=".2f"), color=ink
        )
        interval = base.mark_text(fontSize=7, dy=6).encode(text="interval:N", color=ink)
        heading_and_title = f"{heading}: {title}" if heading else title
        size = {"width": alt.Step(52 if has_interval else 34), "height": alt.Step(28 if has_interval else 20)}
        panels.append(alt.layer(heat, text, interval).properties(title=heading_and_title, **size))
    return alt.hconcat(*panels)


def draw_inside(source: Source) -> Drawing | None:
    """Probes and exchanges of every configuration, on the first split out of distribution."""
    if not len(source.records):
        return None
    labels = [axis for axis in source.axes if source.records[axis].nunique(dropna=False) > 1]
    table = tabulate_inside(source.records, labels, source.selection)
    table = table[table["measure"].isin(_MEASURES)].replace({"measure": _MEASURES})
    if table.empty:
        return None
    split = inside_split(table)
    rows = table[table["split"] == split]
    groups = rows.groupby(labels, sort=False, dropna=False) if labels else [((), rows)]
    charts = [inside_chart(group, ", ".join(map(str, key))) for key, group in groups]
    notes = [f"On {split}; the data have all splits.", *run_notes(source.runs, _measured_runs(source))]
    notes += unseen_notes(source, [split])
    return Drawing(stack_charts(charts), table.drop(columns="values"), tuple(notes))


def inside_split(table: pd.DataFrame) -> str:
    """The split that is shown: the first out of distribution, else the first."""
    splits = sort_splits(dict.fromkeys(table["split"]))
    return find_ood(splits) or splits[0]


def draw_ablation(source: Source) -> Drawing | None:
    """The loss of accuracy without one module, by configuration, every run a dot."""
    if not len(source.records):
        return None
    labels = [axis for axis in source.axes if axis != "task_seed" and source.records[axis].nunique(dropna=False) > 1]
    table = tabulate_ablation(source.records, labels, source.selection)
    if table.empty:
        return None
    alt = load_altair()
    names = table[labels].astype(str).agg(", ".join, axis=1) if labels else pd.Series("all runs", index=table.index)
    table = table.assign(configuration=names)
    dots = table[["configuration", "split", "values"]].explode("values").rename(columns={"values": "value"})
    y = alt.Y("configuration:N", sort=list(dict.fromkeys(names)), title=None)
    runs = (
        alt.Chart(dots).mark_point(opacity=0.6).encode(y=y, x=alt.X("value:Q", title="accuracy lost without a module"))
    )
    means = table.drop(columns="values")
    interval = alt.Chart(means).mark_rule(strokeWidth=2).encode(y=y, x="low:Q", x2="high:Q")
    mark = (
        alt.Chart(means).mark_tick(thickness=3, size=14).encode(y=y, x="mean:Q", tooltip=["mean:Q", "low:Q", "high:Q"])
    )
    panels = []
    for split in sort_splits(dict.fromkeys(table["split"])):
        layers = [layer.transform_filter(alt.datum.split == split) for layer in (runs, interval, mark)]
        panels.append(alt.layer(*layers).properties(title=split, width=420, height=alt.Step(24)))
    return Drawing(stack_charts(panels), means, tuple(run_notes(source.runs, _measured_runs(source))))


def _measured_runs(source: Source) -> pd.DataFrame:
    return source.records[["trial", "not_converged"]].drop_duplicates("trial")


FIGURES = (
    Figure(
        "inside/variable",
        "Where a variable is, and whether it is used",
        "ours",
        "At every site and position: the accuracy of a linear probe, and the share of pairs in which the answer follows an "
        "exchange of the activation. Where recorded: the share in which it becomes the model's own answer to the source, right "
        "or wrong. Means over seeds with 95 % intervals (Student's t).",
        draw_inside,
    ),
    Figure(
        "inside/ablation",
        "What is lost without a module",
        "ours",
        "Every dot is a run: the mean over its modules of the accuracy that is lost when the weight of one is set to zero. "
        "The tick is the mean over runs with its 95 % interval.",
        draw_ablation,
    ),
)

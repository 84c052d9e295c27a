"""Figures 3, 4, 5, 9, 10 and 11 of the gCOG paper: learning curves, and accuracy in and out of distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from unseen.claims.claim import Claim
from unseen.claims.papers import gcog as claims
from unseen.claims.papers import gcog_measures as measures
from unseen.claims.papers.gcog_measures import DISTRACTOR, IID, INSIDE, OOD, OPERATORS, OUTSIDE, PRODUCTIVE, TRAINING
from unseen.claims.papers.gcog_measures import TREES as TREE_TASK
from unseen.names import SplitGroup, is_ood
from unseen.report.charts import add_heading, stack_charts
from unseen.report.data import Source
from unseen.report.dot_plot import ACCURACY, AT_LEAST, PRINTED, DotPanel, ValueAxis, dot_panels, panel_table
from unseen.report.figure import Drawing, run_notes
from unseen.report.figures import gcog_runs as data
from unseen.report.line_plot import NumberPanel, curve_chart, mean_curves, number_chart, number_table
from unseen.report.theme import load_altair, title_of

MIXED = SplitGroup(("ood/mixed-leaves",))
MARKS = f"'{PRINTED}' a printed accuracy, '{AT_LEAST}' a printed lower bound."
HOLD_OUT = "hold_out"
"""The column of the claims' tables with the hold-out of operators and objects."""


@dataclass(frozen=True)
class SplitBlock:
    """The runs of a task of the paper that are drawn together.

    `where` selects runs by columns of the claims' tables; `printed` are the claims whose printed numbers are drawn if
    the grid is the paper's.
    """

    task: str
    heading: str = ""
    where: Mapping[str, Sequence[str]] = field(default_factory=dict)
    printed: Sequence[Claim] = ()

    def select_runs(self, source: Source) -> pd.DataFrame:
        """The runs of the paper's models that belong to the block."""
        runs = measures.columns(self.task, source.runs)
        for column, levels in self.where.items():
            runs = runs[runs[column].isin(levels)]
        return runs


_ABSOLUTE = {"positions": ("absolute",)}
_RELATIVE = {"positions": ("relative",)}
_DEPTHS_1_AND_3 = {"trained_on": ("1 and 3",)}
FIGURE3 = (SplitBlock(DISTRACTOR, printed=(claims.DISTRACTORS_LEARNED,)),)
FIGURE4 = (
    SplitBlock(OPERATORS, "single operators", {HOLD_OUT: ("clean",)}),
    SplitBlock(
        OPERATORS,
        "single operators, the published split",
        {HOLD_OUT: ("released",)},
        (claims.OPERATORS_LEARNED, claims.OPERATORS_NEW, claims.LEAK),
    ),
    SplitBlock(
        OPERATORS,
        "single operators, the published split without its leak",
        {HOLD_OUT: ("released-minus-leak",)},
        (claims.LEAK,),
    ),
    SplitBlock(TREE_TASK, "trees", _ABSOLUTE, (claims.TREES_LEARNED, claims.TREES_VALUES)),
)
FIGURE5 = (SplitBlock(PRODUCTIVE, where={**_ABSOLUTE, **_DEPTHS_1_AND_3}),)
FIGURE9 = (SplitBlock(TREE_TASK, "trees, relative positions", _RELATIVE),)
FIGURE10 = (SplitBlock(PRODUCTIVE, where={**_RELATIVE, **_DEPTHS_1_AND_3}),)
FIGURE11 = (SplitBlock(PRODUCTIVE, where={"trained_on": ("1",)}),)


def draw_splits(blocks: Sequence[SplitBlock], source: Source) -> Drawing | None:
    """The blocks that have a record, one below the other."""
    all_runs = []
    all_rows = []
    drawings = []
    for block in blocks:
        runs = block.select_runs(source)
        rows = data.last_scores(source, runs)
        all_runs.append(runs)
        if len(rows):
            all_rows.append(rows)
            drawings.append(_draw_block(block, source, runs, rows))
    if not drawings:
        return None
    notes = run_notes(pd.concat(all_runs), pd.concat(all_rows), data.BOUND)
    for drawing in drawings:
        notes += drawing.notes
    table = pd.concat([drawing.data for drawing in drawings], ignore_index=True)
    return Drawing(stack_charts([drawing.chart for drawing in drawings]), table, tuple(dict.fromkeys(notes)))


def _draw_block(block: SplitBlock, source: Source, runs: pd.DataFrame, rows: pd.DataFrame) -> Drawing:
    """One block, without the notes on its runs: curves above, accuracies below."""
    alt = load_altair()
    models = data.sort_models(rows["series"])
    panels = _accuracy_panels(block, source, runs, rows)
    charts, tables = _draw_curves(source, runs, models)
    if block.task == DISTRACTOR:
        panel = _distractor_panel(source, runs, rows)
        if panel is not None:
            charts.append(number_chart(panel, models, "distractors", width=250))
            tables.append(number_table(panel, "model", "distractors"))
    lines = [alt.hconcat(*charts, spacing=24).resolve_scale(color="shared")] if charts else []
    width = min(200, 800 // len(panels) - 50)
    lines.append(dot_panels(panels, models, models, columns=len(panels), width=width))
    chart = alt.vconcat(*lines, spacing=18)
    notes = [MARKS] if any(panel.marks is not None for panel in panels) else []
    outside = data.matching_splits(rows, OUTSIDE[block.task] | MIXED)
    unseen = data.describe_unseen(source, runs, outside)
    table = pd.concat([panel_table(panels), *tables], ignore_index=True).assign(task=block.task)
    if block.heading:
        chart = add_heading(chart, block.heading)
        table = table.assign(setting=block.heading)
        unseen = [f"{block.heading}, {note}" for note in unseen]
    return Drawing(chart, table, (*notes, *unseen))


def _accuracy_panels(block: SplitBlock, source: Source, runs: pd.DataFrame, rows: pd.DataFrame) -> list[DotPanel]:
    """Training accuracy beside IID and OOD accuracy, or beside accuracy by depth where the depth is new."""
    distributions = data.by_distribution(rows, block.task)
    # Title → the splits, and the rows of the panel.
    selected: dict[str, tuple[SplitGroup, pd.DataFrame]] = {}
    selected[TRAINING] = (SplitGroup(("train",)), distributions[TRAINING])
    if block.task == PRODUCTIVE:
        by_depth = data.select_numbered(rows, "depth")
        if by_depth["split"].map(is_ood).all():  # a single depth was trained, so its split is `iid`
            title = f"depth {runs['trained_on'].iloc[0]} (IID)"
            selected[title] = (SplitGroup(("iid",)), rows[rows["split"] == "iid"])
        for depth, group in sorted(by_depth.groupby("number")):
            split = group["split"].iloc[0]
            title = f"depth {depth:g} ({'OOD' if is_ood(split) else 'IID'})"
            selected[title] = (SplitGroup((split,)), group)
    else:
        selected[IID] = (INSIDE[block.task], distributions[IID])
        selected[OOD] = (OUTSIDE[block.task], distributions[OOD])
        selected["OOD, mixed leaves"] = (MIXED, rows[rows["split"].isin(MIXED.names)])
    printed = printed_marks(block) if data.has_paper_grid(runs) else pd.DataFrame(columns=["metric", "row"])
    panels = []
    for title, (splits, values) in selected.items():
        if values.empty:
            continue
        marks = printed[(printed["metric"] == title) & printed["row"].isin(values["series"])].drop(columns="metric")
        panels.append(
            DotPanel(
                title,
                values.assign(row=values["series"]),
                data.references(source, runs, data.matching_splits(rows, splits)),
                marks if len(marks) else None,
                count_all=title == TRAINING,
            )
        )
    return panels


def printed_marks(block: SplitBlock) -> pd.DataFrame:
    """The numbers that the paper prints for a block, from its claims: marks by `metric`, the title of the panel.

    Of several bounds for one model, the highest is drawn.
    """
    numbers: dict[tuple[str, str], tuple[float, str]] = {}
    for claim in block.printed:
        for criterion in claim.criteria:
            group = criterion.quantity.group
            if not criterion.printed or criterion.quantity.other is not None or _excludes(block, group.columns):
                continue
            if criterion.high == float("inf"):
                number = (criterion.low, AT_LEAST)
            else:
                number = (round((criterion.low + criterion.high) / 2, 6), PRINTED)
            for model in group.columns["model"]:
                key = (group.metric, str(model))
                # Tuples compare by value first.
                numbers[key] = max(numbers.get(key, number), number)
    descriptions = {PRINTED: "printed value", AT_LEAST: "printed: more than"}
    rows = []
    for (metric, model), (value, mark) in numbers.items():
        rows.append([metric, title_of(model), value, mark, "printed", descriptions[mark]])
    return pd.DataFrame(rows, columns=["metric", "row", "value", "mark", "what", "say"])


def _excludes(block: SplitBlock, columns: Mapping[str, Sequence[Any]]) -> bool:
    """Whether a criterion with these columns is about other runs than those of the block."""
    shared = [column for column in block.where if column in columns]
    return any(set(block.where[column]).isdisjoint(columns[column]) for column in shared)


def _draw_curves(source: Source, runs: pd.DataFrame, models: Sequence[str]) -> tuple[list[Any], list[pd.DataFrame]]:
    """Learning curves of training loss and of accuracy on fresh examples, with their data."""
    charts = []
    tables = []
    for title, split, metric in (
        ("training loss", "train", "loss"),
        ("fresh examples while training", "iid", "accuracy"),
    ):
        points = data.curve_points(source, runs, split, metric)
        if metric == "loss":
            points = points[points["value"] > 0]  # the axis is logarithmic
        if points.empty:
            continue
        if metric == "loss":
            charts.append(curve_chart(title, points, models, ValueAxis("loss"), log=True, width=230))
        else:
            references = data.references(source, runs, [split])
            charts.append(curve_chart(title, points, models, ACCURACY, references=references, width=230))
        averages = mean_curves(points).rename(columns={"mean": "value"}).assign(what="mean")
        table = pd.concat([points[["series", "seed", "samples", "value"]].assign(what="run"), averages])
        tables.append(table.rename(columns={"series": "model"}).assign(panel=title))
    return charts, tables


def _distractor_panel(source: Source, runs: pd.DataFrame, rows: pd.DataFrame) -> NumberPanel | None:
    """Accuracy against the number of distractors."""
    by_number = data.select_numbered(rows, "distractors")
    new = by_number["split"].map(is_ood).astype(bool)
    if not new.any():
        return None
    first_new = by_number["number"][new].min()
    last_trained = first_new if new.all() else by_number["number"][~new].max()
    references = data.references(source, runs, data.matching_splits(rows, OUTSIDE[DISTRACTOR]))
    return NumberPanel("by number of distractors", by_number, references, (last_trained + first_new) / 2)

"""Figures 3, 4, 5, 9, 10 and 11 of the gCOG paper: learning curves, and accuracy in and out of distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from unseen.report import theme
from unseen.report.figure import Drawing
from unseen.report.figures import gcog_runs as data
from unseen.report.figures.lines import Course, course_panel, course_table, curve_panel, mean_curves
from unseen.report.figures.notes import run_notes
from unseen.report.figures.rows import AT_LEAST, PRINTED, Measure, Panel, headed, row_panels, table
from unseen.report.panels import stacked
from unseen.report.source import Source
from unseen.studies.claims import gcog as claims
from unseen.studies.claims import gcog_measures as measures
from unseen.studies.claims.claim import Claim
from unseen.studies.claims.gcog_measures import DISTRACTOR, IID, INSIDE, OOD, OPERATORS, OUTSIDE, PRODUCTIVE, TRAINING
from unseen.studies.claims.gcog_measures import TREES as TREE_TASK

MIXED = "ood/mixed-leaves"
_DISTRACTORS = r"^(?:iid|ood)/distractors=(\d+)$"
_DEPTH = r"^(?:iid|ood)/depth=(\d+)$"
MARKS = f"'{PRINTED}' a printed accuracy, '{AT_LEAST}' a printed lower bound."


@dataclass(frozen=True)
class Split:
    """A task of the paper: which runs (`where`, by columns of the claims' tables), and the claims whose printed numbers
    are drawn in where the world is the paper's."""

    task: str
    heading: str = ""
    where: Mapping[str, Sequence[str]] = field(default_factory=dict)
    printed: Sequence[Claim] = ()

    def runs(self, source: Source) -> pd.DataFrame:
        """The runs of the paper's models that are meant."""
        found = measures.columns(self.task, source.runs)
        for column, values in self.where.items():
            found = found[found[column].isin(values)]
        return found


_ABSOLUTE = {"positions": ("absolute",)}
_RELATIVE = {"positions": ("relative",)}
_BOTH = {"trained_on": ("1 and 3",)}
_SINGLE = (claims.OPERATORS_LEARNED, claims.OPERATORS_NEW)
_TREES = (claims.TREES_LEARNED, claims.TREES_VALUES)
FIGURE3 = (Split(DISTRACTOR, printed=(claims.DISTRACTORS_LEARNED,)),)
FIGURE4 = (
    Split(OPERATORS, "single operators", {"split": ("clean",)}, _SINGLE),
    Split(OPERATORS, "single operators, the published split", {"split": ("released",)}, (claims.LEAK,)),
    Split(
        OPERATORS,
        "single operators, the published split without its leak",
        {"split": ("released-minus-leak",)},
        (claims.LEAK,),
    ),
    Split(TREE_TASK, "trees", _ABSOLUTE, _TREES),
)
FIGURE5 = (Split(PRODUCTIVE, where={**_ABSOLUTE, **_BOTH}),)
FIGURE9 = (Split(TREE_TASK, "trees, relative positions", _RELATIVE),)
FIGURE10 = (Split(PRODUCTIVE, where={**_RELATIVE, **_BOTH}),)
FIGURE11 = (Split(PRODUCTIVE, where={"trained_on": ("1",)}),)


def draw_splits(splits: Sequence[Split], source: Source) -> Drawing | None:
    """The splits that have a record, one below the other."""
    runs = [split.runs(source) for split in splits]
    found = [one for split, own in zip(splits, runs, strict=True) if (one := _draw(split, source, own)) is not None]
    if not found:
        return None
    drawings, shown = [drawing for drawing, _ in found], pd.concat([rows for _, rows in found])
    notes = [
        *run_notes(pd.concat(runs), shown, data.BOUND),
        *dict.fromkeys(note for drawing in drawings for note in drawing.notes),
    ]
    whole = pd.concat([drawing.data for drawing in drawings], ignore_index=True)
    return Drawing(stacked([drawing.chart for drawing in drawings]), whole, tuple(notes))


def _draw(split: Split, source: Source, runs: pd.DataFrame) -> tuple[Drawing, pd.DataFrame] | None:
    """One split, without the notes on its runs, and what is shown of these."""
    rows = data.last(source, runs)
    if rows.empty:
        return None
    models = data.order(rows["series"].tolist())
    panels = _panels(split, source, runs, rows)
    charts, tables = _curves(source, runs, models)
    course = _course(split, source, runs, rows)
    if course is not None:
        charts.append(course_panel(course, models, "distractors", width=250))
        tables.append(course_table(course, "model", "distractors"))
    alt = theme.load_altair()
    below = row_panels(panels, models, models, columns=len(panels), width=min(200, 800 // len(panels) - 50))
    parts = [alt.hconcat(*charts, spacing=24).resolve_scale(color="shared")] if charts else []
    chart = alt.vconcat(*parts, below, spacing=18)
    told = [MARKS] if any(one.marks is not None for one in panels) else []
    unseen = data.unseen(source, runs, data.conditions_of(rows, f"{OUTSIDE[split.task]}|{MIXED}"))
    whole = pd.concat([table(panels), *tables], ignore_index=True).assign(task=split.task)
    if split.heading:
        chart = headed(chart, split.heading)
        whole, unseen = whole.assign(setting=split.heading), [f"{split.heading}, {note}" for note in unseen]
    return Drawing(chart, whole, (*told, *unseen)), rows


def _panels(split: Split, source: Source, runs: pd.DataFrame, rows: pd.DataFrame) -> list[Panel]:
    """Training accuracy beside accuracy on what is fresh and on what is new; by depth, where depths are what is new."""
    chosen: dict[str, tuple[str, pd.DataFrame]] = {}
    parts = data.in_parts(rows, split.task)
    chosen[TRAINING] = ("train", parts[TRAINING])
    if split.task == PRODUCTIVE:
        by_depth = data.numbered(rows, _DEPTH)
        if not by_depth["condition"].str.startswith("iid").any():  # one depth was trained, and that is `iid`
            trained = runs["trained_on"].iloc[0]
            chosen[f"depth {trained} (IID)"] = ("iid", rows[rows["condition"] == "iid"])
        for depth, found in sorted(by_depth.groupby("number")):
            name = found["condition"].iloc[0]
            chosen[f"depth {depth:g} ({'IID' if name.startswith('iid') else 'OOD'})"] = (name, found)
    else:
        chosen |= {IID: (INSIDE[split.task], parts[IID]), OOD: (OUTSIDE[split.task], parts[OOD])}
        mixed = rows[rows["condition"] == MIXED]
        chosen |= {"OOD, mixed leaves": (MIXED, mixed)} if len(mixed) else {}
    printed = printed_numbers(split) if data.papers_world(runs) else pd.DataFrame(columns=["metric"])
    found_panels = []
    for name, (pattern, values) in chosen.items():
        if values.empty:
            continue
        lines = data.shortcut_lines(source, runs, data.conditions_of(rows, pattern))
        own = printed[(printed["metric"] == name) & printed.get("row", printed["metric"]).isin(values["series"])]
        found_panels.append(
            Panel(
                name,
                values.assign(row=values["series"]),
                lines,
                own.drop(columns="metric") if len(own) else None,
                every=name == TRAINING,
            )
        )
    return found_panels


def printed_numbers(split: Split) -> pd.DataFrame:
    """The numbers that the paper prints for a split, from the claims: of each `metric` marks for a panel. Of several
    bounds for one model the highest."""
    found: dict[tuple[str, str], tuple[float, str]] = {}
    for claim in split.printed:
        for part in claim.parts:
            one = part.quantity.group
            if not part.printed or part.quantity.other is not None or _elsewhere(split, one.columns):
                continue
            bound = part.high == float("inf")
            value, mark = (part.low, AT_LEAST) if bound else (round((part.low + part.high) / 2, 6), PRINTED)
            for model in one.columns["model"]:
                key = (one.metric, str(model))
                found[key] = max(found.get(key, (value, mark)), (value, mark))
    words = {PRINTED: "printed value", AT_LEAST: "printed: more than"}
    return pd.DataFrame(
        [
            [metric, theme.title_of(model), value, mark, "printed", words[mark]]
            for (metric, model), (value, mark) in found.items()
        ],
        columns=["metric", "row", "value", "mark", "what", "say"],
    )


def _elsewhere(split: Split, columns: Mapping[str, Sequence[Any]]) -> bool:
    return any(column in columns and not set(values) & set(columns[column]) for column, values in split.where.items())


def _curves(source: Source, runs: pd.DataFrame, models: Sequence[str]) -> tuple[list[Any], list[pd.DataFrame]]:
    charts, tables = [], []
    for title, condition, metric, measure in (
        ("training loss", "train", "loss", Measure("loss")),
        ("fresh examples while training", "iid", "accuracy", Measure()),
    ):
        points = data.curve_points(source, runs, condition, metric)
        points = points[points["value"] > 0] if metric == "loss" else points
        points = points[points["value"].notna()]
        if points.empty:
            continue
        lines = {} if metric == "loss" else data.shortcut_lines(source, runs, [condition])
        charts.append(curve_panel(title, points, models, measure, log=metric == "loss", lines=lines, width=230))
        averages = mean_curves(points).rename(columns={"mean": "value"}).assign(what="mean")
        both = pd.concat([points[["series", "seed", "samples", "value"]].assign(what="run"), averages])
        tables.append(both.rename(columns={"series": "model"}).assign(panel=title))
    return charts, tables


def _course(split: Split, source: Source, runs: pd.DataFrame, rows: pd.DataFrame) -> Course | None:
    """Accuracy against the number of distractors."""
    if split.task != DISTRACTOR:
        return None
    found = data.numbered(rows, _DISTRACTORS)
    new = found["condition"].str.startswith("ood")
    if found.empty or not new.any():
        return None
    inside = found["number"][~new].max() if (~new).any() else found["number"][new].min()
    lines = data.shortcut_lines(source, runs, data.conditions_of(rows, OUTSIDE[DISTRACTOR]))
    return Course("by number of distractors", found, lines, (inside + found["number"][new].min()) / 2)

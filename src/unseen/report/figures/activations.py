"""Figures of what happens inside trained models: activation matrices of modules, and attention maps.

Models are run on examples here, never trained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

from unseen.analysis.assignment import best_map
from unseen.analysis.specialization_metrics import ENTRY_FACTOR, ENTRY_METRIC, alignment
from unseen.errors import CheckFailed, UsageError
from unseen.names import family_of
from unseen.randomness import Floats
from unseen.report.baselines import unseen_notes
from unseen.report.charts import contrasting_ink, heat_scale
from unseen.report.data import Source
from unseen.report.export import PICTURES, check_path, save_chart
from unseen.report.figure import Drawing
from unseen.report.layout import layouts
from unseen.report.theme import VERMILION, load_altair
from unseen.tasks.base import Array, Task

if TYPE_CHECKING:
    from unseen.training.stack import Stack

MATRIX_WIDTH = 300
"""The approximate width of an activation matrix, in pixels."""
LARGEST_CELL, NUMBERED_CELL = 38, 30
"""The largest width of its cells, and the least width of cells that contain their numbers."""
DECODER, ENCODER = "decoder.attention", "encoder.attention"
TOKEN_WIDTH = 26
ACTIVATION_EXAMPLES, ATTENTION_EXAMPLES = 4_000, 12
MAX_SERIES = 4
SELECTIONS = ("best", "last")
"""The weights to look at, the preferred ones first; a store may hold only the others."""

Result = TypeVar("Result")
Inspection = tuple[Any, pd.DataFrame, str]
"""A chart, its data, and a remark on it."""


# -- activation matrices ----------------------------------------------------------------------------------------------


def activation_figure(matrix: Floats, pi: Floats, out: str | Path, title: str) -> Path:
    """Draw p(module | rule), an array (rules, modules), for rules with probabilities `pi`, and write it to a file.

    The suffix of `out` (.svg, .pdf, .png or .json) decides the format.
    """
    path = Path(out)
    check_path(path, PICTURES)
    if matrix.ndim != 2 or np.shape(pi) != (len(matrix),):
        raise UsageError(
            f"expected an activation matrix (rules, modules) and a probability for each rule, got shapes "
            f"{matrix.shape} and {np.shape(pi)}"
        )
    subtitle = [
        "How much of each rule goes to each module. Framed: the best assignment;",
        f"{100 * weight_outside(matrix, pi):.1f} % of the weight is outside it.",
    ]
    return save_chart(activation_chart(activation_cells(matrix, pi)), path, title, subtitle)


def weight_outside(matrix: Floats, pi: Floats) -> float:
    """The weight outside the best assignment (`alignment`), over the rules that occur."""
    occurs = np.isfinite(matrix).all(axis=1)
    probabilities = np.asarray(pi)[occurs]
    return alignment(matrix[occurs], probabilities / probabilities.sum())


def activation_cells(matrix: Floats, pi: Floats) -> pd.DataFrame:
    """One row per rule and module: its `weight`, and whether it is `best`, that is, in the best assignment.

    >>> activation_cells(np.array([[0.75, 0.25], [0.0, 1.0]]), np.array([0.5, 0.5]))["best"].tolist()
    [True, False, False, True]
    """
    rules, modules = matrix.shape
    occurring = np.flatnonzero(np.isfinite(matrix).all(axis=1))
    best = np.zeros(matrix.shape, bool)
    best[occurring, best_map(np.asarray(pi)[occurring, None] * matrix[occurring])] = True
    return pd.DataFrame(
        {
            "rule": np.repeat(np.arange(rules), modules),
            "module": np.tile(np.arange(modules), rules),
            "weight": matrix.ravel().round(4),
            "best": best.ravel(),
        }
    )


def activation_chart(cells: pd.DataFrame) -> Any:
    """The heat map of a table of `activation_cells`, without a title."""
    alt = load_altair()
    step = min(LARGEST_CELL, max(4, MATRIX_WIDTH // max(cells["rule"].nunique(), cells["module"].nunique())))
    axis = alt.Axis(labelAngle=0, ticks=False, domain=False, grid=False, labelOverlap=True)
    x = alt.X("module:O", title="module", axis=axis)
    y = alt.Y("rule:O", title="rule", axis=axis)
    base = alt.Chart(cells).encode(x=x, y=y)
    legend = alt.Legend(title="p(module | rule)", gradientLength=120)
    heat = base.mark_rect().encode(
        fill=alt.Fill("weight:Q", scale=heat_scale(), legend=legend),
        tooltip=["rule:O", "module:O", "weight:Q", "best:N"],
    )
    frames = base.transform_filter(alt.FieldEqualPredicate(equal=True, field="best")).mark_rect(
        filled=False, stroke=VERMILION, strokeWidth=2 if step > 12 else 1.2
    )
    layers = [heat, frames]
    if step >= NUMBERED_CELL:
        number = alt.Text("weight:Q", format=".2f")
        layers.append(base.mark_text(fontSize=11).encode(text=number, color=contrasting_ink("datum.weight > 0.6")))
    return alt.layer(*layers).properties(width=alt.Step(step), height=alt.Step(step))


# -- attention maps ---------------------------------------------------------------------------------------------------


def attention_figure(
    maps: Mapping[str, Array], right: Array, factors: Mapping[str, Array], out: str | Path, title: str
) -> Path:
    """Draw attention maps and write them to a file (.svg, .pdf, .png or .json).

    `maps` has `decoder.attention` (example, token), `encoder.attention` (example, head, token, token; of the attending
    tokens possibly only the last), or both; `right` tells for each example whether it was answered correctly;
    `factors` may have its `scenario` and the `positions` of the queried features.
    """
    path = Path(out)
    check_path(path, PICTURES)
    subtitles = {
        DECODER: "Examples: attention of the query; letters are tokens with the queried features.",
        ENCODER: "Tokens: attention between them, the mean over these examples.",
    }
    subtitle = [text for name, text in subtitles.items() if name in maps]
    return save_chart(attention_chart(maps, right, factors), path, title, subtitle)


def attention_chart(maps: Mapping[str, Array], right: Array, factors: Mapping[str, Array]) -> Any:
    """The maps side by side, without a title."""
    panels = []
    if DECODER in maps:
        panels.append(_decoder_panel(decoder_cells(maps[DECODER], right, factors)))
    if ENCODER in maps:
        mean: Floats = np.asarray(maps[ENCODER], np.float64).mean(axis=0)
        for number, head in enumerate(mean):
            title = "attends to token" if len(mean) == 1 else f"attends to token (head {number + 1})"
            panels.append(_encoder_panel(head, title))
    return load_altair().hconcat(*panels, spacing=44).resolve_scale(fill="shared")


def decoder_cells(weights: Array, right: Array, factors: Mapping[str, Array]) -> pd.DataFrame:
    """One row per example and token: its `weight`, and the letters of the queried `features` that the token has.

    Examples are ordered by scenario, and named by their number and scenario.
    """
    count, tokens = weights.shape
    scenario = np.asarray(factors.get("scenario", np.full(count, "")))
    letters = np.full((count, tokens), "", object)
    for feature, positions in enumerate(np.asarray(factors.get("positions", np.full((count, 0), -1))).T):
        for example in np.flatnonzero((positions >= 0) & (positions < tokens)):
            letters[example, positions[example]] += ascii_lowercase[feature % 26]
    order = np.argsort(scenario, kind="stable")
    names = np.array([f"{example + 1} {scenario[example]}".strip() for example in range(count)], object)
    example_of_cell = np.repeat(order, tokens)
    return pd.DataFrame(
        {
            "example": names[example_of_cell],
            "token": np.tile(np.arange(1, tokens + 1), count),
            "weight": weights[order].ravel().round(4),
            "features": letters[order].ravel(),
            "answer": np.where(np.asarray(right)[example_of_cell] == 1, "right", "wrong"),
        }
    )


def _decoder_panel(cells: pd.DataFrame) -> Any:
    alt = load_altair()
    examples = list(dict.fromkeys(cells["example"]))
    step = TOKEN_WIDTH if len(examples) <= 24 else max(6, 24 * TOKEN_WIDTH // len(examples))
    x = alt.X("token:O", title="token", axis=_token_axis())
    y_axis = alt.Axis(ticks=False, domain=False, grid=False)
    y = alt.Y("example:N", sort=examples, title="example", axis=y_axis)
    base = alt.Chart(cells).encode(x=x, y=y)
    tooltip = ["example:N", "token:O", "weight:Q", "features:N", "answer:N"]
    heat = base.mark_rect().encode(fill=_attention_fill(), tooltip=tooltip)
    ink = contrasting_ink("datum.weight > 0.6")
    letters = base.mark_text(fontSize=12, fontWeight=600).encode(text="features:N", color=ink)
    wrong = alt.Chart(cells[(cells["answer"] == "wrong") & (cells["token"] == 1)])
    wrong_answers = wrong.mark_text(align="left", dx=6, fontSize=11).encode(
        x=alt.value(TOKEN_WIDTH * cells["token"].max()), y=y, text="answer:N"
    )
    return alt.layer(heat, letters, wrong_answers).properties(width=alt.Step(TOKEN_WIDTH), height=alt.Step(step))


def _encoder_panel(mean: Floats, title: str) -> Any:
    alt = load_altair()
    rows, tokens = mean.shape
    # A model may capture only the rows of the tokens that are used later, which are the last ones.
    first = tokens - rows + 1
    cells = pd.DataFrame(
        {
            "from": np.repeat(np.arange(first, tokens + 1), tokens),
            "to": np.tile(np.arange(1, tokens + 1), rows),
            "weight": mean.ravel().round(4),
        }
    )
    heat = alt.Chart(cells).mark_rect()
    return heat.encode(
        x=alt.X("to:O", title=title, axis=_token_axis()),
        y=alt.Y("from:O", title="token", axis=_token_axis()),
        fill=_attention_fill(),
        tooltip=["from:O", "to:O", "weight:Q"],
    ).properties(width=alt.Step(TOKEN_WIDTH), height=alt.Step(TOKEN_WIDTH))


def _token_axis() -> Any:
    return load_altair().Axis(labelAngle=0, ticks=False, domain=False, grid=False)


def _attention_fill() -> Any:
    alt = load_altair()
    legend = alt.Legend(title="attention", gradientLength=120)
    return alt.Fill("weight:Q", scale=heat_scale(), legend=legend)


# -- figures of the best and the worst runs ---------------------------------------------------------------------------


def draw_activation(source: Source) -> Drawing | None:
    """The activation matrices of models of the rules family: from their weights, or as they were recorded."""
    return _draw_extremes(source, "rules", _inspect_activation, _read_activation)


def draw_attention(source: Source) -> Drawing | None:
    """The attention of models of the retrieval family."""
    return _draw_extremes(source, "retrieval", _inspect_attention)


def _inspect_activation(stack: Stack, task: Any) -> Inspection | None:
    from unseen.training.analyses.rules_specialization import activation, unavailable

    if unavailable(stack, task):
        return None
    return _present_activation(activation(stack, task, ACTIVATION_EXAMPLES), task)


def _read_activation(source: Source, trial: str) -> tuple[Inspection, str] | None:
    """The activation matrix that was recorded of a user's model, and of which weights it is."""
    task: Any = source.task(trial)
    rows = _matrix_records(source)
    rows = rows[rows["trial"] == trial]
    for selection in SELECTIONS:
        entries = rows[rows["selection"] == selection]
        if entries.empty or task is None:
            continue
        indices = entries["level"].str.split(", ", expand=True).astype(int)
        matrix = np.full((len(task.pi), indices[1].max() + 1), np.nan)
        matrix[indices[0], indices[1]] = entries["value"]
        return _present_activation(matrix, task), selection
    return None


def _matrix_records(source: Source) -> pd.DataFrame:
    """The entries of activation matrices, which are recorded of users' models."""
    records = source.records
    return records[(records["metric"] == ENTRY_METRIC) & (records["factor"] == ENTRY_FACTOR)]


def _present_activation(matrix: Floats, task: Any) -> Inspection:
    cells = activation_cells(matrix, task.pi)
    remark = f"{100 * weight_outside(matrix, task.pi):.1f} % outside the best assignment"
    return activation_chart(cells), cells, remark


def _inspect_attention(stack: Stack, task: Any) -> Inspection | None:
    from unseen.training.inside import attention_maps

    attention = attention_maps(stack, task, None, ATTENTION_EXAMPLES)
    if DECODER not in attention.maps:
        return None
    factors = attention.examples.factors
    cells = decoder_cells(attention.maps[DECODER], attention.right, factors)
    remark = f"{int((attention.right == 1).sum())} of {len(attention.right)} shown are right"
    return attention_chart(attention.maps, attention.right, factors), cells, remark


def inspect_run(
    source: Source, trial: str, selections: Sequence[str], inspect: Callable[[Stack, Task], Result | None]
) -> tuple[Result, str] | None:
    """Apply `inspect` to the trained model of a trial; returns its result and the selection of the weights used.

    The first of `selections` that is stored is used. The result is None if no weights are stored, if they can't be
    read or belong to another release, or if `inspect` returns None. Models that are not part of this package are not
    inspected: looking at a store must not run code that it names.
    """
    # Imported here, because only these figures need torch.
    from unseen.store.load_model import load_trained
    from unseen.training.process import one_thread
    from unseen.training.stack import Stack

    for selection in selections:
        try:
            model = load_trained(source.directory, trial, selection=selection, only_ours=True)
        except (UsageError, CheckFailed):
            continue
        with one_thread():
            result = inspect(Stack([model.module]), model.task)
        return None if result is None else (result, selection)
    return None


def _draw_extremes(
    source: Source,
    family: str,
    inspect: Callable[[Stack, Task], Inspection | None],
    read: Callable[[Source, str], tuple[Inspection, str] | None] = lambda source, trial: None,
) -> Drawing | None:
    """The best and the worst run of each series, at the first configuration that has weights.

    `read` finds what was recorded of a run, if its weights can't be inspected.
    """
    alt = load_altair()
    stored = set(source.with_weights)
    stored |= set(_matrix_records(source)["trial"]) if len(source.records) else set()
    stored &= set(source.runs["trial"][source.runs["task"].map(family_of) == family])
    if not stored:
        return None
    panels: list[Any] = []
    tables: list[pd.DataFrame] = []
    inspected = 0
    for layout in layouts(source, panels=False):
        rows = layout.rows[layout.rows["trial"].isin(stored)]
        rows = rows[rows["configuration"] == rows["configuration"].min()]
        for series, runs in list(rows.groupby("series", sort=False))[:MAX_SERIES]:
            ranked = runs.sort_values("value", ascending=not layout.metric.rising, kind="stable")
            extremes = [("best", ranked.iloc[0]), ("worst", ranked.iloc[-1])][: len(ranked)]
            for rank, run in extremes:
                inspected += 1
                trial = str(run["trial"])
                result = inspect_run(source, trial, SELECTIONS, inspect) or read(source, trial)
                if result is None:
                    continue
                (chart, data, remark), selection = result
                title = alt.Title(
                    f"{series}, {rank} of {len(runs)}: {layout.metric.text(run['value'])}",
                    subtitle=f"seed {run['seed']}, {remark}",
                    fontSize=13,
                    subtitleFontSize=11,
                    offset=8,
                )
                panels.append(chart.properties(title=title))
                data = data.assign(series=series, which=rank, runs=len(runs), seed=run["seed"], selection=selection)
                tables.append(data.assign(trial=run["trial"], metric=layout.metric.name, score=run["value"]))
        if panels:
            break
    if not panels:
        return None
    data = pd.concat(tables, ignore_index=True)
    shown = source.where(source.runs["trial"].isin(data["trial"]))
    task = source.task(str(data["trial"].iloc[0]))
    notes = [f"On {' '.join(shown.runs[['task', 'task_options']].iloc[0]).strip()}."]
    if task is not None:
        notes += unseen_notes(shown, [task.validation])
    if len(panels) < inspected:
        notes.append(f"{inspected - len(panels)} of {inspected} runs have nothing to show.")
    last_only = data["trial"][data["selection"] == "last"].nunique()
    if last_only:
        notes.append(f"For {last_only} of {len(panels)} runs only the last weights are stored; these are shown.")
    return Drawing(alt.concat(*panels, columns=2, spacing=36), data, tuple(notes))

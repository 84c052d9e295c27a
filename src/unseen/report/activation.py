"""How the modules of a model share out the rules: the activation matrix, with the best assignment marked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unseen.errors import UsageError
from unseen.metrics.alignment import alignment, best_map
from unseen.randomness import Floats
from unseen.report.save import PICTURES, check_path, save_chart
from unseen.report.theme import GROUND, VERMILION, load_altair

SIZE, LARGEST = 300, 38
"""The width of a matrix in pixels, or nearly, and of its largest cell."""
NUMBERED = 30
"""Cells at least so wide have their numbers in them."""


def activation_figure(matrix: Floats, pi: Floats, out: str | Path, title: str) -> Path:
    """Draw p(module | rule), (R, M), for rules of these probabilities, and write it (.svg, .pdf, .png or .json)."""
    path = Path(out)
    check_path(path, PICTURES)
    if matrix.ndim != 2 or np.shape(pi) != (len(matrix),):
        raise UsageError(
            f"expected an activation matrix (rules, modules) and a probability for each rule, got shapes "
            f"{matrix.shape} and {np.shape(pi)}"
        )
    cells = activation_cells(matrix, pi)
    return save_chart(
        activation_chart(cells),
        path,
        title,
        [
            "How much of each rule goes to each module. Framed: the best assignment;",
            f"{100 * outside(matrix, pi):.1f} % of the weight is outside it.",
        ],
    )


def outside(matrix: Floats, pi: Floats) -> float:
    """The weight outside the best assignment (`alignment`), of the rules that occur."""
    here = np.isfinite(matrix).all(axis=1)
    return alignment(matrix[here], np.asarray(pi)[here] / np.asarray(pi)[here].sum())


def activation_cells(matrix: Floats, pi: Floats) -> pd.DataFrame:
    """One row per rule and module: its `weight`, and whether it is `best`, i.e. in the best assignment.

    >>> activation_cells(np.array([[0.75, 0.25], [0.0, 1.0]]), np.array([0.5, 0.5]))["best"].tolist()
    [True, False, False, True]
    """
    rules, modules = matrix.shape
    here = np.flatnonzero(np.isfinite(matrix).all(axis=1))
    best = np.zeros(matrix.shape, bool)
    best[here, best_map(np.asarray(pi)[here, None] * matrix[here])] = True
    return pd.DataFrame(
        {
            "rule": np.repeat(np.arange(rules), modules),
            "module": np.tile(np.arange(modules), rules),
            "weight": matrix.ravel().round(4),
            "best": best.ravel(),
        }
    )


def activation_chart(cells: pd.DataFrame) -> Any:
    """The heat map of a table of `activation_cells`; no title, no ink of its own."""
    alt = load_altair()
    step = min(LARGEST, max(4, SIZE // max(cells["rule"].nunique(), cells["module"].nunique())))
    axis = alt.Axis(labelAngle=0, ticks=False, domain=False, grid=False, labelOverlap=True)
    x, y = alt.X("module:O", title="module", axis=axis), alt.Y("rule:O", title="rule", axis=axis)
    base = alt.Chart(cells)
    heat = base.mark_rect().encode(
        x=x,
        y=y,
        tooltip=["rule:O", "module:O", "weight:Q", "best:N"],
        fill=alt.Fill(
            "weight:Q",
            scale=alt.Scale(domain=[0, 1], scheme="viridis"),
            legend=alt.Legend(title="p(module | rule)", gradientLength=120),
        ),
    )
    frames = (
        base.transform_filter(alt.FieldEqualPredicate(equal=True, field="best"))
        .mark_rect(filled=False, stroke=VERMILION, strokeWidth=2 if step > 12 else 1.2)
        .encode(x=x, y=y)
    )
    layers = [heat, frames]
    if step >= NUMBERED:
        # The ink of a number goes with the colour under it, not with the paper.
        ink = alt.condition("datum.weight > 0.6", alt.value(GROUND["dark"]), alt.value(GROUND["light"]))
        layers.append(base.mark_text(fontSize=11).encode(x=x, y=y, text=alt.Text("weight:Q", format=".2f"), color=ink))
    return alt.layer(*layers).properties(width=alt.Step(step), height=alt.Step(step))

"""What learning curves say about runs: whether they left their starting level, and whether they still drifted."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from unseen.names import is_ood
from unseen.training.convergence import drift, left_start

ADVERSE = 1.5
"""A drift goes on: this many times the change over the last third of training may still follow."""


@dataclass(frozen=True)
class CurveFacts:
    """Of every curve its drift, by (trial, split, metric); of every trial its drift and whether it left its start.

    The drift of a trial is that of its validation score: of its accuracy, else of its loss in units of the first one.
    """

    drifts: dict[tuple[Hashable, ...], float] = field(default_factory=dict)
    validation: dict[Hashable, float] = field(default_factory=dict)
    left_start: dict[Hashable, bool] = field(default_factory=dict)


def read_curves(points: pd.DataFrame) -> CurveFacts:
    """Read the points of learning curves (trial, step, split, metric, value)."""
    facts = CurveFacts()
    if points.empty:
        return facts
    ordered = points.sort_values(["trial", "split", "metric", "step"], kind="stable")
    for (trial, split, metric), curve in ordered.groupby(["trial", "split", "metric"], sort=False):
        steps = curve["step"].to_numpy(np.float64)
        scores = curve["value"].to_numpy(np.float64)
        if metric == "loss":
            # Falling losses are rising scores, and comparable with accuracies in units of the first one.
            scores = -scores / max(abs(float(scores[0])), 1e-12)
        gain = drift(steps.tolist(), scores.tolist())
        if gain is not None:
            facts.drifts[trial, split, metric] = gain.value
        # The judged splits out of distribution may be on the curve, too; they are not the validation score.
        if is_ood(split) or (metric != "accuracy" and (metric != "loss" or trial in facts.left_start)):
            continue
        has_left = left_start(scores.tolist())
        if has_left is not None:
            facts.left_start[trial] = has_left
        if gain is not None:
            facts.validation[trial] = gain.value
    return facts

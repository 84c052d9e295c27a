"""The analyses of the retrieval paper, R1 to R9, with what it printed and what each leaves of one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from unseen.metrics.attention import DECODER, attention_by_correctness, focus, later_minus_earlier, target_attention
from unseen.metrics.profile import accuracy_by_position, error_profile, length_curves, position_effect
from unseen.metrics.strategy import favoured_feature, strategy_switch
from unseen.metrics.traces import Array, Factors, Trace


@dataclass(frozen=True)
class Published:
    """One printed number: the measure it is a value of, on which task, for which variant, at which length.

    `high` is the upper end where a range was printed, `spread` the standard deviation over seeds if printed.
    """

    measure: str
    value: float
    task: str
    variant: str = "all"
    high: float | None = None
    spread: float | None = None
    length: int = 10


class Summary(NamedTuple):
    """One number an analysis leaves of one run, over `n` examples: enough to pool runs without their traces.

    `factor` and `level` are empty, or say for which part of the examples it holds (`position`, `3`).
    """

    factor: str
    level: str
    measure: str
    value: float
    n: int


@dataclass(frozen=True)
class Analysis:
    """An analysis: a function of (traces, targets, factors), or of a frame of records for R8.

    `needs` are the intermediates it reads beside the predictions; None: it reads records, not traces. `condition` is
    where it makes sense, because the queried features occur once there. `points`, for a function that does more than
    average, gives what it is computed from: one row per run and position.
    """

    title: str
    function: Callable[..., pd.DataFrame]
    tasks: tuple[str, ...]
    published: tuple[Published, ...] = ()
    needs: tuple[str, ...] | None = (DECODER,)
    condition: str = "ood/single"
    points: Callable[..., pd.DataFrame] | None = None

    def summarise(self, trace: Trace, targets: Array, factors: Factors) -> list[Summary]:
        """What is worth keeping of one run, so that runs can be pooled later; a mean over nothing is left out.

        >>> import numpy as np
        >>> trace = {"prediction": np.array([[2.0], [-1.0]]), "decoder.attention": np.array([[0.75, 0.25], [0.5, 0.5]])}
        >>> factors = {"positions": np.array([[0, -1], [-1, -1]]), "occurrences": np.array([[1], [0]])}
        >>> ANALYSES["R1"].summarise(trace, np.array([[1], [0]]), factors)
        [Summary(factor='', level='', measure='correct', value=0.75, n=1)]
        >>> ANALYSES["R2"].summarise(trace, np.array([[1], [0]]), factors)
        [Summary(factor='position', level='0', measure='accuracy', value=1.0, n=1)]
        """
        if self.needs is None:
            return []
        runs = {("run", 0): trace}
        if self.points is not None:
            table = self.points(runs, targets, factors)
            return [
                Summary("position", str(position), "accuracy", float(value), int(n))
                for position, value, n in zip(table["position"], table["value"], table["n"], strict=True)
            ]
        table = self.function(runs, targets, factors)
        own = table[(table["scope"] == "seed") & (table["n"] > 0)]
        return [
            Summary("", "", measure, float(value), int(n))
            for measure, value, n in zip(own["measure"], own["value"], own["n"], strict=True)
        ]


_T1, _T2, _T3, _T4, _T5, _T6, _T7 = _ALL = tuple(f"retrieval/T{k}" for k in range(1, 8))

ANALYSES: dict[str, Analysis] = {
    "R1": Analysis(
        "Attention on the queried feature, by correctness",
        attention_by_correctness,
        (_T1,),
        (
            Published("correct", 0.82, _T1),
            Published("wrong", 0.17, _T1),
        ),
    ),
    "R2": Analysis(
        "Correlation of position and accuracy",
        position_effect,
        (_T1,),
        (Published("r", -0.51, _T1, "+Att"),),
        needs=(),
        points=accuracy_by_position,
    ),
    "R3": Analysis(
        "Accuracy by scenario",
        error_profile,
        (_T2,),
        (
            Published("yes/diff - yes/same", -0.25, _T2),
            Published("no/one - no/none", -0.40, _T2),
        ),
        needs=(),
    ),
    "R4": Analysis("Lead of the most attended token", focus, (_T2,), (Published("yes/diff", 0.6, _T2, high=0.7),)),
    "R5": Analysis(
        "Attention on the token that answers", target_attention, (_T3,), (Published("target", 0.6, _T3, high=0.7),)
    ),
    "R6": Analysis(
        "One-feature strategy",
        favoured_feature,
        (_T4,),
        (
            Published("favoured", 0.90, _T4),
            Published("other", 0.05, _T4),
        ),
    ),
    "R7": Analysis(
        "Attention on the later minus the earlier token",
        later_minus_earlier,
        (_T5, _T6, _T7),
        (
            Published("positive", 0.03, _T5, "T-Pos+Att", spread=0.02),
            Published("positive", 0.01, _T5, "T+Pos+Att", spread=0.01),
            Published("positive", 0.79, _T6, "T-Pos+Att", spread=0.005),
            Published("positive", -0.14, _T6, "T+Pos+Att", spread=0.55),
            Published("positive", 0.46, _T7, "T-Pos+Att", spread=0.03),
            Published("positive", 0.16, _T7, "T+Pos+Att", spread=0.18),
        ),
    ),
    "R8": Analysis("Accuracy against length", length_curves, _ALL, needs=None),
    "R9": Analysis(
        "Uniform or focused reading by length",
        strategy_switch,
        (_T1,),
        (
            Published("target", 0.20, _T1, "LSTM-attention", length=5),
            Published("target", 0.85, _T1, "LSTM-attention", length=30),
        ),
    ),
}

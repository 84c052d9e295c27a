"""The analyses of the retrieval paper, R1 to R9, with what it printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from unseen.metrics.attention import attention_by_correctness, focus, later_minus_earlier, target_attention
from unseen.metrics.profile import error_profile, length_curves, position_effect
from unseen.metrics.strategy import favoured_feature, strategy_switch


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


@dataclass(frozen=True)
class Analysis:
    """An analysis: a function of (traces, targets, factors), or of a frame of records for R8."""

    title: str
    function: Callable[..., pd.DataFrame]
    tasks: tuple[str, ...]
    published: tuple[Published, ...] = ()


_T1, _T2, _T3, _T4, _T5, _T6, _T7 = _ALL = tuple(f"retrieval/T{k}" for k in range(1, 8))

ANALYSES: dict[str, Analysis] = {
    "R1": Analysis("Attention on the queried feature, by correctness", attention_by_correctness, (_T1,), (
        Published("correct", 0.82, _T1),
        Published("wrong", 0.17, _T1),
    )),
    "R2": Analysis("Correlation of position and accuracy", position_effect, (_T1,), (
        Published("r", -0.51, _T1, "+Att"),
    )),
    "R3": Analysis("Accuracy by scenario", error_profile, (_T2,), (
        Published("yes/diff - yes/same", -0.25, _T2),
        Published("no/one - no/none", -0.40, _T2),
    )),
    "R4": Analysis("Lead of the most attended token", focus, (_T2,), (
        Published("yes/diff", 0.6, _T2, high=0.7),
    )),
    "R5": Analysis("Attention on the token that answers", target_attention, (_T3,), (
        Published("target", 0.6, _T3, high=0.7),
    )),
    "R6": Analysis("One-feature strategy", favoured_feature, (_T4,), (
        Published("favoured", 0.90, _T4),
        Published("other", 0.05, _T4),
    )),
    "R7": Analysis("Attention on the later minus the earlier token", later_minus_earlier, (_T5, _T6, _T7), (
        Published("positive", 0.03, _T5, "T-Pos+Att", spread=0.02),
        Published("positive", 0.01, _T5, "T+Pos+Att", spread=0.01),
        Published("positive", 0.79, _T6, "T-Pos+Att", spread=0.005),
        Published("positive", -0.14, _T6, "T+Pos+Att", spread=0.55),
        Published("positive", 0.46, _T7, "T-Pos+Att", spread=0.03),
        Published("positive", 0.16, _T7, "T+Pos+Att", spread=0.18),
    )),
    "R8": Analysis("Accuracy against length", length_curves, _ALL),
    "R9": Analysis("Uniform or focused reading by length", strategy_switch, (_T1,), (
        Published("target", 0.20, _T1, "LSTM-attention", length=5),
        Published("target", 0.85, _T1, "LSTM-attention", length=30),
    )),
}

"""Metrics: pure functions, arrays in, numbers out, never torch."""

from __future__ import annotations

from unseen.metrics.accuracy import Score, accuracy, accuracy_by, decide
from unseen.metrics.analyses import ANALYSES, Analysis, Published
from unseen.metrics.attention import attention_by_correctness, focus, later_minus_earlier, target_attention
from unseen.metrics.profile import accuracy_by_position, error_profile, length_curves, position_effect
from unseen.metrics.strategy import favoured_feature, strategy_switch
from unseen.metrics.traces import Factors, Trace, Traces, pooled

__all__ = [
    "ANALYSES",
    "Analysis",
    "Factors",
    "Published",
    "Score",
    "Trace",
    "Traces",
    "accuracy",
    "accuracy_by",
    "accuracy_by_position",
    "attention_by_correctness",
    "decide",
    "error_profile",
    "favoured_feature",
    "focus",
    "later_minus_earlier",
    "length_curves",
    "pooled",
    "position_effect",
    "strategy_switch",
    "target_attention",
]

"""Metrics: pure functions, arrays in, numbers out, never torch."""

from __future__ import annotations

from unseen.metrics.accuracy import Score, accuracy, accuracy_by, decide
from unseen.metrics.activation import activation_matrix, collapsed_activation, uniform_activation
from unseen.metrics.adaptation import Sampler, adaptation
from unseen.metrics.alignment import alignment
from unseen.metrics.analyses import ANALYSES, Analysis, Published
from unseen.metrics.attention import attention_by_correctness, focus, later_minus_earlier, target_attention
from unseen.metrics.collapse import collapse_avg, collapse_worst
from unseen.metrics.demand import demand_partition
from unseen.metrics.information import (
    effective_modules,
    inverse_mutual_information,
    mutual_information,
    token_entropy,
    token_information,
)
from unseen.metrics.profile import accuracy_by_position, error_profile, length_curves, position_effect
from unseen.metrics.specialization import specialization
from unseen.metrics.strategy import favoured_feature, strategy_switch
from unseen.metrics.traces import Factors, Trace, Traces, pooled
from unseen.metrics.votes import vote_table

__all__ = [
    "ANALYSES",
    "Analysis",
    "Factors",
    "Published",
    "Sampler",
    "Score",
    "Trace",
    "Traces",
    "accuracy",
    "accuracy_by",
    "accuracy_by_position",
    "activation_matrix",
    "adaptation",
    "alignment",
    "attention_by_correctness",
    "collapse_avg",
    "collapse_worst",
    "collapsed_activation",
    "decide",
    "demand_partition",
    "effective_modules",
    "error_profile",
    "favoured_feature",
    "focus",
    "inverse_mutual_information",
    "later_minus_earlier",
    "length_curves",
    "mutual_information",
    "pooled",
    "position_effect",
    "specialization",
    "strategy_switch",
    "target_attention",
    "token_entropy",
    "token_information",
    "uniform_activation",
    "vote_table",
]

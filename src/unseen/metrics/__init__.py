"""Metrics: pure functions, arrays in, numbers out, never torch."""

from __future__ import annotations

from unseen.metrics.accuracy import Score, accuracy, accuracy_by, decide, kind_accuracy
from unseen.metrics.activation import activation_matrix, collapsed_activation, uniform_activation
from unseen.metrics.adaptation import Sampler, adaptation
from unseen.metrics.alignment import alignment
from unseen.metrics.analyses import ANALYSES, Analysis, Published
from unseen.metrics.attention import attention_by_correctness, focus, later_minus_earlier, target_attention
from unseen.metrics.collapse import collapse_avg, collapse_worst
from unseen.metrics.compatibility import Gain, explained_gain
from unseen.metrics.demand import demand_partition
from unseen.metrics.grouping import Gap, adjusted_rand, complete_linkage_clusters, group_gap, silhouette
from unseen.metrics.information import (
    effective_modules,
    inverse_mutual_information,
    mutual_information,
    token_entropy,
    token_information,
)
from unseen.metrics.profile import accuracy_by_position, error_profile, length_curves, position_effect
from unseen.metrics.representation import cosine_matrix, linear_cka, procrustes, rsa
from unseen.metrics.specialization import specialization
from unseen.metrics.strategy import favoured_feature, strategy_switch
from unseen.metrics.success import success_table
from unseen.metrics.traces import Factors, Trace, Traces, pooled
from unseen.metrics.votes import vote_table

__all__ = [
    "ANALYSES",
    "Analysis",
    "Factors",
    "Gain",
    "Gap",
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
    "adjusted_rand",
    "alignment",
    "attention_by_correctness",
    "collapse_avg",
    "collapse_worst",
    "collapsed_activation",
    "complete_linkage_clusters",
    "cosine_matrix",
    "decide",
    "demand_partition",
    "effective_modules",
    "error_profile",
    "explained_gain",
    "favoured_feature",
    "focus",
    "group_gap",
    "inverse_mutual_information",
    "kind_accuracy",
    "later_minus_earlier",
    "length_curves",
    "linear_cka",
    "mutual_information",
    "pooled",
    "position_effect",
    "procrustes",
    "rsa",
    "silhouette",
    "specialization",
    "strategy_switch",
    "success_table",
    "target_attention",
    "token_entropy",
    "token_information",
    "uniform_activation",
    "vote_table",
]

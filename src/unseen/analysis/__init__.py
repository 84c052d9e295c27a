"""Analyses: pure functions from arrays or activations to numbers and tables. Nothing here imports torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unseen.analysis.accuracy import Score, accuracy, accuracy_by, decide, kind_accuracy, success_table
from unseen.registry import import_on_use

if TYPE_CHECKING:
    from unseen.analysis.activations import Activations, Factors, RunActivations, pooled_values
    from unseen.analysis.adaptation_metric import Sampler, adaptation
    from unseen.analysis.attention import (
        ANALYSES,
        Analysis,
        PublishedNumber,
        accuracy_by_position,
        attention_by_correctness,
        error_profile,
        favoured_feature,
        focus,
        later_minus_earlier,
        length_curves,
        position_effect,
        strategy_switch,
        target_attention,
    )
    from unseen.analysis.interchange import InterchangeScore, Pairs, make_pairs, score_pairs
    from unseen.analysis.probes import ProbeScore, probe
    from unseen.analysis.representation import (
        Gain,
        Gap,
        adjusted_rand,
        complete_linkage_clusters,
        cosine_matrix,
        explained_gain,
        group_gap,
        linear_cka,
        procrustes,
        rsa,
        silhouette,
    )
    from unseen.analysis.router_health import RouterHealth, measure_router_health, router_health_table
    from unseen.analysis.routing import activation_matrix, collapsed_activation, ideal_partition, uniform_activation
    from unseen.analysis.specialization_metrics import (
        alignment,
        collapse_avg,
        collapse_worst,
        effective_modules,
        inverse_mutual_information,
        mutual_information,
        specialization,
        token_entropy,
        token_information,
    )
    from unseen.analysis.votes import vote_table

# Imported when one of their names is first used: a training needs no more than the accuracy.
_MODULES = (
    "activations",
    "adaptation_metric",
    "attention",
    "interchange",
    "probes",
    "representation",
    "router_health",
    "routing",
    "specialization_metrics",
    "votes",
)
__all__ = [
    "ANALYSES",
    "Activations",
    "Analysis",
    "Factors",
    "Gain",
    "Gap",
    "InterchangeScore",
    "Pairs",
    "ProbeScore",
    "PublishedNumber",
    "RouterHealth",
    "RunActivations",
    "Sampler",
    "Score",
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
    "effective_modules",
    "error_profile",
    "explained_gain",
    "favoured_feature",
    "focus",
    "group_gap",
    "ideal_partition",
    "inverse_mutual_information",
    "kind_accuracy",
    "later_minus_earlier",
    "length_curves",
    "linear_cka",
    "make_pairs",
    "measure_router_health",
    "mutual_information",
    "pooled_values",
    "position_effect",
    "probe",
    "procrustes",
    "router_health_table",
    "rsa",
    "score_pairs",
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

__getattr__ = import_on_use(__name__, _MODULES, __all__)

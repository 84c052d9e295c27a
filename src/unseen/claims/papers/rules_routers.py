"""Claims of our own about routers and inductive biases: specialization of modules that are trained end to end.

Of every configuration (gating, router or bias, setting, number of rules) the runs with one learning rate count: the rate,
tried alike for all, whose mean error in distribution over tasks is the least. Runs of the last weights.

"Near" true gates is an alignment of at most a tenth of that of gates that are uniform (true gates have 0). Criteria and
bounds were fixed before any run of the study `rules-routers`.
"""

from __future__ import annotations

from functools import partial

import pandas as pd

from unseen.claims import criterion
from unseen.claims.claim import Claim, Tables
from unseen.claims.criterion import details, for_all
from unseen.claims.evidence import Group, SamplingDesign, group
from unseen.claims.papers import rules_measures as measures
from unseen.claims.papers.rules import COVERS, PAPER, describe_setting
from unseen.claims.papers.rules_measures import CONFIGURATION
from unseen.claims.quantity import OVERALL

NEAR = 0.1
"""Of the alignment of uniform gates."""
ALIGNMENT = "relative alignment"
SPARSE = ("top-1", "top-2", "straight-through", "gumbel", "reinforce", "sinkhorn", "annealed softmax")
BIASES = ("switch loss", "importance loss", "entropy loss", "module dropout", "uniform start")
TOLD = ("true rule", "rule information")
"""Biases that are told the rule of a token."""
_ASKED = "not in the paper"
_DESIGN = SamplingDesign(
    ("task_seed", "seed"), "task_seed", "task", COVERS, (*CONFIGURATION, "routing", "learning_rate"), {"reach": "rules"}
)

above = partial(criterion.above, statistic=OVERALL)
below = partial(criterion.below, statistic=OVERALL)
better = partial(criterion.better, statistic=OVERALL)


def columns(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of the family that name their router and learning rate as axes."""
    runs = measures.columns(runs)
    if not {"routing", "learning_rate"} <= set(runs):
        return runs.iloc[:0].assign(routing="", learning_rate=float("nan"))
    return runs[runs["routing"].notna() & runs["learning_rate"].notna()]


def tuned(tables: Tables) -> pd.DataFrame:
    """Errors and specialization of the runs whose learning rate is the best of their configuration."""
    errors = measures.errors(tables)
    rows = pd.concat([errors, measures.specialization(tables)], ignore_index=True)
    axes = tables.runs[["trial", "routing", "learning_rate"]]
    if rows.empty:
        return rows.assign(routing="", learning_rate="")
    rows = rows.merge(axes, on="trial")
    configuration = [*CONFIGURATION, "routing"]
    mean = rows[rows["metric"] == "error"].groupby([*configuration, "learning_rate"], dropna=False)["value"].mean()
    # Of equal means, the smallest rate.
    best = mean.reset_index().sort_values(["value", "learning_rate"], kind="stable").drop_duplicates(configuration)
    chosen = rows.merge(best[[*configuration, "learning_rate"]], on=[*configuration, "learning_rate"])
    # Runs are told apart by their rates, and compared whatever the best rate of each configuration is.
    return chosen.assign(learning_rate="best")


def _runs(metric: str, gating: str, routing: str = "softmax") -> Group:
    """Runs of one gating with one router or bias."""
    label = gating if gating in ("none", "truth") else f"{gating}, {routing}"
    return group(metric, "", label, gating=gating, routing=routing)


_claim = partial(
    Claim,
    paper=PAPER,
    study="rules-routers",
    columns=columns,
    measures=tuned,
    design=_DESIGN,
    setting=describe_setting,
    ours=True,
)

R1 = _claim(
    "rules/R1",
    "the open question of better routers",
    "No router, and no bias that is not told the rule, brings joint gating near true gates: with each, alignment stays "
    "above a tenth of that of uniform gates.",
    _ASKED,
    [
        *for_all(above, [_runs(ALIGNMENT, "joint", routing) for routing in ("softmax", *SPARSE, *BIASES)], NEAR),
        *details(
            *for_all(above, [_runs(ALIGNMENT, "operation", routing) for routing in ("softmax", *SPARSE, *BIASES)], NEAR)
        ),
    ],
)
R2 = _claim(
    "rules/R2",
    "the open question of inductive biases",
    "Biases that are told the rule do bring modules near true gates: with cross-entropy to the rule, alignment falls "
    "below a tenth of that of uniform gates.",
    _ASKED,
    [
        below(_runs(ALIGNMENT, "joint", "true rule"), NEAR),
        below(_runs(ALIGNMENT, "operation", "true rule"), NEAR),
        *details(*for_all(below, [_runs(ALIGNMENT, gating, TOLD[1]) for gating in ("joint", "operation")], NEAR)),
    ],
)
R3 = _claim(
    "rules/R3",
    "whether specialization pays",
    "Specialization pays: joint gates that are trained towards the rule make smaller errors than those of the plain "
    "softmax out of distribution, and in distribution.",
    _ASKED,
    [
        better(_runs("OoD error", "joint"), _runs("OoD error", "joint", "true rule")),
        better(_runs("error", "joint"), _runs("error", "joint", "true rule")),
        *details(
            better(_runs("OoD error", "operation"), _runs("OoD error", "operation", "true rule")),
            better(_runs("OoD error", "joint"), _runs("OoD error", "truth")),
            better(_runs("OoD error", "none"), _runs("OoD error", "joint", "true rule")),
        ),
    ],
)
R4 = _claim(
    "rules/R4",
    "whether balance is specialization",
    "Losses that balance the modules make joint gates collapse less than the plain softmax, and do not bring them near true gates.",
    _ASKED,
    [
        better(_runs("collapse_avg", "joint"), _runs("collapse_avg", "joint", "importance loss")),
        above(_runs(ALIGNMENT, "joint", "importance loss"), NEAR),
        *details(
            better(_runs("collapse_avg", "joint"), _runs("collapse_avg", "joint", "switch loss")),
            above(_runs(ALIGNMENT, "joint", "switch loss"), NEAR),
        ),
    ],
)

"""More of the gCOG paper: layers and heads (figure 6), and whether its gap is that of a fixed pool of questions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd

from unseen.studies.claims import gcog_measures as measures
from unseen.studies.claims.claim import Claim
from unseen.studies.claims.evidence import Design, Group, group
from unseen.studies.claims.gcog import (
    DISTRACTOR,
    DRAWN,
    EXCELLENT,
    OPERATORS,
    OURS,
    PAPER,
    POINT,
    PRODUCTIVE,
    TREES,
)
from unseen.studies.claims.gcog_measures import OOD
from unseen.studies.claims.part import Part, above, better, between, grows, no_better
from unseen.studies.claims.quantity import OVERALL

# -- figure 6: layers and heads ---------------------------------------------------------------------------------------

SERIES = Design(places=("task", "layers", "heads"), made_from={"many_layers": "layers", "many_heads": "heads"})
"""Models are compared that agree in heads, or in layers."""


def _series(end: str, axis: str) -> Group:
    """The BERT-like models with the most, or the fewest, layers or heads."""
    return group(OOD, label=f"the {end} {axis}", **{f"many_{axis}": end})


LAYERS, HEADS = ((_series(measures.MOST, axis), _series(measures.FEWEST, axis)) for axis in ("layers", "heads"))


def _layer_claim(name: str, task: str, statement: str, parts: Sequence[Part]) -> Claim:
    return Claim(
        f"gcog/layers-{name}",
        PAPER,
        "figure 6",
        statement,
        DRAWN,
        "gcog-layers",
        "",
        tuple(parts),
        partial(measures.layer_columns, task),
        ("cells", measures.CELLS),
        measures.accuracies,
        SERIES,
    )


def _helped(name: str, task: str, what: str) -> Claim:
    return _layer_claim(
        name,
        task,
        f"A Transformer of more layers does better {what}; more heads help, too, but less. With 4 layers and 8 heads "
        "it is excellent (above 0.90).",
        [
            *(better(*ends, statistic=OVERALL) for ends in (LAYERS, HEADS)),
            grows(LAYERS, HEADS, statistic=OVERALL),
            above(group(OOD, layers=4, heads=8), EXCELLENT, printed=True, statistic=OVERALL),
        ],
    )


LAYERS_DISTRACTORS = _helped("distractors", DISTRACTOR, "among more distractors than in training")
LAYERS_OPERATORS = _helped("operators", OPERATORS, "with objects that an operator never met")
LAYERS_TREES = _helped("trees", TREES, "with operators that were not trained together")
LAYERS_PRODUCTIVITY = _layer_claim(
    "productivity",
    PRODUCTIVE,
    "With deeper questions neither more layers nor more heads matter: less than five points, up or down.",
    [
        part
        for ends in (LAYERS, HEADS)
        for part in (no_better(*ends, by=5 * POINT, statistic=OVERALL), better(*ends, by=-5 * POINT, statistic=OVERALL))
    ],
)


# -- is it the fixed pool of questions? -------------------------------------------------------------------------------

SMALLEST, LARGEST, FRESH = measures.POOLS
BY_POOL = Design(places=("task", "pool", *measures.SETTING), made_from={"pool_size": "pool"})
"""Runs are compared that differ in their pool alone."""


def _pool(size: str, metric: str = measures.GAP) -> Group:
    """Runs on the smallest or the largest pool, or on fresh questions."""
    return group(metric, label="fresh questions" if size == FRESH else f"the {size} pool", pool_size=size)


def _pools(runs: pd.DataFrame) -> str:
    """What was run, in words: `pool: 2000, 20000, fresh; coding: embedding, integer; …`."""
    return "; ".join(
        f"{axis}: {', '.join(dict.fromkeys(map(str, runs[axis])))}"
        for axis in ("pool", *measures.SETTING)
        if (runs[axis] != "").any()
    )


POOL = Claim(
    "gcog/pool",
    OURS,
    "figure 4e and f, asked again with other training data",
    "Models that learn a fixed pool of questions fail on fresh ones of the same kind. The gap (more than five points "
    "with the smallest pool) shrinks with a larger pool and is gone (less than two points) with questions that are "
    "drawn anew; and then fresh trees of trained triples are answered better. (The gap is that of all questions, half "
    "of which are single operators.)",
    "98 % of the training data and 59 to 75 % of fresh trees of the same kind; why is an inference from the released "
    "code, not a statement of the paper",
    "gcog-pool",
    "",
    (
        above(_pool(SMALLEST), 5 * POINT, statistic=OVERALL),
        *(better(_pool(SMALLEST), _pool(other), statistic=OVERALL) for other in (LARGEST, FRESH)),
        between(_pool(FRESH), -2 * POINT, 2 * POINT, statistic=OVERALL),
        better(_pool(FRESH, measures.FRESH_TREES), _pool(SMALLEST, measures.FRESH_TREES), statistic=OVERALL),
    ),
    measures.pool_columns,
    None,
    measures.gaps,
    BY_POOL,
    _pools,
)

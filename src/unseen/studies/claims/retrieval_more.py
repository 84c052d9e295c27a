"""More of the retrieval paper: Transformers as sequences grow, how much seeds differ, and how each variant reads."""

from __future__ import annotations

from collections.abc import Sequence

from unseen.studies.claims.evidence import Group
from unseen.studies.claims.part import Part, above, below, better, between, close, no_better
from unseen.studies.claims.quantity import POOLED, SPREAD
from unseen.studies.claims.retrieval import (
    ATTENTION,
    ATTENTION_TEXT,
    ONE_FEATURE,
    OURS,
    POINT,
    PRINTED_ATTENTION,
    TABLE2,
    TABLE2_VALUES,
    VARIANTS,
    later,
    on,
    retrieval_claim,
)


def _at(task: str, reach: str, variants: Sequence[str] = VARIANTS) -> Group:
    """Some variants, or all together, at the shortest or the longest of the lengths that were run."""
    return on(task, *variants, reach=reach, label=f"{reach} {'Transformers' if variants == VARIANTS else variants[0]}")


def _level(task: str) -> list[Part]:
    """At the one-feature ceiling or below it, and within two points the same at both ends."""
    ends = _at(task, "longest"), _at(task, "shortest")
    return [*(below(end, ONE_FEATURE + POINT) for end in ends), no_better(*ends, by=2 * POINT),
            better(*ends, by=-2 * POINT)]


LENGTHS = retrieval_claim(
    "lengths", "figure of accuracy against length",
    "As sequences grow Transformers improve on T1 and T3, stay at the one-feature ceiling on T2 and T4 (within two "
    "points), and get worse on T5, T6 and T7, where at the greatest length self-attention without positions is best.",
    "drawn, not printed",
    [
        *(better(_at(task, "longest"), _at(task, "shortest")) for task in ("T1", "T3")),
        *(part for task in ("T2", "T4") for part in _level(task)),
        *(better(_at(task, "shortest"), _at(task, "longest")) for task in ("T5", "T6", "T7")),
        *(better(_at(task, "longest", [ATTENTION]), _at(task, "longest", [variant]))
          for task in ("T5", "T6", "T7") for variant in VARIANTS if variant != ATTENTION),
    ],
    study="retrieval-lengths", at=None,
)


def _as_wide(of: Group, spread: float, least: float) -> Part:
    """Two standard deviations of five seeds each may differ by a factor of three by chance; ours has an interval of its
    own: a factor of five is agreement. Below `least` any spread is as good as none."""
    low, high = spread / 5 if spread > least else 0.0, max(5 * spread, least)
    return between(of, low, high, statistic=SPREAD, printed=True) if low else below(
        of, high, statistic=SPREAD, printed=True)


SPREADS = retrieval_claim(
    "spreads", "table 2 and table of attention differences",
    "How much seeds differ, to within a factor of five.",
    f"{TABLE2_VALUES.printed}; {ATTENTION_TEXT}",
    [
        *(_as_wide(on(task, variant), spread / 100, POINT) for task, row in TABLE2.items()
          for variant, (_, spread) in zip(VARIANTS, row, strict=True)),
        *(_as_wide(later(task, variant), spread, 5 * POINT) for task, variant, _, spread in PRINTED_ATTENTION),
    ],
)
READING_VARIANTS = retrieval_claim(
    "variants", "analyses of T2 and T3",
    "All four variants read alike: the lead of the most attended token on T2, and the attention on the token that "
    "answers on T3.",
    "0.6 to 0.7 in every variant, for both",
    # Printed to one digit: a tenth more or less than the middle is agreement.
    [close(on(task, variant, metric=metric), 0.65, 0.1, statistic=POOLED)
     for task, metric in (("T2", "R4/yes/diff"), ("T3", "R5/target")) for variant in VARIANTS],
)
ONE_FEATURE_RULE = retrieval_claim(
    "one-feature", "analysis of T4, asked of the answers",
    "On T4 a model attends to one favoured feature of the pair, and answers by it alone: where the rule *yes if the "
    "favoured feature is there* is wrong, most answers follow the rule.",
    "attention about 0.9 on the favoured feature and 0.05 on the other; of answers nothing is printed",
    [above(on("T4", variant, metric="R6/agreement where the rule errs"), 0.5, statistic=POOLED)
     for variant in VARIANTS],
    paper=OURS,
)

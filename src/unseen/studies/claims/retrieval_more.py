"""More of the retrieval paper: its models as sequences grow, how much seeds differ, and how each variant reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unseen.studies.claims.evidence import Group, group
from unseen.studies.claims.part import Part, above, below, better, between, close, no_better
from unseen.studies.claims.quantity import POOLED, SPREAD
from unseen.studies.claims.retrieval import (
    ATTENTION,
    ATTENTION_TEXT,
    LSTM,
    LSTM_ATTENTION,
    LSTMS,
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
    return [
        *(below(end, ONE_FEATURE + POINT) for end in ends),
        no_better(*ends, by=2 * POINT),
        better(*ends, by=-2 * POINT),
    ]


LENGTHS = retrieval_claim(
    "lengths",
    "figure of accuracy against length",
    "As sequences grow Transformers improve on T1 and T3, stay at the one-feature ceiling on T2 and T4 (within two "
    "points), and get worse on T5, T6 and T7, where at the greatest length self-attention without positions is best.",
    "drawn, not printed",
    [
        *(better(_at(task, "longest"), _at(task, "shortest")) for task in ("T1", "T3")),
        *(part for task in ("T2", "T4") for part in _level(task)),
        *(better(_at(task, "shortest"), _at(task, "longest")) for task in ("T5", "T6", "T7")),
        *(
            better(_at(task, "longest", [ATTENTION]), _at(task, "longest", [variant]))
            for task in ("T5", "T6", "T7")
            for variant in VARIANTS
            if variant != ATTENTION
        ),
    ],
    study="retrieval-lengths",
    at=None,
)


def _run(model: str, reach: str = "", metric: str = "accuracy", **more: Any) -> Group:
    """One of the LSTMs, or all Transformers, on all the tasks that were run unless one is named."""
    variants = VARIANTS if model == "Transformers" else (model,)
    where = {"reach": reach} if reach else {}
    said = f"{reach} {model}".strip() + (f" at {more['length']}" if "length" in more else "")
    return group(metric, "", said, variant=variants, **where, **more)


_ON_T1: dict[str, Any] = {"task": "retrieval/T1"}
C10 = retrieval_claim(
    "C10",
    "figure of accuracy against length",
    "LSTMs are below the Transformers and lose accuracy as sequences grow (on T1 the one without attention all the "
    "way); attention never harms them. Exceptions: the attention LSTM matches the Transformers on T1 at lengths 5 and "
    "30 but not between, where it changes from uniform to focused reading, and beats them on T2 and T4 at length 5.",
    "attention on the queried token about 0.2 at length 5 and 0.85 at length 30; the accuracies are drawn, not printed",
    [
        *(better(_run("Transformers"), _run(model)) for model in LSTMS),
        *(better(_run(model, "shortest"), _run(model, "longest")) for model in LSTMS),
        *(
            better(_run(LSTM, shorter, **_ON_T1), _run(LSTM, longer, **_ON_T1))
            for shorter, longer in (("shortest", "between"), ("between", "longest"))
        ),
        *(
            better(_run(LSTM_ATTENTION, reach), _run(LSTM, reach), by=-POINT)
            for reach in ("shortest", "between", "longest")
        ),
        *(
            better(
                _run(LSTM_ATTENTION, length=length, **_ON_T1),
                _run("Transformers", length=length, **_ON_T1),
                by=-2 * POINT,
            )
            for length in (5, 30)
        ),
        better(_run("Transformers", "between", **_ON_T1), _run(LSTM_ATTENTION, "between", **_ON_T1)),
        *(
            better(on(task, LSTM_ATTENTION, length=5), on(task, variant, length=5))
            for task in ("T2", "T4")
            for variant in VARIANTS
        ),
        better(
            _run(LSTM_ATTENTION, "longest", "R9/target", **_ON_T1),
            _run(LSTM_ATTENTION, "shortest", "R9/target", **_ON_T1),
        ),
        *(
            close(_run(LSTM_ATTENTION, metric="R9/target", length=length, **_ON_T1), value, 0.1, printed=False)
            for length, value in ((5, 0.2), (30, 0.85))
        ),
    ],
    study="retrieval-lengths",
    at=None,
)


def _as_wide(of: Group, spread: float, least: float) -> Part:
    """Two standard deviations of five seeds each may differ by a factor of three by chance; ours has an interval of its
    own: a factor of five is agreement. Below `least` any spread is as good as none."""
    low, high = spread / 5 if spread > least else 0.0, max(5 * spread, least)
    return (
        between(of, low, high, statistic=SPREAD, printed=True)
        if low
        else below(of, high, statistic=SPREAD, printed=True)
    )


SPREADS = retrieval_claim(
    "spreads",
    "table 2 and table of attention differences",
    "How much seeds differ, to within a factor of five.",
    f"{TABLE2_VALUES.printed}; {ATTENTION_TEXT}",
    [
        *(
            _as_wide(on(task, variant), spread / 100, POINT)
            for task, row in TABLE2.items()
            for variant, (_, spread) in zip(VARIANTS, row, strict=True)
        ),
        *(_as_wide(later(task, variant), spread, 5 * POINT) for task, variant, _, spread in PRINTED_ATTENTION),
    ],
)
READING_VARIANTS = retrieval_claim(
    "variants",
    "analyses of T2 and T3",
    "All four variants read alike: the lead of the most attended token on T2, and the attention on the token that "
    "answers on T3.",
    "0.6 to 0.7 in every variant, for both",
    # Printed to one digit: a tenth more or less than the middle is agreement.
    [
        close(on(task, variant, metric=metric), 0.65, 0.1, statistic=POOLED)
        for task, metric in (("T2", "R4/yes/diff"), ("T3", "R5/target"))
        for variant in VARIANTS
    ],
)
ONE_FEATURE_RULE = retrieval_claim(
    "one-feature",
    "analysis of T4, asked of the answers",
    "On T4 a model attends to one favoured feature of the pair, and answers by it alone: where the rule *yes if the "
    "favoured feature is there* is wrong, most answers follow the rule.",
    "attention about 0.9 on the favoured feature and 0.05 on the other; of answers nothing is printed",
    [
        above(on("T4", variant, metric="R6/agreement where the rule errs"), 0.5, statistic=POOLED)
        for variant in VARIANTS
    ],
    paper=OURS,
)

"""The claims of the retrieval paper: C1 to C10, its tables of numbers, its analyses, and questions of ours.

Directions come first and values second. Criteria that compare directions, and bounds that hold at every length
(shortcut ceilings), are judged at whatever length was run. Criteria marked `printed` compare with a number that the
paper prints for length 10, and are judged at length 10 only.

The unit of every criterion is the seed. A direction ("A is above B") has its bound at 0: the paper draws or prints gaps
that are several times the noise of five seeds (C7 says where not), so a tie leaves the sentence open, and only a
difference that lies below 0 by the tests contradicts it. Where the paper says that there is *no* difference, a named
margin says how large one may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from unseen.analysis.attention import ANALYSES, PublishedNumber
from unseen.claims.claim import Claim, Tables
from unseen.claims.criterion import (
    Criterion,
    PrintedNumber,
    above,
    below,
    better,
    between,
    close,
    details,
    for_all,
    for_pairs,
    no_better,
    printed_number,
    varies_more,
)
from unseen.claims.evidence import Group, group
from unseen.claims.papers import POINT, agreement_tolerance, is_reduced, label_extremes, option_column
from unseen.claims.quantity import CORRELATION, POOLED, SPREAD
from unseen.names import family_of, name_in_family

PAPER = "Sorodoc, Boleda & Baroni 2021"
LENGTH, TEST = 10, "ood/single"
SHORTEST = 5
"""The shortest sequences of the paper's figure over lengths."""
SEEDS = 5
"""The seeds behind every printed mean and standard deviation."""
SIZES = {"task.features": 36, "task.train_size": 100_000, "model.width": 100}
"""The paper's world and models, of every task and length."""
NEITHER, POSITIONS, ATTENTION, BOTH = VARIANTS = ("T−Pos−Att", "T+Pos−Att", "T−Pos+Att", "T+Pos+Att")
LSTM, LSTM_ATTENTION = LSTMS = ("LSTM", "LSTM+Att")

TABLE2: dict[str, tuple[tuple[float, float], ...]] = {
    "T1": ((91.3, 2.8), (96.1, 2.9), (96.5, 1.7), (98.7, 1.1)),
    "T2": ((83.4, 0.2), (84.7, 0.5), (83.2, 0.2), (84.9, 1.5)),
    "T3": ((98.7, 1.2), (100.0, 0.0), (99.4, 0.9), (100.0, 0.0)),
    "T4": ((86.2, 0.6), (87.7, 0.3), (86.4, 0.6), (87.7, 0.2)),
    "T5": ((77.4, 0.4), (77.7, 1.2), (78.8, 2.5), (77.8, 1.1)),
    "T6": ((56.6, 1.0), (80.2, 0.4), (92.1, 0.3), (90.7, 1.9)),
    "T7": ((57.5, 0.4), (65.8, 0.8), (78.6, 0.6), (67.6, 0.6)),
}
"""Accuracy in %, mean and standard deviation of five seeds, variants in the order of `VARIANTS`, length 10."""

ONE_FEATURE = 0.875
"""What the rule *one particular feature of the pair is present* scores on T2, T3 and T4, at every length."""
ORDER_BLIND = 0.75
"""What the rule *both features are present* scores on T6, at every length: the most that a model can reach that sees no
order."""
CEILING = ONE_FEATURE + POINT
"""Ceilings hold to within one point of accuracy: a test set of 10 000 is good for a third of that, and the paper's best
models, which "about" reach the ceiling, are at 87.7 %."""
NO_GAIN = 3 * POINT
"""The largest gain that counts as none: the printed spreads between seeds of one variant go up to 2.5 points (T5)."""
LEVEL = 2 * POINT
"""The largest change over lengths, or loss, that counts as none: the printed spreads of T2 and T4 are 0.2 to 1.5 points."""
EVEN = 0.1
"""The largest attention difference that counts as even. Printed are 0.03 and 0.01 on T5, 0.79 and 0.46 on
T6 and T7."""
WEAK = 0.3
"""The strongest correlation that counts as weak. "Not significant" is not "none": over five seeds and ten positions no
more can be shown."""


# -- runs and measures, shared with the figures -----------------------------------------------------------------------


def columns(runs: pd.DataFrame, shortest: int = LENGTH) -> pd.DataFrame:
    """Select the runs of the family; add their `length`, and `reach`: whether it is the longest or the shortest.

    `reduced` says whether a run is smaller than the paper's, whose sequences are `shortest` or longer.
    """
    runs = runs[runs["task"].map(family_of) == "retrieval"]
    runs = runs.assign(length=option_column(runs, "task.length"))
    runs = runs[runs["length"].notna()].astype({"length": int})
    several = runs["length"].nunique() > 1
    return runs.assign(
        reach=label_extremes(runs["length"], "longest", "shortest") if several else "between",
        reduced=is_reduced(runs, {**SIZES, "length": shortest}),
    )


def select_test_records(records: pd.DataFrame, metric: str = "accuracy", factor: str = "") -> pd.DataFrame:
    """Select a metric of the best weights on the paper's test, overall or by the levels of a factor."""
    return records[
        (records["selection"] == "best")
        & (records["split"] == TEST)
        & (records["factor"] == factor)
        & (records["metric"] == metric)
    ]


LATER = "accuracy at later positions"


def by_position(tables: Tables) -> pd.DataFrame:
    """The accuracy at every position (analysis R2), and `LATER`: the mean of each run over the later half of them."""
    rows = select_test_records(tables.records, "R2/accuracy", "position")
    position = rows["level"].astype(float)
    late = rows[position > position.groupby(rows["trial"]).transform("mean")]
    mean = late.groupby("trial")["value"].mean()
    late = late.drop_duplicates("trial")
    late = late.assign(metric=LATER, factor="", level="", value=late["trial"].map(mean))
    return pd.concat([rows, late], ignore_index=True)


# -- groups of runs, and texts ----------------------------------------------------------------------------------------


def on(task: str, *variants: str, metric: str = "accuracy", factor: str = "", label: str = "", **more: Any) -> Group:
    """Runs of some variants together on one of the seven tasks."""
    return group(metric, factor, label, task=f"retrieval/{task}", variant=variants, **more)


def on_each(tasks: Sequence[str], variants: Iterable[str] = VARIANTS, **more: Any) -> list[Group]:
    """One group per task and variant."""
    names = list(variants)
    return [on(task, variant, **more) for task in tasks for variant in names]


_COMPONENTS = {
    "Pos": ((POSITIONS, BOTH), (NEITHER, ATTENTION)),
    "Att": ((ATTENTION, BOTH), (NEITHER, POSITIONS)),
}


def _effect(task: str, component: str) -> tuple[Group, Group]:
    """The variants with a component and those without it, each averaged seed by seed."""
    present, absent = _COMPONENTS[component]
    return on(task, *present, label=f"+{component}"), on(task, *absent, label=f"−{component}")


NEAR_CHANCE = {("T6", NEITHER), ("T7", NEITHER)}
"""Where the paper says that a model is near chance."""


def _may_fail(*criteria: Criterion) -> list[Criterion]:
    """Mark criteria in which the weaker model is near chance, as the paper says."""
    return [replace(criterion, may_fail=True) for criterion in criteria]


def _note_failure(criterion: Criterion, task: str, variant: str) -> Criterion:
    """Mark a criterion if the paper says that this variant is near chance on this task."""
    return replace(criterion, may_fail=True) if (task, variant) in NEAR_CHANCE else criterion


def _format_row(task: str) -> str:
    """A row of table 2."""
    values = []
    for variant, (value, spread) in zip(VARIANTS, TABLE2[task], strict=True):
        values.append(f"{variant} {value:g}" + (f" ± {spread:g}" if spread else ""))
    return f"{task}: {', '.join(values)} %"


def _printed_mean(runs: Group, value: float, spread: float) -> PrintedNumber:
    return printed_number(runs, value, spread, SEEDS, tolerance=agreement_tolerance(spread, SEEDS))


_claim = partial(
    Claim,
    paper=PAPER,
    study="retrieval-table2",
    columns=columns,
    split=TEST,
    printed_for={"length": LENGTH},
)


# -- table 2 ----------------------------------------------------------------------------------------------------------

C1 = _claim(
    "retrieval/C1",
    "table 2",
    "All four variants learn T1, to about 90 % or more; positions and self-attention both help.",
    _format_row("T1"),
    [
        # Printed: 97.4 against 93.9 and 97.6 against 93.7 %.
        better(*_effect("T1", "Pos")),
        better(*_effect("T1", "Att")),
        # 91.3 ± 2.8 over five seeds is itself no closer to its mean than 2 points, so "about" means 2 points.
        *details(*for_all(above, on_each(["T1"]), 0.90 - 2 * POINT, printed=True)),
    ],
    quote="All the models succeed at T1 (single feature detection) with accuracy over 90%. […] both self-attention and "
    "positional encoding bring a boost in performance",
)
C2 = _claim(
    "retrieval/C2",
    "table 2",
    "On T2 and T4 no Transformer exceeds the accuracy of looking for one of the two features, and self-attention helps on "
    "neither.",
    f"{_format_row('T2')}; {_format_row('T4')}",
    [
        *for_all(below, on_each(["T2", "T4"]), CEILING),
        # The paper adds that self-attention does not help on either.
        *details(no_better(*_effect("T2", "Att"), by=NO_GAIN), no_better(*_effect("T4", "Att"), by=NO_GAIN)),
    ],
    quote="Recall that the Transformer models reached a degenerate solution for these tasks (with a maximum accuracy of "
    "87.5%), in which only one of the two relevant features was attended to",
)
C3 = _claim(
    "retrieval/C3",
    "table 2",
    "T3 is solved: clearly beyond the one-feature rule, and at length 10 with about 98 % or more.",
    _format_row("T3"),
    [
        *for_all(above, on_each(["T3"]), CEILING),
        *details(*for_all(above, on_each(["T3"]), 0.98 - POINT, printed=True)),
    ],
    quote="The T3 results show that all model variants can easily learn to detect a class instance, or feature "
    "disjunction, even when using an indirect mapping.",
)
C4 = _claim(
    "retrieval/C4",
    "table 2",
    "T5 stays between 75 and 82 %, and self-attention brings no gain beyond noise.",
    _format_row("T5"),
    [
        no_better(*_effect("T5", "Att"), by=NO_GAIN),
        *details(*for_all(between, on_each(["T5"]), 0.75, 0.82, printed=True)),
    ],
    quote="However, models settle for a degenerate strategy instead, and thus we detect no competitive advantage for "
    "models with self-attention (compare models T-Pos-Att and T-Pos+Att in Table 2).",
)
C5 = _claim(
    "retrieval/C5",
    "table 2",
    "T6 needs order: without either component a model does no better than an order-blind rule; positions help; "
    "self-attention, with or without positions, helps more.",
    _format_row("T6"),
    [
        *_may_fail(below(on("T6", NEITHER), ORDER_BLIND + POINT), better(on("T6", POSITIONS), on("T6", NEITHER))),
        better(on("T6", ATTENTION), on("T6", POSITIONS)),
        *details(
            better(on("T6", BOTH), on("T6", POSITIONS)),
            *_may_fail(below(on("T6", NEITHER), 0.65, printed=True)),
            # To within three points of what is printed, as the table of all numbers is compared.
            close(on("T6", POSITIONS), 0.80, 3 * POINT),
            above(on("T6", ATTENTION), 0.89, printed=True),
            above(on("T6", BOTH), 0.877, printed=True),
        ),
    ],
    quote="Positional encoding is an alternative mechanism to track order, and for T6 and T7 it also improves results "
    "substantially with respect to the base models (compare models T-Pos-Att and T+Pos-Att), though much less than "
    "self-attention.",
)
_OTHERS_T7 = on_each(["T7"], [POSITIONS, BOTH])
C6 = _claim(
    "retrieval/C6",
    "table 2",
    "On T7 self-attention without positions is best, at length 10 by 8 points or more.",
    _format_row("T7"),
    [
        # Printed gaps: 21.1, 12.8 and 11.0 points. The variant with neither component is near chance.
        *_may_fail(better(on("T7", ATTENTION), on("T7", NEITHER))),
        *for_pairs(better, [on("T7", ATTENTION)], _OTHERS_T7),
        *details(
            *_may_fail(better(on("T7", ATTENTION), on("T7", NEITHER), by=0.08, printed=True)),
            *for_pairs(better, [on("T7", ATTENTION)], _OTHERS_T7, by=0.08, printed=True),
        ),
    ],
    quote="In T6 and T7, using self-attention brings accuracy from near chance to 92.1% and 78.6%, respectively (compare "
    "models T-Pos-Att and T-Pos+Att in Table 2). […] However, using both mechanisms actually harms performance (see "
    "results for T+Pos+Att).",
)
C7 = _claim(
    "retrieval/C7",
    "table 2",
    "On T6 and T7 adding positions to self-attention costs accuracy.",
    "T6: 90.7 ± 1.9 against 92.1 ± 0.3 %; T7: 67.6 ± 0.6 against 78.6 ± 0.6 %",
    # On T6 the printed gap, 1.4 points, is one and a half times its own standard error: five seeds leave it open. The
    # bound is 0 nevertheless, because the sentence says that accuracy is lost on both tasks.
    [better(on("T6", ATTENTION), on("T6", BOTH)), better(on("T7", ATTENTION), on("T7", BOTH))],
    quote="However, using both mechanisms actually harms performance (see results for T+Pos+Att).",
)
TABLE2_VALUES = _claim(
    "retrieval/table2",
    "table 2",
    "The accuracies of the four variants on the seven tasks.",
    "; ".join(_format_row(task) for task in TABLE2),
    [
        _note_failure(_printed_mean(on(task, variant), round(value / 100, 3), round(spread / 100, 3)), task, variant)
        for task, row in TABLE2.items()
        for variant, (value, spread) in zip(VARIANTS, row, strict=True)
    ],
    quote="Results for sequence length 10. Results are averaged over 5 random seeds, with s.d.",
)


# -- attention differences --------------------------------------------------------------------------------------------

PRINTED_ATTENTION = [
    (name_in_family(entry.task), entry.variant.replace("-", "−"), entry.value, entry.spread or 0.0)
    for entry in ANALYSES["R7"].published
]
_ATTENTION_TEXT = "; ".join(
    f"{task} {variant} {value:g} ± {spread:g}" for task, variant, value, spread in PRINTED_ATTENTION
)


def _lead(task: str, variant: str) -> Group:
    """Attention on the later minus the earlier of the two tokens that answer."""
    return on(task, variant, metric="R7/positive")


C8 = _claim(
    "retrieval/C8",
    "table of attention differences",
    "With self-attention alone the decoder reads the later of two tokens on T6 and T7, where order matters, and both "
    "alike on T5; with positions as well, seeds settle on different strategies.",
    _ATTENTION_TEXT,
    [
        above(_lead("T6", ATTENTION), 0.0),
        above(_lead("T7", ATTENTION), 0.0),
        varies_more(_lead("T6", BOTH), _lead("T6", ATTENTION)),
        varies_more(_lead("T7", BOTH), _lead("T7", ATTENTION)),
        between(_lead("T5", ATTENTION), -EVEN, EVEN),
        *details(
            between(_lead("T5", BOTH), -EVEN, EVEN),
            above(_lead("T6", ATTENTION), 0.6, printed=True),
            above(_lead("T7", ATTENTION), 0.3, printed=True),
        ),
    ],
    quote="In both T6 and T7, model T-Pos+Att puts most of the decoder attention on the second feature-carrying token in "
    "the sequence […] Moreover, the full Transformers exhibit a large standard deviation in both order-sensitive tasks, "
    "which means that different runs converge on different strategies.",
)
ATTENTION_VALUES = _claim(
    "retrieval/attention",
    "table of attention differences",
    "The attention on the later minus that on the earlier of the two tokens that answer.",
    _ATTENTION_TEXT,
    # Attention is on a scale of one, so a point is a hundredth of all attention. With both components seeds differ by
    # 0.55 and 0.18: these two means are only good to 0.74 and 0.24, and it is their spread that says something.
    [_printed_mean(_lead(task, variant), value, spread) for task, variant, value, spread in PRINTED_ATTENTION],
    quote="Average decoder attention difference (and s.d.) between second and first feature-carrying tokens for the two "
    "models with self-attention in the contextualized tasks (T6 and T7), together with T5 for comparison.",
)


def _as_wide(group: Group, spread: float, least: float) -> Criterion:
    """Two standard deviations of five seeds each may differ by a factor of three by chance, and ours has an interval of
    its own: a factor of five is agreement. Below `least` any spread is as good as none."""
    high = max(5 * spread, least)
    if spread > least:
        return between(group, spread / 5, high, statistic=SPREAD, printed=True)
    return below(group, high, statistic=SPREAD, printed=True)


def _spread_of_attention(task: str, variant: str, spread: float) -> list[Criterion]:
    """A spread of table 3: a headline where order matters, a detail on T5."""
    criterion = _as_wide(_lead(task, variant), spread, 5 * POINT)
    return details(criterion) if task == "T5" else [criterion]


SPREADS = _claim(
    "retrieval/spreads",
    "table 2 and table of attention differences",
    "How much seeds differ, to within a factor of five.",
    f"{TABLE2_VALUES.printed}; {_ATTENTION_TEXT}",
    # Standard deviations are no means, and nobody prints how good they are: so this is no agreement. What the paper says
    # of spreads in words is about attention on T6 and T7.
    [
        *details(
            *(
                _note_failure(_as_wide(on(task, variant), spread / 100, POINT), task, variant)
                for task, row in TABLE2.items()
                for variant, (_, spread) in zip(VARIANTS, row, strict=True)
            )
        ),
        *(
            criterion
            for task, variant, _, spread in PRINTED_ATTENTION
            for criterion in _spread_of_attention(task, variant, spread)
        ),
    ],
    quote="Moreover, the full Transformers exhibit a large standard deviation in both order-sensitive tasks, which means "
    "that different runs converge on different strategies. In contrast, the models with self-attention show a really low "
    "standard deviation; they always converge on the expected strategy.",
)


# -- analyses of T1 to T4 ---------------------------------------------------------------------------------------------

_WITH_ATTENTION = on("T1", ATTENTION, BOTH, metric="R2/accuracy", factor="position", label="+Att")
_WITHOUT_ATTENTION = on("T1", NEITHER, POSITIONS, metric="R2/accuracy", factor="position", label="−Att")
C9 = _claim(
    "retrieval/C9",
    "analysis of T1",
    "With self-attention, and only with it, a queried feature is the harder to find the later it comes; yet later ones "
    "are found no worse than without it (by less than two points).",
    "correlation of position and accuracy −0.51 with self-attention, not significant without",
    [
        below(_WITH_ATTENTION, 0.0, statistic=CORRELATION),
        better(_WITHOUT_ATTENTION, _WITH_ATTENTION, statistic=CORRELATION),
        above(_WITHOUT_ATTENTION, -WEAK, statistic=CORRELATION),
        *details(
            better(
                on("T1", ATTENTION, BOTH, metric=LATER, label="+Att"),
                on("T1", NEITHER, POSITIONS, metric=LATER, label="−Att"),
                by=-LEVEL,
            ),
            close(_WITH_ATTENTION, -0.51, 0.2, statistic=CORRELATION),
        ),
    ],
    quote="Indeed, there is a highly significant Pearson correlation of -0.51 between position and accuracy for models "
    "with self-attention vs. no significant correlation for models without it.",
    measures=by_position,
)


def _pooled(analysis: str, measure: str) -> Group:
    """A measure of all four variants together, on the task that the analysis is about."""
    (task,) = ANALYSES[analysis].tasks
    return group(f"{analysis}/{measure}", task=task, variant=VARIANTS, label="all variants")


def _middle(entry: PublishedNumber) -> float:
    """A published number, or the middle of a published range."""
    return (entry.value + (entry.high or entry.value)) / 2


TENTH = 0.1
"""How close a measure must be to one that is printed in words or to one digit."""
_PUBLISHED_READING = [(name, entry) for name in ("R1", "R3", "R4", "R5", "R6") for entry in ANALYSES[name].published]
READING = _claim(
    "retrieval/reading",
    "analyses of T1 to T4",
    "How the order-free tasks are answered: on T1 right answers go with attention on the queried token; on T2 pairs in "
    "two tokens are missed and single features taken for pairs; on T3 the answering token is attended; on T4 one "
    "favoured feature of the pair is.",
    "; ".join(
        f"{name_in_family(entry.task)} {entry.measure} {entry.value:g}" + (f" to {entry.high:g}" if entry.high else "")
        for _, entry in _PUBLISHED_READING
    ),
    [
        better(_pooled("R1", "correct"), _pooled("R1", "wrong"), statistic=POOLED),
        below(_pooled("R3", "yes/diff - yes/same"), 0.0, statistic=POOLED),
        below(_pooled("R3", "no/one - no/none"), 0.0, statistic=POOLED),
        better(_pooled("R6", "favoured"), _pooled("R6", "other"), statistic=POOLED),
        # Most of the attention, at every length; printed is 0.6 to 0.7.
        above(_pooled("R5", "target"), 0.5, statistic=POOLED),
        # Printed in words or to one digit, without spreads, so this is no agreement: a tenth more or less is close.
        *details(
            *(
                close(_pooled(name, entry.measure), _middle(entry), TENTH, statistic=POOLED)
                for name, entry in _PUBLISHED_READING
            )
        ),
    ],
    quote="This attention is at an average of 0.82 when the answer is correct, vs. 0.17 when it is wrong. […] The models "
    "have problems when the queried features are in different tokens (false negatives), with a 25% accuracy drop, and "
    "when only one target feature occurs in the sequence (false positives), with a 40% drop.",
)
READING_VARIANTS = _claim(
    "retrieval/variants",
    "analyses of T2 and T3",
    "All four variants read alike: the lead of the most attended token on T2, and the attention on the token that "
    "answers on T3.",
    "0.6 to 0.7 in every variant, for both",
    [
        # A range for all variants, to one digit, is no table: criteria, a tenth more or less than its middle.
        *for_all(close, on_each(["T2"], metric="R4/yes/diff"), 0.65, TENTH, statistic=POOLED),
        *for_all(close, on_each(["T3"], metric="R5/target"), 0.65, TENTH, statistic=POOLED),
    ],
    quote="On average, the difference between the decoder attention weight of the most attended token and the second most "
    "attended token is of 0.6-0.7 across the models […] (average attention on target token between 0.6-0.7 for all "
    "variants)",
)
ONE_FEATURE_RULE = _claim(
    "retrieval/one-feature",
    "analysis of T4, asked of the answers",
    "On T4 a model attends to one favoured feature of the pair, and answers by it alone: where the rule *yes if the "
    "favoured feature is present* is wrong, most answers follow the rule.",
    "attention about 0.9 on the favoured feature and 0.05 on the other; nothing is printed about the answers",
    for_all(above, on_each(["T4"], metric="R6/agreement where the rule errs"), 0.5, statistic=POOLED),
    quote="In T4, they answer 'yes' if one specific feature is present in the sequence (always the same feature for each "
    "query)",
    ours=True,
)


# -- the figure over lengths ------------------------------------------------------------------------------------------


def _at(task: str, reach: str, variants: Sequence[str] = VARIANTS) -> Group:
    """Some variants, or all together, at the shortest or the longest of the lengths that were run."""
    name = "Transformers" if variants == VARIANTS else variants[0]
    return on(task, *variants, reach=reach, label=f"{reach} {name}")


def _stays_level(task: str) -> list[Criterion]:
    """At the one-feature ceiling or below it, and the same at both extremes, within two points."""
    longest = _at(task, "longest")
    shortest = _at(task, "shortest")
    return [
        *details(*for_all(below, [longest, shortest], CEILING)),
        no_better(longest, shortest, by=LEVEL),
        better(longest, shortest, by=-LEVEL),
    ]


def _best_when_longest(task: str) -> list[Criterion]:
    best = _at(task, "longest", [ATTENTION])
    criteria = []
    for variant in (NEITHER, POSITIONS, BOTH):
        criteria.append(_note_failure(better(best, _at(task, "longest", [variant])), task, variant))
    return details(*criteria)


LENGTHS = _claim(
    "retrieval/lengths",
    "figure of accuracy against length",
    "As sequences grow Transformers improve on T1 and T3, stay at the one-feature ceiling on T2 and T4 (within two "
    "points), and get worse on T5, T6 and T7, where at the greatest length self-attention without positions is best.",
    "drawn, not printed",
    [
        better(_at("T1", "longest"), _at("T1", "shortest")),
        better(_at("T3", "longest"), _at("T3", "shortest")),
        *_stays_level("T2"),
        *_stays_level("T4"),
        better(_at("T5", "shortest"), _at("T5", "longest")),
        better(_at("T6", "shortest"), _at("T6", "longest")),
        better(_at("T7", "shortest"), _at("T7", "longest")),
        *_best_when_longest("T5"),
        *_best_when_longest("T6"),
        *_best_when_longest("T7"),
    ],
    quote='We further notice that longer sequences are beneficial for "easy" tasks, such as T1 and T3 […] On the other '
    "hand, when the complexity of the task is higher (Tasks 5, 6 and 7), longer sequences are detrimental to model "
    "performance.",
    study="retrieval-lengths",
    columns=partial(columns, shortest=SHORTEST),
    printed_for={},
)


def _model(name: str, reach: str = "", metric: str = "accuracy", **more: Any) -> Group:
    """One of the LSTMs, or all Transformers, on all the tasks that were run unless one is named."""
    variants = VARIANTS if name == "Transformers" else (name,)
    if reach:
        more = {"reach": reach, **more}
    label = f"{reach} {name}".strip() + (f" at {more['length']}" if "length" in more else "")
    return group(metric, "", label, variant=variants, **more)


_T1: dict[str, Any] = {"task": "retrieval/T1"}
ON_PAR = 2 * POINT
"""How far one may be below the other where the paper says "on par"; it draws no closer."""
NO_HARM = POINT
"""How much the attention LSTM may be below the basic one: where both have learned nothing, or everything, they tie."""
_C10_EXCEPTIONS = [
    better(_model(LSTM, "shortest", **_T1), _model(LSTM, "between", **_T1)),
    better(_model(LSTM, "between", **_T1), _model(LSTM, "longest", **_T1)),
    better(_model(LSTM_ATTENTION, "shortest"), _model(LSTM, "shortest"), by=-NO_HARM),
    better(_model(LSTM_ATTENTION, "between"), _model(LSTM, "between"), by=-NO_HARM),
    better(_model(LSTM_ATTENTION, "longest"), _model(LSTM, "longest"), by=-NO_HARM),
    better(_model(LSTM_ATTENTION, length=5, **_T1), _model("Transformers", length=5, **_T1), by=-ON_PAR),
    better(_model(LSTM_ATTENTION, length=30, **_T1), _model("Transformers", length=30, **_T1), by=-ON_PAR),
    better(_model("Transformers", "between", **_T1), _model(LSTM_ATTENTION, "between", **_T1)),
    *for_pairs(better, [on("T2", LSTM_ATTENTION, length=5)], on_each(["T2"], length=5)),
    *for_pairs(better, [on("T4", LSTM_ATTENTION, length=5)], on_each(["T4"], length=5)),
    better(
        _model(LSTM_ATTENTION, "longest", "R9/target", **_T1),
        _model(LSTM_ATTENTION, "shortest", "R9/target", **_T1),
    ),
    close(_model(LSTM_ATTENTION, metric="R9/target", length=5, **_T1), 0.2, TENTH, printed=False),
    close(_model(LSTM_ATTENTION, metric="R9/target", length=30, **_T1), 0.85, TENTH, printed=False),
]
C10 = _claim(
    "retrieval/C10",
    "figure of accuracy against length",
    "LSTMs are below the Transformers and lose accuracy as sequences grow (on T1 the one without attention all the "
    "way); attention never harms them. Exceptions: the attention LSTM matches the Transformers on T1 at lengths 5 and "
    "30 but not between, where it changes from uniform to focused reading, and beats them on T2 and T4 at length 5.",
    "attention on the queried token about 0.2 at length 5 and 0.85 at length 30; the accuracies are drawn, not printed",
    [
        *for_pairs(better, [_model("Transformers")], [_model(LSTM), _model(LSTM_ATTENTION)]),
        better(_model(LSTM, "shortest"), _model(LSTM, "longest")),
        better(_model(LSTM_ATTENTION, "shortest"), _model(LSTM_ATTENTION, "longest")),
        *details(*_C10_EXCEPTIONS),
    ],
    quote="In general, the performance of LSTM models on our tasks is markedly worse than that of the Transformer, and "
    "they are impacted by sequence length to a much larger extent (see Figure 3).",
    study="retrieval-lengths",
    columns=partial(columns, shortest=SHORTEST),
    printed_for={},
)


# -- positions or dropout? --------------------------------------------------------------------------------------------


def _dropout_helps(task: str) -> list[Criterion]:
    """Embedding dropout alone is better than neither, and than positions alone."""

    def runs(positions: str, dropout: str, label: str) -> Group:
        return group(
            task=f"retrieval/{task}",
            positions=positions,
            embed_dropout=dropout,
            self_attention=(False, True),
            label=label,
        )

    alone = runs("none", "always", "dropout alone")
    return [
        better(alone, runs("none", "never", "neither")),
        better(alone, runs("sinusoidal", "never", "positions alone")),
    ]


NOISE = _claim(
    "retrieval/noise",
    "a question of ours on table 2",
    "The gain of positions where order does not matter (T1, T3, T4) is that of the embedding dropout that comes with "
    "them: dropout alone helps, and more than positions alone.",
    "+Pos against −Pos, averaged over ±Att: T1 97.4 and 93.9, T3 100 and 99.05, T4 87.7 and 86.3 %",
    [*_dropout_helps("T1"), *_dropout_helps("T3"), *_dropout_helps("T4")],
    quote="We conjecture that positional embeddings act as a beneficial noising mechanism, akin to regularization: "
    "altering a token's embedding depending on the position helps the model not to overfit.",
    study="retrieval-noise",
    ours=True,
)

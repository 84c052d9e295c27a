"""The claims of the modularity paper: its nine findings, F1 to F9, and what may mislead in its design, C1 to C7.

They are about averages over everything that was run, so criteria do not name architectures, settings or widths; the
setting of a verdict says what they were. Tasks are resampled with the seeds in them, and runs are compared that differ
in nothing but what a criterion names. Thresholds that the paper leaves to words are ours: a point is 1 % of answers, or
of the zero predictor's loss. The unit is the task; of the printed shares it is the experiment, which has one vote.

Printed shares are compared with those of all 1000 experiments of the paper, or of a random sample of them. A study that
is such a sample draws experiments (architecture, search, setting, number of rules, width and task) at random before
anything is run, runs each with all four gatings, and says so: every run has the axis `sample`, whose level names the
frame, `random sample of the paper's 1000 experiments` (or `… at width 32`, if only those were drawn from; the deviation
is then in the setting of the verdict). Runs without this declaration, or outside the frame, are not compared.

C1 to C7 ask whether a finding survives without a confound. C3, C4 and C5 are sizes that the study `rules-confounds` has
as published and freed, one at a time; the others are asked of the records of `rules-main`. A claim without a suffix is
supported if the finding holds without the confound, and contradicted if it does not; one with a suffix says that the
confound had the suspected effect.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import pandas as pd

from unseen.analysis.votes import EXPERIMENT, GATINGS, SPLITS
from unseen.claims import criterion
from unseen.claims.claim import Claim, Subset
from unseen.claims.criterion import Criterion, details, for_all, for_pairs
from unseen.claims.evidence import Group, SamplingDesign, group
from unseen.claims.papers import POINT
from unseen.claims.papers import rules_measures as measures
from unseen.claims.papers.rules_measures import (
    CONFIGURATION,
    CONFOUNDS,
    DUEL,
    FEWEST,
    LONGER,
    MOST,
    SOFT,
    VOTE,
)
from unseen.claims.quantity import CORRELATION, OVERALL

PAPER = "Mittal, Bengio & Lajoie 2022"
SHARES = {"truth": 0.614, "operation": 0.205, "none": 0.108, "joint": 0.073}
"""Printed shares of 1 000 votes in distribution."""
DUELS = {"joint": 0.596, "none": 0.404}
"""The same with only these two to choose from."""
EXPERIMENTS = measures.EXPERIMENTS
LEVELS = {"mlp": 0.002, "mha": 0.24, "rnn": 0.08}
"""Classification errors in the middle of figure 4's axes, as labels in the authors' plotting file suggest."""
MOST_VOTES = 0.5
"""Of four gatings, one that wins most of the time has more than half of the votes; the paper prints 61 %."""
FAR_BEHIND = 0.25
"""A quarter of the votes; the paper prints differences of more than half."""
HUGE_GAP = 0.5
"""Three duels of four against one; the paper prints a difference of 19 points and calls it small."""
SHARE_TOLERANCE = 5 * POINT
"""Means of five seeds decide a vote, and a share of 1000 votes has a spread of its own: five points are agreement."""
LEVEL_FACTOR = 3
"""Levels that are read off axes are orders of magnitude."""
COMPARABLE = 2 * POINT
"""What the paper calls comparable: no more than this worse."""
COLLAPSED = POINT
"""Metrics of collapse and specialization above this are not those of perfect gates, which have none but rounding."""
HEAVILY_CORRELATED = 0.7
HARDLY_DIFFERENT = POINT
MOSTLY = 0.5
PRINTED_FOR = {"complete_or_sampled": True}

COVERS = "task instance, initialisation and data"
RUNS = SamplingDesign(("task_seed", "seed"), "task_seed", "task", COVERS, CONFIGURATION, {"reach": "rules"})
VOTES = SamplingDesign(("task_seed",), "", "task", COVERS, CONFIGURATION)
SHARES_OF_VOTES = SamplingDesign(EXPERIMENT, "", "task", "experiments", CONFIGURATION)
"""The printed shares are of the same tasks: what varies is which experiments vote."""
SIZES = SamplingDesign(
    ("task_seed", "seed"), "task_seed", "task", COVERS, (*CONFIGURATION, *CONFOUNDS), {"reach": "rules"}
)
"""Runs are compared that differ in nothing but what a criterion names, sizes included."""

ORDER = ("truth", "operation", "joint", "none")
"""Gatings from the best to the worst."""
PAIRS = tuple(zip(ORDER[1:], ORDER[:-1], strict=True))
"""Each gating with the next better one."""
_ERRORS = ("error", "OoD error")
_DRAWN = "drawn, not printed"
_ASKED = "not in the paper"

# Every run has the same weight, whatever its architecture.
above = partial(criterion.above, statistic=OVERALL)
below = partial(criterion.below, statistic=OVERALL)
between = partial(criterion.between, statistic=OVERALL)
printed_number = partial(criterion.printed_number, statistic=OVERALL)
better = partial(criterion.better, statistic=OVERALL)
no_better = partial(criterion.no_better, statistic=OVERALL)
gains_more = partial(criterion.gains_more, statistic=OVERALL)


def runs_of(metric: str, gating: str, reach: str = "") -> Group:
    """Runs of one gating, with the most or the fewest rules if asked for."""
    if not reach:
        return group(metric, gating=gating)
    return group(metric, "", f"{gating} with the {reach}", gating=gating, reach=reach)


def all_runs(metric: str, factor: str = "") -> Group:
    """The runs of all gatings."""
    return group(metric, factor, "all runs", gating=GATINGS)


def _in_order(runs: Callable[[str, str], Group], metrics: Sequence[str]) -> list[Criterion]:
    """The errors have the order of `ORDER`; `runs` maps a metric and a gating to a group."""
    return [better(runs(metric, worse), runs(metric, than)) for metric in metrics for worse, than in PAIRS]


def _in_order_in_distribution(runs: Callable[[str, str], Group]) -> list[Criterion]:
    """The order of `ORDER` in distribution; out of distribution it is a detail."""
    inside, outside = _ERRORS
    return [*_in_order(runs, [inside]), *details(*_in_order(runs, [outside]))]


def _gain_grows(runs: Callable[[str, str, str], Group], metric: str) -> Criterion:
    """The gain of specialization over a monolithic network grows with the number of rules."""
    with_most = runs(metric, "none", MOST), runs(metric, "truth", MOST)
    with_fewest = runs(metric, "none", FEWEST), runs(metric, "truth", FEWEST)
    return gains_more(with_most, with_fewest)


def describe_setting(runs: pd.DataFrame) -> str:
    """Describe what was run: `mlp: 2, 8, 32 rules; mha, rnn: 2, 8 rules; width 32`."""
    architectures: dict[str, list[str]] = {}
    for name in SPLITS["id"]:
        numbers = _list_numbers(runs["rules"][runs["architecture"] == name])
        architectures.setdefault(numbers, []).append(name)
    descriptions = [f"{', '.join(names)}: {numbers} rules" for numbers, names in architectures.items() if numbers]
    if runs["setting"].nunique() == 1:
        descriptions.append(f"{runs['setting'].iloc[0]} only")
    noun = "width" if runs["width"].nunique() == 1 else "widths"
    descriptions.append(f"{noun} {_list_numbers(runs['width'])}")
    return "; ".join(descriptions)


def describe_sample(runs: pd.DataFrame) -> str:
    """Describe what was run and how many experiments voted, of which frame if they are a sample."""
    experiments = f"{int(runs['experiments'].iloc[0])} experiments"
    if measures.is_declared_sample(runs):
        experiments = f"{experiments}, {runs[measures.SAMPLE].iloc[0]}"
    return f"{experiments}; {describe_setting(runs)}"


def _list_numbers(numbers: pd.Series) -> str:
    return ", ".join(map(str, sorted(set(numbers))))


_claim = partial(
    Claim,
    paper=PAPER,
    study="rules-main",
    columns=measures.columns,
    measures=measures.errors,
    design=RUNS,
    setting=describe_setting,
    set_apart=Subset("capacity-limited runs", measures.is_limited),
)
_vote_claim = partial(_claim, measures=measures.votes, design=VOTES)
# Shares and levels are printed of all runs, those whose width limits them among them.
_printed_claim = partial(_claim, printed_for=PRINTED_FOR, setting=describe_sample, set_apart=None)
_share_claim = partial(_printed_claim, measures=measures.votes, design=SHARES_OF_VOTES)

_QUOTE_WINS = (
    "We see that GT-Modular system wins most of the times (left), indicating the benefits of perfect specialization."
)
_QUOTE_DUELS = (
    "between standard end-to-end trained Modular and Monolithic systems, the former outperforms but not by a huge gap"
)
_QUOTE_SPREAD = "Spread indicates the number of experiments where the corresponding model did better."
_QUOTE_ORDER = (
    "Modular systems generally outperform monolithic ones (lower is better) but a typical end-to-end trained modular "
    "system (green) is neither able to concentrate on the right information (compare with orange) nor able to get "
    "optimal specialization (compare with blue)."
)
_QUOTE_RULES = (
    "We find that specialization in modular systems leads to significant boosts in performance when there are many "
    "underlying rules within a task, but not so much with only few rules."
)
_QUOTE_COLLAPSE = (
    "both Modular and Modular-op suffer from the problems of collapse and this problem becomes worse with increasing "
    "number of rules"
)
_QUOTE_SPECIALIZATION = (
    "end-to-end trained Modular systems as well as Modular-op suffer from sub-optimal specialization, as indicated by "
    "the high metrics"
)


# -- figure 3: votes --------------------------------------------------------------------------------------------------


def _format_shares(shares: dict[str, float]) -> str:
    return ", ".join(f"{gating} {100 * share:.1f} %" for gating, share in shares.items())


_VOTES_TEXT = (
    f"{_format_shares(SHARES)} of {EXPERIMENTS} votes; between two: {_format_shares(DUELS)}. Whether the authors "
    "counted the 125 of RNN classification the wrong way round is not known"
)
_BEHIND = [runs_of(VOTE, "none"), runs_of(VOTE, "joint")]
_MAJORITY = [
    above(runs_of(VOTE, "truth"), MOST_VOTES),
    *details(
        *for_pairs(better, [runs_of(VOTE, "operation")], _BEHIND),
        *for_pairs(better, [runs_of(VOTE, "truth")], _BEHIND, by=FAR_BEHIND),
    ),
]
"""The order of all votes, as F1 has it."""
_JOINT_WINS = better(runs_of(DUEL, "joint"), runs_of(DUEL, "none"))
_NO_HUGE_GAP = no_better(runs_of(DUEL, "joint"), runs_of(DUEL, "none"), by=HUGE_GAP)
_BOTH = [*_MAJORITY, _JOINT_WINS, *details(_NO_HUGE_GAP)]
"""F1 and F2 together."""


def _printed_share(metric: str, gating: str, share: float) -> Criterion:
    """A share of 1000 votes, each of which is 0 or 1."""
    spread = math.sqrt(share * (1 - share))
    return printed_number(runs_of(metric, gating), share, spread, EXPERIMENTS, tolerance=SHARE_TOLERANCE)


_SHARES = [
    *(_printed_share(VOTE, gating, share) for gating, share in SHARES.items()),
    *(_printed_share(DUEL, gating, share) for gating, share in DUELS.items()),
]
_flipped_votes = partial(measures.votes, flipped=True)

F1 = _vote_claim(
    "rules/F1",
    "figure 3, left",
    "With the true rule as gate a modular network is the best in most experiments; gating by the operation comes "
    "second, before the monolithic network and joint gating, which are both far behind the first (by more than a "
    "quarter of the votes).",
    _VOTES_TEXT,
    _MAJORITY,
    quote=_QUOTE_WINS,
)
F2 = _vote_claim(
    "rules/F2",
    "figure 3, right",
    "Between joint gating and the monolithic network, joint gating has more votes, but the margin is small: fewer than "
    "three of four.",
    _VOTES_TEXT,
    [_JOINT_WINS, _NO_HUGE_GAP],
    quote=_QUOTE_DUELS,
)
VOTE_VALUES = _share_claim(
    "rules/votes",
    "figure 3",
    "The shares of the votes.",
    _VOTES_TEXT,
    _SHARES,
    quote=_QUOTE_SPREAD,
)
FLIPPED = _vote_claim(
    "rules/flipped",
    "figure 3, counted as the released aggregation would",
    "F1 and F2 also hold if the votes of RNN classification go to the worst gating, as in the released aggregation: an "
    "eighth of the votes does not decide the order.",
    _VOTES_TEXT,
    _BOTH,
    measures=_flipped_votes,
    quote=_QUOTE_WINS,
    ours=True,
)
VOTE_VALUES_FLIPPED = _share_claim(
    "rules/votes-flipped",
    "figure 3, counted as the released aggregation would",
    "The printed shares are those with the votes of RNN classification the wrong way round. (If this is supported and "
    "`rules/votes` contradicted, the figure was made in this way.)",
    _VOTES_TEXT,
    _SHARES,
    measures=_flipped_votes,
    quote=_QUOTE_SPREAD,
    ours=True,
)
C6 = _vote_claim(
    "rules/C6",
    "figure 3, votes beyond the luck of the seeds alone",
    "A vote ignores by how much the best gating is better. If only those experiments vote whose best gating beats each "
    "other one beyond the luck of the seeds, F1 and F2 hold.",
    _ASKED,
    _BOTH,
    measures=partial(measures.votes, count=measures.decided_votes),
    quote=_QUOTE_WINS,
    ours=True,
)


# -- figure 4: errors -------------------------------------------------------------------------------------------------


def _classification(architecture: str) -> Group:
    return group(
        "error",
        "",
        f"all {architecture} in classification",
        gating=GATINGS,
        architecture=architecture,
        setting="classification",
    )


ERROR_LEVELS = _printed_claim(
    "rules/levels",
    "figure 4, classification in distribution",
    "How large the errors are, on average over gatings, rules and widths, to within a factor of three.",
    ", ".join(f"{name} about {100 * level:g} %" for name, level in LEVELS.items())
    + " in the middle of the axes, as labels in the plotting file suggest: orders of magnitude",
    [
        between(_classification(name), round(level / LEVEL_FACTOR, 4), LEVEL_FACTOR * level, printed=True)
        for name, level in LEVELS.items()
    ],
    quote="For classification settings, we report the classification error while for regression settings, we report "
    "the loss.",
)
F3 = _claim(
    "rules/F3",
    "figure 4",
    "With the most rules, in and out of distribution: gating by the true rule is better than by the operation, that "
    "better than joint gating, and that better than none.",
    _DRAWN,
    _in_order_in_distribution(partial(runs_of, reach=MOST)),
    quote=_QUOTE_ORDER,
)
F4 = _claim(
    "rules/F4",
    "figure 4 and conclusion",
    "The gain of specialization over a monolithic network grows with the number of rules; with the fewest the "
    "monolithic one is comparable, no more than two points worse.",
    _DRAWN,
    [
        _gain_grows(runs_of, "error"),
        *details(_gain_grows(runs_of, "OoD error")),
        no_better(runs_of("error", "none", FEWEST), runs_of("error", "truth", FEWEST), by=COMPARABLE),
        *details(
            no_better(runs_of("error", "none", FEWEST), runs_of("error", "operation", FEWEST), by=COMPARABLE),
            no_better(runs_of("error", "none", FEWEST), runs_of("error", "joint", FEWEST), by=COMPARABLE),
        ),
    ],
    quote=_QUOTE_RULES,
)
C1 = _claim(
    "rules/C1",
    "figure 4, out of distribution, with other lengths in place of other amplitudes",
    "Labels double with the inputs, so a network that is nearly homogeneous passes the test with doubled amplitudes "
    "whether it composes rules or not. With longer sequences alone (length 30, amplitudes as in training) the order of "
    "F3 holds among attention and recurrent models, on average over the numbers of rules.",
    _ASKED,
    _in_order(runs_of, [LONGER]),
    measures=measures.longer,
    quote=_QUOTE_ORDER,
    ours=True,
)


def _regression(metric: str, gating: str, reach: str) -> Group:
    label = f"{gating} with the {reach} in regression"
    return group(metric, "", label, gating=gating, reach=reach, setting="regression")


C2 = _claim(
    "rules/C2",
    "figure 4, regression, in units of the zero predictor's loss",
    "Plain losses have another scale with every number of rules, task and length. In units of the zero predictor's "
    "loss the order of F3 holds in regression alone, and the gain of specialization grows with the rules as F4 says.",
    _ASKED,
    [
        *_in_order_in_distribution(partial(_regression, reach=MOST)),
        *details(_gain_grows(_regression, "error"), _gain_grows(_regression, "OoD error")),
    ],
    quote=_QUOTE_ORDER,
    ours=True,
)


# -- figures 5 to 7, and checkpoints ----------------------------------------------------------------------------------


def _more_with_rules(metric: str) -> list[Criterion]:
    return [
        better(runs_of(metric, "joint", MOST), runs_of(metric, "joint", FEWEST)),
        better(runs_of(metric, "operation", MOST), runs_of(metric, "operation", FEWEST)),
    ]


def _collapses(metric: str) -> list[Criterion]:
    return [
        # By construction: it tells whether the metric is computed rightly.
        *details(below(runs_of(metric, "truth"), COLLAPSED)),
        *for_all(above, [runs_of(metric, "joint"), runs_of(metric, "operation")], COLLAPSED),
        *_more_with_rules(metric),
        *details(better(runs_of(metric, "joint"), runs_of(metric, "operation"))),
    ]


def _specializes(name: str) -> list[Criterion]:
    metric = f"relative {name}"
    return [
        *details(below(runs_of(metric, "truth"), COLLAPSED)),
        *for_all(between, [runs_of(metric, "joint"), runs_of(metric, "operation")], COLLAPSED, 1.0),
        *details(*_more_with_rules(metric), better(runs_of(metric, "joint"), runs_of(metric, "operation"))),
    ]


F5 = _claim(
    "rules/F5",
    "figures 5 and 6, collapse",
    "Modules collapse if the gate is learned, the more the more rules there are, and less if it sees the operation "
    "alone; with the true rule as gate they do not.",
    _DRAWN,
    [*_collapses("collapse_avg"), *details(*_collapses("collapse_worst"))],
    measures=measures.specialization,
    quote=_QUOTE_COLLAPSE,
)
F6 = _claim(
    "rules/F6",
    "figures 5 and 6, specialization",
    "Learned gates specialize better than random ones and worse than the true rule, the worse the more rules there "
    "are; those that see the operation alone do better. (In units of what random gates score with as many rules.)",
    _DRAWN,
    [
        *_specializes("alignment"),
        *_specializes("adaptation"),
        *_specializes("inverse_mutual_information"),
    ],
    measures=measures.specialization,
    quote=_QUOTE_SPECIALIZATION,
)
C7 = _claim(
    "rules/C7",
    "figures 5 and 6, what keeps joint gates from specializing",
    "Modules can share a rule because each of its tokens is mixed softly, or because each token has one module that "
    "something other than the rule chooses. With joint gating and the most rules it is mostly (more than half of the "
    "uncertainty about the module, given the rule) the first; contradicted, it is mostly the second.",
    _ASKED,
    [above(runs_of(SOFT, "joint", MOST), MOSTLY)],
    measures=measures.softness,
    quote=_QUOTE_SPECIALIZATION,
    ours=True,
)
_FASTER = _in_order(runs_of, ["error during training"])
F7 = _claim(
    "rules/F7",
    "figure 7",
    "Models that specialize better learn faster: the mean error during training has the order of the final errors.",
    _DRAWN,
    # That joint gating is faster than none is not said of specialization, which it hardly has.
    [*_FASTER[:-1], *details(_FASTER[-1])],
    measures=measures.speeds,
    quote="good specialization not only leads to better performances but also faster training",
)
F8 = _claim(
    "rules/F8",
    "outlook on harder out-of-distribution settings",
    "How well a run does out of distribution goes with how well it does in distribution: ranks among the runs of equal "
    "architecture and setting correlate by more than 0.7.",
    "in words",
    [criterion.above(all_runs("OoD rank", "rank in distribution"), HEAVILY_CORRELATED, statistic=CORRELATION)],
    measures=measures.ranks,
    quote="we considered the simplest possible OoD settings that were often heavily correlated with in-distribution "
    "performances",
)
F9 = _claim(
    "rules/F9",
    "the two checkpoints that were tested",
    "The last and the best weights hardly differ: by less than a point of error.",
    "not in the text: both were tested by the released code, and figures 3 to 6 pool them",
    for_all(below, [all_runs("change"), all_runs("OoD change")], HARDLY_DIFFERENT),
    measures=measures.selections,
    ours=True,
)


# -- sizes as published, and freed ------------------------------------------------------------------------------------

_sized = partial(_claim, study="rules-confounds", design=SIZES, set_apart=None, ours=True)


def _attention(metric: str, gating: str, reach: str = MOST, encoder: str = "fixed", gate: str = "head") -> Group:
    """Attention models with the encoder and the hidden layer of the gate as published, or freed."""
    descriptions = [gating]
    if encoder == "scaled":
        descriptions.append("wide encoder")
    if gate == "width":
        descriptions.append("wide gate")
    label = ", ".join([*descriptions, reach])
    levels = {"architecture": "mha", "gating": gating, "reach": reach, "encoder": encoder, "gate_hidden": gate}
    return group(metric, "", label, **levels)


def _recurrent(metric: str, gating: str, state: str = "whole") -> Group:
    """Recurrent models with the most rules; the monolithic one has no shared state to free."""
    if gating == "none":
        state = "shrunk"
    label = ", ".join([gating, "whole state", MOST] if state == "whole" else [gating, MOST])
    return group(metric, "", label, architecture="rnn", gating=gating, reach=MOST, shared_state=state)


def _errors_grow_less(gating: str) -> Criterion:
    """From the fewest to the most rules errors grow more with the published encoder than with a wide one."""
    published = _attention("error", gating, MOST), _attention("error", gating, FEWEST)
    wide = _attention("error", gating, MOST, "scaled"), _attention("error", gating, FEWEST, "scaled")
    return gains_more(published, wide)


def _collapses_with_wide_gate(metric: str) -> list[Criterion]:
    wide = _attention(metric, "operation", gate="width")
    return [above(wide, COLLAPSED), better(_attention(metric, "joint"), wide)]


def _collapses_less_with_wide_gate(metric: str) -> Criterion:
    return better(_attention(metric, "operation"), _attention(metric, "operation", gate="width"))


C3 = _sized(
    "rules/C3",
    "figure 4, attention models with an encoder that is wide enough",
    "A token must show its features for every rule, and the published encoder is too narrow for that with many rules. "
    "With one that is wide enough the order of F3 holds among attention models.",
    _ASKED,
    _in_order_in_distribution(partial(_attention, encoder="scaled")),
    quote=_QUOTE_ORDER,
)
C3_TREND = _sized(
    "rules/C3-trend",
    "figure 4, attention models: worse with more rules",
    "The narrow encoder is one reason why attention models get worse with more rules: with a wide one, errors grow "
    "less from the fewest to the most rules, whatever the gating.",
    _ASKED,
    [_errors_grow_less(gating) for gating in ORDER],
    quote=_QUOTE_RULES,
)
C4 = _sized(
    "rules/C4",
    "figures 5 and 6, collapse, attention models with a wide gate",
    "In attention models the gate that sees the operation alone has a hidden layer as narrow as a head. With one as "
    "wide as the encoder its modules collapse all the same (by more than a point), if less than those of joint gates.",
    _ASKED,
    [*_collapses_with_wide_gate("collapse_avg"), *details(*_collapses_with_wide_gate("collapse_worst"))],
    measures=measures.specialization,
    quote=_QUOTE_COLLAPSE,
)
C4_WIDTH = _sized(
    "rules/C4-width",
    "figures 5 and 6, collapse, attention models",
    "The narrow hidden layer is one reason why gating by the operation collapses: with a wide one it collapses less.",
    _ASKED,
    [_collapses_less_with_wide_gate("collapse_avg"), *details(_collapses_less_with_wide_gate("collapse_worst"))],
    measures=measures.specialization,
    quote=_QUOTE_COLLAPSE,
)
C5 = _sized(
    "rules/C5",
    "figure 4, recurrent models whose modules share a state as wide as the monolithic one's",
    "Matched in parameters, recurrent modules share a state that shrinks with the number of rules. With one as wide as "
    "the monolithic network's (and more parameters) the order of F3 holds among recurrent models.",
    _ASKED,
    _in_order_in_distribution(_recurrent),
    quote=_QUOTE_ORDER,
)
C5_STATE = _sized(
    "rules/C5-state",
    "figure 4, recurrent models",
    "The narrow shared state costs recurrent modules accuracy: with a whole one their errors are lower.",
    _ASKED,
    [better(_recurrent("error", gating, "shrunk"), _recurrent("error", gating)) for gating in ORDER[:-1]],
    quote=_QUOTE_ORDER,
)

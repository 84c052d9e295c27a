"""The modularity paper's claims: its nine findings, F1 to F9, the printed shares of votes, and the size of errors.

They are about averages over all that was run, so parts do not name architectures, settings or widths; the setting of a
verdict says what was. Tasks are drawn anew with the seeds in them, and runs are compared that differ in nothing but
what a part names. Thresholds that the paper leaves to words are ours: a point is 1 % of answers, or of the zero
predictor's loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pandas as pd

from unseen.metrics.votes import CONDITIONS, GATINGS
from unseen.studies.claims import part as parts
from unseen.studies.claims import rules_measures as measures
from unseen.studies.claims.claim import Claim, Tables
from unseen.studies.claims.evidence import Design, Group, group
from unseen.studies.claims.part import Part
from unseen.studies.claims.quantity import CORRELATION, OVERALL
from unseen.studies.claims.rules_measures import DUEL, FEWEST, MOST, PLACES, VOTE

PAPER = "Mittal, Bengio & Lajoie 2022"
OURS = f"ours, on {PAPER}"
SHARES = {"truth": 0.614, "operation": 0.205, "none": 0.108, "joint": 0.073}
"""Printed shares of 1 000 votes in distribution."""
DUELS = {"joint": 0.596, "none": 0.404}
"""The same where only these two stand."""
EXPERIMENTS = 1000
POINT = 0.01

COVERS = "task instance, initialisation and data"
RUNS = Design(("task_seed", "seed"), "task_seed", "task", COVERS, PLACES, {"reach": "rules"})
VOTES = Design(("task_seed",), "", "task", COVERS, PLACES)
LEVELS = {"mlp": 0.002, "mha": 0.24, "rnn": 0.08}
"""Classification errors in the middle of figure 4's axes, as labels in the authors' plotting file suggest."""

# Every run weighs the same, whatever its architecture.
above, below, between, close, better, no_better, grows = (
    partial(one, statistic=OVERALL)
    for one in (parts.above, parts.below, parts.between, parts.close, parts.better, parts.no_better, parts.grows)
)


def of(metric: str, gating: str, reach: str = "") -> Group:
    """Runs of one gating, with the most or the fewest rules if asked."""
    return (
        group(metric, "", f"{gating} with the {reach}", gating=gating, reach=reach)
        if reach
        else group(metric, gating=gating)
    )


def everything(metric: str, factor: str = "") -> Group:
    """The runs of all gatings."""
    return group(metric, factor, "all runs", gating=GATINGS)


def setting(runs: pd.DataFrame) -> str:
    """What was run, in words: `mlp: 2, 8, 32 rules; mha, rnn: 2, 8 rules; width 32`."""
    numbers = {name: _listed(runs["rules"][runs["architecture"] == name]) for name in CONDITIONS["id"]}
    same = {text: [name for name, found in numbers.items() if found == text] for text in numbers.values()}
    said = [f"{', '.join(names)}: {text} rules" for text, names in same.items() if text]
    if runs["setting"].nunique() == 1:
        said.append(f"{runs['setting'].iloc[0]} only")
    widths = _listed(runs["width"])
    return "; ".join([*said, f"width{'s' * (',' in widths)} {widths}"])


def _listed(numbers: pd.Series) -> str:
    return ", ".join(map(str, sorted(set(numbers))))


def rules_claim(
    name: str,
    place: str,
    statement: str,
    printed: str,
    parts: Sequence[Part],
    measured: Callable[[Tables], pd.DataFrame],
    design: Design = RUNS,
    at: tuple[str, float] | None = None,
    paper: str = PAPER,
) -> Claim:
    """A claim judged from `rules-main`, with and without the runs that width bounds."""
    return Claim(
        f"rules/{name}",
        paper,
        place,
        statement,
        printed,
        "rules-main",
        "",
        tuple(parts),
        measures.columns,
        at,
        measured,
        design,
        setting,
        ("capacity-limited runs", measures.limited),
    )


def _shares(printed: dict[str, float]) -> str:
    return ", ".join(f"{gating} {100 * share:.1f} %" for gating, share in printed.items())


_VOTES_TEXT = (
    f"{_shares(SHARES)} of {EXPERIMENTS} votes; between two: {_shares(DUELS)}. Whether the authors counted "
    "the 125 of RNN classification the wrong way round can't be told"
)

MAJORITY = [
    above(of(VOTE, "truth"), 0.5),
    *(better(of(VOTE, "operation"), of(VOTE, gating)) for gating in ("none", "joint")),
    *(better(of(VOTE, "truth"), of(VOTE, gating), by=0.25) for gating in ("none", "joint")),
]
"""The order of all votes: what F1 says."""
NARROWLY = [better(of(DUEL, "joint"), of(DUEL, "none")), no_better(of(DUEL, "joint"), of(DUEL, "none"), by=0.5)]
"""The outcome of the duels: what F2 says."""

F1 = rules_claim(
    "F1",
    "figure 3, left",
    "With the true rule as gate a modular network is the best in most experiments; gating by the operation comes "
    "second, before the monolithic network and joint gating, which are both far behind the first (by more than a "
    "quarter of the votes).",
    _VOTES_TEXT,
    MAJORITY,
    measures.votes,
    VOTES,
)
F2 = rules_claim(
    "F2",
    "figure 3, right",
    "Between joint gating and the monolithic network, joint gating has more votes, but the margin is small: fewer than "
    "three of four.",
    _VOTES_TEXT,
    NARROWLY,
    measures.votes,
    VOTES,
)
# Means of five seeds decide a vote, and five tasks are few: five points are agreement.
_SHARES = [
    close(of(metric, gating), share, 5 * POINT)
    for metric, printed in ((VOTE, SHARES), (DUEL, DUELS))
    for gating, share in printed.items()
]
VOTE_VALUES = rules_claim(
    "votes",
    "figure 3",
    "The shares of the votes.",
    _VOTES_TEXT,
    _SHARES,
    measures.votes,
    VOTES,
    at=("experiments", EXPERIMENTS),
)
_FLIPPED = partial(measures.votes, flipped=True)
FLIPPED = rules_claim(
    "flipped",
    "figure 3, counted as the released aggregation would",
    "F1 and F2 hold also if the votes of RNN classification go to the worst gating, as the released aggregation has "
    "it: an eighth of the votes does not decide the order.",
    _VOTES_TEXT,
    [*MAJORITY, *NARROWLY],
    _FLIPPED,
    VOTES,
    paper=OURS,
)
VOTE_VALUES_FLIPPED = rules_claim(
    "votes-flipped",
    "figure 3, counted as the released aggregation would",
    "The printed shares are those with the votes of RNN classification the wrong way round. (If this is supported and "
    "`rules/votes` contradicted, the figure was made so.)",
    _VOTES_TEXT,
    _SHARES,
    _FLIPPED,
    VOTES,
    at=("experiments", EXPERIMENTS),
    paper=OURS,
)
ERROR_LEVELS = rules_claim(
    "levels",
    "figure 4, classification in distribution",
    "How large the errors are, on average over gatings, rules and widths, to within a factor of three.",
    ", ".join(f"{name} about {100 * level:g} %" for name, level in LEVELS.items())
    + " in the middle of the axes, as labels in the plotting file suggest: orders of magnitude",
    [
        between(
            group(
                "error",
                "",
                f"all {name} in classification",
                gating=GATINGS,
                architecture=name,
                setting="classification",
            ),
            round(level / 3, 4),
            3 * level,
            printed=True,
        )
        for name, level in LEVELS.items()
    ],
    measures.errors,
    at=("experiments", EXPERIMENTS),
)

ORDER = ("truth", "operation", "joint", "none")
"""From the best to the worst."""
PAIRS = tuple(zip(ORDER[1:], ORDER[:-1], strict=True))
"""Each gating with the next better one."""
_DRAWN = "drawn, not printed"

F3 = rules_claim(
    "F3",
    "figure 4",
    "With the most rules, in and out of distribution: gating by the true rule is better than by the operation, that "
    "better than joint gating, and that better than none.",
    _DRAWN,
    [
        better(of(metric, worse, MOST), of(metric, than, MOST))
        for metric in ("error", "OoD error")
        for worse, than in PAIRS
    ],
    measures.errors,
)
F4 = rules_claim(
    "F4",
    "figure 4 and conclusion",
    "What specialization gains over a monolithic network grows with the number of rules; with the fewest the "
    "monolithic one is comparable, no more than two points worse.",
    _DRAWN,
    [
        *(
            grows(
                (of(metric, "none", MOST), of(metric, "truth", MOST)),
                (of(metric, "none", FEWEST), of(metric, "truth", FEWEST)),
            )
            for metric in ("error", "OoD error")
        ),
        *(no_better(of("error", "none", FEWEST), of("error", gating, FEWEST), by=2 * POINT) for gating in ORDER[:-1]),
    ],
    measures.errors,
)

LEARNED = ("joint", "operation")
_COLLAPSE = ("collapse_avg", "collapse_worst")


def _more_with_rules(metric: str) -> list[Part]:
    return [better(of(metric, gating, MOST), of(metric, gating, FEWEST)) for gating in LEARNED]


F5 = rules_claim(
    "F5",
    "figures 5 and 6, collapse",
    "Modules collapse if the gate is learned, the more the more rules there are, and less if it sees the operation "
    "alone; with the true rule as gate they do not.",
    _DRAWN,
    [
        part
        for metric in _COLLAPSE
        for part in (
            below(of(metric, "truth"), POINT),
            *(above(of(metric, gating), POINT) for gating in LEARNED),
            *_more_with_rules(metric),
            better(of(metric, "joint"), of(metric, "operation")),
        )
    ],
    measures.specialization,
)
F6 = rules_claim(
    "F6",
    "figures 5 and 6, specialization",
    "Learned gates specialize better than random ones and worse than the true rule, the worse the more rules there "
    "are; those that see the operation alone do better. (In units of what random gates score with as many rules.)",
    _DRAWN,
    [
        part
        for metric in (f"relative {name}" for name in measures.RELATIVE)
        for part in (
            below(of(metric, "truth"), POINT),
            *(between(of(metric, gating), POINT, 1.0) for gating in LEARNED),
            *_more_with_rules(metric),
            better(of(metric, "joint"), of(metric, "operation")),
        )
    ],
    measures.specialization,
)
F7 = rules_claim(
    "F7",
    "figure 7",
    "What specializes better learns faster: the mean error during training has the order of the final errors.",
    _DRAWN,
    [better(of("error during training", worse), of("error during training", than)) for worse, than in PAIRS],
    measures.speeds,
)
F8 = rules_claim(
    "F8",
    "outlook on harder out-of-distribution settings",
    "How well a run does out of distribution goes with how well it does in distribution: ranks among the runs of equal "
    "architecture and setting correlate by more than 0.7.",
    "in words",
    [parts.above(everything("OoD rank", "rank in distribution"), 0.7, statistic=CORRELATION)],
    measures.ranks,
)
F9 = rules_claim(
    "F9",
    "the two checkpoints that were tested",
    "The last and the best weights hardly differ: by less than a point of error.",
    "in words",
    [below(everything(metric), POINT) for metric in ("change", "OoD change")],
    measures.selections,
)

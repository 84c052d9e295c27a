"""What may mislead in the modularity paper's design, C1 to C7: does a finding survive where it is taken away?

C3, C4 and C5 are sizes that the study `rules-confounds` has as published and freed, one at a time; the others are asked
of the records of `rules-main`. A claim without a suffix is supported if the finding holds without the confound and
contradicted if it does not, so that the finding was owed to it; one with a suffix says that the confound had the effect
that was suspected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pandas as pd

from unseen.studies.claims import rules_measures as measures
from unseen.studies.claims.claim import Claim, Tables
from unseen.studies.claims.evidence import Design, Group, group
from unseen.studies.claims.part import Part
from unseen.studies.claims.rules import (
    COVERS,
    MAJORITY,
    NARROWLY,
    ORDER,
    OURS,
    PAIRS,
    POINT,
    VOTES,
    above,
    better,
    grows,
    of,
    rules_claim,
    setting,
)
from unseen.studies.claims.rules_measures import CONFOUNDS, FEWEST, LONGER, MOST, PLACES, SOFT
from unseen.studies.claims.rules_votes import decided_votes

SIZES = Design(("task_seed", "seed"), "task_seed", "task", COVERS, (*PLACES, *CONFOUNDS), {"reach": "rules"})
"""Runs are compared that differ in nothing but what a part names, sizes included."""
_ERRORS = ("error", "OoD error")
_COLLAPSE = ("collapse_avg", "collapse_worst")
_ASKED = "not in the paper"


def _main(
    name: str,
    place: str,
    statement: str,
    parts: Sequence[Part],
    measured: Callable[[Tables], pd.DataFrame],
    **more: Any,
) -> Claim:
    return rules_claim(name, place, statement, _ASKED, parts, measured, paper=OURS, **more)


def _sized(
    name: str,
    place: str,
    statement: str,
    parts: Sequence[Part],
    measured: Callable[[Tables], pd.DataFrame] = measures.errors,
) -> Claim:
    return Claim(
        f"rules/{name}",
        OURS,
        place,
        statement,
        _ASKED,
        "rules-confounds",
        "",
        tuple(parts),
        measures.columns,
        None,
        measured,
        SIZES,
        setting,
    )


# -- asked of rules-main -----------------------------------------------------------------------------------------------

C1 = _main(
    "C1",
    "figure 4, out of distribution, with other lengths in place of other amplitudes",
    "Labels double with the inputs, so a network that is nearly homogeneous passes the test with doubled amplitudes "
    "whether it composes rules or not. With longer sequences alone (length 30, amplitudes as in training) the order of "
    "F3 holds among attention and recurrent models, on average over the numbers of rules.",
    [better(of(LONGER, worse), of(LONGER, than)) for worse, than in PAIRS],
    measures.longer,
)


def _regression(metric: str, gating: str, reach: str) -> Group:
    return group(
        metric, "", f"{gating} with the {reach} in regression", gating=gating, reach=reach, setting="regression"
    )


C2 = _main(
    "C2",
    "figure 4, regression, in units of the zero predictor's loss",
    "Plain losses have another scale with every number of rules, task and length. In units of the zero predictor's "
    "loss the order of F3 holds in regression alone, and what specialization gains grows with the rules as F4 says.",
    [
        *(
            better(_regression(metric, worse, MOST), _regression(metric, than, MOST))
            for metric in _ERRORS
            for worse, than in PAIRS
        ),
        *(
            grows(
                (_regression(metric, "none", MOST), _regression(metric, "truth", MOST)),
                (_regression(metric, "none", FEWEST), _regression(metric, "truth", FEWEST)),
            )
            for metric in _ERRORS
        ),
    ],
    measures.errors,
)
C6 = _main(
    "C6",
    "figure 3, votes beyond the luck of the seeds alone",
    "A vote ignores by how much the best gating is better. Where only those experiments vote whose best gating beats "
    "each other one beyond the luck of the seeds, F1 and F2 hold.",
    [*MAJORITY, *NARROWLY],
    partial(measures.votes, count=decided_votes),
    design=VOTES,
)
C7 = _main(
    "C7",
    "figures 5 and 6, what keeps joint gates from specializing",
    "Modules can share a rule because each of its tokens is mixed softly, or because each token has one module that "
    "something other than the rule chooses. With joint gating and the most rules it is mostly (more than half of the "
    "uncertainty about the module, given the rule) the first; contradicted, it is mostly the second.",
    [above(of(SOFT, "joint", MOST), 0.5)],
    measures.softness,
)


# -- asked of rules-confounds ------------------------------------------------------------------------------------------


def _attention(metric: str, gating: str, reach: str = MOST, encoder: str = "fixed", gate: str = "head") -> Group:
    """Attention models with an encoder and a hidden layer of the gate as published, or freed."""
    freed = [word for word, is_so in (("wide encoder", encoder == "scaled"), ("wide gate", gate == "width")) if is_so]
    return group(
        metric,
        "",
        _called(gating, freed, reach),
        architecture="mha",
        gating=gating,
        reach=reach,
        encoder=encoder,
        gate_hidden=gate,
    )


def _recurrent(metric: str, gating: str, state: str = "whole") -> Group:
    """Recurrent models with the most rules; the monolithic one shares its state with nobody."""
    freed = ["whole state"] if state == "whole" and gating != "none" else []
    return group(
        metric,
        "",
        _called(gating, freed, MOST),
        architecture="rnn",
        gating=gating,
        reach=MOST,
        shared_state="shrunk" if gating == "none" else state,
    )


def _called(gating: str, freed: Sequence[str], reach: str) -> str:
    return ", ".join([gating, *freed, reach])


C3 = _sized(
    "C3",
    "figure 4, attention models with an encoder that is wide enough",
    "A token must show its features for every rule, and the published encoder is too narrow for that with many rules. "
    "With one that is wide enough the order of F3 holds among attention models.",
    [
        better(_attention(metric, worse, encoder="scaled"), _attention(metric, than, encoder="scaled"))
        for metric in _ERRORS
        for worse, than in PAIRS
    ],
)
C3_TREND = _sized(
    "C3-trend",
    "figure 4, attention models: worse with more rules",
    "The narrow encoder is part of why attention models get worse with more rules: with a wide one, errors grow less "
    "from the fewest to the most rules, whatever the gating.",
    [
        grows(
            (_attention("error", gating, MOST), _attention("error", gating, FEWEST)),
            (_attention("error", gating, MOST, "scaled"), _attention("error", gating, FEWEST, "scaled")),
        )
        for gating in ORDER
    ],
)
C4 = _sized(
    "C4",
    "figures 5 and 6, collapse, attention models with a wide gate",
    "In attention models the gate that sees the operation alone has a hidden layer as narrow as a head. With one as "
    "wide as the encoder its modules collapse all the same (by more than a point), if less than those of joint gates.",
    [
        part
        for metric in _COLLAPSE
        for part in (
            above(_attention(metric, "operation", gate="width"), POINT),
            better(_attention(metric, "joint"), _attention(metric, "operation", gate="width")),
        )
    ],
    measures.specialization,
)
C4_WIDTH = _sized(
    "C4-width",
    "figures 5 and 6, collapse, attention models",
    "The narrow hidden layer is part of why gating by the operation collapses: with a wide one it collapses less.",
    [better(_attention(metric, "operation"), _attention(metric, "operation", gate="width")) for metric in _COLLAPSE],
    measures.specialization,
)
C5 = _sized(
    "C5",
    "figure 4, recurrent models whose modules share a state as wide as the monolithic one's",
    "Matched in parameters, recurrent modules share a state that shrinks with the number of rules. With one as wide as "
    "the monolithic network's (and more parameters) the order of F3 holds among recurrent models.",
    [better(_recurrent(metric, worse), _recurrent(metric, than)) for metric in _ERRORS for worse, than in PAIRS],
)
C5_STATE = _sized(
    "C5-state",
    "figure 4, recurrent models",
    "The narrow shared state costs recurrent modules accuracy: with a whole one their errors are lower.",
    [better(_recurrent("error", gating, "shrunk"), _recurrent("error", gating)) for gating in ORDER[:-1]],
)

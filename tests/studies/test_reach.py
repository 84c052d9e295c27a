"""Every claim's headline criteria have runs at `mini`, or the study says why not."""

from __future__ import annotations

import pandas as pd
import pytest

from unseen.claims import CLAIMS
from unseen.claims.claim import Claim
from unseen.claims.criterion import PrintedNumber
from unseen.claims.evidence import Evidence
from unseen.claims.judge import key_columns, select_setting
from unseen.claims.planned import catalogued_runs, scale_for
from unseen.errors import UsageError
from unseen.studies.catalog.gcog import FAILED_PILOT
from unseen.studies.study import Study, find_catalogued

NAMES = [entry.name for entry in CLAIMS]


def find_missing(claim: Claim, scale: str) -> list[str]:
    """The headline criteria of a claim that would have no runs at a scale, or none in some of their groups."""
    runs, _, printed_for = select_setting(claim, catalogued_runs(claim.study, scale))
    evidence = Evidence(pd.DataFrame(), runs, key_columns(claim), claim.design)
    missing = []
    for criterion in claim.criteria:
        if criterion.role != "headline" or isinstance(criterion, PrintedNumber) or (criterion.printed and printed_for):
            continue
        if any(evidence.find_absent(group) is not None for group in criterion.quantity.groups):
            missing.append(criterion.key)
    return missing


@pytest.mark.parametrize("name", NAMES)
def test_mini_has_runs_for_the_headline_of_a_claim_or_the_study_says_why_not(name: str) -> None:
    claim = CLAIMS.load(name)
    study = find_catalogued(claim.study)
    missing = find_missing(claim, "mini")
    if study.unreachable.get(name) == FAILED_PILOT:
        assert not missing, "the runs are there, and a pilot showed that they do not learn"
    else:
        assert bool(missing) == (name in study.unreachable)


def test_claims_whose_pilot_failed_are_not_offered_at_mini() -> None:
    failed = [name for name in NAMES if find_catalogued(CLAIMS.load(name).study).unreachable.get(name) == FAILED_PILOT]
    assert {"gcog/trees", "gcog/productivity"} <= set(failed)
    for name in failed:
        assert scale_for(CLAIMS.load(name)) not in ("", "mini")


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name in find_catalogued(CLAIMS.load(name).study).unreachable]
)
def test_what_mini_cannot_decide_another_scale_can_and_the_reason_is_shown(name: str) -> None:
    claim = CLAIMS.load(name)
    study = find_catalogued(claim.study)
    assert find_missing(claim, "full") == []
    phrase = f"cannot decide {name}: {study.unreachable[name]}"
    assert phrase in study.deviations("mini")
    assert phrase not in study.deviations("full")


@pytest.mark.parametrize("scale", ["mini", "full"])
def test_deeper_questions_are_tested_at_every_depth_that_claims_name(scale: str) -> None:
    for entry in find_catalogued("gcog-productivity").entries(scale, seeds=[0]):
        assert {"ood/depth=5", "ood/depth=7"} <= set(entry.trial.evaluation.splits)
        if entry.levels["trained_on"] == "1":
            assert "ood/depth=3" in entry.trial.evaluation.splits


def test_similarities_are_measured_where_their_claim_looks_for_them() -> None:
    study = find_catalogued(CLAIMS.load("gcog/similarity").study)
    for scale in study.scales:
        assert all("similarity" in entry.trial.evaluation.analyses for entry in study.entries(scale, seeds=[0]))


@pytest.mark.parametrize("name", ["gcog-distractors", "gcog-systematicity", "gcog-productivity", "gcog-layers"])
def test_the_figures_of_gcog_have_the_released_questions_at_full_and_claims_tell_them_apart(name: str) -> None:
    study = find_catalogued(name)
    as_published = [e for e in study.entries("full", seeds=[0]) if e.levels["questions"] == "as published"]
    assert as_published
    for entry in as_published:
        pool = 104_000 if entry.trial.task.name == "gcog/systematic-operators" else 40_000
        assert (entry.trial.task.preset, entry.trial.task.pool) == ("released", pool)
    runs = catalogued_runs(name, "full")
    for claim in study.claims:
        selected = CLAIMS.load(claim).columns(runs)
        assert ((selected["questions"] == "as published") == (selected["task.preset"] == "released")).all()


def test_unreachable_names_claims_of_the_study() -> None:
    with pytest.raises(UsageError, match=r"unreachable names 'retrieval/C2'\. Did you mean 'retrieval/C1'"):
        Study("mine", 1, "?", {"mini": 1}, lambda _: [], claims=("retrieval/C1",), unreachable={"retrieval/C2": "why"})

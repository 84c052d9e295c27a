"""Every registered claim can come out supported, contradicted and undecided; one that cannot fail is a defect."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import pytest

from support import claim_ctl_cases, claim_gcog_cases, claim_retrieval_cases, claim_router_cases, claim_rules_cases
from unseen.claims import CLAIMS
from unseen.claims.claim import JudgedClaim
from unseen.claims.render import describe_needs

NAMES = [entry.name for entry in CLAIMS]
FAMILIES = (claim_retrieval_cases, claim_rules_cases, claim_router_cases, claim_ctl_cases, claim_gcog_cases)
VERDICTS = ("supported", "contradicted", "undecided")
CASES: Mapping[str, Mapping[str, Callable[[], JudgedClaim]]] = {
    verdict: {name: case for family in FAMILIES for name, case in getattr(family, verdict.upper()).items()}
    for verdict in VERDICTS
}
"""For every verdict and claim, made-up records that lead to it."""


@pytest.mark.parametrize("verdict", VERDICTS)
def test_every_claim_has_a_case_for_every_verdict(verdict: str) -> None:
    assert set(CASES[verdict]) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_records_that_agree_support_a_claim(name: str) -> None:
    found = CASES["supported"][name]()
    assert found.claim.name == name
    assert [
        (one.criterion.key, str(one.estimate), one.waiting) for one in found.findings if one.verdict != "holds"
    ] == []
    assert found.verdict == "supported" and all(one.compared for one in found.findings)


@pytest.mark.parametrize("name", NAMES)
def test_records_that_disagree_contradict_it(name: str) -> None:
    found = CASES["contradicted"][name]()
    assert (found.claim.name, found.verdict) == (name, "contradicted")


@pytest.mark.parametrize("name", NAMES)
def test_other_records_leave_it_undecided_and_it_says_what_would_settle_it(name: str) -> None:
    found = CASES["undecided"][name]()
    assert (found.claim.name, found.verdict) == (name, "undecided")
    assert describe_needs(found) and found.scale


@pytest.mark.parametrize("name", NAMES)
def test_every_criterion_can_fail(name: str) -> None:
    for criterion in CLAIMS.load(name).criteria:
        bounded = criterion.low > -math.inf or criterion.high < math.inf
        assert criterion.low < criterion.high and bounded, criterion.key

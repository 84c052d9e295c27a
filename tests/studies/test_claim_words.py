"""Every registered claim can come out supported, contradicted and undecided: one that can't fail is a defect."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import claim_ctl_cases
import claim_gcog_cases
import claim_retrieval_cases
import claim_rules_cases
import pytest

from unseen.studies.claims import CLAIMS
from unseen.studies.claims.claim import Verdict

NAMES = [entry.name for entry in CLAIMS]
FAMILIES = (claim_retrieval_cases, claim_rules_cases, claim_ctl_cases, claim_gcog_cases)
WORDS = ("supported", "contradicted", "undecided")
CASES: Mapping[str, Mapping[str, Callable[[], Verdict]]] = {
    word: {name: case for family in FAMILIES for name, case in getattr(family, word.upper()).items()} for word in WORDS
}
"""For every word and claim a made-up world in which the claim comes to it."""


@pytest.mark.parametrize("word", WORDS)
def test_every_claim_has_a_case_for_every_word(word: str) -> None:
    assert set(CASES[word]) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_claim_says_is_supported_where_it_is_so(name: str) -> None:
    found = CASES["supported"][name]()
    assert found.claim.name == name
    assert [(one.part.says, str(one.estimate), one.open) for one in found.findings if one.word != "supported"] == []
    assert found.word == "supported" and all(one.compared for one in found.findings)


@pytest.mark.parametrize("name", NAMES)
def test_other_numbers_contradict_it(name: str) -> None:
    found = CASES["contradicted"][name]()
    assert (found.claim.name, found.word) == (name, "contradicted")


@pytest.mark.parametrize("name", NAMES)
def test_it_can_stay_open_and_says_what_would_settle_it(name: str) -> None:
    found = CASES["undecided"][name]()
    assert (found.claim.name, found.word) == (name, "undecided")
    assert found.open and found.scale


@pytest.mark.parametrize("name", NAMES)
def test_no_part_holds_whatever_is_found(name: str) -> None:
    for part in CLAIMS.load(name).parts:
        assert part.low < part.high and (part.low > -math.inf or part.high < math.inf), part.says

"""The three sentences: what they say is in the verdicts and counts, and nothing else is."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import get_args

import pytest

from unseen.report.answer import Counts, Standing, answer, waits_for
from unseen.studies.claims import CLAIMS, ledger
from unseen.studies.claims.claim import Claim, Verdict
from unseen.studies.claims.part import Finding, Word

DONE = Counts("mini", runs=80, ended=80, of="4 variants, 4 tasks, 5 seeds")
GOOD = Standing("one", "ood/x", "accuracy", 0.9, 0.85, 0.95, 5)
POOR = Standing("other", "ood/x", "accuracy", 0.5, 0.45, 0.55, 5)


def claim(number: int) -> Claim:
    return ledger.claims([f"retrieval/C{number}"])[0]


def verdict(number: int, word: Word, *opens: str) -> Verdict:
    """A verdict with a part for each reason, or one without any."""
    findings = tuple(Finding(claim(number).parts[0], word, open=text) for text in opens or ("",))
    return Verdict(claim(number), word, "mini", "", findings)


def test_three_sentences_name_what_is_supported_contradicted_and_open() -> None:
    found = answer(
        [
            verdict(1, "supported"),
            verdict(3, "supported"),
            verdict(7, "contradicted"),
            verdict(5, "undecided", "more steps would settle it: 2 usable seeds"),
            verdict(8, "undecided", "about 14 seeds would settle it"),
            verdict(4, "not run", "T5 not run"),
        ],
        DONE,
    )
    assert len(found) == 3 and all(text.endswith(".") for text in found)
    assert found[0] == "All 80 runs at scale mini have ended: 4 variants, 4 tasks, 5 seeds."
    for name in ("C1", "C3"):
        assert f"{name}: {CLAIMS.entry(f'retrieval/{name}').summary}" in found[1].split(" and one is contradicted")[0]
    assert found[1].startswith("Of 5 claims that could be judged, 2 are supported (")
    assert f"one is contradicted (C7: {CLAIMS.entry('retrieval/C7').summary})." in found[1]
    assert found[2] == (
        "2 claims are undecided: C5 waits for more steps, C8 waits for about 14 seeds; 1 more was not run."
    )


def test_no_claim_is_called_what_it_is_not() -> None:
    """Of every word alone: the others are said to be none."""
    for word in get_args(Word):
        _, said, rest = answer([verdict(1, word, "T1 not run" if word == "not run" else "")], DONE, [GOOD, POOR])
        assert (" one is supported" in said) == (word == "supported")
        assert (" one is contradicted" in said) == (word == "contradicted")
        assert ("One claim is undecided" in rest) == (word == "undecided")
        assert ("None of 1 claims" in rest) == (word == "not run")


def test_where_no_claim_is_decided_the_means_speak_too() -> None:
    found = answer(
        [verdict(5, "undecided", "more steps would settle it: 1 usable seed"), verdict(4, "not run")],
        DONE,
        [GOOD, POOR],
    )
    assert found[1].startswith("one has the highest mean accuracy")
    assert found[2] == "One claim is undecided: C5 waits for more steps; 1 more was not run."


def test_claims_that_wait_for_the_same_are_told_together() -> None:
    waiting = [
        verdict(number, "undecided", f"about {seeds} seeds would settle it")
        for number, seeds in ((5, 60), (7, 14), (8, 30))
    ]
    assert answer(waiting, DONE)[2] == "3 claims are undecided: C5, C7 and C8 wait for about 14 to 60 seeds."


def test_numbers_that_nobody_will_run_are_not_spelled_out() -> None:
    def said(*seeds: int) -> str:
        return answer(
            [verdict(5 + i, "undecided", f"about {count} seeds would settle it") for i, count in enumerate(seeds)], DONE
        )[2]

    assert said(20, 58522).endswith("C5 and C6 wait for about 20 to more than 1000 seeds.")
    assert said(4000, 58522).endswith("C5 and C6 wait for more than 1000 seeds.")


def test_a_claim_that_was_compared_in_part_is_called_so() -> None:
    whole = verdict(1, "supported", "", "")
    partly = replace(whole, findings=(whole.findings[0], replace(whole.findings[1], compared=False)))
    summary = CLAIMS.entry("retrieval/C1").summary
    assert f"(C1: {summary})" in answer([whole], DONE)[1]
    assert f"(C1, in part: {summary})" in answer([partly], DONE)[1]


def test_claims_that_have_a_word_for_a_name_are_set_apart() -> None:
    named = ledger.claims(["retrieval/reading"])[0]
    found = Verdict(named, "undecided", "mini", "", (Finding(named.parts[0], "not run", open="T1 not run"),))
    assert answer([found], DONE)[2] == "One claim is undecided: ‘reading’ waits for parts that were not run."


def test_many_claims_are_counted_not_listed() -> None:
    found = answer([verdict(number, "supported") for number in range(1, 9)], DONE)
    assert "8 are supported" in found[1] and "; and 5 more)" in found[1] and "C7" not in found[1]


@pytest.mark.parametrize(
    ("opens", "expected"),
    [
        (["about 14 seeds would settle it", "about 30 seeds would settle it"], "about 30 seeds"),
        (["about 14 seeds would settle it", "more seeds would settle it"], "more seeds"),
        (
            ["about 14 seeds would settle it", "more steps would settle it: 1 usable seed, 3 are the least"],
            "more steps",
        ),
        (["2 usable seeds, 3 are the least (T6: 1 of 3 failed)"], "more seeds"),
        (["T2 not run"], "parts that were not run"),
        (["T2 not run", "about 7 tasks would settle it"], "about 7 tasks"),
        (["no number of seeds settles it: the mean lies on the bound"], ""),
        (["it can't be measured: the values do not vary", "T2 not run"], "parts that were not run"),
    ],
)
def test_what_an_undecided_claim_waits_for(opens: list[str], expected: str) -> None:
    assert waits_for(verdict(1, "undecided", *opens)) == expected


def test_what_runs_have_not_done_is_said() -> None:
    counts = replace(DONE, ended=60, failed=2, diverged=1, still_learning=12, can_not_tell=3)
    assert counts.pending == 18
    said = answer([verdict(1, "supported")], counts)[0]
    for part in (
        "60 of 80 runs at scale mini have ended",
        "18 are pending",
        "2 failed",
        "1 diverged",
        "12 were still learning",
        "of 3 it can't be told whether they were",
    ):
        assert part in said


def test_without_claims_the_means_speak() -> None:
    _, said, rest = answer([], DONE, [GOOD, POOR])
    assert said == (
        "one has the highest mean accuracy on ood/x, 0.900 [0.850, 0.950], over 5 runs, and other the "
        "lowest, 0.500 [0.450, 0.550]."
    )
    assert rest == "No claim of a paper is about these runs."
    assert "(their intervals overlap)" in answer([], DONE, [GOOD, replace(POOR, high=0.86)])[1]
    few = replace(GOOD, low=math.nan, high=math.nan, runs=2)
    assert "0.900, too few for an interval" in answer([], DONE, [few, POOR])[1]
    assert "overlap" not in answer([], DONE, [few, POOR])[1]
    assert (
        answer([], DONE, [replace(few, runs=1)])[1]
        == "one has a mean accuracy on ood/x of 0.900 in a single run, over 1 run."
    )
    loss = [replace(POOR, metric="relative_loss"), replace(GOOD, metric="relative_loss")]
    assert "other has the lowest mean relative loss" in answer([], DONE, loss)[1]
    assert answer([], DONE)[1] == "No score was measured that could be compared."


def test_nothing_run_claims_nothing() -> None:
    for counts in (
        Counts("mini", 0, 0),
        Counts("mini", 80, 0),
        Counts("mini", 80, 0, failed=3),
        Counts("", 2, 0, failed=2),
    ):
        found = answer([verdict(1, "not run", "T1 not run")], counts, [GOOD])
        assert len(found) == 3 and found[0].startswith("Nothing has been")
        assert "0.900" not in " ".join(found)
    assert "the one run is pending." in answer([], Counts("", 1, 0))[0]
    assert "of 1 run 1 failed." in answer([], Counts("", 1, 0, failed=1))[0]
    assert "77 are pending and 3 failed" in answer([], Counts("mini", 80, 0, failed=3))[0]

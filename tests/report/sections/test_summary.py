"""The three sentences: what they say is in the verdicts and counts, and nothing else is."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import get_args

import pytest

from unseen.claims import CLAIMS
from unseen.claims.claim import Claim, JudgedClaim
from unseen.claims.criterion import Finding, Obstacle, Verdict, Waiting
from unseen.claims.judge import load_claims
from unseen.report.sections.scores import ScoreTable, Standing
from unseen.report.sections.summary import RunCounts, answer

DONE = RunCounts("mini", runs=80, ended=80, composition="4 variants, 4 tasks, 5 seeds")
CHANCE_AND_SHORTCUT = {"chance": 0.5, "one feature": 0.8, "oracle": 1.0}
GOOD = Standing({"variant": "one"}, "ood/x", "accuracy", 0.9, 0.85, 0.95, 5, CHANCE_AND_SHORTCUT)
POOR = Standing({"variant": "other"}, "ood/x", "accuracy", 0.5, 0.45, 0.55, 5, CHANCE_AND_SHORTCUT)


def table(*rows: Standing) -> ScoreTable:
    return ScoreTable(("variant",), rows, "ood/x", subject="one")


STEPS = Waiting("steps", Obstacle.TOO_FEW)
NOT_RUN = Waiting("runs", Obstacle.MISSING)


def seeds(count: int | None) -> Waiting:
    return Waiting("seeds", Obstacle.BOUND_INSIDE, count)


def claim(number: int) -> Claim:
    return load_claims([f"retrieval/C{number}"])[0]


def verdict(number: int, word: Verdict, *waiting: Waiting | None) -> JudgedClaim:
    """A judged claim with a finding for each need, or one without any."""
    findings = tuple(Finding(claim(number).criteria[0], word, waiting=need) for need in waiting or (None,))
    return JudgedClaim(claim(number), word, "mini", "", findings)


def test_three_sentences_name_what_is_supported_contradicted_and_open() -> None:
    found = answer(
        [
            verdict(1, "supported"),
            verdict(3, "supported"),
            verdict(7, "contradicted"),
            verdict(5, "undecided", STEPS),
            verdict(8, "undecided", seeds(14)),
            verdict(4, "not run", NOT_RUN),
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
    for word in get_args(Verdict):
        judged = [verdict(1, word, NOT_RUN if word == "not run" else None)]
        _, scores, *decided, rest = answer(judged, DONE, table(GOOD, POOR))
        assert scores.startswith("The mean accuracy"), "the scores speak first, whatever is decided"
        said = " ".join(decided)
        assert (" one is supported" in said) == (word == "supported")
        assert (" one is contradicted" in said) == (word == "contradicted")
        assert ("One claim is undecided" in rest) == (word == "undecided")
        assert ("None of the study's 1 claims" in rest) == (word == "not run")


def test_where_no_claim_is_decided_the_means_speak_too() -> None:
    found = answer(
        [verdict(5, "undecided", STEPS), verdict(4, "not run")],
        DONE,
        table(GOOD, POOR),
    )
    assert found[1].startswith("The mean accuracy on ood/x is 0.900")
    assert found[2] == "One claim is undecided: C5 waits for more steps; 1 more was not run."


def test_claims_that_wait_for_the_same_are_told_together() -> None:
    waiting = [verdict(number, "undecided", seeds(count)) for number, count in ((5, 60), (7, 14), (8, 30))]
    assert answer(waiting, DONE)[2] == "3 claims are undecided: C5, C7 and C8 wait for about 14 to 60 seeds."


def test_numbers_that_nobody_will_run_are_not_spelled_out() -> None:
    def said(*counts: int) -> str:
        return answer([verdict(5 + i, "undecided", seeds(count)) for i, count in enumerate(counts)], DONE)[2]

    assert said(20, 58522).endswith("C5 and C6 wait for about 20 to more than 1000 seeds.")
    assert said(4000, 58522).endswith("C5 and C6 wait for more than 1000 seeds.")


def test_a_claim_that_was_compared_in_part_is_called_so() -> None:
    whole = verdict(1, "supported", None, None)
    partly = replace(whole, findings=(whole.findings[0], replace(whole.findings[1], compared=False)))
    summary = CLAIMS.entry("retrieval/C1").summary
    assert f"(C1: {summary})" in answer([whole], DONE)[1]
    assert f"(C1, in part: {summary})" in answer([partly], DONE)[1]


def test_claims_that_have_a_word_for_a_name_are_set_apart() -> None:
    named = load_claims(["retrieval/reading"])[0]
    found = JudgedClaim(named, "undecided", "mini", "", (Finding(named.criteria[0], "not run", waiting=NOT_RUN),))
    assert answer([found], DONE)[2] == "One claim is undecided: ‘reading’ waits for criteria that were not run."


def test_many_claims_are_counted_not_listed() -> None:
    found = answer([verdict(number, "supported") for number in range(1, 9)], DONE)
    assert "8 are supported" in found[1] and "; and 5 more)" in found[1] and "C7" not in found[1]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ({}, "All 80 runs at scale mini have ended: 4 variants, 4 tasks, 5 seeds."),
        ({"runs": 2, "ended": 2}, "Both runs at scale mini have ended: 4 variants, 4 tasks, 5 seeds."),
        ({"diverged": 1}, "All 80 runs at scale mini have ended: 4 variants, 4 tasks, 5 seeds; 1 diverged."),
        ({"failed": 2, "ended": 78}, "78 of 80 runs at scale mini have ended: 4 variants, 4 tasks, 5 seeds; 2 failed."),
        ({"ended": 1}, "1 of 80 runs at scale mini has ended: 4 variants, 4 tasks, 5 seeds; 79 are pending."),
        ({"not_converged": 12}, "… 5 seeds; 12 had not converged."),
        (
            {"ended": 60, "failed": 2, "diverged": 1, "not_converged": 12, "unknown": 3},
            "… 5 seeds; 18 are pending, 2 failed, 1 diverged and 12 had not converged.",
        ),
    ],
)
def test_the_first_sentence_counts_states(states: dict[str, int], expected: str) -> None:
    sentence = answer([verdict(1, "supported")], replace(DONE, **states))[0]
    assert sentence == expected or (expected.startswith("…") and sentence.endswith(expected.removeprefix("…")))


def test_convergence_that_cant_be_told_is_said_last() -> None:
    """It is a caveat: it used to be in the first sentence of every short run's report."""
    supported = [verdict(1, "supported")]
    for unknown, expected in {80: "the runs", 32: "32 runs", 1: "1 run"}.items():
        paragraphs = answer(supported, replace(DONE, unknown=unknown))
        assert paragraphs[-1] == f"Too few validations were made to tell whether {expected} had converged."
        assert not any("validations" in text for text in paragraphs[:-1])
    assert not any("validations" in text for text in answer(supported, DONE))


def test_without_claims_the_scores_speak_beside_what_needs_no_learning() -> None:
    _, scores, rest = answer([], DONE, table(POOR, GOOD))
    assert scores == (
        "The mean accuracy on ood/x is 0.900 [0.850, 0.950] for one and 0.500 [0.450, 0.550] for other. "
        "Chance is 0.500, the best shortcut (one feature) 0.800, the oracle 1.000. Entirely above chance and every "
        "known shortcut: one."
    )
    assert rest == "No claim of a paper could be judged from these runs."
    few = replace(GOOD, low=math.nan, high=math.nan, runs=2)
    assert "0.900 (2 runs, too few for an interval)" in answer([], DONE, table(few, POOR))[1]
    both = answer([], DONE, table(few, replace(few, levels=POOR.levels)))[1]
    assert "0.900 for one and 0.900 for other (2 runs each, too few for intervals)" in both
    single = answer([], DONE, table(replace(few, runs=1)))[1]
    assert single.startswith("one has a mean accuracy on ood/x of 0.900 (a single run).")
    assert "interval" not in single.partition("run).")[2]
    losses = {"always 0": 1.0, "oracle": 0.0}
    loss = [replace(row, metric="relative_loss", baselines=losses) for row in (GOOD, POOR)]
    told = answer([], DONE, table(*loss))[1]
    assert told.startswith("The mean relative loss on ood/x is 0.500 [0.450, 0.550] for other and 0.900")
    assert told.endswith("Always predicting 0 gives 1, the oracle has 0.000.")
    assert answer([], DONE)[1] == "No score was measured that could be compared."


def test_nothing_run_claims_nothing() -> None:
    for counts in (
        RunCounts("mini", 0, 0),
        RunCounts("mini", 80, 0),
        RunCounts("mini", 80, 0, failed=3),
        RunCounts("", 2, 0, failed=2),
    ):
        found = answer([verdict(1, "not run", NOT_RUN)], counts, table(GOOD))
        assert len(found) == 3 and found[0].startswith(("No run has ended", "This directory holds no runs"))
        assert "0.900" not in " ".join(found)
    assert "the only run is pending." in answer([], RunCounts("", 1, 0))[0]
    assert "of 1 run 1 failed." in answer([], RunCounts("", 1, 0, failed=1))[0]
    assert "77 are pending and 3 failed" in answer([], RunCounts("mini", 80, 0, failed=3))[0]

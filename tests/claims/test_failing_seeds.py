"""What a paper says itself of seeds that fail bounds the means of such runs, and can only take a verdict back."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, t

from support.claim_ctl_cases import NEW, frame, rows
from unseen.claims import CLAIMS
from unseen.claims.claim import Claim, JudgedClaim
from unseen.claims.criterion import DECIDED, VERDICTS, Finding, Obstacle
from unseen.claims.judge import amend, judge, load_claims
from unseen.claims.judge_studies import judge_store
from unseen.claims.papers.ctl import BILSTM, MODELS, NDR, TRANSFORMER
from unseen.claims.quantity import MEAN
from unseen.claims.registration import fingerprint, is_registered, read_amendments, read_registrations
from unseen.claims.render import format_table, judged_data
from unseen.store.shipped_records import find_shipped

AMENDED = ("ctl/K2", "ctl/K3", "ctl/table1")


def judge_runs(name: str, on_a: list[float], on_r: list[float]) -> JudgedClaim:
    """NDR and Transformer with these accuracies out of distribution; all models have learned."""
    records = []
    for model in MODELS:
        for task, values in (("A", on_a), ("R", on_r)):
            records += rows(task, model, [0.999 - 0.0001 * (seed % 3) for seed in range(len(values))], "iid")
            outside = [0.99 - 0.001 * (seed % 3) for seed in range(len(values))] if model == BILSTM else values
            records += rows(task, model, outside, NEW)
    return judge(CLAIMS.load(name), frame(records))


def find(judged: JudgedClaim, *words: str) -> Finding:
    (finding,) = [entry for entry in judged.findings if all(word in entry.criterion.key for word in words)]
    return finding


def test_the_amended_claims_are_those_with_a_mean_of_such_runs() -> None:
    """Every mean of a run that the sentence is about is bounded, whichever claim it belongs to."""
    assert {claim.name for claim in load_claims() if claim.failing} == set(AMENDED) == set(read_amendments())
    (failing,) = CLAIMS.load("ctl/K3").failing
    for claim in load_claims():
        quantities = [criterion.quantity for criterion in claim.criteria if criterion.quantity.statistic is MEAN]
        covered = any(failing.covers(group) for quantity in quantities for group in quantity.groups)
        assert covered == bool(claim.failing), claim.name


@cache
def shipped() -> JudgedClaim:
    (judged,) = judge_store(find_shipped("ctl-table1", 2, "mini"), ["ctl/K3"]).verdicts
    return judged


def test_the_shipped_verdict_is_taken_back_and_says_so() -> None:
    judged = shipped()
    assert (judged.verdict, judged.unamended, judged.registered) == ("undecided", "contradicted", True)
    waiting = find(judged, NDR).waiting
    assert waiting is not None and waiting.reason is Obstacle.FAILING
    text = format_table([judged], {}, criteria=True)
    assert "amended on 2026-11-19" in text and "without the amendment for seeds that fail: contradicted" in text
    assert "the paper says that some seeds fail" in text
    data = judged_data(judged)
    assert data["unamended"] == "contradicted" and "only 32% of the seeds" in data["amendments"][0]


def test_the_limits_are_those_computed_by_hand() -> None:
    on_a = [0.30, 0.44, 0.33, 0.41, 0.25]
    on_r = [0.62, 0.70, 0.66, 0.75, 0.64]
    alpha = 0.05
    estimate = find(judge_runs("ctl/K2", on_a, on_r), NDR, "R below 0.9").estimate
    assert estimate is not None
    # None of five succeeds: all are of the kind with t limits, the others lie between 0.95 and 1.
    scores = np.array(on_r)
    width = t.ppf(1 - alpha / 2, 4) * scores.std(ddof=1) / math.sqrt(5)
    least = beta.ppf(alpha / 2, 5, 1)
    assert estimate.interval.high == pytest.approx(least * (scores.mean() + width) + (1 - least))
    assert estimate.interval.low == pytest.approx(scores.mean() - width)
    # Of the difference, the runs on A keep to their values.
    estimate = find(judge_runs("ctl/K3", on_a, on_r), NDR).estimate
    assert estimate is not None
    differences = scores - np.array(on_a)
    width = t.ppf(1 - alpha / 2, 4) * differences.std(ddof=1) / math.sqrt(5)
    highest = 1 - min(on_a)
    assert estimate.interval.high == pytest.approx(least * (differences.mean() + width) + (1 - least) * highest)
    # Four of five succeed: the fifth is taken at its value.
    on_r = [0.97, 0.98, 0.99, 0.98, 0.40]
    estimate = find(judge_runs("ctl/K2", on_a, on_r), NDR, "R below 0.9").estimate
    assert estimate is not None
    scores = np.array(on_r[:4])
    floor = np.mean([(v * 1000 + 1) / 1002 * (1 - (v * 1000 + 1) / 1002) / 1000 for v in on_r])
    width = t.ppf(1 - alpha / 2, 3) * math.sqrt(max(scores.var(ddof=1), floor) / 4)
    low, high = beta.ppf(alpha / 2, 4, 2), beta.ppf(1 - alpha / 2, 5, 1)
    by_kinds = low * (scores.mean() - width) + (1 - low) * 0.40, high * (scores.mean() + width) + (1 - high) * 0.40
    assert estimate.interval.low <= by_kinds[0] + 1e-12 and estimate.interval.high >= by_kinds[1] - 1e-12


@pytest.mark.parametrize("on_r", [[0.70, 0.71, 0.72], [0.97, 0.98, 0.99], [0.70, 0.71, 0.99], [0.10, 0.11, 0.12]])
def test_three_seeds_never_decide_such_a_mean(on_r: list[float]) -> None:
    for name in ("ctl/K2", "ctl/K3"):
        judged = judge_runs(name, [0.30, 0.31, 0.32], on_r)
        of_r = [find(judged, f"OOD of {model} on R") for model in (NDR, TRANSFORMER) if name == "ctl/K3"]
        of_r += [find(judged, f"{model} on R below") for model in (NDR, TRANSFORMER) if name == "ctl/K2"]
        assert [finding.verdict for finding in of_r] == ["open", "open"]
        assert judged.verdict not in DECIDED


def test_an_amendment_only_takes_back() -> None:
    """Drawn runs: an outcome stays or is open, and a verdict stays or is not decided."""
    draws = np.random.default_rng(7)
    changed = 0
    for _ in range(8):
        n = int(draws.choice([3, 5, 8, 12, 25]))
        solved = draws.random(n) < draws.choice([0.0, 0.3, 0.7, 1.0])
        on_r = np.where(
            solved, 0.97 + 0.02 * draws.random(n), np.clip(draws.normal(draws.uniform(0.3, 0.93), 0.05, n), 0, 0.94)
        )
        on_a = np.clip(draws.normal(draws.uniform(0.2, 0.95), 0.05, n), 0, 1)
        for name in AMENDED:
            judged = judge_runs(name, on_a.tolist(), on_r.tolist())
            assert judged.unamended is not None
            assert judged.verdict == judged.unamended or judged.verdict not in DECIDED
            changed += judged.verdict != judged.unamended
    assert changed > 0, "the test saw no verdict that was taken back"


@pytest.mark.parametrize("before", VERDICTS)
@pytest.mark.parametrize("after", VERDICTS)
def test_no_decided_verdict_comes_from_an_amendment(before: str, after: str) -> None:
    verdict = amend(before, after)  # type: ignore[arg-type]
    assert verdict == before or verdict not in DECIDED


def changes(claim: Claim) -> list[Claim]:
    (failing,) = claim.failing
    return [
        replace(claim, failing=()),
        replace(claim, failing=(failing, failing)),
        replace(claim, failing=(replace(failing, level=0.9501),)),
        replace(claim, failing=(replace(failing, metrics=failing.metrics[:1]),)),
        replace(claim, failing=(replace(failing, columns={**failing.columns, "model": (NDR,)}),)),
        replace(claim, failing=(replace(failing, quote=failing.quote + "."),)),
    ]


@pytest.mark.parametrize("name", AMENDED)
def test_one_changed_byte_of_an_amendment_makes_its_claim_exploratory(name: str) -> None:
    claim = CLAIMS.load(name)
    begin = datetime.fromisoformat(read_registrations()[name].runs_from)
    assert is_registered(claim, begin)
    for changed in changes(claim):
        assert fingerprint(changed) == read_registrations()[name].hash, "the claim itself is as it was"
        assert not is_registered(changed, begin)
    other = replace(CLAIMS.load("ctl/K4"), failing=claim.failing)
    assert not is_registered(other, begin), "an amendment that nobody registered"


def test_without_such_runs_an_amendment_changes_nothing() -> None:
    records = []
    for model in (NDR, TRANSFORMER):
        records += rows("A", model, [0.3, 0.32, 0.31, 0.35, 0.33], NEW) + rows("A", model, [0.99] * 5, "iid")
    table: pd.DataFrame = frame(records)
    claim = CLAIMS.load("ctl/K2")
    plain = judge(replace(claim, failing=()), table)
    assert [entry.estimate for entry in judge(claim, table).findings] == [entry.estimate for entry in plain.findings]

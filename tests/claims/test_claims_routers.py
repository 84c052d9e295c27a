"""The claims about routers: the learning rate of every configuration, and verdicts on made-up runs."""

from __future__ import annotations

import pytest

from support.claim_router_cases import AS_CLAIMED, PAYS, ROUTED, judge_routers, make_runs
from unseen.claims.claim import Tables
from unseen.claims.judge import load_claims
from unseen.claims.papers.rules_routers import columns, tuned


def test_verdicts_if_all_is_as_claimed() -> None:
    verdicts = {name: judged.verdict for name, judged in judge_routers(AS_CLAIMED, PAYS).items()}
    assert verdicts == dict.fromkeys(ROUTED, "supported")


def test_one_router_near_true_gates_contradicts_only_the_claim_about_all() -> None:
    judged = judge_routers({**AS_CLAIMED, "gumbel": 0.02}, PAYS)
    assert judged["rules/R1"].verdict == "contradicted"
    assert judged["rules/R2"].verdict == "supported"


def test_the_rate_with_the_least_error_in_distribution_counts() -> None:
    runs, records = make_runs(AS_CLAIMED, PAYS)
    made = columns(runs)
    rows = tuned(Tables(records.drop(columns=[name for name in runs if name != "trial"]), made))
    assert set(rows["trial"].str.split("/").str[2]) == {"0.003"}
    assert len(rows[rows["metric"] == "error"]) == len(runs) / 2


def test_runs_without_these_axes_are_no_evidence() -> None:
    runs, _ = make_runs({}, {})
    assert len(columns(runs.drop(columns="routing"))) == 0


@pytest.mark.parametrize("name", ROUTED)
def test_they_are_ours(name: str) -> None:
    (claim,) = load_claims([name])
    assert claim.ours and claim.study == "rules-routers"

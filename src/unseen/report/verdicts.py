"""The claims on a page: each verdict in words, and each criterion as a picture of its interval in its range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from unseen.claims import CLAIMS, judge, render
from unseen.claims.claim import JudgedClaim
from unseen.claims.criterion import Criterion, Finding, Verdict
from unseen.errors import CheckFailed
from unseen.report.data import Source
from unseen.stats import Estimate

MEANINGS: Mapping[Verdict, str] = {
    "supported": "the whole 95 % interval of every criterion that was compared lies where the claim says",
    "contradicted": "the whole interval of a criterion lies elsewhere (95 %, and wider the more criteria there are)",
    "undecided": "an interval contains a bound, there are too few usable runs, or some runs do not exist",
    "not run": "no run that the claim is about has ended",
}
"""The verdicts in the order of the page, and what they mean."""
MARGIN = 0.12
"""The share of a picture's width that stays free on either side."""


@dataclass(frozen=True)
class PageVerdicts:
    """The verdicts of a page, and why some claims could not be judged, if so."""

    verdicts: Sequence[JudgedClaim]
    unread: str = ""


def judge_source(source: Source) -> PageVerdicts:
    """Judge all claims about the families of a source, those that its study names first.

    Claims that need the learning curves are left out if these cannot be read.
    """
    families = {str(task).partition("/")[0] for task in source.runs["task"]}
    names = [entry.name for entry in CLAIMS if entry.name.partition("/")[0] in families]
    if not names:
        return PageVerdicts([])
    verdicts: list[JudgedClaim] = []
    unread = ""
    try:
        verdicts = judge.judge_tables(source.records, source.runs, names, source.curves)
    except CheckFailed as error:
        unread = str(error)
        for name in names:
            with suppress(CheckFailed):
                verdicts += judge.judge_tables(source.records, source.runs, [name], source.curves)
    first = list(source.study.claims) if source.study is not None else []
    order = list(MEANINGS)

    def rank(judged: JudgedClaim) -> tuple[int, int]:
        name = judged.claim.name
        return first.index(name) if name in first else len(first), order.index(judged.verdict)

    return PageVerdicts(sorted(verdicts, key=rank), unread)


# -- for the template -------------------------------------------------------------------------------------------------


def claim_rows(verdicts: Sequence[JudgedClaim]) -> list[dict[str, Any]]:
    """Return what the page shows of each claim."""
    rows = []
    for judged in verdicts:
        compared = len(judged.compared)
        partly = ""
        if judged.verdict != "not run" and compared < len(judged.findings):
            partly = f"{compared} of {len(judged.findings)} criteria compared"
        rows.append(
            {
                **render.claim_data(judged.claim),
                "verdict": judged.verdict,
                "setting": render.describe_place(judged),
                "tally": render.count_findings(judged),
                "because": render.explain(judged),
                "without": render.describe_without(judged),
                "left_out": render.describe_left_out(judged.left_out, render.MOST_CONFIGURATIONS),
                "partly": partly,
                "criteria": [_criterion_row(finding) for finding in judged.findings],
            }
        )
    return rows


def _criterion_row(finding: Finding) -> dict[str, Any]:
    row: dict[str, Any] = {
        "criterion": finding.criterion.key,
        "verdict": render.verdict_on(finding),
        "waiting": render.describe_waiting(finding),
        "estimate": "",
        "range": None,
        "n": "",
    }
    estimate = finding.estimate
    if estimate is not None:
        interval = estimate.interval
        bounds = "" if math.isnan(interval.low) else f" [{interval.low:.3f}, {interval.high:.3f}]"
        row["estimate"] = f"{estimate.value:.3f}{bounds}"
        row["range"] = place_interval(finding.criterion, estimate)
        row["n"] = f"n = {interval.n}{', indicative' if interval.indicative else ''}"
    return row


def place_interval(criterion: Criterion, estimate: Estimate) -> dict[str, float] | None:
    """Place the range of a criterion and the interval on a line from 0 to 100; None without an interval."""
    low, high = estimate.interval.low, estimate.interval.high
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    points = [number for number in (criterion.low, criterion.high, low, high, estimate.value) if math.isfinite(number)]
    first, last = min(points), max(points)
    pad = (last - first) * MARGIN / (1 - 2 * MARGIN) or 1.0

    def percent(value: float) -> float:
        share = (value - first + pad) / (last - first + 2 * pad)
        return round(100 * min(1.0, max(0.0, share)), 2)

    return {
        "from": percent(criterion.low),
        "to": percent(criterion.high),
        "low": percent(low),
        "high": percent(high),
        "value": percent(estimate.value),
    }

"""The claims on a page: each verdict in words, and each criterion as a picture of its interval in its range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from unseen.claims import CLAIMS, render
from unseen.claims.claim import JudgedClaim
from unseen.claims.criterion import Criterion, Finding, Verdict
from unseen.claims.judge_studies import StudyRecords, judge_study
from unseen.errors import CheckFailed
from unseen.names import family_of
from unseen.report.data import Source
from unseen.stats import Estimate

MEANINGS: Mapping[Verdict, str] = {
    "supported": "every headline criterion holds (one-sided 5 %), and no detail is contradicted",
    "mixed": "every headline criterion holds, but a detail is contradicted",
    "contradicted": "a headline criterion is contradicted (one-sided 5 %, Holm over all of them)",
    "not reached": "the verdict would rest on runs that did not learn, in a smaller setting than the paper's",
    "undecided": "an interval contains a bound, runs still drifted, there are too few, or some do not exist",
    "in progress": "the planned number of units is not complete",
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
    silent: int = 0
    """The number of claims about the same families that have no runs here."""


def judge_source(source: Source) -> PageVerdicts:
    """Judge the claims about the families of a source, and its own, as `unseen claims` does.

    Those that its study names come first. A claim of another study that has no runs here is only counted.
    Claims that need the learning curves are left out if these cannot be read.
    """
    study = StudyRecords(
        str(source.directory),
        str(source.work.get("study", "")),
        source.records,
        source.runs,
        source.curves,
        source.notes,
        source.first_run,
        source.axes,
        source.taken_over,
    )
    verdicts: list[JudgedClaim] = []
    unread = ""
    try:
        verdicts = judge_study(study)
    except CheckFailed as error:
        unread = str(error)
        families = {family_of(task) for task in source.runs["task"]}
        for entry in CLAIMS:
            if family_of(entry.name) in families:
                with suppress(CheckFailed):
                    verdicts += judge_study(study, [entry.name])
    first = list(source.description.claims) if source.description is not None else []
    order = list(MEANINGS)

    def rank(judged: JudgedClaim) -> tuple[int, int]:
        name = judged.claim.name
        return first.index(name) if name in first else len(first), order.index(judged.verdict)

    listed = [judged for judged in verdicts if judged.verdict != "not run" or judged.claim.name in first]
    return PageVerdicts(sorted(listed, key=rank), unread, len(verdicts) - len(listed))


# -- for the template -------------------------------------------------------------------------------------------------


def claim_rows(verdicts: Sequence[JudgedClaim]) -> list[dict[str, Any]]:
    """The values that the page shows for each claim."""
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
                "setting": render.describe_scale_and_setting(judged),
                "tally": render.describe_coverage(judged),
                "because": render.explain(judged),
                "kind": render.describe_kind(judged),
                "settling": render.describe_remedy(judged),
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
    low = estimate.interval.low
    high = estimate.interval.high
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    points = [number for number in (criterion.low, criterion.high, low, high, estimate.value) if math.isfinite(number)]
    first = min(points)
    last = max(points)
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

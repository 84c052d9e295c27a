"""The claims ledger of a page: each verdict in words, and each part as a picture of its interval in its range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from unseen.errors import CheckFailed
from unseen.report.source import Source
from unseen.stats import Estimate
from unseen.studies.claims import CLAIMS, ledger
from unseen.studies.claims.claim import Verdict
from unseen.studies.claims.part import Finding, Part, Word

WORDS: Mapping[Word, str] = {
    "supported": "the whole 95 % interval of every part that was compared lies where the claim says",
    "contradicted": "the whole interval of a part lies elsewhere (95 %; the more parts, the wider it is)",
    "undecided": "an interval holds the bound, has too few usable runs, or its runs are not there",
    "not run": "no run that it speaks of has ended",
}
"""The verdicts, in the order of the ledger, and what they mean."""
MARGIN = 0.12
"""Of a picture's width, left free at both ends."""


@dataclass(frozen=True)
class Judged:
    """The verdicts, and why some claims could not be judged, if so."""

    verdicts: Sequence[Verdict]
    unread: str = ""


def judged(source: Source) -> Judged:
    """The verdicts on all claims about the families of a source, those that its study names first.

    Claims that need the learning curves are left out if these can't be read.
    """
    families = {str(task).partition("/")[0] for task in source.runs["task"]}
    names = [entry.name for entry in CLAIMS if entry.name.partition("/")[0] in families]
    try:
        found, unread = _judge(source, names), ""
    except CheckFailed as error:
        found, unread = _one_by_one(source, names), str(error)
    named = list(source.study.claims) if source.study is not None else []
    return Judged(sorted(found, key=lambda one: (_rank(one.claim.name, named), _order(one))), unread)


def _judge(source: Source, names: Sequence[str]) -> list[Verdict]:
    return ledger.verdicts(source.records, source.runs, names, source.curves) if names else []


def _one_by_one(source: Source, names: Sequence[str]) -> list[Verdict]:
    found = []
    for name in names:
        with suppress(CheckFailed):
            found += _judge(source, [name])
    return found


def _rank(name: str, named: Sequence[str]) -> int:
    return named.index(name) if name in named else len(named)


def _order(verdict: Verdict) -> int:
    return list(WORDS).index(verdict.word)


# -- for the template -------------------------------------------------------------------------------------------------


def rows(found: Sequence[Verdict]) -> list[dict[str, Any]]:
    """What the ledger shows of each verdict."""
    return [
        {
            **ledger.claim_data(one.claim),
            "word": one.word,
            "where": ledger.where(one),
            "tally": ledger.tally(one),
            "because": ledger.because(one),
            "again": ledger.again(one),
            "left_out": one.left_out,
            "partly": _partly(one),
            "parts": [_part(part) for part in one.findings],
        }
        for one in found
    ]


def _partly(verdict: Verdict) -> str:
    """How much of a claim a verdict is about, where that is not all of it."""
    compared = sum(part.compared for part in verdict.findings)
    partly = verdict.word != "not run" and compared < len(verdict.findings)
    return f"{compared} of {len(verdict.findings)} parts compared" if partly else ""


def _part(finding: Finding) -> dict[str, Any]:
    found = finding.estimate
    return {
        "says": finding.part.says,
        "word": finding.word if finding.compared else "not compared",
        "open": finding.open,
        "estimate": "" if found is None else _number(found),
        "range": None if found is None else picture(finding.part, found),
        "n": "" if found is None else _size(found),
    }


def _number(found: Estimate) -> str:
    low, high = found.interval.low, found.interval.high
    return f"{found.value:.3f}" + ("" if math.isnan(low) else f" [{low:.3f}, {high:.3f}]")


def _size(found: Estimate) -> str:
    return f"n = {found.interval.n}{', indicative' if found.interval.indicative else ''}"


def picture(part: Part, found: Estimate) -> dict[str, float] | None:
    """Where the range of a part and the interval lie on a line from 0 to 100; None without an interval."""
    low, high = found.interval.low, found.interval.high
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    points = [one for one in (part.low, part.high, low, high, found.value) if math.isfinite(one)]
    first, last = min(points), max(points)
    pad = (last - first) * MARGIN / (1 - 2 * MARGIN) or 1.0

    def place(value: float) -> float:
        share = (value - first + pad) / (last - first + 2 * pad)
        return round(100 * min(1.0, max(0.0, share)), 2)

    return {
        "from": place(part.low),
        "to": place(part.high),
        "low": place(low),
        "high": place(high),
        "value": place(found.value),
    }

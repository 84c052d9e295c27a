"""The ledger: every claim with its verdict, as a table for people, for documents and for programs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from unseen.studies.claims import CLAIMS
from unseen.studies.claims.claim import Claim, Verdict, judge
from unseen.studies.claims.part import Finding

SHOWN = 4
"""How many ways to settle a verdict are shown; programs get all of them."""
MANY = 1000
"""More seeds than this nobody will run."""
_NEEDED = re.compile(r"about (\d+) (\w+) would settle it")
Deviations = Mapping[str, Sequence[str]]
"""How each scale deviates from the paper, one phrase each."""


def claims(names: Iterable[str] = ()) -> list[Claim]:
    """The claims of these names, or all of them."""
    return [CLAIMS.load(name) for name in (list(names) or [entry.name for entry in CLAIMS])]


def verdicts(
    records: pd.DataFrame,
    runs: pd.DataFrame | None = None,
    names: Iterable[str] = (),
    curves: Callable[[], pd.DataFrame] = pd.DataFrame,
) -> list[Verdict]:
    """The verdict on every claim about the families that were run (or those named) at every scale; see `judge`."""
    runs = records.drop_duplicates([c for c in ("scale", "cell") if c in records]) if runs is None else runs
    scales = list(dict.fromkeys(runs["scale"])) if "scale" in runs else [None]
    chosen = claims(names or _about(runs))
    return [judge(claim, _at(records, scale), _at(runs, scale), curves) for scale in scales for claim in chosen]


def _about(runs: pd.DataFrame) -> list[str]:
    """The claims about the families of these runs; all, if there are none about them."""
    families = {str(task).partition("/")[0] for task in runs["task"]} if "task" in runs else set()
    return [entry.name for entry in CLAIMS if entry.name.partition("/")[0] in families]


def _at(frame: pd.DataFrame, scale: str | None) -> pd.DataFrame:
    return frame if scale is None else frame[frame["scale"] == scale]


# -- one claim, one verdict, one part in words ------------------------------------------------------------------------


def describe(claim: Claim, parts: bool = False) -> str:
    """A claim in words; with its parts, if asked."""
    lines = [
        f"{claim.name}  {claim.paper}, {claim.place}",
        f"  {claim.statement}",
        f"  printed: {claim.printed}",
        f"  study: {claim.study}",
    ]
    return "\n".join(lines + ([f"  - {part.says}" for part in claim.parts] if parts else []))


def where(verdict: Verdict) -> str:
    """The scale and setting it was judged at."""
    return ", ".join(filter(None, (verdict.scale, verdict.setting)))


def tally(verdict: Verdict) -> str:
    """How many parts came to what; those about another setting are not compared."""
    counted = [found.word for found in verdict.findings if found.compared]
    words = [
        f"{counted.count(word)} {word}"
        for word in ("supported", "contradicted", "undecided", "not run")
        if word in counted
    ]
    elsewhere = len(verdict.findings) - len(counted)
    return ", ".join([*words, f"{elsewhere} not compared"] if elsewhere else words)


def word_on(finding: Finding) -> str:
    """The word on a part."""
    return finding.word if finding.compared else "not compared"


def _estimate(finding: Finding) -> str:
    return "" if finding.estimate is None else str(finding.estimate)


def measured(finding: Finding) -> str:
    """A part and what was found."""
    return ": ".join(filter(None, (finding.part.says, _estimate(finding))))


def evidence(finding: Finding) -> str:
    """A part, what was found, and why it is open, in one line."""
    return measured(finding) + (f"; {finding.open}" if finding.open else "")


def decisive(verdict: Verdict) -> Finding | None:
    """What the verdict hangs on: of supported parts the weakest, else the first that stands in the way."""
    found = [one for one in verdict.findings if one.compared]
    if verdict.word == "supported":
        return min(found, key=_slack)
    own = [one for one in found if one.word == verdict.word] or [one for one in found if one.word == "not run"]
    return own[0] if own else None


def because(verdict: Verdict) -> str:
    """What the verdict hangs on, in one line."""
    found = decisive(verdict)
    return evidence(found) if found is not None else why_not_run(verdict)


def settled_by(verdict: Verdict) -> str:
    """What would settle an open verdict, each thing once, or as many as can be read: of numbers of seeds the largest,
    since every part must be settled; which runs were still learning is told elsewhere."""
    if verdict.word != "undecided":
        return ""
    texts = [one.open for one in verdict.findings if one.compared and one.open]
    counts = [(int(found[1]), found[2]) for found in map(_NEEDED.match, texts) if found]
    steps = ["more steps: too many runs were still learning"] * any(text.startswith("more steps") for text in texts)
    others = [
        text.partition(" (")[0].removesuffix(" would settle it")
        for text in texts
        if not text.startswith("more steps") and not _NEEDED.match(text)
    ]
    seeds = [
        f"about {number} {noun}" if number <= MANY else f"more than {MANY} {noun}: next to the bound"
        for number, noun in sorted(counts)[-1:]
    ]
    found = list(dict.fromkeys([*steps, *seeds, *others]))
    more = len(found) - SHOWN
    return "; ".join([*found[:SHOWN], *([f"and {more} more"] if more > 0 else [])])


def again(verdict: Verdict) -> list[str]:
    """The verdict without the runs that the claim sets apart, in one line, if there are any."""
    if verdict.again is None or verdict.claim.without is None:
        return []
    other = verdict.again
    return [f"without {verdict.claim.without[0]}: {other.word} ({tally(other)}); {because(other)}"]


def _slack(finding: Finding) -> float:
    """How far the interval is from the bounds."""
    if finding.estimate is None:
        return math.inf
    interval = finding.estimate.interval
    return min(interval.low - finding.part.low, finding.part.high - interval.high)


# -- the ledger as text and data --------------------------------------------------------------------------------------


def as_table(found: Sequence[Verdict], deviations: Deviations, parts: bool = False) -> str:
    """Claim, verdict, where, parts; below each what decided it, or every part. Claims that were not run come last."""
    judged = [one for one in found if parts or one.word != "not run"]
    rows = [(one.claim.name, one.word, where(one), tally(one)) for one in judged]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row, verdict in zip(rows, judged, strict=True):
        lines.append("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
        lines += [f"    {text}" for text in [*(_everything(verdict) if parts else [because(verdict)]), *again(verdict)]]
    lines += [f"not run: {', '.join(_not_run(found))}"] if len(judged) < len(found) else []
    return "\n".join(lines + footnotes(judged, deviations, "  "))


def as_markdown(found: Sequence[Verdict], deviations: Deviations, parts: bool = False) -> str:
    """One row per claim, or per part, for documents."""
    lines = ["| claim | says | verdict | judged at | parts | because | would settle it |", f"|{7 * '---|'}"]
    for one in found:
        lines.append(
            row(one.claim.name, one.claim.statement, one.word, where(one), tally(one), reason(one), settled_by(one))
        )
        if parts:
            lines += [
                row("", part.part.says, word_on(part), "", "", _estimate(part), part.open) for part in one.findings
            ]
        lines += [row("", "", "", "", "", text, "") for text in again(one)]
    return "\n".join(lines + footnotes([one for one in found if one.word != "not run"], deviations, "* "))


def reason(verdict: Verdict, said: Callable[[Finding], str] = _estimate) -> str:
    """What the verdict hangs on, where what would settle it stands beside; `said`: the number in words."""
    found = decisive(verdict)
    if verdict.word == "not run" or found is None:
        return why_not_run(verdict)
    # A part without a number would read like a finding.
    return f"{found.part.says}: {said(found) or 'not measured'}"


def list_markdown(found: Sequence[Claim]) -> str:
    """The claims themselves, one row each."""
    head = ["| claim | place | says | printed | study |", "|---|---|---|---|---|"]
    return "\n".join(
        head + [row(one.name, f"{one.paper}, {one.place}", one.statement, one.printed, one.study) for one in found]
    )


def as_data(verdict: Verdict) -> dict[str, Any]:
    """A verdict as plain JSON values."""
    other = verdict.again and {"without": (verdict.claim.without or ("",))[0], **_judged(verdict.again)}
    return {**claim_data(verdict.claim), "scale": verdict.scale, **_judged(verdict), "again": other}


def _judged(verdict: Verdict) -> dict[str, Any]:
    return {
        "verdict": verdict.word,
        "setting": verdict.setting,
        "note": verdict.note,
        "open": verdict.open,
        "left_out": verdict.left_out,
        "parts": [
            {"says": one.part.says, "verdict": one.word, "compared": one.compared, "open": one.open, **_numbers(one)}
            for one in verdict.findings
        ],
    }


def claim_data(claim: Claim) -> dict[str, Any]:
    """A claim as plain JSON values."""
    return {
        "claim": claim.name,
        "paper": claim.paper,
        "place": claim.place,
        "statement": claim.statement,
        "printed": claim.printed,
        "study": claim.study,
    }


def _everything(verdict: Verdict) -> list[str]:
    claim = verdict.claim
    lines = [f"{claim.paper}, {claim.place}", claim.statement, f"printed: {claim.printed}", f"study: {claim.study}"]
    return (
        lines
        + [f"- {word_on(found)}: {evidence(found)}" for found in verdict.findings]
        + ([verdict.note] if verdict.note else [])
    )


def _not_run(found: Sequence[Verdict]) -> list[str]:
    """Names and the first reason, each once."""
    reasons = {one.claim.name: why_not_run(one) for one in found if one.word == "not run"}
    return [f"{name} ({reason})" for name, reason in reasons.items()]


def why_not_run(verdict: Verdict) -> str:
    """The first reason why a claim was not run."""
    return verdict.note or next((one.open for one in verdict.findings), "")


def footnotes(judged: Sequence[Verdict], deviations: Deviations, mark: str) -> list[str]:
    """What was left out of the verdicts, and how what was run deviates from the paper."""
    left_out = list(dict.fromkeys(text for one in judged for text in one.left_out))
    notes = ["", "Left out of the verdicts:", "", *(f"{mark}{text}" for text in left_out)] if left_out else []
    for scale, phrases in deviations.items():
        if phrases:
            notes += ["", f"Deviations of scale {scale} from the paper:", "", *(f"{mark}{text}" for text in phrases)]
    return notes


def row(*cells: str) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _numbers(finding: Finding) -> Mapping[str, Any]:
    if finding.estimate is None:
        return {}
    interval = finding.estimate.interval
    numbers = {"estimate": finding.estimate.value, "low": interval.low, "high": interval.high}
    return {
        **{name: None if math.isnan(number) else number for name, number in numbers.items()},
        "level": interval.level,
        "seeds": interval.n,
        "covers": interval.covers,
        "indicative": interval.indicative,
    }

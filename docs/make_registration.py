"""Register the claims: write src/unseen/claims/registered.json and docs/registered-claims.md.

python docs/make_registration.py DATE RUNS_FROM REASON

A claim whose hash has not changed keeps its date; a changed or new one gets DATE, and counts as registered only for
runs that begin at RUNS_FROM or later. `--page` writes the page alone.

python docs/make_registration.py --amend DATE REASON

registers what was added to claims in `failing`, in src/unseen/claims/amended.json; claims keep their own hashes.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from unseen.claims import page
from unseen.claims.claim import Claim
from unseen.claims.criterion import Criterion, PrintedNumber
from unseen.claims.judge import load_claims
from unseen.claims.judge_studies import read_records_file
from unseen.claims.registration import (
    fingerprint,
    fingerprint_amendment,
    read_amendments,
    read_registrations,
)
from unseen.claims.render import describe_amendment
from unseen.store.shipped_records import read_index

HERE = Path(__file__).parent
FILE = HERE.parent / "src" / "unseen" / "claims" / "registered.json"
AMENDED = FILE.with_name("amended.json")
PAGE = HERE / "registered-claims.md"
HEAD = """# Registered claims

This page lists every claim with the sentence of the paper that it quotes, its criteria, bounds and units, as they were
registered before the runs that test them. The hash of a claim covers everything that its verdict depends on. A claim
that is changed later has another hash and is *exploratory*, and so are verdicts by runs that began before the
claim counts as registered. The studies of scale `mini` of 15 to 17 November 2026 were looked at before: what is said by
them is exploratory. Runs of the campaign that began on 18 November, and whose outcome nobody had judged when the claims
were registered, count as registered. The commit of the registration (`5891990`) belonged to a submission that did not land;
it entered this history with the rest of that submission in one commit, so the date is written here and in the campaign's
notes (`campaign/README.md`), and cannot be read from the history alone. {modes}

*Amended* says what was added to a claim later: what its paper says itself of seeds that fail. It has a date and a hash of its own,
and can only take a verdict back, so the claim stays registered ([statistics](statistics.md#what-was-added-later)).

*Headline* criteria are the main point of the sentence; all of them must hold. *Details* can make a verdict mixed. A
printed table is an *agreement*. How verdicts are formed is described under [statistics](statistics.md).
"""


def describe_modes() -> str:
    """Say which shipped records do not tell when their claims were to be judged."""
    silent = []
    for path, entry in read_index().items():
        if read_records_file(path).mode is None:
            silent.append(f"{entry.study}@{entry.version} {entry.scale}")
    return page.describe_without_mode(silent)


def register(date: str, runs_from: str, reason: str) -> None:
    """Write the registrations; claims that have not changed keep theirs."""
    old = read_registrations() if FILE.is_file() else {}
    entries = {}
    for claim in load_claims():
        digest = fingerprint(claim)
        if claim.name in old and old[claim.name].hash == digest:
            earlier = old[claim.name]
            entry = {"hash": digest, "date": earlier.date, "runs_from": earlier.runs_from, "reason": earlier.reason}
        else:
            entry = {"hash": digest, "date": date, "runs_from": runs_from, "reason": reason}
        entries[claim.name] = entry
    FILE.write_text(json.dumps(entries, indent=1) + "\n", "utf-8")


def amend(date: str, reason: str) -> None:
    """Write the amendments; those that have not changed keep their date."""
    entries = {}
    for claim in load_claims():
        digest = fingerprint_amendment(claim)
        earlier = read_amendments().get(claim.name)
        if earlier is not None and earlier.hash == digest:
            entries[claim.name] = asdict(earlier)
        elif digest:
            entries[claim.name] = {"hash": digest, "date": date, "reason": reason}
    AMENDED.write_text(json.dumps(entries, indent=1) + "\n", "utf-8")


def format_page() -> str:
    """The page of all registered claims."""
    lines = [HEAD.format(modes=describe_modes())]
    paper = ""
    for claim in load_claims():
        if claim.paper != paper:
            paper = claim.paper
            lines.append(f"## {paper}\n")
        lines += _format_claim(claim)
    return "\n".join(lines).rstrip() + "\n"


def _format_claim(claim: Claim) -> list[str]:
    entry = read_registrations()[claim.name]
    lines = [f"### `{claim.name}`\n"]
    if claim.quote:
        lines.append(f"> {claim.quote}\n")
    question = " A question of ours." if claim.ours else ""
    lines.append(f"{claim.statement}{question} ({claim.source})\n")
    facts = [f"study `{claim.study}`", f"unit: the {claim.design.unit}"]
    if claim.learning is not None:
        measure, least = claim.learning
        facts.append(f"a run has learned with {measure} of at least {least:g}")
    if claim.printed_for:
        setting = ", ".join(f"{column} = {value}" for column, value in claim.printed_for.items())
        facts.append(f"numbers are printed for {setting}")
    facts.append(f"registered {entry.date}, hash `{entry.hash[:16]}`")
    lines.append("; ".join(facts).capitalize() + ".\n")
    lines += [f"* {_format_criterion(criterion)}" for criterion in claim.criteria]
    amendment = read_amendments().get(claim.name)
    if amendment is not None:
        lines += ["", *(f"{text[0].upper()}{text[1:]}." for text in describe_amendment(claim))]
        lines.append(f"{amendment.reason} Hash `{amendment.hash[:16]}`.")
    lines.append("")
    return lines


def _format_criterion(criterion: Criterion) -> str:
    text = criterion.key.replace("|", "\\|")
    if isinstance(criterion, PrintedNumber):
        spread = "no s.d. printed" if criterion.spread is None else f"printed s.d. {criterion.spread:g}"
        seeds = "" if criterion.seeds is None else f", {criterion.seeds} units"
        return f"*number*: {text} ({spread}{seeds})"
    notes = []
    if criterion.printed:
        notes.append("in the paper's own setting only")
    if criterion.may_fail:
        notes.append("runs that have not learned count")
    return f"*{criterion.role}*: {text}" + (f" ({'; '.join(notes)})" if notes else "")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--amend"]:
        amend(*sys.argv[2:])
        read_amendments.cache_clear()
    elif sys.argv[1:] != ["--page"]:
        register(*sys.argv[1:])
        read_registrations.cache_clear()
    PAGE.write_text(format_page(), "utf-8")

"""A page of all claims for documents: paper by paper the verdicts, where they were judged, and what was not run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from unseen.studies.claims import ledger
from unseen.studies.claims.claim import Claim, Verdict
from unseen.studies.claims.judged import Judged
from unseen.studies.claims.planned import command

Link = Callable[[str, str], str]
"""A study and a scale → where its results are described; empty: nowhere."""


def every_claim(found: Sequence[Judged]) -> list[tuple[Judged, Verdict]]:
    """The verdicts with their directories in the order of the registry; claims that none speaks of are not run."""
    nowhere = Judged("", "", (), {})
    places: dict[str, list[tuple[Judged, Verdict]]] = {}
    for one in found:
        for verdict in one.verdicts:
            places.setdefault(verdict.claim.name, []).append((one, verdict))
    return [pair for claim in ledger.claims() for pair in places.get(claim.name) or [
        (nowhere, Verdict(claim, "not run", "", "", (), f"{claim.study} was not run"))]]


def as_page(found: Sequence[Judged], link: Link = lambda study, scale: "") -> str:
    """All claims with the verdicts of several directories, grouped by paper; below, what each directory holds."""
    verdicts = every_claim(found)
    papers = dict.fromkeys(paper(verdict.claim) for _, verdict in verdicts)
    lines: list[str] = []
    for name in papers:
        mine = [pair for pair in verdicts if paper(pair[1].claim) == name]
        lines += [f"## {name}", "", *_judged([pair for pair in mine if pair[1].word != "not run"], link),
                  *_not_run([pair for pair in mine if pair[1].word == "not run"])]
    return "\n".join([*lines, "## What was run", "", *_sources(found, link)])


def paper(claim: Claim) -> str:
    """The paper that a claim is of or about."""
    return claim.paper.removeprefix("ours, on ")


def name_of(claim: Claim) -> str:
    """The name of a claim, with a mark if the question is not the paper's but ours."""
    return f"`{claim.name}`" + (" (ours)" if claim.paper != paper(claim) else "")


def count(verdicts: Iterable[Verdict]) -> str:
    """How many verdicts came to what: `3 supported, 1 undecided`."""
    words = [one.word for one in verdicts]
    return ", ".join(f"{words.count(word)} {word}" for word in ("supported", "contradicted", "undecided", "not run")
                     if word in words)


def _judged(pairs: Sequence[tuple[Judged, Verdict]], link: Link) -> list[str]:
    if not pairs:
        return []
    lines = [ledger.row("claim", "says", "verdict", "where judged", "because", "would settle it"),
             "|---|---|---|---|---|---|"]
    for one, verdict in pairs:
        where = ", ".join(filter(None, (_linked(one, verdict.scale, link), verdict.setting)))
        lines.append(ledger.row(name_of(verdict.claim), verdict.claim.statement,
                                f"**{verdict.word}** ({ledger.tally(verdict)})", where, ledger.reason(verdict),
                                ledger.settled_by(verdict)))
        lines += [ledger.row("", "", "", "", text, "") for text in ledger.again(verdict)]
    return [*lines, ""]


def _not_run(pairs: Sequence[tuple[Judged, Verdict]]) -> list[str]:
    """Each claim once, with the command that would run it at a scale that was not tried."""
    if not pairs:
        return []
    tried: dict[str, tuple[Verdict, set[str]]] = {}
    for one, verdict in pairs:
        scales = tried.setdefault(verdict.claim.name, (verdict, set()))[1]
        if one.name == verdict.claim.study:
            scales.add(verdict.scale)
    lines = ["Not run:", "", ledger.row("claim", "says", "why", "command"), "|---|---|---|---|"]
    for verdict, scales in tried.values():
        said, study = command(verdict.claim, scales), verdict.claim.study
        why = ledger.why_not_run(verdict) if scales else f"{study} was not run"
        lines.append(ledger.row(name_of(verdict.claim), verdict.claim.statement, why,
                                f"`{said}`" if said else "no scale of its study has it"))
    return [*lines, ""]


def _sources(found: Sequence[Judged], link: Link) -> list[str]:
    lines = []
    for one in found:
        for scale in one.deviations:
            mine = [verdict for verdict in one.verdicts if verdict.scale == scale
                    and (verdict.word != "not run" or verdict.claim.study == one.name)]
            lines += [f"**{_linked(one, scale, link)}**: {count(mine)}.", ""]
            left_out = list(dict.fromkeys(text for verdict in mine for text in verdict.left_out))
            lines += [f"* left out of the verdicts: {'; '.join(left_out)}"] if left_out else []
            lines += [f"* deviates from the paper: {'; '.join(one.deviations[scale])}"] if one.deviations[scale] else []
            lines += [""]
    return lines


def _linked(one: Judged, scale: str, link: Link) -> str:
    said, address = f"{one.name or 'a single train'}, {scale}", link(one.name, scale)
    return f"[{said}]({address})" if address else said

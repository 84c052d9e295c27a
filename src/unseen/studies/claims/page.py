"""A page of all claims for documents: the verdicts at a glance, then paper by paper what they rest on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from unseen.studies.claims import CLAIMS, ledger
from unseen.studies.claims.claim import Claim, Verdict
from unseen.studies.claims.judged import Judged
from unseen.studies.claims.part import Finding, Word
from unseen.studies.claims.planned import command

Link = Callable[[str, str], str]
"""A study and a scale → where its results are described; empty: nowhere."""
Pair = tuple[Judged, Verdict]
WORDS: tuple[Word, ...] = ("contradicted", "supported", "undecided", "not run")
"""The order of the page: what is decided first."""


def every_claim(found: Sequence[Judged]) -> list[Pair]:
    """The verdicts with their directories in the order of the registry; claims that none speaks of are not run."""
    nowhere = Judged("", "", (), {})
    places: dict[str, list[Pair]] = {}
    for one in found:
        for verdict in one.verdicts:
            places.setdefault(verdict.claim.name, []).append((one, verdict))
    return [
        pair
        for claim in ledger.claims()
        for pair in places.get(claim.name)
        or [(nowhere, Verdict(claim, "not run", "", "", (), f"{claim.study} was not run"))]
    ]


def as_page(found: Sequence[Judged], link: Link = lambda study, scale: "") -> str:
    """All claims with the verdicts of several directories; below, what each directory holds."""
    return "\n".join([*overview(found), *sections(found, link)])


def overview(found: Sequence[Judged]) -> list[str]:
    """Paper by paper which claims were contradicted or supported, and how many are open."""
    lines = [ledger.row("paper", *WORDS), "|---|---|---|---|---|"]
    for name, pairs in _by_paper(found).items():
        names = {word: dict.fromkeys(_short(one.claim) for _, one in pairs if one.word == word) for word in WORDS}
        cells = [
            f"{len(names[word])}" + (f": {', '.join(names[word])}" if names[word] and word in WORDS[:2] else "")
            for word in WORDS
        ]
        family = pairs[0][1].claim.name.partition("/")[0]
        lines.append(ledger.row(f"[{name}](#{_anchor(name)}): `{family}`", *cells))
    return [*lines, ""]


def sections(found: Sequence[Judged], link: Link = lambda study, scale: "") -> list[str]:
    """A section for every paper, and one for what was run."""
    lines = []
    for name, pairs in _by_paper(found).items():
        lines += [
            f"## {name}",
            "",
            *_judged([pair for pair in pairs if pair[1].word != "not run"], link),
            *_not_run([pair for pair in pairs if pair[1].word == "not run"]),
        ]
    return [*lines, "## What was run", "", *_sources(found, link)]


def paper(claim: Claim) -> str:
    """The paper that a claim is of or about."""
    return claim.paper.removeprefix("ours, on ")


def name_of(claim: Claim) -> str:
    """The name of a claim, with a mark if the question is not the paper's but ours."""
    return f"`{claim.name}`" + (" (ours)" if claim.paper != paper(claim) else "")


def count(verdicts: Iterable[Verdict]) -> str:
    """How many verdicts came to what: `3 supported, 1 undecided`."""
    words = [one.word for one in verdicts]
    return ", ".join(f"{words.count(word)} {word}" for word in WORDS if word in words)


def _by_paper(found: Sequence[Judged]) -> dict[str, list[Pair]]:
    papers: dict[str, list[Pair]] = {}
    for pair in every_claim(found):
        papers.setdefault(paper(pair[1].claim), []).append(pair)
    return papers


def _short(claim: Claim) -> str:
    return claim.name.partition("/")[2]


def _anchor(heading: str) -> str:
    """Where a link to a heading goes, as the usual renderers of Markdown name it."""
    return "".join(one for one in heading.lower().replace(" ", "-") if one.isalnum() or one == "-")


def _called(claim: Claim) -> str:
    """A claim with the few words of the registry; its whole statement stands in the list of claims."""
    return f"{name_of(claim)} {CLAIMS.entry(claim.name).summary}"


def _judged(pairs: Sequence[Pair], link: Link) -> list[str]:
    """A table for every directory, scale and setting: what is decided first."""
    places: dict[str, list[Verdict]] = {}
    for one, verdict in pairs:
        where = "; ".join(filter(None, (f"Judged from {_linked(one, verdict.scale, link)}", verdict.setting)))
        places.setdefault(where, []).append(verdict)
    lines = []
    for where, verdicts in places.items():
        lines += [
            f"{where}:",
            "",
            ledger.row("claim", "verdict", "what it hangs on", "would settle it"),
            "|---|---|---|---|",
        ]
        ordered = sorted(verdicts, key=lambda one: WORDS.index(one.word))
        lines += [ledger.row(_called(one.claim), _word(one), _because(one), ledger.settled_by(one)) for one in ordered]
        lines += [""]
    return lines


def _word(verdict: Verdict) -> str:
    """The verdict, and how many parts are so; of an open one, how many are supported."""
    words = [found.word for found in verdict.findings if found.compared]
    word: Word = "supported" if verdict.word == "undecided" else verdict.word
    said = f"{words.count(word)} of {len(words)} part{'s' * (len(words) > 1)}"
    return f"**{verdict.word}**, {said}" + (" supported" if word != verdict.word else "")


def _because(verdict: Verdict) -> str:
    def number(found: Finding) -> str:
        if found.estimate is None:
            return ""
        interval, noun = found.estimate.interval, verdict.claim.design.noun
        return f"{found.estimate.value:z.3f} [{interval.low:z.3f}, {interval.high:z.3f}], {interval.fewest} {noun}s"

    return "; ".join([ledger.reason(verdict, number), *ledger.again(verdict)])


def _not_run(pairs: Sequence[Pair]) -> list[str]:
    """Each claim once, with the study and the scale that would run it, if that was not tried."""
    if not pairs:
        return []
    tried: dict[str, tuple[Verdict, set[str]]] = {}
    for one, verdict in pairs:
        scales = tried.setdefault(verdict.claim.name, (verdict, set()))[1]
        if one.name == verdict.claim.study:
            scales.add(verdict.scale)
    lines = ["Not run:", "", ledger.row("claim", "why", "what would run it"), "|---|---|---|"]
    for verdict, scales in tried.values():
        said, study = command(verdict.claim, scales), verdict.claim.study
        why = ledger.why_not_run(verdict) if scales else f"{study} was not run"
        lines.append(ledger.row(_called(verdict.claim), why, f"`{said}`" if said else "no scale of its study has it"))
    return [*lines, ""]


def _sources(found: Sequence[Judged], link: Link) -> list[str]:
    lines = []
    for one in found:
        for scale in one.deviations:
            mine = [
                verdict
                for verdict in one.verdicts
                if verdict.scale == scale and (verdict.word != "not run" or verdict.claim.study == one.name)
            ]
            lines += [f"**{_linked(one, scale, link)}**: {count(mine)}.", ""]
            lines += _folded("Left out of the verdicts", [text for verdict in mine for text in verdict.left_out])
            lines += _folded("Deviations from the paper", one.deviations[scale])
    return lines


def _folded(title: str, texts: Iterable[str]) -> list[str]:
    """A list that is opened by those who want it."""
    said = list(dict.fromkeys(texts))
    return (
        [
            "<details>",
            f"<summary>{title}: {len(said)}</summary>",
            "",
            *(f"* {text}" for text in said),
            "",
            "</details>",
            "",
        ]
        if said
        else []
    )


def _linked(one: Judged, scale: str, link: Link) -> str:
    said, address = f"{one.name or 'a single train'}, {scale}", link(one.name, scale)
    return f"[{said}]({address})" if address else said

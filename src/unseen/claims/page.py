"""A page of all claims for documents: the verdicts at a glance, then paper by paper the reasons for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from unseen.claims import CLAIMS, render
from unseen.claims.claim import Claim, JudgedClaim
from unseen.claims.criterion import DECIDED, Finding, Verdict
from unseen.claims.judge import load_claims
from unseen.claims.judge_studies import JudgedStore
from unseen.names import family_of, name_in_family

Link = Callable[[str, str], str]
"""Maps a study and a scale to the page with its results; empty if there is none."""
Pair = tuple[JudgedStore, JudgedClaim]
ORDER: tuple[Verdict, ...] = (
    "contradicted",
    "mixed",
    "supported",
    "not reached",
    "undecided",
    "in progress",
    "not run",
)
"""The order of the page: decided claims come first."""


def _no_link(study: str, scale: str) -> str:
    return ""


def format_page(stores: Sequence[JudgedStore], link: Link = _no_link) -> str:
    """All claims with the verdicts of several directories; below, what each directory holds."""
    return "\n".join([*format_overview(stores), *format_sections(stores, link)])


def pair_claims(stores: Sequence[JudgedStore]) -> list[Pair]:
    """Pair the verdicts with their directories in the order of the registry; claims without any are not run."""
    by_claim: dict[str, list[Pair]] = {}
    for store in stores:
        for judged in store.verdicts:
            by_claim.setdefault(judged.claim.name, []).append((store, judged))
    nowhere = JudgedStore("", "", (), {})
    pairs = []
    for claim in load_claims():
        not_run = JudgedClaim(claim, "not run", "", "", (), f"{claim.study} was not run")
        pairs += by_claim.get(claim.name, [(nowhere, not_run)])
    return pairs


def format_overview(stores: Sequence[JudgedStore]) -> list[str]:
    """Paper by paper, which claims were decided and how, registered and exploratory apart, and how many are open."""
    columns = [verdict for verdict in ORDER if verdict != "in progress" or _is_running(stores)]
    lines = [render.table_row("paper", "runs", *columns), f"|{(len(columns) + 2) * '---|'}"]
    for paper, pairs in _group_by_paper(stores).items():
        family = family_of(pairs[0][1].claim.name)
        for title, registered in render.KINDS.items():
            verdicts = [judged for _, judged in pairs if judged.registered is registered]
            if not verdicts:
                continue
            fields = []
            for verdict in columns:
                alike = [judged for judged in verdicts if judged.verdict == verdict]
                names = dict.fromkeys(name_in_family(judged.claim.name) for judged in alike)
                decided = verdict in DECIDED and names
                fields.append(f"{len(names)}: {', '.join(names)}" if decided else f"{len(names)}")
            lines.append(render.table_row(f"[{paper}](#{_anchor(paper)}): `{family}`", title, *fields))
    return [*lines, ""]


def _is_running(stores: Sequence[JudgedStore]) -> bool:
    verdicts = chain.from_iterable(store.verdicts for store in stores)
    return any(judged.verdict == "in progress" for judged in verdicts)


def format_sections(stores: Sequence[JudgedStore], link: Link = _no_link) -> list[str]:
    """A section for every paper, and one for what was run."""
    lines = []
    for paper, pairs in _group_by_paper(stores).items():
        lines += [f"## {paper}", ""]
        lines += _format_judged([pair for pair in pairs if pair[1].verdict != "not run"], link)
        lines += _format_not_run([pair for pair in pairs if pair[1].verdict == "not run"])
    return [*lines, "## What was run", "", *_format_sources(stores, link)]


def describe_without_mode(names: Sequence[str]) -> str:
    """Say of these studies (`name@version scale`) that they did not note when their claims would be judged."""
    if not names:
        return ""
    return (
        "A study notes before its first run when its claims are judged: at a fixed number of seeds, or at planned looks. "
        f"The records of {' and '.join(f'`{name}`' for name in names)} have no such note, because their runs began before "
        "stores kept one. They were judged once, at the fixed number of seeds that the catalogue names; that they are "
        "counted as registered rests on this and on the date of the criteria."
    )


def count_verdicts(verdicts: Iterable[JudgedClaim]) -> str:
    """Count verdicts: `3 supported, 1 undecided`."""
    names = [judged.verdict for judged in verdicts]
    return ", ".join(f"{names.count(verdict)} {verdict}" for verdict in ORDER if verdict in names)


def mark_name(claim: Claim) -> str:
    """Return the name of a claim, with a mark if the question is ours and not the paper's."""
    return f"`{claim.name}`" + (" (ours)" if claim.ours else "")


def _group_by_paper(stores: Sequence[JudgedStore]) -> dict[str, list[Pair]]:
    papers: dict[str, list[Pair]] = {}
    for pair in pair_claims(stores):
        papers.setdefault(pair[1].claim.paper, []).append(pair)
    return papers


def _anchor(heading: str) -> str:
    """The target of a link to a heading, as the usual renderers of Markdown name it."""
    return "".join(letter for letter in heading.lower().replace(" ", "-") if letter.isalnum() or letter == "-")


def _describe(claim: Claim) -> str:
    """A claim with its summary from the registry; the full statement is in the list of claims."""
    return f"{mark_name(claim)} {CLAIMS.entry(claim.name).summary}"


def _format_judged(pairs: Sequence[Pair], link: Link) -> list[str]:
    """A table for every directory, scale and setting; decided claims first."""
    tables: dict[str, list[JudgedClaim]] = {}
    for store, judged in pairs:
        heading = f"Judged from {_link_to(store, judged.scale, link)}"
        tables.setdefault(f"{heading}; {judged.setting}" if judged.setting else heading, []).append(judged)
    lines = []
    for heading, verdicts in tables.items():
        titles = ("claim", "verdict", "what it hangs on", "would settle it")
        lines += [f"{heading}:", "", render.table_row(*titles), "|---|---|---|---|"]
        for judged in sorted(verdicts, key=lambda entry: ORDER.index(entry.verdict)):
            reasons = [render.explain_briefly(judged, _format_number(judged)), *render.describe_without(judged)]
            needs = render.describe_remedy(judged)
            lines.append(render.table_row(_describe(judged.claim), _format_verdict(judged), "; ".join(reasons), needs))
        lines.append("")
    return lines


def _format_verdict(judged: JudgedClaim) -> str:
    """The verdict with the coverage: how many criteria were run, and how many hold."""
    return f"**{judged.verdict}** ({render.describe_kind(judged)}), {render.describe_coverage(judged)}"


def _format_number(judged: JudgedClaim) -> Callable[[Finding], str]:
    def format_estimate(finding: Finding) -> str:
        if finding.estimate is None:
            return ""
        interval = finding.estimate.interval
        count = render.count_of(interval.fewest, judged.claim.design.unit)
        if not interval.bounded:
            return f"{finding.estimate.value:z.3f} (no interval), {count}"
        return f"{finding.estimate.value:z.3f} [{interval.low:z.3f}, {interval.high:z.3f}], {count}"

    return format_estimate


def _format_not_run(pairs: Sequence[Pair]) -> list[str]:
    """Each claim once, with the study and the scale that would run it, if that was not tried."""
    if not pairs:
        return []
    tried: dict[str, tuple[JudgedClaim, set[str]]] = {}
    for store, judged in pairs:
        scales = tried.setdefault(judged.claim.name, (judged, set()))[1]
        if store.name == judged.claim.study:
            scales.add(judged.scale)
    lines = ["Not run:", "", render.table_row("claim", "why", "what would run it"), "|---|---|---|"]
    for judged, scales in tried.values():
        why = render.explain_not_run(judged) if scales else f"{judged.claim.study} was not run"
        lines.append(render.table_row(_describe(judged.claim), why, render.describe_command(judged.claim, scales)))
    return [*lines, ""]


def _format_sources(stores: Sequence[JudgedStore], link: Link) -> list[str]:
    lines = []
    for store in stores:
        for scale, deviations in store.deviations.items():
            verdicts = []
            for judged in store.verdicts:
                at_home = judged.verdict != "not run" or judged.claim.study == store.name
                if judged.scale == scale and at_home:
                    verdicts.append(judged)
            left_out = dict.fromkeys(chain.from_iterable(judged.left_out for judged in verdicts))
            counts = count_verdicts(verdicts) or "no claim is about these runs"
            lines += [f"**{_link_to(store, scale, link)}**: {counts}.", ""]
            lines += _fold("Left out of the verdicts", render.describe_left_out(left_out, most=None))
            lines += _fold("Deviations from the paper", list(deviations))
    return lines


def _fold(title: str, items: Sequence[str]) -> list[str]:
    """A list that is closed until the reader opens it."""
    if not items:
        return []
    summary = f"<summary>{title}: {len(items)}</summary>"
    return ['<details markdown="1">', summary, "", *(f"* {item}" for item in items), "", "</details>", ""]


def _link_to(store: JudgedStore, scale: str, link: Link) -> str:
    name = f"{store.name or 'a single train'}, {scale}"
    address = link(store.name, scale)
    return f"[{name}]({address})" if address else name

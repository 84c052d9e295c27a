"""A claim: a sentence of a paper turned into a test on records, and the verdict on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from unseen.randomness import stream
from unseen.studies.claims.evidence import Evidence
from unseen.studies.claims.part import Finding, Part, Word, examine

AMBIGUOUS = "some seeds have several runs that this claim can't tell apart: they are of another study"


@dataclass(frozen=True)
class Claim:
    """What a paper says, where, with which numbers; the study and the condition that test it; the parts of the test.

    `columns` adds what the parts speak of to a table of runs. `printed_for` names one of them and its value in the
    paper, e.g. ("length", 10): the claim is judged at the nearest value that was run, its `printed` parts only there.
    """

    name: str
    paper: str
    place: str
    statement: str
    printed: str
    study: str
    condition: str
    parts: tuple[Part, ...]
    columns: Callable[[pd.DataFrame], pd.DataFrame]
    printed_for: tuple[str, float] | None = None


@dataclass(frozen=True)
class Verdict:
    """The word on a claim, where it was judged, and what each part came to."""

    claim: Claim
    word: Word
    scale: str
    setting: str
    findings: tuple[Finding, ...]
    note: str = ""

    @property
    def left_out(self) -> list[str]:
        """The runs that were not used, each place once."""
        return list(dict.fromkeys(text for found in self.findings for text in found.left_out))

    @property
    def open(self) -> list[str]:
        """What would settle it, part by part."""
        return [f"{found.part.says}: {found.open}" for found in self.findings if found.compared and found.open]


def judge(claim: Claim, records: pd.DataFrame, runs: pd.DataFrame | None = None) -> Verdict:
    """The verdict on a claim from the records of one scale.

    `runs` has one row per run with its status, those without records included; by default those that left records.
    The same records, in any order, give the same verdict.
    """
    runs = claim.columns(records.drop_duplicates("cell") if runs is None else runs)
    scale = ", ".join(sorted(set(runs["scale"]))) if "scale" in runs else ""
    setting = elsewhere = ""
    if claim.printed_for is not None and len(runs):
        column, value = claim.printed_for
        nearest = min(sorted(runs[column].unique()), key=lambda one: abs(one - value))
        runs = runs[runs[column] == nearest]
        elsewhere = "" if nearest == value else f"printed for {column} {value:g}"
        setting = f"{column} {nearest:g}" + (f" (paper: {value:g})" if elsewhere else "")
    # The weights that validation chose, as the papers report them.
    records = records[(records["selection"] == "best") & (records["condition"] == claim.condition)]
    evidence = Evidence(records, runs, _keys(claim))
    if evidence.ambiguous:
        return Verdict(claim, "not run", scale, setting, (), AMBIGUOUS)
    findings = tuple(
        Finding(part, "not run", open=elsewhere, compared=False) if part.printed and elsewhere
        else examine(part, evidence, stream("claim", claim.name, part.says).block()) for part in claim.parts)
    return Verdict(claim, combine([one.word for one in findings if one.compared]), scale, setting, findings)


def combine(words: Sequence[Word]) -> Word:
    """The word on a claim: contradicted if a part is, supported if all are, not run if none was.

    >>> combine(["supported", "not run"]), combine(["undecided", "contradicted"]), combine([])
    ('undecided', 'contradicted', 'not run')
    """
    if "contradicted" in words:
        return "contradicted"
    if set(words) <= {"not run"}:
        return "not run"
    return "supported" if set(words) == {"supported"} else "undecided"


def _keys(claim: Claim) -> tuple[str, ...]:
    """The columns that the claim's groups speak of."""
    groups = [group for part in claim.parts for group in part.quantity.groups]
    return tuple(dict.fromkeys(["task", *(column for group in groups for column in group.columns)]))

"""A claim: a sentence of a paper turned into a test on records, and the verdict on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import pandas as pd

from unseen.randomness import stream
from unseen.studies.claims.evidence import SEEDS, Design, Evidence
from unseen.studies.claims.part import Finding, Part, Word, examine

AMBIGUOUS = "some seeds have several runs that this claim can't tell apart: they are of another study"


@dataclass(frozen=True)
class Tables:
    """What a store holds: records, one row per run, and (read only when asked for) the points of the curves."""

    records: pd.DataFrame
    runs: pd.DataFrame
    curves: Callable[[], pd.DataFrame] = pd.DataFrame


@dataclass(frozen=True)
class Claim:
    """What a paper says, where, with which numbers; the study and the condition that test it; the parts of the test.

    `columns` adds what the parts speak of to a table of runs. `printed_for` names one of them and its value in the
    paper, e.g. ("length", 10): the claim is judged at the nearest value that was run, its `printed` parts only there.
    `measures` makes what is measured from the tables, if that is more than the records of the best weights on the
    condition. `setting` says in words what was run. `without` names some runs and tells which they are: the claim is
    judged again without them.
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
    measures: Callable[[Tables], pd.DataFrame] | None = None
    design: Design = SEEDS
    setting: Callable[[pd.DataFrame], str] | None = None
    without: tuple[str, Callable[[pd.DataFrame], pd.Series]] | None = None


@dataclass(frozen=True)
class Verdict:
    """The word on a claim, where it was judged, and what each part came to; and `again` without the runs that the
    claim sets apart, if there are any."""

    claim: Claim
    word: Word
    scale: str
    setting: str
    findings: tuple[Finding, ...]
    note: str = ""
    again: Verdict | None = None

    @property
    def left_out(self) -> list[str]:
        """The runs that were not used, each place once."""
        return list(dict.fromkeys(text for found in self.findings for text in found.left_out))

    @property
    def open(self) -> list[str]:
        """What would settle it, part by part."""
        return [f"{found.part.says}: {found.open}" for found in self.findings if found.compared and found.open]


def judge(
    claim: Claim,
    records: pd.DataFrame,
    runs: pd.DataFrame | None = None,
    curves: Callable[[], pd.DataFrame] = pd.DataFrame,
) -> Verdict:
    """The verdict on a claim from the records of one scale.

    `runs` has one row per run with its status, those without records included; by default those that left records.
    `curves` reads the learning curves, should the claim need them. The same records, in any order, give the same
    verdict.
    """
    tables = Tables(records, records.drop_duplicates("cell") if runs is None else runs, cache(curves))
    found = _judge(claim, tables)
    rest = _without(claim, tables.runs)
    return found if rest is None else replace(found, again=_judge(claim, replace(tables, runs=rest)))


def _judge(claim: Claim, tables: Tables) -> Verdict:
    runs, setting, elsewhere = at_setting(claim, tables.runs)
    scale = ", ".join(sorted(set(runs["scale"]))) if "scale" in runs else ""
    evidence = Evidence(tables.records, runs, keys(claim), claim.design)
    if evidence.ambiguous:
        return Verdict(claim, "not run", scale, setting, (), AMBIGUOUS)
    evidence = replace(evidence, records=_measured(claim, replace(tables, runs=runs)))
    among = sum(not (part.printed and elsewhere) for part in claim.parts)
    findings = tuple(
        Finding(part, "not run", open=elsewhere, compared=False)
        if part.printed and elsewhere
        else examine(part, evidence, stream("claim", claim.name, part.says).block(), among)
        for part in claim.parts
    )
    return Verdict(claim, combine([one.word for one in findings if one.compared]), scale, setting, findings)


def at_setting(claim: Claim, runs: pd.DataFrame) -> tuple[pd.DataFrame, str, str]:
    """The runs that a claim is judged from, with its columns; their setting in words; and, if the paper's numbers are
    for another setting, for which."""
    runs = claim.columns(runs)
    setting = elsewhere = ""
    if claim.printed_for is not None and len(runs):
        column, value = claim.printed_for
        nearest = min(sorted(runs[column].unique()), key=lambda one: abs(one - value))
        runs = runs[runs[column] == nearest]
        elsewhere = "" if nearest == value else f"printed for {column} {value:g}"
        setting = f"{column} {nearest:g}" + (f" (paper: {value:g})" if elsewhere else "")
    if claim.setting is not None and len(runs):
        setting = "; ".join(filter(None, (setting, claim.setting(runs))))
    return runs, setting, elsewhere


def _measured(claim: Claim, tables: Tables) -> pd.DataFrame:
    if claim.measures is not None:
        return claim.measures(tables)
    # The weights that validation chose, as most papers report them.
    records = tables.records
    return records[(records["selection"] == "best") & (records["condition"] == claim.condition)]


def _without(claim: Claim, runs: pd.DataFrame) -> pd.DataFrame | None:
    """The runs that are not set apart; None if none is, or all are."""
    if claim.without is None:
        return None
    seen = claim.columns(runs)
    if not len(seen):
        return None
    apart = claim.without[1](seen)
    return runs[~runs["cell"].isin(seen["cell"][apart])] if apart.any() and not apart.all() else None


def combine(words: Sequence[Word]) -> Word:
    """The word on a claim: contradicted if a part is (see `examine`), supported if all are, not run if none was.

    >>> combine(["supported", "not run"]), combine(["undecided", "contradicted"]), combine([])
    ('undecided', 'contradicted', 'not run')
    """
    if "contradicted" in words:
        return "contradicted"
    if set(words) <= {"not run"}:
        return "not run"
    return "supported" if set(words) == {"supported"} else "undecided"


def keys(claim: Claim) -> tuple[str, ...]:
    """The columns that tell the runs of a draw apart: those the design names, or those the groups speak of."""
    if claim.design.places:
        return claim.design.places
    groups = [group for part in claim.parts for group in part.quantity.groups]
    return tuple(dict.fromkeys(["task", *(column for group in groups for column in group.columns)]))

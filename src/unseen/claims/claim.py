"""A claim: a sentence of a paper turned into criteria on records, and what it was judged to be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass

import pandas as pd

from unseen.claims.criterion import Criterion, Finding, Verdict
from unseen.claims.evidence import SEEDS, LeftOut, SamplingDesign


@dataclass(frozen=True)
class Tables:
    """The records of a store, one row per run, and a function that reads the points of the learning curves."""

    records: pd.DataFrame
    runs: pd.DataFrame
    curves: Callable[[], pd.DataFrame] = pd.DataFrame


@dataclass(frozen=True)
class Subset:
    """Some of the runs, e.g. those whose width limits them: their name, and which of a table of runs they are."""

    name: str
    contains: Callable[[pd.DataFrame], pd.Series]


@dataclass(frozen=True)
class Claim:
    """What a paper says, where (`source`) and with which numbers (`printed`), and the criteria that test it.

    `study` is the study that tests it. `columns` selects the runs that the claim is about and adds the columns that the
    criteria name. `printed_for` names
    one of these columns and its value in the paper, e.g. ("length", 10): the claim is judged at the nearest value that
    was run, its `printed` criteria only at this one. `measures` computes what is measured from the tables; by default
    it is the records of the best weights on the `split`. `setting` describes what was run. If `set_apart` is given, the
    claim is judged a second time without these runs. `ours` marks a question that the paper does not ask itself.
    """

    name: str
    source: str
    statement: str
    printed: str
    criteria: Sequence[Criterion]
    _: KW_ONLY
    paper: str
    study: str
    columns: Callable[[pd.DataFrame], pd.DataFrame]
    split: str = ""
    printed_for: tuple[str, float] | None = None
    measures: Callable[[Tables], pd.DataFrame] | None = None
    design: SamplingDesign = SEEDS
    setting: Callable[[pd.DataFrame], str] | None = None
    set_apart: Subset | None = None
    ours: bool = False


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its verdict, where it was judged, and the finding on each criterion.

    `note` says why nothing was judged, if so. `without` is the same claim judged without the runs that it sets apart.
    """

    claim: Claim
    verdict: Verdict
    scale: str
    setting: str
    findings: tuple[Finding, ...]
    note: str = ""
    without: JudgedClaim | None = None

    @property
    def compared(self) -> list[Finding]:
        """The findings that count: those on criteria about the setting at hand."""
        return [finding for finding in self.findings if finding.compared]

    @property
    def left_out(self) -> list[LeftOut]:
        """The runs that were not used, each configuration and reason once."""
        entries: dict[LeftOut, None] = {}
        for finding in self.findings:
            entries.update(dict.fromkeys(finding.left_out))
        return list(entries)

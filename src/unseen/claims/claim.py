"""A claim: a sentence of a paper turned into criteria on records; and a claim with its verdict."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import chain

import pandas as pd

from unseen.claims.criterion import Criterion, Finding, PrintedNumber, Verdict
from unseen.claims.evidence import SEEDS, LeftOut, SamplingDesign
from unseen.claims.failing import FailingSeeds
from unseen.claims.mode import ALPHA


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

    `quote` is the paper's own sentence; `statement` says in our words what is tested. `study` is the study that tests
    it. `columns` selects the runs that the claim is about and adds the columns that the criteria name, and `reduced`:
    whether a run has fewer training examples, a narrower model or a smaller world than the paper's. `printed_for` names
    some of these columns and their values in the paper, e.g. {"length": 10}: the claim is judged at the nearest value
    of the first that was run, its `printed` criteria only where all have these values. `learning` is a measure and the
    least value of it that a run reaches if it has learned its task. `measures` computes what is measured from the tables; by default
    it is the records of the best weights on the `split`. `setting` describes what was run. If `set_apart` is given, the
    claim is judged a second time without these runs. `ours` marks a question that the paper does not ask itself.
    `failing` is what the paper says itself of failing seeds: an amendment, which has a registration of its own.
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
    quote: str = ""
    printed_for: Mapping[str, Hashable] = field(default_factory=dict)
    learning: tuple[str, float] | None = None
    measures: Callable[[Tables], pd.DataFrame] | None = None
    design: SamplingDesign = SEEDS
    setting: Callable[[pd.DataFrame], str] | None = None
    set_apart: Subset | None = None
    ours: bool = False
    failing: tuple[FailingSeeds, ...] = ()

    @property
    def is_agreement(self) -> bool:
        """Whether the claim is a table of printed numbers."""
        return bool(self.criteria) and all(isinstance(criterion, PrintedNumber) for criterion in self.criteria)


@dataclass(frozen=True)
class Coverage:
    """How many criteria of a claim were run, and how many of them hold."""

    run: int
    hold: int
    total: int


@dataclass(frozen=True)
class UnitProgress:
    """How many of the planned units of a study with a fixed number of units are complete."""

    complete: int
    planned: int


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its verdict, where it was judged, and the finding on each criterion.

    `note` says why nothing was judged, if so. `without` is the same claim judged without the runs that it sets apart.
    `registered` says that the criteria were fixed before the first run; otherwise the verdict is exploratory. `alpha`
    is the one-sided error of the verdict, `look` the number of units of the look that led to it (in a study that runs
    until its claims are decided), and `progress` how far a study with a fixed number of units is. A
    `caveat` of the study about its runs belongs beside the verdict wherever it is printed. `unamended` is the verdict that
    the claim would have without its amendment, if it has one.
    """

    claim: Claim
    verdict: Verdict
    scale: str
    setting: str
    findings: tuple[Finding, ...]
    note: str = ""
    without: JudgedClaim | None = None
    registered: bool = False
    alpha: float = ALPHA
    look: int | None = None
    progress: UnitProgress | None = None
    caveat: str = ""
    unamended: Verdict | None = None

    @property
    def compared(self) -> list[Finding]:
        """The findings that count: those on criteria about the setting at hand."""
        return [finding for finding in self.findings if finding.compared]

    @property
    def coverage(self) -> Coverage:
        """How many of the criteria were run, and how many hold."""
        outcomes = [finding.verdict for finding in self.compared]
        run = len(outcomes) - outcomes.count("not run")
        return Coverage(run, outcomes.count("holds"), len(self.claim.criteria))

    @property
    def left_out(self) -> list[LeftOut]:
        """The runs that were not used, each configuration and reason once."""
        return list(dict.fromkeys(chain.from_iterable(finding.left_out for finding in self.findings)))

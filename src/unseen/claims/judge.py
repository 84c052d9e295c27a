"""Judging claims: one of them, or all that tables of records speak about.

`decide` says what the rules are, `docs/statistics.md` how often they are wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any

import pandas as pd

from unseen.claims import CLAIMS
from unseen.claims.claim import Claim, JudgedClaim, Tables, UnitProgress
from unseen.claims.criterion import DECIDED, Finding, Obstacle, Verdict, Waiting
from unseen.claims.decide import combine, combine_agreement, decide, measure, units_of
from unseen.claims.evidence import ENDED, TASK_AXIS, Evidence, Levels, Missing, MissingReason, SamplingDesign
from unseen.claims.learning import CurveFacts, read_curves
from unseen.claims.mode import ALPHA, LOOKS, Fixed, Look, Mode, UntilDecided
from unseen.claims.registration import is_registered
from unseen.names import family_of

AMBIGUOUS = "Some seeds have several runs that this claim cannot tell apart: they belong to another study."
DONE = (*ENDED, "failed", "diverged")
"""The states in which a run is not waited for."""


# -- one claim --------------------------------------------------------------------------------------------------------


def judge(
    claim: Claim,
    records: pd.DataFrame,
    runs: pd.DataFrame | None = None,
    curves: Callable[[], pd.DataFrame] = pd.DataFrame,
    *,
    mode: Mode | None = None,
    first_run: datetime | None = None,
    registered: bool | None = None,
    taken_over: Collection[str] = (),
    facts: CurveFacts | None = None,
) -> JudgedClaim:
    """Judge a claim by the records of one scale.

    `runs` has one row per run with its status and its options (see `runs_table`), also for runs without records; by
    default these are the runs that have records. `curves` reads the learning curves; `facts` are those taken from them,
    if they were read before. The same records in any order give the same verdict. Without a `mode` the claim is judged
    at 5 % from all its runs. `first_run` is when the first run began: a claim that was registered before is not
    exploratory. `registered` says whether a study's own claim was registered in its store. Units that are added to some
    that were `taken_over` (trials of other stores and records files) make a claim exploratory: those may have been
    judged.
    """
    tables = Tables(records, records.drop_duplicates("trial") if runs is None else runs, cache(curves))
    if facts is None:
        facts = read_curves(tables.curves())
    judged = _judge_in_mode(claim, tables, facts, mode)
    if registered is None:
        registered = first_run is not None and is_registered(claim, first_run)
    registered = registered and not _adds_units(claim, tables.runs, mode, taken_over)
    judged = replace(judged, registered=registered)
    if claim.set_apart is None:
        return judged
    about = claim.columns(tables.runs)
    if about.empty:
        return judged
    apart = claim.set_apart.contains(about)
    if apart.all() or not apart.any():
        return judged
    others = tables.runs[~tables.runs["trial"].isin(about["trial"][apart])]
    without = _judge_in_mode(claim, replace(tables, runs=others), facts, mode)
    return replace(judged, without=replace(without, registered=registered))


def _judge_in_mode(claim: Claim, tables: Tables, facts: CurveFacts, mode: Mode | None) -> JudgedClaim:
    """Judge a claim when its mode allows: at once, when its units are complete, or at each look until it is decided."""
    if mode is None:
        return _judge(claim, tables, facts)
    units, complete = _complete_units(claim, tables)
    if isinstance(mode, Fixed):
        if complete < mode.units or complete < len(units):
            return _show_progress(claim, tables, UnitProgress(complete, max(mode.units, len(units))))
        return replace(_judge(claim, tables, facts), progress=UnitProgress(complete, mode.units))
    first = mode.looks[0].units
    if complete < first:
        return _show_progress(claim, tables, UnitProgress(complete, first))
    passed = [look for look in mode.looks if look.units <= complete]
    for look in passed:
        judged = _judge_at_look(claim, tables, facts, units[: look.units], look)
        if judged.verdict in DECIDED:
            break
    return judged


def _judge_at_look(
    claim: Claim, tables: Tables, facts: CurveFacts, units: Sequence[Hashable], look: Look
) -> JudgedClaim:
    """Judge a claim by its first units alone, at the error of the look."""
    about = claim.columns(tables.runs)
    chosen = about["trial"][_unit_labels(about, claim.design).isin(list(units))]
    runs = tables.runs[tables.runs["trial"].isin(chosen)]
    judged = replace(_judge(claim, replace(tables, runs=runs), facts, look.alpha), look=look.units)
    if look != LOOKS[-1] or judged.verdict in DECIDED:
        return judged
    findings = []
    for finding in judged.findings:
        waiting = finding.waiting
        if waiting is not None and waiting.kind in ("seeds", "tasks"):
            waiting = replace(waiting, kind="nothing", reason=Obstacle.LAST_LOOK, count=None)
        findings.append(replace(finding, waiting=waiting))
    return replace(judged, findings=tuple(findings))


def _unit_labels(runs: pd.DataFrame, design: SamplingDesign) -> pd.Series:
    """The unit of each run, as studies count them: its task where a draw has one, else its seed and data seed.

    Experiments that vote are draws, but a study plans tasks.
    """
    columns = [TASK_AXIS] if TASK_AXIS in design.draw else list(design.draw)
    if not set(columns) <= set(runs):
        return pd.Series(0, runs.index)
    return pd.Series([tuple(row) for row in runs[columns].to_numpy().tolist()], runs.index, dtype=object)


def _complete_units(claim: Claim, tables: Tables) -> tuple[list[Hashable], int]:
    """The units of a claim in order, and how many of the first ones are complete.

    Later ones do not count, so that the order in which runs end changes nothing.
    """
    runs, _, _ = select_setting(claim, tables.runs)
    if runs.empty:
        return [], 0
    labels = _unit_labels(runs, claim.design)
    unfinished = set(labels[~runs["status"].isin(DONE)])
    units = sorted(set(labels), key=lambda label: label if isinstance(label, tuple) else (label,))
    complete = 0
    while complete < len(units) and units[complete] not in unfinished:
        complete += 1
    return units, complete


def _adds_units(claim: Claim, runs: pd.DataFrame, mode: Mode | None, taken_over: Collection[str]) -> bool:
    """Whether there are units beside some that may have been judged: more than were planned, or than were taken over.

    Planned looks suppose that nobody has looked before.
    """
    runs, _, _ = select_setting(claim, runs)
    units = _unit_labels(runs, claim.design)
    if isinstance(mode, Fixed) and units.nunique() > mode.units:
        return True
    from_elsewhere = units[runs["trial"].isin(list(taken_over))]
    return len(from_elsewhere) > 0 and (isinstance(mode, UntilDecided) or set(from_elsewhere) != set(units))


def _show_progress(claim: Claim, tables: Tables, progress: UnitProgress) -> JudgedClaim:
    """A claim of which nothing may be said yet: no estimate, no p value, no verdict."""
    runs, setting, _ = select_setting(claim, tables.runs)
    if runs.empty:
        return _judge(claim, tables, CurveFacts())
    unit = claim.design.unit
    waiting = Waiting(units_of(unit), Obstacle.PLANNED, progress.planned, unit, progress.complete)
    findings = tuple(Finding(criterion, "open", waiting=waiting) for criterion in claim.criteria)
    return JudgedClaim(claim, "in progress", _name_scale(runs), setting, findings, progress=progress)


def _name_scale(runs: pd.DataFrame) -> str:
    return ", ".join(sorted(set(runs["scale"]))) if "scale" in runs else ""


def _judge(claim: Claim, tables: Tables, facts: CurveFacts, alpha: float = ALPHA) -> JudgedClaim:
    runs, setting, printed_for = select_setting(claim, tables.runs)
    scale = _name_scale(runs)
    evidence = Evidence(
        tables.records, drop_options(runs, claim), key_columns(claim), claim.design, facts, claim.learning
    )
    if evidence.ambiguous:
        return JudgedClaim(claim, "not run", scale, setting, (), AMBIGUOUS)
    if claim.measures is not None:
        measured = claim.measures(replace(tables, runs=runs))
    else:
        # The weights that validation chose, as most papers report them.
        records = tables.records
        measured = records[(records["selection"] == "best") & (records["split"] == claim.split)]
    evidence = replace(evidence, records=measured)
    combine_findings = combine_agreement if claim.is_agreement else combine
    findings = _find(claim, evidence, printed_for, alpha)
    verdict = combine_findings(findings)
    judged = JudgedClaim(claim, verdict, scale, setting, findings, alpha=alpha)
    if not claim.failing:
        return judged
    evidence = replace(evidence, failing=claim.failing)
    findings = _find(claim, evidence, printed_for, alpha)
    amended = amend(verdict, combine_findings(findings))
    return replace(judged, verdict=amended, findings=findings, unamended=verdict)


def _find(claim: Claim, evidence: Evidence, printed_for: Levels, alpha: float) -> tuple[Finding, ...]:
    """The findings on all criteria of a claim, in their order."""
    compared = [criterion for criterion in claim.criteria if not (criterion.printed and printed_for)]
    decided = iter(decide(measure(compared, evidence), alpha))
    findings = []
    for criterion in claim.criteria:
        if not (criterion.printed and printed_for):
            findings.append(next(decided))
            continue
        missing = Missing(MissingReason.SETTING, criterion.quantity.group, printed_for)
        waiting = Waiting("runs", Obstacle.MISSING, missing=missing)
        findings.append(Finding(criterion, "not run", waiting=waiting, compared=False))
    return tuple(findings)


def amend(registered: Verdict, amended: Verdict) -> Verdict:
    """The verdict on a claim that was amended after its registration: the amendment can take a verdict back, not give one.

    A detail that is no longer contradicted would turn *mixed* into *supported*; that is *undecided*, too.

    >>> amend("contradicted", "undecided"), amend("mixed", "supported"), amend("supported", "supported")
    ('undecided', 'undecided', 'supported')
    """
    return "undecided" if amended in DECIDED and amended != registered else amended


def select_setting(claim: Claim, runs: pd.DataFrame) -> tuple[pd.DataFrame, str, Levels]:
    """Select the runs that a claim is judged from, with its columns; and describe their setting.

    The third value lists in which columns the paper's numbers are for another setting.
    """
    runs = claim.columns(runs)
    descriptions = []
    differing: list[tuple[str, Hashable]] = []
    for number, (column, value) in enumerate(claim.printed_for.items()):
        if runs.empty:
            break
        levels = sorted(runs[column].unique(), key=lambda level: (_distance(level, value), str(level)))
        # The first column chooses the runs; the others only tell whether the paper's numbers are for these runs.
        if number == 0:
            runs = runs[runs[column] == levels[0]]
            levels = levels[:1]
        if levels == [value]:
            descriptions.append(f"{column} {value}")
        else:
            descriptions.append(f"{column} {', '.join(map(str, levels))} (paper: {value})")
            differing.append((column, value))
    if claim.setting is not None and len(runs):
        descriptions.append(claim.setting(runs))
    return runs, "; ".join(descriptions), tuple(differing)


def _distance(level: Any, value: Any) -> float:
    """How far a level is from the paper's: between numbers their difference, otherwise whether it is another one."""
    return float(abs(level - value)) if isinstance(value, int | float) else float(level != value)


def drop_options(runs: pd.DataFrame, claim: Claim) -> pd.DataFrame:
    """Drop the columns of options that a claim does not name: selecting rows of a hundred columns is slow."""
    needed = {*key_columns(claim), *claim.design.draw, claim.design.cluster}
    for criterion in claim.criteria:
        for group in criterion.quantity.groups:
            needed.update(group.columns)
    return runs[[column for column in runs if "." not in str(column) or column in needed]]


def key_columns(claim: Claim) -> tuple[str, ...]:
    """Return the columns that tell the runs of a draw apart: those of the design, or those that the groups name."""
    if claim.design.matched_on:
        return claim.design.matched_on
    columns = {"task": None}  # an ordered set
    for criterion in claim.criteria:
        for group in criterion.quantity.groups:
            columns.update(dict.fromkeys(group.columns))
    return tuple(columns)


# -- all claims -------------------------------------------------------------------------------------------------------


def load_claims(names: Iterable[str] = ()) -> list[Claim]:
    """Load the claims of these names, or all of them."""
    selected = list(names) or [entry.name for entry in CLAIMS]
    return [CLAIMS.load(name) for name in selected]


def judge_tables(
    records: pd.DataFrame,
    runs: pd.DataFrame | None = None,
    names: Iterable[str] = (),
    curves: Callable[[], pd.DataFrame] = pd.DataFrame,
    *,
    mode: Mode | None = None,
    first_run: datetime | None = None,
    taken_over: Collection[str] = (),
) -> list[JudgedClaim]:
    """Judge every claim about the families that were run, or the named ones, at every scale; see `judge`."""
    if runs is None:
        runs = records.drop_duplicates([column for column in ("scale", "trial") if column in records])
    families = {family_of(task) for task in runs["task"]} if "task" in runs else set()
    about = [entry.name for entry in CLAIMS if family_of(entry.name) in families]
    selected = list(names) or about
    chosen = load_claims(selected) if selected else []
    curves = cache(curves)
    facts = read_curves(curves()) if chosen else CurveFacts()

    def judge_one(claim: Claim, records: pd.DataFrame, runs: pd.DataFrame) -> JudgedClaim:
        return judge(claim, records, runs, curves, mode=mode, first_run=first_run, taken_over=taken_over, facts=facts)

    if "scale" not in runs:
        return [judge_one(claim, records, runs) for claim in chosen]
    judged = []
    for scale in dict.fromkeys(runs["scale"]):
        # A copy has one block of memory per type instead of one per column: every later selection is much faster.
        scale_records = records[records["scale"] == scale].copy()
        scale_runs = runs[runs["scale"] == scale].copy()
        judged += [judge_one(claim, scale_records, scale_runs) for claim in chosen]
    return judged

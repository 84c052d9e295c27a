"""Judging claims: one criterion, one claim, all claims of a store or of several; and which run a claim would need.

A criterion is supported if its whole 95 % interval lies in the range, contradicted if all of it lies outside, and
undecided otherwise. A claim is contradicted if one of its criteria is, and supported if all of them are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

import pandas as pd

from unseen.claims import CLAIMS
from unseen.claims.claim import Claim, JudgedClaim, Tables
from unseen.claims.criterion import Criterion, Finding, Need, Obstacle, Verdict, Waiting
from unseen.claims.evidence import Evidence, Exclusion, Missing, MissingReason
from unseen.claims.quantity import Sample
from unseen.errors import UsageError
from unseen.randomness import Draws, stream
from unseen.stats import FEWEST, Interval, seeds_to_settle
from unseen.store.store import Store
from unseen.store.tables import all_options, runs_table
from unseen.studies.study import catalogued

AMBIGUOUS = "Some seeds have several runs that this claim cannot tell apart: they belong to another study."
SMOKE = "smoke"
"""The scale that tries whether everything runs; nothing is judged from it."""


# -- one criterion ----------------------------------------------------------------------------------------------------


def examine(criterion: Criterion, evidence: Evidence, generator: Draws, criteria: int = 1) -> Finding:
    """Judge one of the `criteria` of a claim.

    A claim needs all its criteria to be supported, but a single contradicted one is enough to contradict it, and the
    interval of one of many easily lies outside by chance. So a criterion is contradicted only if its interval at
    1 − 0.05 / criteria lies outside as well (Bonferroni). Fewer than three units (seeds, tasks) have no interval: the
    criterion is undecided, whatever their mean.
    """
    quantity = criterion.quantity
    sample = quantity.sample(evidence)
    if sample.missing is not None:
        return Finding(criterion, "not run", waiting=Waiting("runs", Obstacle.MISSING, missing=sample.missing))
    unit = evidence.design.unit
    if sample.independent < FEWEST:
        return Finding(criterion, "undecided", left_out=sample.left_out, waiting=_wait_for_units(sample, unit))
    estimate = quantity.estimate(sample, generator, evidence.covers)
    interval = estimate.interval

    def undecided(waiting: Waiting) -> Finding:
        return Finding(criterion, "undecided", estimate, sample.left_out, waiting)

    if math.isnan(interval.low) or math.isnan(interval.high):
        return undecided(Waiting("nothing", Obstacle.CONSTANT, unit=unit))
    if criterion.low < interval.low and interval.high < criterion.high:
        return Finding(criterion, "supported", estimate, sample.left_out)
    if not _is_outside(criterion, interval):
        return undecided(_wait_for_precision(criterion, sample, interval, unit))
    level = 1 - (1 - interval.level) / criteria
    wide_interval = quantity.estimate(sample, generator, evidence.covers, level).interval
    if _is_outside(criterion, wide_interval):
        return Finding(criterion, "contradicted", estimate, sample.left_out)
    waiting = _wait_for_precision(criterion, sample, wide_interval, unit)
    if waiting.reason is Obstacle.BOUND_INSIDE:
        waiting = replace(waiting, reason=Obstacle.CHANCE, criteria=criteria)
    return undecided(waiting)


def _is_outside(criterion: Criterion, interval: Interval) -> bool:
    return interval.high < criterion.low or criterion.high < interval.low


def _wait_for_units(sample: Sample, unit: str) -> Waiting:
    """Wait for more steps if runs were left out because they may still improve, else for more units."""
    unconverged = {Exclusion.NOT_CONVERGED, Exclusion.TOO_SHORT}
    kind = _units(unit)
    if any(entry.reason in unconverged for entry in sample.left_out):
        kind = "steps"
    return Waiting(kind, Obstacle.TOO_FEW, unit=unit, usable=sample.independent)


def _wait_for_precision(criterion: Criterion, sample: Sample, interval: Interval, unit: str) -> Waiting:
    """Say how many units would push the interval off the bounds that it contains."""
    values = criterion.quantity.value_per_unit(sample)
    if values is None:
        return Waiting(_units(unit), Obstacle.BOUND_INSIDE, unit=unit, usable=sample.independent)
    counts = []
    for bound in (criterion.low, criterion.high):
        if interval.low <= bound <= interval.high:
            count = seeds_to_settle(values, margin=bound, level=interval.level)
            if count is None:
                return Waiting("nothing", Obstacle.ON_BOUND, unit=unit, usable=sample.independent)
            counts.append(count)
    # A t interval may be narrower than the bootstrap's: never fewer units than there are.
    needed = max(*counts, sample.independent + 1)
    return Waiting(_units(unit), Obstacle.BOUND_INSIDE, needed, unit, sample.independent)


def _units(unit: str) -> Need:
    return "tasks" if unit == "task" else "seeds"


# -- one claim --------------------------------------------------------------------------------------------------------


def judge(
    claim: Claim,
    records: pd.DataFrame,
    runs: pd.DataFrame | None = None,
    curves: Callable[[], pd.DataFrame] = pd.DataFrame,
) -> JudgedClaim:
    """Judge a claim by the records of one scale.

    `runs` has one row per run with its status and its options (see `runs_table`), also for runs without records; by
    default these are the runs that have records. `curves` reads the learning curves if the claim needs them. The same
    records in any order give the same verdict.
    """
    tables = Tables(records, records.drop_duplicates("trial") if runs is None else runs, cache(curves))
    judged = _judge(claim, tables)
    if claim.set_apart is None:
        return judged
    about = claim.columns(tables.runs)
    if about.empty:
        return judged
    apart = claim.set_apart.contains(about)
    if apart.all() or not apart.any():
        return judged
    others = tables.runs[~tables.runs["trial"].isin(about["trial"][apart])]
    return replace(judged, without=_judge(claim, replace(tables, runs=others)))


def _judge(claim: Claim, tables: Tables) -> JudgedClaim:
    runs, setting, printed_for = select_setting(claim, tables.runs)
    scale = ", ".join(sorted(set(runs["scale"]))) if "scale" in runs else ""
    evidence = Evidence(tables.records, runs, key_columns(claim), claim.design)
    if evidence.ambiguous:
        return JudgedClaim(claim, "not run", scale, setting, (), AMBIGUOUS)
    if claim.measures is not None:
        measured = claim.measures(replace(tables, runs=runs))
    else:
        # The weights that validation chose, as most papers report them.
        records = tables.records
        measured = records[(records["selection"] == "best") & (records["split"] == claim.split)]
    evidence = replace(evidence, records=measured)
    compared = sum(not (criterion.printed and printed_for) for criterion in claim.criteria)
    findings = []
    for criterion in claim.criteria:
        if criterion.printed and printed_for:
            missing = Missing(MissingReason.SETTING, criterion.quantity.group, (printed_for,))
            waiting = Waiting("runs", Obstacle.MISSING, missing=missing)
            findings.append(Finding(criterion, "not run", waiting=waiting, compared=False))
        else:
            generator = stream("claim", claim.name, criterion.key).block()
            findings.append(examine(criterion, evidence, generator, compared))
    verdict = combine(finding.verdict for finding in findings if finding.compared)
    return JudgedClaim(claim, verdict, scale, setting, tuple(findings))


def select_setting(claim: Claim, runs: pd.DataFrame) -> tuple[pd.DataFrame, str, tuple[str, float] | None]:
    """Select the runs that a claim is judged from, with its columns; and describe their setting.

    The third value names the setting of the paper's numbers if it is another one.
    """
    runs = claim.columns(runs)
    descriptions = []
    printed_for = None
    if claim.printed_for is not None and len(runs):
        column, value = claim.printed_for
        nearest = min(sorted(runs[column].unique()), key=lambda level: abs(level - value))
        runs = runs[runs[column] == nearest]
        if nearest == value:
            descriptions.append(f"{column} {nearest:g}")
        else:
            descriptions.append(f"{column} {nearest:g} (paper: {value:g})")
            printed_for = claim.printed_for
    if claim.setting is not None and len(runs):
        descriptions.append(claim.setting(runs))
    return runs, "; ".join(descriptions), printed_for


def combine(verdicts: Iterable[Verdict]) -> Verdict:
    """Combine the verdicts on the criteria of a claim.

    >>> combine(["supported", "not run"]), combine(["undecided", "contradicted"]), combine([])
    ('undecided', 'contradicted', 'not run')
    """
    distinct = set(verdicts)
    if "contradicted" in distinct:
        return "contradicted"
    if distinct <= {"not run"}:
        return "not run"
    return "supported" if distinct == {"supported"} else "undecided"


def key_columns(claim: Claim) -> tuple[str, ...]:
    """Return the columns that tell the runs of a draw apart: those of the design, or those that the groups name."""
    if claim.design.matched_on:
        return claim.design.matched_on
    columns = {"task": None}  # an ordered set
    for criterion in claim.criteria:
        for group in criterion.quantity.groups:
            columns.update(dict.fromkeys(group.columns))
    return tuple(columns)


# -- all claims of a store, or of several -----------------------------------------------------------------------------


def load_claims(names: Iterable[str] = ()) -> list[Claim]:
    """Load the claims of these names, or all of them."""
    return [CLAIMS.load(name) for name in (list(names) or [entry.name for entry in CLAIMS])]


def judge_tables(
    records: pd.DataFrame,
    runs: pd.DataFrame | None = None,
    names: Iterable[str] = (),
    curves: Callable[[], pd.DataFrame] = pd.DataFrame,
) -> list[JudgedClaim]:
    """Judge every claim about the families that were run, or the named ones, at every scale; see `judge`."""
    if runs is None:
        runs = records.drop_duplicates([column for column in ("scale", "trial") if column in records])
    families = {str(task).partition("/")[0] for task in runs["task"]} if "task" in runs else set()
    about = [entry.name for entry in CLAIMS if entry.name.partition("/")[0] in families]
    chosen = load_claims(names or about)
    if "scale" not in runs:
        return [judge(claim, records, runs, curves) for claim in chosen]
    judged = []
    for scale in dict.fromkeys(runs["scale"]):
        scale_records = records[records["scale"] == scale]
        scale_runs = runs[runs["scale"] == scale]
        judged += [judge(claim, scale_records, scale_runs, curves) for claim in chosen]
    return judged


@dataclass(frozen=True)
class JudgedStore:
    """The verdicts of one directory, the study it holds (`name@version`), and its deviations from the paper by scale."""

    directory: str
    study: str
    verdicts: tuple[JudgedClaim, ...]
    deviations: Mapping[str, Sequence[str]]

    @property
    def name(self) -> str:
        """The study without its version."""
        return self.study.partition("@")[0]


def judge_store(directory: Path, names: Iterable[str] = ()) -> JudgedStore:
    """Judge the named claims, or all claims about the families that were run, by the records of a directory."""
    with Store.read(directory) as store:
        records, entries = store.tables()
        study = str(store.work.get("study", ""))
        verdicts = judge_tables(records, runs_table(entries), names, store.points)
    deviations = {}
    for scale in dict.fromkeys(judged.scale for judged in verdicts if judged.scale):
        deviations[scale] = _find_deviations(study, scale, entries[entries["scale"] == scale])
    return JudgedStore(str(directory), study, tuple(verdicts), deviations)


def keep_home_verdicts(stores: Sequence[JudgedStore]) -> list[JudgedStore]:
    """Keep each verdict only in the directories that it should be read from.

    A claim is judged where its study was run; if it was run in none of them, wherever there is something to judge; if
    there is nothing anywhere, it is not run, in the first directory.
    """
    if len(stores) < 2:
        return list(stores)
    by_claim: dict[str, list[tuple[int, JudgedClaim]]] = {}
    for number, store in enumerate(stores):
        for judged in store.verdicts:
            by_claim.setdefault(judged.claim.name, []).append((number, judged))
    selected: list[list[JudgedClaim]] = [[] for _ in stores]
    for candidates in by_claim.values():
        at_home = [pair for pair in candidates if stores[pair[0]].name == pair[1].claim.study]
        run = [pair for pair in candidates if pair[1].verdict != "not run"]
        for number, judged in at_home or run or candidates[:1]:
            selected[number].append(judged)
    home = []
    for store, verdicts in zip(stores, selected, strict=True):
        in_order = tuple(judged for judged in store.verdicts if any(judged is other for other in verdicts))
        home.append(replace(store, verdicts=in_order))
    return home


def _find_deviations(study: str, scale: str, entries: pd.DataFrame) -> list[str]:
    """List how the study deviates from the paper at a scale, if these are runs of the study of this name."""
    try:
        known = catalogued(study)
        for seeds in (None, sorted(set(entries["seed"]))):  # the study's own seeds, or others that were asked for
            if set(entries["trial"]) <= {entry.trial.id for entry in known.entries(scale, seeds)}:
                return known.deviations(scale, seeds)
        return [f"not known: some of these runs are not, or no longer, of {study} at scale {scale}"]
    except UsageError:
        return [f"not known: {study} is not in the catalogue"]


# -- what would run a claim -------------------------------------------------------------------------------------------


def command_for(claim: Claim, tried: Collection[str] = ()) -> str:
    """Return the command that would run what a claim needs; empty if no scale of its study, except `tried`, has it."""
    scale = scale_for(claim, tried)
    return f"unseen run {claim.study} --scale {scale} --out DIR" if scale else ""


def scale_for(claim: Claim, tried: Collection[str] = ()) -> str:
    """Return the smallest scale at which the most criteria of a claim have runs; empty if none has any.

    >>> from unseen.claims import CLAIMS
    >>> scale_for(CLAIMS.load("ctl/K5")), scale_for(CLAIMS.load("retrieval/table2"))
    ('medium', 'small')
    """
    best_scale, most = "", 0
    for scale in catalogued(claim.study).scales:
        if scale != SMOKE and scale not in tried:
            count = _count_runnable(claim, scale)
            if count > most:
                best_scale, most = scale, count
    return best_scale


def _count_runnable(claim: Claim, scale: str) -> int:
    """Count the criteria of a claim that would have runs."""
    runs, _, printed_for = select_setting(claim, _planned_runs(claim.study, scale))
    evidence = Evidence(pd.DataFrame(), runs, key_columns(claim), claim.design)
    count = 0
    for criterion in claim.criteria:
        groups = criterion.quantity.groups
        if not (criterion.printed and printed_for) and all(evidence.find_absent(group) is None for group in groups):
            count += 1
    return count


@lru_cache(maxsize=16)
def _planned_runs(name: str, scale: str) -> pd.DataFrame:
    """One row per configuration of a study, as the table of its runs would have it, for one seed."""
    rows = []
    for number, entry in enumerate(catalogued(name).entries(scale, seeds=[0])):
        task, model = entry.trial.task.identity(), entry.trial.model.identity()
        row = {**entry.levels, "task": task["name"], "model": model["name"]}
        row |= {f"task.{option}": value for option, value in all_options("task", task).items()}
        row |= {f"model.{option}": value for option, value in all_options("model", model).items()}
        rows.append(row | {"scale": scale, "seed": 0, "data_seed": 0, "trial": str(number)})
    return pd.DataFrame(rows)

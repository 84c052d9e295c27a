"""`unseen run STUDY --until-decided`: spend training where it is most likely to decide a claim, at planned looks.

Every claim begins with the units of the first look. At each look the claims are judged; then the next work goes to the
claim with the largest chance to be decided per core-hour. Prices come from the rates that ship with the package and
chances from the p values, so a study that was killed goes on with the same looks as one that was not: the looks so far
are in the store, and everything else follows from them and the records.

Hours say when to stop, never what to do next. So a study that is given more hours later goes the way of one that had
them from the beginning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any, Literal

import pandas as pd

from unseen.claims.claim import Claim, JudgedClaim
from unseen.claims.criterion import DECIDED, Finding
from unseen.claims.evidence import TASK_AXIS
from unseen.claims.judge import judge
from unseen.claims.judge_studies import StudyRecords, read_store
from unseen.claims.mode import LOOKS, Look, UntilDecided
from unseen.claims.planned import LONGER, planned_runs, price_entries, select_needed
from unseen.config import canonical
from unseen.errors import UsageError
from unseen.running.runner import Settings, run_entries
from unseen.store.store import Store
from unseen.store.take_over import TrialSource
from unseen.studies.study import Study
from unseen.studies.trial import Entry

KEY = "until decided"
"""Under which a store keeps the decisions so far, and the trials that each claim is judged from."""
LONGEST = 8
"""Runs that had not converged are trained again with `LONGER` times as many steps, at most with this many times."""
LENGTH_AXIS = "training_length"
"""The axis by which a longer training of the same configuration is told apart."""
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Effort:
    """The runs that a claim is judged from: how many units of each configuration, for how many times the study's steps.

    The looks at up to `spent` units were at shorter training; their share of the error is not spent a second time.
    """

    units: int = LOOKS[0].units
    longer: int = 1
    spent: int = 0


@dataclass(frozen=True)
class Decision:
    """What was decided at a look: the claim that gets more work, of which kind and at which price; or the end.

    `verdicts` are those of all claims at this look, `hours` the price of all work up to this decision, in core-hours.
    More steps come with the units of the next look (`units`, each a `unit`). `out_of_hours` marks an end that more
    hours would have put off.
    """

    action: Literal["seeds", "steps", "end"]
    reason: str
    verdicts: Mapping[str, str]
    hours: float
    claim: str = ""
    units: int = 0
    longer: int = 1
    chance: float = 0.0
    price: float = 0.0
    unit: str = "seed"
    out_of_hours: bool = False


@dataclass(frozen=True)
class Option:
    """Work that could be done next for a claim."""

    claim: Claim
    action: Literal["seeds", "steps"]
    effort: Effort
    chance: float
    price: float

    @property
    def value(self) -> float:
        """The chance to decide per core-hour. Work that was done for another claim costs nothing."""
        return self.chance / max(self.price, 1e-9)


class Course:
    """Which entries of a study each claim needs at some effort, and what they cost.

    A claim without runs at this scale has no place in it, nor has one about tasks of which there are too few.
    """

    def __init__(self, study: Study, scale: str, claims: Sequence[Claim]) -> None:
        self.study = study
        self.scale = scale
        self._templates = study.entries(scale, seeds=[0])
        with_runs = [claim for claim in claims if self.configurations(claim)]
        if not with_runs:
            raise UsageError(f"no claim has runs in {study.name} at scale {scale}. Give another --scale or --claim")
        self._tasks = {claim.name: self._shared_tasks(claim) for claim in with_runs if claim.design.unit == "task"}
        fewest = LOOKS[0].units
        self.claims = {claim.name: claim for claim in with_runs if self.available_units(claim) >= fewest}
        if not self.claims:
            raise UsageError(
                f"the claims of {study.name} are about tasks, and at scale {scale} no {fewest} tasks have all the runs "
                "of a claim. Run it with its fixed number of tasks, without --until-decided, or give another --scale"
            )

    def configurations(self, claim: Claim) -> set[str]:
        """The configurations, as canonical JSON of their levels, that the criteria of a claim are about."""
        needed = select_needed(claim, self._planned_runs)
        return {canonical(self._templates[number].levels) for number in needed.numbers}

    @cached_property
    def _planned_runs(self) -> pd.DataFrame:
        return planned_runs(self._templates, self.scale)

    def _shared_tasks(self, claim: Claim) -> list[Any]:
        """The tasks that everything else in a claim's configurations is combined with, in order.

        It is empty if the claim's units are not the study's tasks, but experiments, for instance.
        """
        if claim.design.cluster != TASK_AXIS and claim.design.draw != (TASK_AXIS,):
            return []
        tasks: dict[str, set[Any]] = {}
        configurations = self.configurations(claim)
        for entry in self._templates:
            if canonical(entry.levels) in configurations and TASK_AXIS in entry.levels:
                others = {axis: level for axis, level in entry.levels.items() if axis != TASK_AXIS}
                tasks.setdefault(canonical(others), set()).add(entry.levels[TASK_AXIS])
        return sorted(set.intersection(*tasks.values())) if tasks else []

    def available_units(self, claim: Claim) -> int:
        """How many units there can be: seeds can always be added, tasks are those of the study."""
        return LOOKS[-1].units if claim.name not in self._tasks else len(self._tasks[claim.name])

    def next_look(self, claim: Claim, effort: Effort) -> Look | None:
        """The next look, at more units than now; None if there are not enough units for it."""
        for look in LOOKS:
            if effort.units < look.units <= self.available_units(claim):
                return look
        return None

    def entries(self, claim: Claim, effort: Effort) -> list[Entry]:
        """The entries that a claim is judged from at some effort: its number of seeds, or one seed on each of its tasks."""
        configurations = self.configurations(claim)
        by_task = claim.name in self._tasks
        tasks = self._tasks.get(claim.name, [])[: effort.units]
        selected: dict[tuple[str, int], Entry] = {}
        for entry in self.study.entries(self.scale, seeds=None if by_task else range(effort.units)):
            levels = canonical(entry.levels)
            if levels not in configurations or (by_task and entry.levels[TASK_AXIS] not in tasks):
                continue
            selected.setdefault((levels, 0 if by_task else entry.trial.seed), _train_longer(entry, effort.longer))
        return list(selected.values())

    def all_entries(self) -> list[Entry]:
        """Everything that may be run for the claims with the study's own number of steps."""
        most = LOOKS[-1].units
        return _distinct(self.entries(claim, Effort(most)) for claim in self.claims.values())


def _train_longer(entry: Entry, times: int) -> Entry:
    """The same with several times the steps. A plateau does not end it before half of them, or nothing would change."""
    if times == 1:
        return entry
    recipe = entry.trial.recipe
    changes = {"steps": recipe.steps * times}
    if recipe.decay is not None:
        changes["decay"] = recipe.decay * times
    if recipe.plateau is not None:
        changes["least_steps"] = max(recipe.least_steps * times, recipe.steps * times // LONGER)
    trial = replace(entry.trial, recipe=recipe.model_copy(update=changes))
    return Entry({**entry.levels, LENGTH_AXIS: f"{times} times"}, trial)


def run_until_decided(
    course: Course,
    store: Store,
    settings: Settings,
    hours: float | None = None,
    on_decision: Callable[[Decision], object] = lambda decision: None,
    sources: Sequence[TrialSource] = (),
) -> None:
    """Run a study until its claims are decided, or until this many core-hours, by the shipped rates, are spent.

    `on_decision` is told what happens, earlier decisions of a resumed study included.
    """
    _check_resumed(course, store)
    decisions = [Decision(**entry) for entry in store.recall(KEY, {}).get("decisions", [])]
    if decisions and decisions[-1].out_of_hours:
        decisions.pop()  # there may be more hours now
    for decision in decisions:
        on_decision(decision)
    title = f"{course.study.name} {course.scale}"
    while not decisions or decisions[-1].action != "end":
        efforts = _efforts(course, decisions)
        trials = {}
        for name, claim in course.claims.items():
            trials[name] = [entry.trial.id for entry in course.entries(claim, efforts[name])]
        spent = {name: effort.spent for name, effort in efforts.items()}
        progress = {"decisions": [asdict(earlier) for earlier in decisions], "trials": trials, "spent": spent}
        store.remember(KEY, {**progress, "scale": course.scale})
        entries = _planned_so_far(course, decisions)
        run_entries(entries, store, settings, title, course.scale, sources=sources)
        judged = judge_until_decided(list(course.claims.values()), read_store(store))
        decisions.append(_decide_next(course, efforts, judged, entries, hours))
        on_decision(decisions[-1])
    store.remember(KEY, {**store.recall(KEY), "decisions": [asdict(decision) for decision in decisions]})


def _check_resumed(course: Course, store: Store) -> None:
    """Refuse to go on with other claims or at another scale: what was decided so far rests on all of them."""
    earlier = store.recall(KEY, {})
    scale = earlier.get("scale", course.scale)
    if scale != course.scale:
        raise UsageError(
            f"{store.path} was begun at scale {scale}. Go on with --scale {scale}, or give a new directory"
        )
    names = earlier.get("trials", course.claims)
    if set(names) != set(course.claims):
        raise UsageError(
            f"{store.path} was begun for the claims {', '.join(names)}. Go on with these, or give a new directory"
        )


def _planned_so_far(course: Course, decisions: Sequence[Decision]) -> list[Entry]:
    """Everything that was ever planned: runs that no claim is judged from any more stay part of the study."""
    planned = []
    for number in range(len(decisions) + 1):
        efforts = _efforts(course, decisions[:number])
        planned += [course.entries(claim, efforts[name]) for name, claim in course.claims.items()]
    return _distinct(planned)


def judge_until_decided(
    claims: Sequence[Claim], study: StudyRecords, registered: Collection[str] = ()
) -> list[JudgedClaim]:
    """Judge claims of a study that is run until decided, each by the trials that were run for it.

    Claims of the study itself are registered if they are named.
    """
    progress = study.notes.get(KEY, {})
    trials = progress.get("trials", {})
    spent = progress.get("spent", {})
    judged = []
    for claim in claims:
        selected = trials.get(claim.name, [])
        records = study.records[study.records["trial"].isin(selected)]
        runs = study.runs[study.runs["trial"].isin(selected)]
        judged.append(
            judge(
                claim,
                records,
                runs,
                study.points,
                mode=UntilDecided(spent.get(claim.name, 0)),
                first_run=study.first_run,
                # None: whether a claim of a paper was registered is looked up.
                registered=True if claim.name in registered else None,
                taken_over=study.taken_over,
            )
        )
    return judged


def _efforts(course: Course, decisions: Sequence[Decision]) -> dict[str, Effort]:
    """The effort of every claim after these decisions."""
    efforts = {name: Effort() for name in course.claims}
    for decision in decisions:
        if decision.claim:
            before = efforts[decision.claim]
            spent = before.units if decision.action == "steps" else before.spent
            efforts[decision.claim] = Effort(decision.units, decision.longer, spent)
    return efforts


def _distinct(groups: Iterable[Sequence[Entry]]) -> list[Entry]:
    """All entries, each trial once."""
    by_trial: dict[str, Entry] = {}
    for entries in groups:
        for entry in entries:
            by_trial.setdefault(entry.trial.id, entry)
    return list(by_trial.values())


def _decide_next(
    course: Course,
    efforts: Mapping[str, Effort],
    judged: Sequence[JudgedClaim],
    done: Sequence[Entry],
    hours: float | None,
) -> Decision:
    """Choose the work with the largest chance to decide a claim per core-hour, or end."""
    spent = price_entries(done)
    verdicts = {verdict.claim.name: verdict.verdict for verdict in judged}
    undecided = [verdict for verdict in judged if verdict.verdict not in DECIDED]
    if not undecided:
        return Decision("end", "all claims are decided", verdicts, spent)
    options = []
    for verdict in undecided:
        options += _find_options(course, efforts[verdict.claim.name], verdict, done)
    if not options:
        return Decision("end", "no planned look is left", verdicts, spent)
    useful = [option for option in options if option.chance > 0]
    if not useful:
        return Decision("end", "neither more units nor more steps can decide the open claims", verdicts, spent)
    best = max(useful, key=lambda option: option.value)
    if hours is not None and spent + best.price > hours:
        reason = f"the next work would exceed {hours:g} core-hours"
        return Decision("end", reason, verdicts, spent, out_of_hours=True)
    return Decision(
        best.action,
        "",
        verdicts,
        spent,
        best.claim.name,
        best.effort.units,
        best.effort.longer,
        best.chance,
        best.price,
        best.claim.design.unit,
    )


def _find_options(course: Course, effort: Effort, verdict: JudgedClaim, done: Sequence[Entry]) -> list[Option]:
    """The next look at more units for every configuration of a claim; with more steps, if a criterion waits for them.

    More steps are looked at with the units of the next look, too: the error of the looks so far is spent.
    """
    claim = verdict.claim
    look = course.next_look(claim, effort)
    if look is None:
        return []
    trained = {entry.trial.id for entry in done}
    waiting = {finding.waiting.kind for finding in verdict.compared if finding.waiting is not None}
    efforts: list[tuple[Literal["seeds", "steps"], Effort]] = [("seeds", replace(effort, units=look.units))]
    if "steps" in waiting and effort.longer < LONGEST:
        efforts.append(("steps", Effort(look.units, effort.longer * LONGER, effort.units)))
    options = []
    for action, next_effort in efforts:
        new = [entry for entry in course.entries(claim, next_effort) if entry.trial.id not in trained]
        chance = estimate_chance(verdict.compared, look.units / effort.units, look.alpha, action == "steps")
        options.append(Option(claim, action, next_effort, chance, price_entries(new)))
    return options


def estimate_chance(findings: Sequence[Finding], more: float, alpha: float, longer: bool = False) -> float:
    """Estimate the chance that a claim is decided with `more` times the units: all headline criteria hold, or one fails.

    A normal deviate grows with the root of the number of units, and what was measured is taken to be true. Criteria
    that wait for steps are not helped by units (`longer` says that there will be more steps), and those whose runs are
    missing, or that nothing settles, by neither.
    """
    headlines = [finding for finding in findings if finding.criterion.role == "headline"]
    details = [finding for finding in findings if finding.criterion.role == "detail"]
    details_run = sum(finding.verdict != "not run" for finding in details)
    # A claim is supported only if half of its details were run, and never without a headline criterion.
    all_hold = 1.0 if headlines and 2 * details_run >= len(details) else 0.0
    fails = 0.0
    for finding in headlines:
        helped = _is_helped(finding, longer)
        all_hold *= _reach(finding.p_holds, more, alpha) if helped else 0.0
        fails = max(fails, _reach(finding.p_contradicted, more, alpha) if helped else 0.0)
    return max(all_hold, fails)


def _is_helped(finding: Finding, longer: bool) -> bool:
    """Whether more units, or more steps (`longer`), may change a finding."""
    kind = "" if finding.waiting is None else finding.waiting.kind
    if kind in ("runs", "nothing"):
        return False
    return longer or (kind != "steps" and finding.reached)


def _reach(p_value: float | None, more: float, alpha: float) -> float:
    """The chance that a p value falls to `alpha` with more units; of an unknown one, an even chance."""
    if p_value is None:
        return 0.5
    deviate = _NORMAL.inv_cdf(min(max(1 - p_value, 1e-9), 1 - 1e-9))
    short_by = _NORMAL.inv_cdf(1 - alpha) - deviate * more**0.5
    # Not 1 minus the distribution function, which is rounded to 0: a small chance is a chance.
    return math.erfc(short_by / math.sqrt(2)) / 2

"""Stacks: which trials are trained together."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from unseen.config import Config
from unseen.studies.trial import Entry, Trial, evaluation_id
from unseen.training.recipe import PER_MEMBER, Evaluation

if TYPE_CHECKING:
    from unseen.running.timing import Timing

SIZE = 10
"""How many trials to stack where nothing has been measured; up to this many trials of a shape nothing is."""
Evaluations = Mapping[str, tuple[Evaluation, ...]]
"""The evaluations of each trial, by its id."""


def collect_evaluations(entries: Iterable[Entry]) -> dict[str, tuple[Evaluation, ...]]:
    """All evaluations of each trial, by its id: entries of one trial may evaluate it in different ways.

    Evaluations that differ only in what is on the learning curve are one, with the splits of all of them on it.
    """
    by_trial: dict[str, dict[str, Evaluation]] = defaultdict(dict)
    for entry in entries:
        evaluation = entry.trial.evaluation
        evaluations = by_trial[entry.trial.id]
        key = evaluation_id(evaluation)
        evaluations[key] = evaluations[key].with_curve_of(evaluation) if key in evaluations else evaluation
    return {trial: tuple(evaluations.values()) for trial, evaluations in by_trial.items()}


def stack_key(trial: Trial, evaluations: Sequence[Evaluation] = ()) -> str:
    """Trials of equal shape can be one stack: they differ in nothing but seeds, the instance of the task, and the
    options of a recipe that each member has for itself. They share their evaluations (default: the trial's own)."""
    texts = [_shared_options(trial.task, frozenset(trial.task.instance_options)), trial.model.as_json]
    texts += [evaluation.as_json for evaluation in evaluations or (trial.evaluation,)]
    texts.append(_shared_options(trial.recipe, PER_MEMBER))
    return "\n".join(texts)


_SHARED: dict[tuple[str, frozenset[str]], str] = {}


def _shared_options(config: Config, own: frozenset[str]) -> str:
    """The options of a config that the members of a stack share, as JSON, made once for each."""
    key = (config.as_json, own)
    if key not in _SHARED:
        _SHARED[key] = config.model_dump_json(exclude=set(own))
    return _SHARED[key]


def group_trials(trials: Iterable[Trial], evaluations: Evaluations | None = None) -> dict[str, list[Trial]]:
    """Trials by their shape."""
    groups: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        groups[stack_key(trial, (evaluations or {}).get(trial.id, ()))].append(trial)
    return dict(groups)


def divide_into_stacks(
    trials: Iterable[Trial],
    workers: int,
    timing: Timing | None = None,
    size: int | None = None,
    evaluations: Evaluations | None = None,
) -> list[tuple[Trial, ...]]:
    """Every trial in one stack of its shape, the longest stack first.

    A stack is as large as pays by `timing` (without it: `SIZE`), or as `size` says, and smaller where a worker would
    have none, or where all would be done clearly sooner.
    """
    groups = group_trials(trials, evaluations)
    if workers == 1 and timing is None and len(groups) == 1:
        (group,) = groups.values()
        return sorted(_cut(group, math.ceil(len(group) / (size or SIZE))), key=len, reverse=True)
    seconds = _guess_seconds if timing is None else timing.stack_seconds
    fewest = {}
    total = {}
    for key, group in groups.items():
        most = size or (SIZE if timing is None else timing.size(group[0]))
        fewest[key] = math.ceil(len(group) / most)
        total[key] = sum(map(seconds, _cut(group, fewest[key])))
    # No arrangement can be done sooner than this.
    ideal = sum(total.values()) / workers
    needed = min(workers, sum(map(len, groups.values())))
    best: list[tuple[float, tuple[Trial, ...]]] = []
    soonest = limit = math.inf
    # First as large as pays; then no stack may take longer than an ideally balanced worker, then half of that, a quarter.
    while len(best) < needed or (size is None and soonest > 1.05 * ideal and limit >= ideal / 4):
        candidates = []
        for key, group in groups.items():
            # Less a hair: a ratio that should be a whole number may be rounded to just above it.
            count = max(fewest[key], math.ceil(total[key] / limit - 1e-9))
            candidates += [(seconds(stack), stack) for stack in _cut(group, count)]
        makespan_seconds = makespan([duration for duration, _ in candidates], workers)
        # Smaller stacks do more work in all, so they must be done clearly sooner.
        if len(best) < needed or makespan_seconds < 0.95 * soonest:
            best = candidates
            soonest = makespan_seconds
        limit = min(limit / 2, ideal)
    return [stack for _, stack in sorted(best, key=lambda pair: pair[0], reverse=True)]


def makespan(times: Iterable[float], workers: int) -> float:
    """When the last stack is done, if a free worker always takes the longest that waits.

    >>> makespan([3, 3, 2, 2, 2], workers=2)
    7.0
    """
    busy = [0.0] * workers
    for seconds in sorted(times, reverse=True):
        heapq.heapreplace(busy, busy[0] + seconds)
    return max(busy)


def _cut(group: Sequence[Trial], count: int) -> list[tuple[Trial, ...]]:
    """This many stacks, or as many as there are trials, as equal in size as possible."""
    count = min(count, len(group))
    # Sizes differ by one at most: the stack that is done last is as small as it can be.
    cuts = [len(group) * i // count for i in range(count + 1)]
    return [tuple(group[start:stop]) for start, stop in pairwise(cuts)]


def _guess_seconds(stack: Sequence[Trial]) -> float:
    """A stack's cost where nothing has been measured: as if a step's overhead were one more member's work."""
    from unseen.running.flops import step_cost  # loads torch

    return max(step_cost(stack[0]).flops, 1.0) * stack[0].recipe.steps * (1 + len(stack))

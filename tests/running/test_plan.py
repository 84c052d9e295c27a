"""Plans: which trials go together, in which order, and what is counted."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen.errors import UsageError
from unseen.models import options
from unseen.running.chunk import make_job
from unseen.running.flops import step_cost
from unseen.running.plan import START, plan, shares_done
from unseen.running.rates import WorkloadTimes
from unseen.running.stacks import SIZE, divide_into_stacks, makespan, stack_key
from unseen.running.timing import Timing, workload
from unseen.store.store import Store
from unseen.studies.study import Grid
from unseen.studies.trial import Entry, Trial
from unseen.tasks import task
from unseen.training.recipe import Evaluation, recipe

TASKS = [task("retrieval/T1", length=5), task("retrieval/T6", length=5)]
MODELS = [options("lstm", width=4), options("lstm", width=6)]
RECIPES = [
    recipe(steps=100),
    recipe(steps=100, learning_rate=0.1, clip=None),
    recipe(steps=200),
    recipe(steps=100, batch=10),
    recipe("retrieval-paper", plateau=0.005),
]
calm = settings(derandomize=True, deadline=None, max_examples=60)


def trials(count: int, **changed: Any) -> list[Trial]:
    one = replace(Trial(TASKS[0], MODELS[0], RECIPES[0], Evaluation(), 0, 0), **changed)
    return [replace(one, seed=seed, data_seed=seed) for seed in range(count)]


def linear(overhead: float, member: float, *some: Trial) -> Timing:
    """A machine where a step of S members takes overhead + S · member seconds, and nothing else takes any."""
    steps = {size: overhead / size + member for size in (1, 5, 10, 20)}
    times = WorkloadTimes(steps, dict.fromkeys(steps, 0.0), 1.0, 0.0, 0.0)
    return Timing({workload(t): times for t in some}, {workload(t): step_cost(t).flops for t in some})


mixed = st.lists(
    st.builds(
        Trial,
        st.sampled_from(TASKS),
        st.sampled_from(MODELS),
        st.sampled_from(RECIPES),
        st.sampled_from([Evaluation(), Evaluation(examples=100)]),
        st.integers(0, 3),
        st.integers(0, 3),
    ),
    max_size=40,
)


@calm
@given(mixed)
def test_trials_of_one_shape_are_what_the_engine_takes_as_one_job(found: list[Trial]) -> None:
    for first in found:
        same = [c for c in found if stack_key(c) == stack_key(first)]
        make_job(same)
        alike = [c for c in found if (c.task, c.model, c.evaluation) == (first.task, first.model, first.evaluation)]
        for other in alike:
            if stack_key(other) != stack_key(first):
                with pytest.raises(UsageError, match="may differ only in"):
                    make_job([first, other])
        assert all(c in alike for c in same)


@calm
@given(mixed, st.integers(1, 7), st.sampled_from([None, 1, 2, 5]), st.booleans())
def test_every_trial_is_in_one_stack_of_its_shape(
    found: list[Trial], workers: int, size: int | None, measured: bool
) -> None:
    rates = linear(1.0, 1.0, *found) if measured else None
    stacks = divide_into_stacks(found, workers, rates, size)
    assert sorted(c.id for stack in stacks for c in stack) == sorted(c.id for c in found)
    assert all(len({stack_key(c) for c in stack}) == 1 for stack in stacks)
    allowed = [size or (rates.size(stack[0]) if rates else SIZE) for stack in stacks]
    assert all(len(stack) <= most for stack, most in zip(stacks, allowed, strict=True))
    assert len(stacks) >= min(workers, len(found))
    if rates is not None:
        times = [rates.stack_seconds(stack) for stack in stacks]
        assert times == sorted(times, reverse=True)


def test_stacks_are_as_large_as_pays_and_as_equal_as_can_be() -> None:
    dear, cheap = linear(10.0, 1.0, *trials(1)), linear(0.01, 1.0, *trials(1))
    assert [len(s) for s in divide_into_stacks(trials(30), 1, dear)] == [15, 15]
    assert [len(s) for s in divide_into_stacks(trials(3), 1, cheap)] == [1, 1, 1]
    assert [len(s) for s in divide_into_stacks(trials(7), 1, size=5)] == [4, 3]


@pytest.mark.parametrize(
    ("count", "workers", "lengths"), [(20, 1, [20]), (20, 2, [10, 10]), (20, 3, [7, 7, 6]), (3, 8, [1, 1, 1])]
)
def test_no_worker_is_left_without_a_stack(count: int, workers: int, lengths: list[int]) -> None:
    rates = linear(5.0, 1.0, *trials(1))
    assert sorted((len(s) for s in divide_into_stacks(trials(count), workers, rates)), reverse=True) == lengths
    assert sorted((len(s) for s in divide_into_stacks(trials(count), workers, rates, size=20)), reverse=True) == lengths


def test_three_equal_stacks_are_cut_for_two_workers_only_where_that_is_sooner() -> None:
    three = [c for width in (4, 5, 6) for c in trials(6, model=options("lstm", width=width))]
    cheap, dear = linear(0.5, 1.0, *three), linear(40.0, 1.0, *three)
    whole, finer = divide_into_stacks(three, 2, dear), divide_into_stacks(three, 2, cheap)
    assert [len(s) for s in whole] == [6, 6, 6]
    times = [cheap.stack_seconds(stack) for stack in finer]
    assert makespan(times, 2) < 0.9 * makespan([cheap.stack_seconds(stack) for stack in whole], 2)


@calm
@given(st.lists(st.floats(0.1, 100), max_size=30), st.integers(1, 9))
def test_the_simulated_end_keeps_the_known_bounds(times: list[float], workers: int) -> None:
    end = makespan(times, workers)
    assert end >= max([sum(times) / workers, *times]) * (1 - 1e-9)
    assert end <= (sum(times) / workers + max(times, default=0.0)) * (1 + 1e-9)
    if len(times) <= workers:
        assert end == max(times, default=0.0)


def entries() -> list[Entry]:
    return Grid(
        axes={
            "width": {4: {"model": {"width": 4}}, 6: {"model": {"width": 6}}},
            "length": {5: {"task": {"length": 5}}, 9: {"task": {"length": 9}, "recipe": {"steps": 50}}},
        },
        base={"task": {"name": "retrieval/T1"}, "model": {"name": "lstm"}, "recipe": {"steps": 100}},
        seeds=range(3),
    ).entries()


def test_a_plan_counts_every_trial_once_on_every_axis() -> None:
    found = entries()
    made = plan(found, workers=2)
    assert (made.whole.trials, made.whole.ended, made.whole.steps) == (12, 0, 6 * 100 + 6 * 50)
    assert made.whole.flops == sum(e.trial.recipe.steps * step_cost(e.trial).flops for e in found)
    assert made.whole.seconds is None and made.wall_seconds is None
    assert made.stacks == 4
    assert made.parameters == tuple(sorted({step_cost(e.trial).parameters for e in found}))
    assert {axis: list(levels) for axis, levels in made.levels.items()} == {"width": [4, 6], "length": [5, 9]}
    for levels in made.levels.values():
        assert sum(t.trials for t in levels.values()) == 12
        assert sum(t.flops for t in levels.values()) == made.whole.flops
    assert made.levels["length"][9].steps == 300


def test_time_is_that_of_the_stacks_and_of_workers_side_by_side() -> None:
    found = entries()
    rates = linear(1.0, 0.5, *(e.trial for e in found))
    alone, together = plan(found, 1, rates), plan(found, 2, rates)
    stacks = divide_into_stacks([e.trial for e in found], 1, rates)
    assert alone.whole.seconds == pytest.approx(sum(map(rates.stack_seconds, stacks)))
    assert alone.wall_seconds == pytest.approx(START + alone.whole.seconds)
    assert together.wall_seconds is not None and together.wall_seconds - START < 0.6 * (alone.wall_seconds - START)
    for levels in alone.levels.values():
        assert math.fsum(t.seconds or 0.0 for t in levels.values()) == pytest.approx(alone.whole.seconds)


def test_where_members_may_stop_early_it_is_the_most_it_can_take() -> None:
    found = entries()
    patient = [replace(e, trial=replace(e.trial, recipe=recipe(steps=100, plateau=0.005))) for e in found[:3]]
    assert not plan(found, 2).at_most
    assert plan([*patient, *found[3:]], 2).at_most
    assert not plan([*patient, *found[3:]], 2, done={e.trial.id: 1.0 for e in patient}).at_most


def test_what_a_store_has_is_not_left(tmp_path: Path) -> None:
    found = entries()
    rates = linear(1.0, 0.5, *(e.trial for e in found))
    with Store.write(tmp_path / "new") as store:
        store.add(found, "full")
        store.fail(found[0].trial.id, "it could not be done")
        done = shares_done(store, found)
    assert done == {e.trial.id: float(e is found[0]) for e in found}
    half = {e.trial.id: 0.5 for e in found}
    whole, left = plan(found, 1, rates), plan(found, 1, rates, {**half, found[0].trial.id: 1.0})
    assert (left.whole.trials, left.whole.ended) == (12, 1)
    assert left.whole.steps == 5 * 50 + 6 * 25
    assert left.whole.flops < 0.5 * whole.whole.flops
    assert left.wall_seconds is not None and whole.wall_seconds is not None
    assert left.wall_seconds < 0.6 * whole.wall_seconds
    over = plan(found, 2, rates, {e.trial.id: 1.0 for e in found})
    assert (over.stacks, over.whole.ended, over.wall_seconds) == (0, 12, 0.0)

"""Runs on different instances of a task as one stack: the same bits as alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from unseen.errors import UsageError
from unseen.models import options
from unseen.models.build import build
from unseen.running.chunk import Chunk, Worker
from unseen.running.stacks import divide_into_stacks, stack_key
from unseen.studies.trial import Trial
from unseen.tasks import task
from unseen.tasks.base import Task
from unseen.training.evaluate import Measure
from unseen.training.recipe import Evaluation, recipe
from unseen.training.trainer import Job, Member, Point, Trainer

RECIPE = recipe("rules-mlp-paper", steps=12, batch=16, learning_rate=1e-2, validate_every=4, validation_examples=300)


def instance(number: int, **given: object) -> Task:
    return task("rules/mlp", rules=3, setting="regression", task_seed=number, **given)


def job(numbers: list[int]) -> Job:
    model, first = options("rules-mlp", width=4), instance(numbers[0])
    members = tuple(Member(str(n), n, n, RECIPE, instance(n)) for n in numbers)
    return Job(first, lambda seed: build(model, first.spec, seed), members)


def trained(numbers: list[int]) -> tuple[dict[str, dict[str, torch.Tensor]], list[Point]]:
    trainer = Trainer(job(numbers))
    return trainer.last, trainer.begin() + trainer.advance()


def test_a_member_is_the_run_alone_whatever_instances_are_beside_it() -> None:
    together, points = trained([4, 0, 2])
    for number in (0, 2, 4):
        alone, own = trained([number])
        assert all(torch.equal(value, together[str(number)][name]) for name, value in alone[str(number)].items())
        assert [p for p in points if p.key == str(number)] == own
    assert len({p.value for p in points if p.step == 12 and p.split == "iid"}) == 3


def test_curves_begin_with_the_untrained_models_and_select_nothing_there() -> None:
    trainer = Trainer(job([1]))
    first = trainer.begin()
    assert [(p.step, p.split, p.metric) for p in first] == [(0, "iid", "loss")]
    assert trainer.progress["1"].scores == [] and not trainer.best
    trainer.advance(steps=1)
    assert trainer.begin() == []


def trial(number: int, **given: object) -> Trial:
    return Trial(
        instance(number, **given),
        options("rules-mlp", width=4, gating="truth"),
        RECIPE,
        Evaluation(examples=500, analyses=("specialization",), activation_examples=300),
        number,
        number,
    )


def measured(trials: list[Trial]) -> dict[str, list[Measure]]:
    done = Worker().do(Chunk(0, tuple(trials), None, 600.0))
    assert not done.error and done.finished is not None
    found = {}
    for key, ended in done.finished.items():
        (by_selection,) = ended.measures.values()  # there is one evaluation
        found[key] = [replace(m, standard_error=0.0) for m in by_selection["last"]]
    return found


def test_trials_of_different_instances_are_one_stack_with_the_measures_of_each_alone() -> None:
    trials = [trial(n) for n in (0, 1)]
    assert stack_key(trials[0]) == stack_key(trials[1]) != stack_key(trial(0, prior="zipf(1)"))
    assert [len(stack) for stack in divide_into_stacks(trials, workers=1)] == [2]
    together = measured(trials)
    for one in trials:
        assert measured([one])[one.id] == together[one.id]
    first, second = together.values()
    losses = [next(m.value for m in rows if m.metric == "relative_loss") for rows in (first, second)]
    assert losses[0] != losses[1] and all(0 < value < 2 for value in losses)
    found = {m.metric: m.value for m in first}
    assert found["specialization/alignment"] == found["specialization/adaptation"] == 0


def test_members_may_differ_in_the_instance_only() -> None:
    one = job([0])
    other = Member("1", 1, 1, RECIPE, instance(1, prior="zipf(1)"))
    with pytest.raises(
        UsageError, match="may differ only in clip, learning_rate, least_steps, plateau, task_seed, weight_decay"
    ):
        replace(one, members=(*one.members, other))

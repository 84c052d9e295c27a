"""Splits on the learning curve: which points there are, that they are right, and that nothing else changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from support.jobs import SMALL, job
from unseen.analysis.accuracy import accuracy
from unseen.errors import UsageError
from unseen.models import options
from unseen.running.stacks import collect_evaluations
from unseen.studies.trial import Entry, Trial, evaluation_id
from unseen.training.checkpoint import pack, unpack
from unseen.training.evaluate import measured_splits
from unseen.training.recipe import CurveSplit, Evaluation, curve_splits, curve_steps, recipe
from unseen.training.trainer import Job, Point, Trainer

IID = CurveSplit("iid", 4, 70)


def curve_job(seeds: list[int], *splits: CurveSplit, **changes: Any) -> Job:
    return replace(job(seeds, **changes), curve=splits)


def train(chosen: Job) -> tuple[Trainer, list[Point]]:
    trainer = Trainer(chosen)
    return trainer, trainer.begin() + trainer.advance()


def weights(trained: Trainer, key: str) -> bytes:
    return b"".join(v.numpy().tobytes() for _, v in sorted(trained.last[key].items()))


def test_the_points_lie_at_steps_of_their_own_and_training_is_unchanged() -> None:
    plain, without = train(job([0, 1], validate_every=25))
    measured, points = train(curve_job([0, 1], IID, validate_every=25))
    on_curve = [point for point in points if point.split == "iid"]
    assert {point.step for point in on_curve} == {0, 15, 30, 45, 60}
    assert {point.metric for point in on_curve} == {"loss", "accuracy"} and len(on_curve) == 2 * 2 * 5
    assert [point for point in points if point.split != "iid"] == without
    for key in ("run0", "run1"):
        assert weights(measured, key) == weights(plain, key)
        assert measured.progress[key].scores == plain.progress[key].scores


def test_a_point_is_the_score_of_the_weights_at_its_step() -> None:
    """Independently: train to the step, take the weights out, ask the module itself about the test data."""
    _, points = train(curve_job([0, 1], IID))
    value = {(p.key, p.step, p.metric): p.value for p in points if p.split == "iid"}
    examples = SMALL.sample("iid", 70, data_seed="test")
    inputs = {name: torch.tensor(values).float() for name, values in examples.inputs.items()}
    stopped = Trainer(job([1]))
    stopped.advance(steps=30)
    from unseen.training.stack import load_member

    module = load_member(stopped.job.build(1), stopped.stack.member(0)).eval()
    from unseen.models.context import Context

    with torch.no_grad():
        answers = module(inputs, Context()).numpy()
    assert value["run1", 30, "accuracy"] == pytest.approx(accuracy(answers, examples.targets, "binary").value)


def test_a_resumed_run_and_a_run_alone_have_the_same_points() -> None:
    train_split = CurveSplit("train", 3, 50)
    _, whole = train(curve_job([0, 1, 2], IID, train_split))
    assert {p.metric for p in whole if p.split == "train" and p.step == 20} == {"loss", "accuracy"}
    first = Trainer(curve_job([0, 1, 2], IID, train_split))
    begun = first.begin() + first.advance(steps=31)
    second = Trainer(curve_job([0, 1, 2], IID, train_split), unpack("checkpoint", pack(first.save())))
    assert begun + second.begin() + second.advance() == whole
    _, alone = train(curve_job([2], IID, train_split))
    assert alone == [point for point in whole if point.key == "run2"]


def test_no_point_replaces_a_validation_or_a_training_loss() -> None:
    """`ood/single` is validated and `train` has its losses: each (step, split, metric) occurs once."""
    splits = [CurveSplit(name, 60, 50) for name in ("train", "iid", SMALL.validation)]
    _, points = train(curve_job([0], *splits))
    keys = [(p.key, p.step, p.split, p.metric) for p in points]
    assert len(keys) == len(set(keys))
    _, without = train(job([0]))
    assert [p for p in points if (p.split, p.metric) in {(q.split, q.metric) for q in without}] == without
    assert sum(p.split == "train" and p.metric == "accuracy" for p in points) == 61


def test_where_a_run_may_end_at_a_plateau_every_validation_is_a_point() -> None:
    chosen = curve_job([0, 1], IID)
    first = replace(chosen.members[0], recipe=chosen.recipe.model_copy(update={"plateau": 0.005}))
    _, points = train(replace(chosen, members=(first, chosen.members[1])))
    steps = {
        key: [p.step for p in points if (p.key, p.split, p.metric) == (key, "iid", "loss")] for key in ("run0", "run1")
    }
    assert steps == {"run0": [0, 20, 40, 60], "run1": [0, 15, 30, 45, 60]}


@pytest.mark.parametrize(("steps", "points"), [(100, 25), (7, 25), (1000, 3), (999, 25), (1, 1)])
def test_points_are_evenly_spaced_from_the_first_step_to_the_last(steps: int, points: int) -> None:
    chosen = sorted(curve_steps(recipe(steps=steps), points))
    count = min(points, steps)
    assert len(chosen) == count + 1 and chosen[0] == 0 and chosen[-1] == steps
    assert np.ptp(np.diff(chosen)) <= 1


def test_curves_are_no_part_of_an_identity_and_several_are_united() -> None:
    """Records do not depend on them: a store that was filled without goes on, and two entries of one trial are one."""
    plain = Evaluation(splits=("iid",))
    some = Evaluation(splits=("iid",), curve=("iid",))
    more = Evaluation(splits=("iid",), curve=("train", "iid"), curve_points=50, curve_examples=100)
    other = Evaluation(splits=("iid", "ood/single"), curve=("ood/single",))
    assert evaluation_id(plain) == evaluation_id(some) == evaluation_id(more) != evaluation_id(other)
    trials = [Trial(SMALL, options("lstm"), recipe(), e, 0, 0) for e in (plain, some, more, other)]
    assert len({trial.id for trial in trials}) == 1
    (united,) = collect_evaluations(Entry({}, trial) for trial in trials).values()
    assert [evaluation.curve for evaluation in united] == [("iid", "train"), ("ood/single",)]
    assert curve_splits(united) == (
        CurveSplit("iid", 50, 500),
        CurveSplit("train", 50, 500),
        CurveSplit("ood/single", 25, 500),
    )


def test_splits_on_the_curve_are_checked_before_training() -> None:
    assert measured_splits(SMALL, Evaluation(splits=("iid",), curve=("train",))) == ["iid", "train"]
    with pytest.raises(UsageError, match=r"split 'odd'"):
        measured_splits(SMALL, Evaluation(curve=("odd",)))


def test_a_real_target_has_its_relative_loss_on_the_curve() -> None:
    from unseen.models.build import build
    from unseen.tasks import task
    from unseen.training.trainer import Member

    chosen = task("rules/mlp", rules=2, setting="regression")
    model = options("rules-mlp", width=8)
    used = recipe(steps=4, batch=10, validate_every=2, validation_examples=50)
    curve = (CurveSplit("iid", 2, 50), CurveSplit("ood/amplitude=2", 2, 50))
    made = Job(chosen, lambda seed: build(model, chosen.spec, seed), (Member("run0", 0, 0, used),), curve=curve)
    _, points = train(made)
    metrics = {split: {p.metric for p in points if p.split == split} for split in ("iid", "ood/amplitude=2")}
    assert metrics == {"iid": {"loss", "relative_loss"}, "ood/amplitude=2": {"loss", "relative_loss"}}

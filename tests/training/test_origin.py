"""Where the members of a stack come from: `train` is what each of them was trained on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from safetensors.torch import load

from unseen.models import options
from unseen.models.build import build
from unseen.running.chunk import Chunk, Worker
from unseen.store.schema import Outcome
from unseen.studies.trial import Trial
from unseen.tasks import task
from unseen.tasks.base import Task
from unseen.training.evaluate import Measure, Origin, evaluate, examples_drawn, predict
from unseen.training.recipe import Evaluation, recipe
from unseen.training.stack import Stack

ENDLESS = task("rules/mlp", rules=3)
FINITE = task("retrieval/T1", length=3, train_size=130, evaluation_size=200)
MODELS = {"rules/mlp": "rules-mlp", "retrieval/T1": "retrieval-transformer"}
ASKED = Evaluation(splits=("train", "iid"), examples=300)


def stack_of(of: Task, seeds: Sequence[int]) -> Stack:
    return Stack([build(options(MODELS[of.name], width=4), of.spec, seed) for seed in seeds])


def nobody() -> Stack:
    raise AssertionError("nobody asked for the models before training")


def plain_accuracy(stack: Stack, member: int, of: Task, data_seed: int, n: int) -> float:
    examples = of.sample("train", n, data_seed=data_seed)
    logits = predict(stack, examples, of.spec)["prediction"][member]
    return float(((logits >= 0) == (examples.targets == 1)).mean())


def on(split: str, rows: list[Measure], metric: str = "accuracy") -> Measure:
    return next(m for m in rows if (m.split, m.factor, m.metric) == (split, "", metric))


@pytest.mark.parametrize(("of", "n"), [(ENDLESS, 300), (FINITE, 130)])
def test_train_is_the_data_each_member_was_trained_on(of: Task, n: int) -> None:
    stack, seeds = stack_of(of, [0, 0, 1, 0]), (5, 9, 5, 5)
    found = evaluate(stack, of, ASKED, Origin(seeds, nobody))
    for member, seed in enumerate(seeds):
        measure = on("train", found[member])
        assert (measure.value, measure.n) == (plain_accuracy(stack, member, of, seed, n), n)
    losses = [on("train", rows, "loss").value for rows in found]
    assert losses[0] == losses[3] and len(set(losses)) == 3  # models 0, 0, 1, 0 on data 5, 9, 5, 5


@pytest.mark.parametrize("of", [ENDLESS, FINITE])
def test_nothing_else_changes(of: Task) -> None:
    """Other splits are the same to the last bit; without an origin `train` is test data."""
    stack = stack_of(of, [0, 1])
    known, unknown = evaluate(stack, of, ASKED, Origin((5, 9), nobody)), evaluate(stack, of, ASKED)
    for with_origin, without in zip(known, unknown, strict=True):
        assert repr([m for m in with_origin if m.split == "iid"]) == repr([m for m in without if m.split == "iid"])
    size = of.size("train") or ASKED.examples
    shared = of.sample("train", size, data_seed="test")
    for rows, logits in zip(unknown, predict(stack, shared, of.spec)["prediction"], strict=True):
        assert on("train", rows).value == float(((logits >= 0) == (shared.targets == 1)).mean())


def test_own_data_in_a_stack_is_own_data_alone() -> None:
    seeds = (5, 9)
    together = evaluate(stack_of(ENDLESS, [0, 1]), ENDLESS, ASKED, Origin(seeds, nobody))
    for member, seed in enumerate(seeds):
        alone = evaluate(stack_of(ENDLESS, [member]), ENDLESS, ASKED, Origin([seed], nobody))
        assert repr(alone[0]) == repr(together[member])


def test_each_rule_is_looked_at_in_the_same_data() -> None:
    asked = Evaluation(splits=("train",), examples=300, analyses=("by-rule",))
    stack = stack_of(ENDLESS, [0, 0])
    for rows, seed in zip(evaluate(stack, ENDLESS, asked, Origin((5, 9), nobody)), (5, 9), strict=True):
        examples = ENDLESS.sample("train", 300, data_seed=seed)
        right = (predict(stack, examples, ENDLESS.spec)["prediction"][0] >= 0) == (examples.targets == 1)
        for m in (m for m in rows if m.metric == "by-rule/accuracy"):
            of_rule = right[examples.factors["rule"] == int(m.level)]
            assert (m.value, m.n) == (pytest.approx(of_rule.mean()), len(of_rule))


def test_what_is_drawn_is_counted() -> None:
    assert examples_drawn(ENDLESS, ASKED) == 600 and examples_drawn(ENDLESS, ASKED, data_seeds=4) == 4 * 300 + 300
    assert examples_drawn(FINITE, ASKED) == 130 + 200 and examples_drawn(FINITE, ASKED, data_seeds=4) == 4 * 130 + 200
    assert examples_drawn(ENDLESS, Evaluation(splits=("iid",), examples=300), data_seeds=4) == 300


RECIPE = recipe(steps=8, batch=16, learning_rate=1e-2, validate_every=4, validation_examples=50)


def finished(trials: Sequence[Trial], at_once: bool = True) -> Outcome:
    """The trials as a study runs them: in one slice, or in many with a checkpoint between any two."""
    checkpoint = None
    while True:
        done = Worker().do(Chunk(0, tuple(trials), checkpoint, 600.0 if at_once else 1e-9, keep="all"))
        assert not done.error
        if done.checkpoint is None:
            return done
        checkpoint = done.checkpoint


def test_a_run_is_evaluated_on_its_own_instance_and_data() -> None:
    """Runs on three instances of a task, with data seeds of their own, in one stack; the same after any checkpoint."""
    model = options("rules-mlp", width=4)
    trials = [
        Trial(task("rules/mlp", rules=3, task_seed=instance), model, RECIPE, ASKED, seed, data)
        for instance, seed, data in ((0, 0, 7), (1, 1, 7), (0, 2, 8))
    ]
    whole, parts = finished(trials).finished, finished(trials, at_once=False).finished
    assert whole is not None and parts is not None
    for trial in trials:
        (by_selection,) = whole[trial.id].measures.values()  # there is one evaluation
        measure = on("train", list(by_selection["last"]))
        alone = finished([trial]).finished
        assert alone is not None
        for other in (parts, alone):
            assert repr(other[trial.id].measures) == repr(whole[trial.id].measures)
        module = build(trial.model, trial.task.spec, trial.seed)
        module.load_state_dict(load(whole[trial.id].weights["last"]), strict=False)
        assert measure.value == plain_accuracy(Stack([module]), 0, trial.task, trial.data_seed, 300)
        assert np.isfinite(measure.standard_error)

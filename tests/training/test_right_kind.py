"""Whether a model at least answers with a colour where a colour is asked for."""

from __future__ import annotations

import math

import pytest

from unseen.models import options
from unseen.models.build import build
from unseen.tasks import task
from unseen.training.evaluate import evaluate, predict
from unseen.training.recipe import Evaluation, published_recipe, recipe
from unseen.training.stack import Stack

SMALL = {"grid": (5, 5), "features": (("shape", tuple("abcdef")), ("color", ("red", "green", "blue", "yellow")))}


def plain_kind(answer: int) -> str:
    """Of 2 booleans, 25 places, 6 letters and 4 colours."""
    return "boolean" if answer < 2 else "location" if answer < 27 else "shape" if answer < 33 else "color"


@pytest.mark.parametrize("coding", ["integer", "embedding"])
def test_gcog_reports_the_right_kind_wherever_it_reports_accuracy(coding: str) -> None:
    of = task("gcog/distractor", coding=coding, **SMALL, distractors=(1, 3), ood_distractors=(4, 6))
    stack = Stack([build(options("gcog-rnn", width=16), of.spec, seed) for seed in (0, 1)])
    found = evaluate(stack, of, Evaluation(splits=("iid", "ood/distractors=6"), examples=400))
    for split in ("iid", "ood/distractors=6"):
        examples = of.sample(split, 400, data_seed="test")
        answers = predict(stack, examples, of.spec)["prediction"].argmax(axis=-1)
        for rows, own in zip(found, answers, strict=True):
            measures = {(m.factor, m.level, m.metric): m for m in rows if m.split == split}
            assert {k[:2] for k in measures if k[2] == "right_kind"} == {k[:2] for k in measures if k[2] == "accuracy"}
            right = [plain_kind(int(a)) == plain_kind(int(t)) for a, t in zip(own, examples.targets, strict=True)]
            for (factor, level, metric), m in measures.items():
                if metric != "right_kind":
                    continue
                at = [r for i, r in enumerate(right) if not factor or str(examples.factors[factor][i]) == level]
                share = sum(at) / len(at)
                assert (m.value, m.n) == (pytest.approx(share), len(at))
                assert m.standard_error == pytest.approx(math.sqrt(share * (1 - share) / len(at)), abs=1e-12)
                assert m.value >= measures[factor, level, "accuracy"].value


def test_other_tasks_have_one_kind() -> None:
    of = task("retrieval/T1", length=3)
    stack = Stack([build(options("retrieval-transformer", width=4), of.spec, 0)])
    assert of.answer_kinds is None
    assert {m.metric for m in evaluate(stack, of, Evaluation(examples=20))[0]} == {"loss", "accuracy"}


def test_the_recipes_of_the_paper_see_as_many_samples() -> None:
    seen = {
        "distractor": 53_980_000,
        "systematic-operators": 47_980_000,
        "systematic-trees": 53_980_000,
        "productive": 59_980_000,
    }
    for name, samples in seen.items():
        used, deep = published_recipe(f"gcog/{name}", "gcog-perceiver"), published_recipe(f"gcog/{name}", "gcog-bert")
        assert used == recipe(f"gcog-{name}-paper") and deep == recipe("gcog-bert-paper")
        for one, most in ((used, samples), (deep, 11_980_000)):
            assert one is not None and 0 <= one.steps * one.batch - most < 256 == one.batch
            assert (one.optimiser, one.learning_rate, one.weight_decay, one.clip) == ("adamw", 1e-4, 0.01, 1.0)


def test_the_published_samples_are_seen_in_a_quarter_of_the_updates() -> None:
    """The released demonstrations load batches of 64; ours have 256 at the same learning rate."""
    ours = recipe("gcog-distractor-paper")
    assert ours.batch == 4 * 64 and ours.steps == -(-53_980_000 // 64 // 4) and ours.learning_rate == 1e-4

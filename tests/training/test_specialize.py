"""The specialization analysis: drawn, weighed and recorded."""

from __future__ import annotations

import numpy as np
import pytest

from unseen.analysis import activation_matrix, adaptation, alignment, collapse_avg
from unseen.models import options
from unseen.models.build import build
from unseen.tasks import task
from unseen.tasks.base import Task
from unseen.training.evaluate import evaluate, left_out, predict
from unseen.training.recipe import Evaluation
from unseen.training.stack import Stack

ASKED = Evaluation(
    splits=("iid",), examples=100, analyses=("specialization",), activation_examples=400, adaptation_examples=30
)


def stack(made: Task, name: str, gating: str, seeds: range = range(2)) -> Stack:
    return Stack([build(options(name, gating=gating, width=4), made.spec, seed) for seed in seeds])


def found(made: Task, members: Stack) -> list[dict[str, float]]:
    rows = evaluate(members, made, ASKED)
    return [{m.metric.removeprefix("specialization/"): m.value for m in one if "/" in m.metric} for one in rows]


@pytest.mark.parametrize(
    ("process", "gating"), [("mlp", "joint"), ("mlp", "operation"), ("mha", "operation"), ("rnn", "truth")]
)
def test_values_are_those_of_the_weights_in_one_piece(process: str, gating: str) -> None:
    """Where gating looks at its own token only, adaptation is linear."""
    made = task(f"rules/{process}", rules=3)
    members = stack(made, f"rules-{process}", gating)
    examples = made.sample("iid", 400, data_seed="test")
    weights = predict(members, examples, made.spec, ["gating.weights"])["gating.weights"]
    for scores, own in zip(found(made, members), weights, strict=True):
        matrix = activation_matrix(own, examples.factors["rule"], 3)
        for metric in (alignment, collapse_avg, adaptation):
            assert scores[metric.__name__] == pytest.approx(metric(matrix), abs=1e-6)


@pytest.mark.parametrize("process", ["mha", "rnn"])
def test_adaptation_is_sampled_where_weights_depend_on_other_tokens(process: str) -> None:
    made = task(f"rules/{process}", rules=3)
    members = stack(made, f"rules-{process}", "joint")
    scores = found(made, members)

    def sampler(prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        drawn = task(f"rules/{process}", rules=3, prior=tuple(prior.tolist())).sample("iid", 30, data_seed="test")
        return predict(members, drawn, made.spec, ["gating.weights"])["gating.weights"][1], drawn.factors["rule"]

    assert scores[1]["adaptation"] == pytest.approx(adaptation(sampler, made.pi), abs=1e-6)  # type: ignore[attr-defined]
    assert 0 < scores[1]["adaptation"] < 1


@pytest.mark.parametrize("gating", ["operation", "joint"])
def test_a_router_has_the_metrics_of_weights_and_of_p(gating: str) -> None:
    made = task("rules/mha", rules=3)
    plain = stack(made, "rules-mha", gating)
    hard = [build(options("rules-mha", gating=gating, width=4, router="topk"), made.spec, seed) for seed in range(2)]
    for routed, soft in zip(found(made, Stack(hard)), found(made, plain), strict=True):
        assert routed["probability_alignment"] == pytest.approx(soft["alignment"], abs=1e-5)
        assert (
            routed["token_entropy"] == 0 < routed["probability_token_entropy"]
        )  # the weights that are read are one-hot
        assert ("probability_adaptation" in routed) == (gating == "operation")  # elsewhere it would have to be sampled
        assert "probability_alignment" not in soft


def test_what_has_no_modules_or_no_rules_says_so() -> None:
    made = task("rules/mlp", rules=3)
    alone = stack(made, "rules-mlp", "none")
    assert left_out(alone, made, ASKED) == ["specialization left out: the model captures no gating.weights"]
    assert found(made, alone) == [{}, {}]
    other = task("retrieval/T1", length=3)
    seen = Stack([build(options("retrieval-transformer", width=4), other.spec, 0)])
    assert left_out(seen, other, ASKED) == ["specialization left out: it is about tasks made by rules"]

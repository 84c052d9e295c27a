"""What each rule scores, and the worst of them: in a store's records like any other measure."""

from __future__ import annotations

import numpy as np
import pytest

from unseen.models import options
from unseen.models.build import build
from unseen.tasks import task
from unseen.training.evaluate import evaluate, left_out, predict
from unseen.training.recipe import Evaluation
from unseen.training.stack import Stack

ASKED = Evaluation(splits=("iid", "ood/rules=uniform"), examples=300, analyses=("by-rule",))


@pytest.mark.parametrize("setting", ["classification", "regression"])
@pytest.mark.parametrize("process", ["mlp", "mha", "rnn"])
def test_rules_are_measured_token_by_token(process: str, setting: str) -> None:
    made = task(f"rules/{process}", rules=4, prior=(0.5, 0.4, 0.1, 0.0), setting=setting)
    stack = Stack([build(options(f"rules-{process}", width=4), made.spec, seed) for seed in range(2)])
    found = evaluate(stack, made, ASKED)
    for split, occurring in (("iid", 3), ("ood/rules=uniform", 4)):
        examples = made.sample(split, 300, data_seed="test")
        answers = predict(stack, examples, made.spec)["prediction"]
        for own, rows in zip(answers, found, strict=True):
            got = {(m.factor, m.level, m.metric): m for m in rows if m.split == split}
            rule, targets = examples.factors["rule"], examples.targets
            if setting == "classification":
                scores = {"accuracy": (own >= 0) == targets}
            else:
                scores = {"loss": np.abs(own - targets.astype(float)), "relative_loss": np.abs(own - targets)}
            for metric, value in scores.items():
                each = [value[rule == r].mean() for r in range(occurring)]
                if metric == "relative_loss":
                    each = [one / np.abs(targets[rule == r]).mean() for r, one in enumerate(each)]
                for r, expected in enumerate(each):
                    measure = got["rule", str(r), f"by-rule/{metric}"]
                    assert (measure.value, measure.n) == (pytest.approx(expected, rel=1e-5), (rule == r).sum())
                worst = got["", "", f"by-rule/worst_{metric}"]
                assert worst.value == pytest.approx((min if metric == "accuracy" else max)(each), rel=1e-5)
            assert ("rule", str(occurring), f"by-rule/{metric}") not in got


def test_nobody_else_has_rules() -> None:
    other = task("retrieval/T1", length=3)
    stack = Stack([build(options("retrieval-transformer", width=4), other.spec, 0)])
    asked = Evaluation(examples=20, analyses=("by-rule",))
    assert left_out(stack, other, asked) == ["by-rule left out: it is about tasks made by rules"]
    assert not any(m.metric.startswith("by-rule") for m in evaluate(stack, other, asked)[0])

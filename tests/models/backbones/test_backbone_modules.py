"""The modular backbone on tasks made by rules: who learns from whom, and what the specialization metrics say of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from unseen.analysis.specialization_metrics import specialization
from unseen.models import options
from unseen.models.backbones.modular import Modular
from unseen.models.build import build
from unseen.tasks import task
from unseen.training.analyses import rules_specialization
from unseen.training.evaluate import predict
from unseen.training.recipe import Evaluation
from unseen.training.stack import Stack

RULES = 4
ASKED = Evaluation.parse({"activation_examples": 400})


def modular(kind: str, gating: str, **given: object) -> Modular:
    made = task(f"rules/{kind}", rules=RULES)
    module = build(options("modular", width=16, heads=2, gating=gating, **given), made.spec, 1)
    assert isinstance(module, Modular)
    return module


def of_modules(block: torch.nn.Module, gradients: dict[str, Tensor]) -> list[float]:
    """The largest gradient in each module's own numbers."""
    units = block.mixture.first_bias.shape[1]
    found = []
    for m in range(RULES):
        own = slice(m * units, (m + 1) * units)
        parts = [
            gradients["first"][0][:, own],
            gradients["first_bias"][m],
            gradients["second"][own],
            gradients["second"][RULES * units + m],
        ]
        found.append(max(float(part.abs().max()) for part in parts))
    return found


@pytest.mark.parametrize("rule", range(RULES))
@pytest.mark.parametrize("kind", ["mlp", "mha", "rnn"])
def test_under_truth_a_module_learns_from_its_rule_alone(kind: str, rule: int) -> None:
    module, made = modular(kind, "truth"), task(f"rules/{kind}", rules=RULES)
    drawn = made.sample("train", 50)
    inputs = {name: torch.as_tensor(values) for name, values in drawn.inputs.items()}
    inputs["rule"] = torch.full_like(inputs["rule"], rule)
    module(inputs).square().sum().backward()
    for block in module.blocks:
        gradients = {name: p.grad for name, p in block.mixture.named_parameters()}
        largest = of_modules(block, gradients)
        assert largest[rule] > 0 and not any(largest[:rule] + largest[rule + 1 :])


def test_without_truth_all_modules_learn_from_every_rule() -> None:
    made = task("rules/mlp", rules=RULES)
    inputs = {name: torch.as_tensor(values) for name, values in made.sample("train", 50).inputs.items()}
    inputs["rule"] = torch.zeros_like(inputs["rule"])
    for gating in ("joint", "operation"):
        module = modular("mlp", gating)
        module(inputs).square().sum().backward()
        assert all(of_modules(module.blocks[0], {n: p.grad for n, p in module.blocks[0].mixture.named_parameters()}))


@pytest.mark.parametrize("kind", ["mlp", "mha", "rnn"])
def test_specialization_of_every_gating(kind: str) -> None:
    """Under truth there is nothing to wish for; without gating nothing to measure; else numbers come out."""
    made = task(f"rules/{kind}", rules=RULES)
    shown = made.sample(made.validation, 400, data_seed="test")
    for gating in ("joint", "operation", "truth"):
        stack = Stack([modular(kind, gating)])
        assert rules_specialization.unavailable(stack, made) is None
        weights = predict(stack, shown, made.spec, [rules_specialization.WEIGHTS])[rules_specialization.WEIGHTS]
        assert weights.shape == (1, 400, *(() if kind == "mlp" else (10,)), RULES)
        scores = specialization(weights[0], shown.factors["rule"], made.pi)
        assert all(math.isfinite(score.value) for score in scores.values())
        if stack.skeleton.local_gating:  # else the engine samples adaptation, which takes long
            measured = rules_specialization.specialization(stack, made, ASKED)[0]
            assert {name: score.value for name, score in measured.items()} == pytest.approx(
                {name: score.value for name, score in scores.items()}
            )
        if gating == "truth":
            assert scores["alignment"].value == scores["collapse_avg"].value == scores["collapse_worst"].value == 0
            assert scores["adaptation"].value < 1e-6
        else:
            assert scores["alignment"].value > 0.1
    missing = rules_specialization.unavailable(Stack([modular(kind, "none")]), made)
    assert missing is not None and missing.reason == "the model captures no gating.weights"


def test_gating_is_called_local_where_it_is() -> None:
    """Where it is, another token's numbers change no weight; where it is not, they do."""
    for kind in ("mlp", "mha", "rnn"):
        made = task(f"rules/{kind}", rules=RULES)
        for gating in ("joint", "operation", "truth"):
            module = modular(kind, gating)
            assert module.local_gating == (gating != "joint" or kind == "mlp")
            if kind == "mlp":
                continue
            one = made.sample(made.validation, 5)
            other = {name: values.copy() for name, values in one.inputs.items()}
            other[made.spec.inputs[0].name][:, 1:] *= -2
            stack = Stack([module])
            before, after = (
                predict(stack, type(one)(inputs, one.targets, one.factors), made.spec, [rules_specialization.WEIGHTS])[
                    rules_specialization.WEIGHTS
                ][0, :, 0]
                for inputs in (one.inputs, other)
            )
            assert np.array_equal(before, after) == module.local_gating

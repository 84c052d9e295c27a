"""Auxiliary losses: worked numbers at balance, at collapse and at perfect specialization; a factor of 0 changes nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from support.rules_cases import spec
from support.stacks import Members
from unseen.models import options
from unseen.models.layers.auxiliary import (
    AuxiliaryTerm,
    entropies,
    entropy_loss,
    importance_loss,
    rule_cross_entropy,
    rule_information_loss,
    switch_loss,
    z_loss,
)
from unseen.training.stack import Stack

M = 4
RULES = torch.arange(M).repeat(8)
ONE_TO_ONE = torch.eye(M, dtype=torch.float64)[:, RULES] * 60
"""Every rule has its own module: balanced and decisive."""
COLLAPSED = torch.zeros(M, len(RULES), dtype=torch.float64)
COLLAPSED[2] = 60
UNIFORM = torch.zeros(M, len(RULES), dtype=torch.float64)


def test_switch() -> None:
    """λ at balance; λ M if one module has everything; with f as a constant, the gradient is that of P alone."""
    assert switch_loss(ONE_TO_ONE).item() == pytest.approx(1)
    assert switch_loss(COLLAPSED).item() == pytest.approx(M)
    term = AuxiliaryTerm.parse("switch").loss(ONE_TO_ONE, RULES, M, lambda: torch.arange(M))
    assert term.item() == pytest.approx(0.01)


def test_importance() -> None:
    assert importance_loss(ONE_TO_ONE).item() == pytest.approx(0, abs=1e-12)
    assert importance_loss(UNIFORM).item() == pytest.approx(0, abs=1e-12)
    assert importance_loss(COLLAPSED).item() == pytest.approx(M - 1)  # population standard deviation √3/4 over 1/4


def test_entropy() -> None:
    assert entropy_loss(ONE_TO_ONE).item() == pytest.approx(-math.log(M))
    assert entropy_loss(UNIFORM).item() == pytest.approx(0, abs=1e-12)
    assert entropy_loss(COLLAPSED).item() == pytest.approx(0, abs=1e-12)
    assert entropies(UNIFORM)[0].item() == pytest.approx(math.log(M))


def test_mi_rule() -> None:
    assert rule_information_loss(ONE_TO_ONE, RULES, M).item() == pytest.approx(-math.log(M))
    assert rule_information_loss(COLLAPSED, RULES, M).item() == pytest.approx(0, abs=1e-12)
    pairs = torch.eye(M, dtype=torch.float64)[:, RULES // 2] * 60  # two rules share a module
    assert rule_information_loss(pairs, RULES, M).item() == pytest.approx(-math.log(2))


def test_mi_rule_against_the_metric() -> None:
    """With equally frequent rules it is the mutual information of the activation matrix."""
    logits = torch.randn(M, len(RULES), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    p = logits.softmax(0).numpy()
    joint = np.stack([p[:, RULES.numpy() == r].mean(1) for r in range(M)]) / M
    expected = (joint * np.log(joint / (joint.sum(0) * joint.sum(1, keepdims=True)))).sum()
    assert rule_information_loss(logits, RULES, M).item() == pytest.approx(-expected)


def test_gt_ce_and_z() -> None:
    assert rule_cross_entropy(UNIFORM, RULES).item() == pytest.approx(math.log(M))
    assert rule_cross_entropy(ONE_TO_ONE, RULES).item() == pytest.approx(0, abs=1e-12)
    assert z_loss(UNIFORM).item() == pytest.approx(math.log(M) ** 2)
    assert AuxiliaryTerm.parse("z").loss(UNIFORM, RULES, M, lambda: torch.arange(M)).item() == pytest.approx(
        1e-3 * math.log(M) ** 2
    )


@pytest.mark.parametrize("loss", [switch_loss, importance_loss, entropy_loss, z_loss])
def test_gradients_are_finite_where_probabilities_are_0(loss: Any) -> None:
    logits = (ONE_TO_ONE * 1e7).requires_grad_()
    (gradient,) = torch.autograd.grad(loss(logits), logits)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("term", ["switch", "importance", "entropy", "mi_rule", "gt_ce", "z"])
def test_descent_improves_its_own_goal(term: str) -> None:
    logits = torch.randn(M, len(RULES), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    logits[0] += 1
    logits.requires_grad_()
    values = []
    for _ in range(40):
        value = AuxiliaryTerm.parse(f"{term}(1)").loss(logits, RULES, M, lambda: torch.arange(M))
        values.append(value.item())
        (gradient,) = torch.autograd.grad(value, logits)
        logits = (logits - gradient).detach().requires_grad_()
    assert values[-1] < values[0] - 1e-4


# -- in models ------------------------------------------------------------------------------------------------------------


def losses_and_gradients(given: dict[str, Any], problem: Any) -> tuple[Tensor, list[Tensor]]:
    members = Members(options("rules-mlp", width=8, **given), problem, 16, count=2)
    stack = Stack(members.modules)
    inputs, targets = members.data(0, [0, 1])
    losses = stack.losses(inputs, targets, problem.target, [0, 1], step=0, steps=10)
    return losses, list(torch.autograd.grad(losses.sum(), list(stack.parameters.values())))


@pytest.mark.parametrize("kind", ["binary", "real"])
def test_a_factor_of_0_has_the_same_bits(kind: str) -> None:
    plain = losses_and_gradients({}, spec("rules-mlp", 4, kind))
    without = losses_and_gradients(
        {"aux": ("switch(0)", "gt_ce(0)"), "module_dropout": 0.0}, spec("rules-mlp", 4, kind)
    )
    assert torch.equal(plain[0], without[0])
    assert all(torch.equal(a, b) for a, b in zip(plain[1], without[1], strict=True))


@pytest.mark.parametrize("kind", ["binary", "real"])
def test_the_loss_keeps_its_value_and_its_gradient_gains_the_term(kind: str) -> None:
    """Independently: the gradient of the term alone, with p from the scorer itself."""
    problem = spec("rules-mlp", 4, kind)
    plain, plain_gradients = losses_and_gradients({"gating": "operation"}, problem)
    losses, gradients = losses_and_gradients({"gating": "operation", "aux": "importance(0.5)"}, problem)
    torch.testing.assert_close(losses, plain)
    members = Members(options("rules-mlp", width=8, gating="operation"), problem, 16, count=2)
    for index, module in enumerate(members.modules):
        rule = members.data(0, [0, 1])[0]["rule"][index]
        importance = module.scorer(module.rule()).softmax(-1)[rule].mean(0)  # type: ignore[operator]
        term = 0.5 * (importance.std(correction=0) / importance.mean()) ** 2
        added = torch.autograd.grad(term, list(module.parameters()), allow_unused=True, materialize_grads=True)
        for before, after, change in zip(plain_gradients, gradients, added, strict=True):
            torch.testing.assert_close(after[index], before[index] + change, atol=1e-6, rtol=1e-4)


def test_gt_ce_brings_modules_to_their_rules() -> None:
    """λ → ∞ tends to GT-Modular: with a large factor alone, the module of every rule is the rule's."""
    problem = spec("rules-mlp", 4)
    members = Members(options("rules-mlp", width=8, gating="operation", aux="gt_ce(1000)"), problem, 64, count=1)
    stack = Stack(members.modules)
    inputs, targets = members.data(0, [0])
    optimizer = torch.optim.Adam(list(stack.parameters.values()), 1e-2)
    for step in range(150):
        optimizer.zero_grad()
        stack.losses(inputs, targets, problem.target, [0], step, 150).sum().backward()
        optimizer.step()
    own = {name: value[0] for name, value in inputs.items()}
    _, captured = stack.predict(own, ["gating.weights"])
    truth = torch.nn.functional.one_hot(own["rule"], 4).to(torch.float32)
    assert (captured["gating.weights"][0] - truth).abs().max() < 0.05

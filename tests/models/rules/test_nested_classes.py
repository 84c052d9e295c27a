"""The function classes of the four families nest, as the paper's appendix on them argues: weights that show it.

Given a model of the more constrained family, weights of the next one that compute the same function. Everything is
rules/mlp, in double precision, and both models have equal inner widths (`core` and `modules`):

    GT-Modular ⊆ Modular-op ⊆ Modular, and GT-Modular ⊆ Monolithic with a core that is wide enough.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from support.rules_cases import spec
from unseen.models import options
from unseen.models.build import build
from unseen.models.context import Context

RULES = 4
SHARP = 80.0
"""A softmax of logits this far apart is one-hot to double precision: e⁻⁸⁰ is 2 · 10⁻³⁵."""


def make(gating: str, seed: int, **given: Any) -> nn.Module:
    return build(
        options("rules-mlp", **{"gating": gating, "width": 8, **given}), spec("rules-mlp", RULES, "real"), seed
    ).double()


def inputs(count: int = 64) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = 3 * torch.randn(count, 2, generator=generator, dtype=torch.float64)
    return {"x": x, "rule": torch.arange(count) % RULES}


def shared_parts(source: nn.Module) -> dict[str, Tensor]:
    """The parameters that all families have in common: encoders, modules, decoder."""
    return {name: value for name, value in source.state_dict().items() if "score" not in name}


def load(target: nn.Module, state: dict[str, Tensor]) -> None:
    assert target.load_state_dict({**target.state_dict(), **state}).missing_keys == []


def assert_equal_functions(given: nn.Module, built: nn.Module, tolerance: float = 1e-12) -> None:
    with torch.no_grad():
        expected = given(inputs())
        assert expected.std() > 1e-3  # not a constant, on which all models agree
        torch.testing.assert_close(built(inputs()), expected, rtol=0, atol=tolerance)


def rule_functionals(model: Any) -> tuple[Tensor, Tensor]:
    """Linear functionals of the encoded rule, (width, RULES), and offsets, that are 1 for a rule and 0 for the others."""
    codes = model.rule().detach()
    rows = torch.cat([codes, torch.ones(RULES, 1, dtype=codes.dtype)], 1)
    solved = torch.linalg.pinv(rows)  # the codes are in general position: width ≥ RULES − 1
    torch.testing.assert_close(rows @ solved, torch.eye(RULES, dtype=codes.dtype), rtol=0, atol=1e-8)
    return solved[:-1], solved[-1]


@pytest.mark.parametrize("seed", range(3))
def test_operation_contains_truth(seed: int) -> None:
    """The scorer, linear in the encoded rule, gives the module of the rule a logit that is higher by 80."""
    truth, operation = make("truth", seed), make("operation", seed + 10)
    load(operation, shared_parts(truth))
    weight, offset = rule_functionals(operation)
    load(operation, {"scorer.weight": SHARP * weight, "scorer.bias": SHARP * offset})
    assert_equal_functions(truth, operation)


@pytest.mark.parametrize("seed", range(3))
def test_joint_contains_operation(seed: int) -> None:
    """Each module computes the logit of the operation from its own hidden units, of which it needs two more.

    The logit is linear in the encoded rule; ReLU(z) − ReLU(−z) = z carries it through the hidden layer.
    """
    units = 6
    operation: Any = make("operation", seed, core=units * RULES)
    joint: Any = make("joint", seed + 10, core=(units + 2) * RULES)
    width, core = 8, units * RULES
    source, target = operation.state_dict(), joint.state_dict()
    state = {name: value for name, value in source.items() if name.startswith(("number.", "rule.", "decoder."))}

    first = torch.zeros_like(target["core.first"]).view(-1, RULES, units + 2)
    first[..., :units] = source["core.first"].view(-1, RULES, units)
    bias = torch.zeros_like(target["core.first_bias"])
    bias[:, :units] = source["core.first_bias"]
    # Two units per module: the logit of the module, and its negative, from the last `width` inputs, the encoded rule.
    for sign, unit in ((1, units), (-1, units + 1)):
        first[-width:, :, unit] = sign * source["scorer.weight"]
        bias[:, unit] = sign * source["scorer.bias"]
    state["core.first"], state["core.first_bias"] = first.view_as(target["core.first"]), bias
    score = torch.zeros_like(target["core.score"])
    score[:, units], score[:, units + 1] = 1, -1
    state["core.score"], state["core.score_bias"] = score, torch.zeros_like(target["core.score_bias"])

    # The outputs of the modules are wider; what is added is 0, and the decoder does not read it.
    second = torch.zeros_like(target["core.second"])
    rows = second[: RULES * (units + 2)].view(RULES, units + 2, -1)
    rows[:, :units, :core] = source["core.second"][: RULES * units].view(RULES, units, -1)
    second[RULES * (units + 2) :, :core] = source["core.second"][RULES * units :]
    state["core.second"] = second
    decoder = torch.zeros_like(target["decoder.hidden.weight"])
    decoder[:core] = source["decoder.hidden.weight"]
    state["decoder.hidden.weight"] = decoder

    load(joint, state)
    assert_equal_functions(operation, joint)
    own = inputs()
    weights = []
    for model in (operation, joint):
        ctx = Context(wanted=["gating.weights"])
        model(own, ctx)
        weights.append(ctx.captured["gating.weights"])
    torch.testing.assert_close(weights[0], weights[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_monolithic_contains_truth(seed: int) -> None:
    """One module whose hidden layer holds the units of all: those of other rules are pushed below 0 by the rule.

    ReLU(w z + b − C (1 − [rule is m])) is the unit of module m under its rule and 0 under all others, if C is larger
    than any |w z + b| that occurs: exact on a bounded set of inputs, as any such construction with ReLU gates is.
    """
    truth: Any = make("truth", seed)
    units, core = 8, 32
    alone: Any = make("none", seed + 10, core=(units + 1) * RULES)
    source, target = truth.state_dict(), alone.state_dict()
    state = {name: value for name, value in source.items() if name.startswith(("number.", "rule.", "decoder."))}
    weight, offset = rule_functionals(truth)
    barrier = 1e3

    inner = target["core.first"].shape[-1]
    first = torch.zeros_like(target["core.first"]).view(-1, inner)
    bias = torch.zeros_like(target["core.first_bias"]).view(-1)
    second = torch.zeros_like(target["core.second"])
    second_source = source["core.second"]
    for module in range(RULES):
        columns = slice(module * units, (module + 1) * units)
        first[:, columns] = source["core.first"].view(-1, RULES, units)[:, module]
        first[-8:, columns] += barrier * weight[:, module, None]
        bias[columns] = source["core.first_bias"][module] + barrier * (offset[module] - 1)
        second[columns, :core] = second_source[columns]
        # One more unit per rule: 1 under the rule, else 0; it carries the second bias of the module.
        indicator = RULES * units + module
        first[-8:, indicator] = weight[:, module]
        bias[indicator] = offset[module]
        second[indicator, :core] = second_source[RULES * units + module]
    state["core.first"] = first.view_as(target["core.first"])
    state["core.first_bias"] = bias.view_as(target["core.first_bias"])
    state["core.second"] = second
    decoder = torch.zeros_like(target["decoder.hidden.weight"])
    decoder[:core] = source["decoder.hidden.weight"]
    state["decoder.hidden.weight"] = decoder
    load(alone, state)
    assert_equal_functions(truth, alone, tolerance=1e-8)

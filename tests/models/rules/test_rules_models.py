"""What makes the models of the rules family what they are: where they start, what they see, what they ignore."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from support.rules_cases import ALL, GATINGS, named, spec
from support.specimens import random_inputs
from unseen.analysis import collapse_avg, collapse_worst, ideal_partition
from unseen.errors import UsageError
from unseen.models import options
from unseen.models.build import build
from unseen.models.context import Context
from unseen.models.rules.attention import attend_to_others
from unseen.models.rules.sizes import RNNSizes
from unseen.tasks import task as make_task

MODELS = ("rules-mlp", "rules-mha", "rules-rnn")


def made(name: str, rules: int = 4, kind: str = "binary", **given: Any) -> nn.Module:
    return build(options(name, **{"width": 8, **given}), spec(name, rules, kind))


def drawn(name: str, rules: int = 4, batch: int = 6, length: int = 10, seed: int = 0) -> dict[str, Tensor]:
    return random_inputs(spec(name, rules), batch, seed, lengths={"tokens": length})


def traced(module: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
    ctx = Context(wanted=["gating.weights"])
    module(inputs, ctx)
    return ctx.captured["gating.weights"]


def bounds(name: str, gating: str, module: nn.Module, rules: int) -> dict[str, float]:
    """The largest start value of each parameter, from the widths alone: one over the root of its fan-in."""
    sizes = module.sizes
    e, inner = sizes.width, sizes.inner
    if name == "rules-mlp":
        fan_in = {
            "number.0": 1,
            "number.2": e,
            "rule.first": rules,
            "rule.second": e,
            "scorer": e,
            "decoder.hidden": sizes.core,
            "decoder.answer": e,
            "core.first": 3 * e,
            "core.second": inner,
            "core.score": inner,
        }
    else:
        features = sizes.inputs + rules
        fan_in = {
            "encoder.hidden": features,
            "encoder.output": e,
            "project": e,
            "decoder.hidden": e,
            "decoder.answer": e,
        }
    if name == "rules-mha":
        fan_in |= {
            "core.first": (sizes.heads + 1) * sizes.head,
            "core.second": inner,
            "core.score": inner,
            "scorer.first": rules,
            "scorer.second": sizes.head,
        }
    if name == "rules-rnn":
        fan_in |= {
            "input_weight": inner if gating == "none" else e,
            "state_weight": inner,
            "bias": inner,
            "score": 8 * inner,
            "decoder.hidden": inner,
            "decoder.answer": inner,
            "scorer.first": rules,
            "scorer.second": inner,
        }
    return {
        parameter: next(
            fan_in[prefix] for prefix in sorted(fan_in, key=len, reverse=True) if parameter.startswith(prefix)
        )
        ** -0.5
        for parameter, _ in module.named_parameters()
    }


@pytest.mark.parametrize("case", ALL, ids=named)
def test_parameters_start_uniform_within_one_over_root_fan_in(case: tuple[str, dict[str, Any]]) -> None:
    name, given = case
    module = made(name, width=64, **given)
    for parameter, bound in bounds(name, given["gating"], module, 4).items():
        values = module.get_parameter(parameter).detach().flatten() / bound
        assert values.abs().max() <= 1, parameter
        if len(values) > 200:  # the largest of so many is near the bound, and the spread that of a uniform
            assert values.abs().max() > 0.97, parameter
            assert abs(values.square().mean() - 1 / 3) < 4 * (4 / 45 / len(values)) ** 0.5, parameter
            assert abs(values.mean()) < 4 * (1 / 3 / len(values)) ** 0.5, parameter


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("gating", GATINGS[1:])
def test_weights_are_probabilities_and_as_the_gating_says(name: str, gating: str) -> None:
    module, inputs = made(name, gating=gating), drawn(name, batch=40)
    weights, rule = traced(module, inputs), inputs["rule"]
    assert weights.shape == (*rule.shape, 4)
    torch.testing.assert_close(weights.sum(-1), torch.ones(rule.shape))
    assert (weights >= 0).all()
    spread = torch.stack([(of.amax(0) - of.amin(0)).max() for of in (weights[rule == r] for r in range(4))])
    if gating == "joint":
        assert (spread > 1e-4).all()
    else:  # it depends on the rule alone
        assert (spread == 0).all()
    if gating == "truth":
        assert torch.equal(weights.argmax(-1), rule) and set(weights.unique().tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("name", MODELS)
def test_truth_with_other_numbers_of_modules(name: str) -> None:
    inputs = drawn(name, 5)
    rule = inputs["rule"]
    for given, expected in (
        ({"modules": 2}, rule % 2),
        ({"modules": 8}, rule),
        ({"modules": 3, "partition": (2, 2, 0, 1, 0)}, torch.tensor([2, 2, 0, 1, 0])[rule]),
    ):
        assert torch.equal(traced(made(name, 5, gating="truth", **given), inputs).argmax(-1), expected)


@pytest.mark.parametrize("gating", ["joint", "operation", "truth"])
@pytest.mark.parametrize("name", MODELS)
def test_the_order_of_modules_does_not_matter(name: str, gating: str) -> None:
    """Under `truth` the rules that choose them are exchanged, too."""
    partition = {"partition": (3, 0, 1, 2)} if gating == "truth" else {}
    module, moved = made(name, gating=gating).double(), made(name, gating=gating, **partition).double()
    order = [1, 2, 3, 0]
    with torch.no_grad():
        for parameter, value in module.named_parameters():
            moved.get_parameter(parameter).copy_(permuted(parameter, value, order, module))
    inputs = {k: v.double() if v.is_floating_point() else v for k, v in drawn(name).items()}
    torch.testing.assert_close(moved(inputs), module(inputs), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(traced(moved, inputs), traced(module, inputs)[..., order], rtol=1e-10, atol=1e-12)


def permuted(parameter: str, value: Tensor, order: list[int], module: nn.Module) -> Tensor:
    """A parameter with its modules in another order."""
    modules, sizes = len(order), module.sizes
    if parameter in ("core.first_bias", "core.score", "core.score_bias"):
        return value[order]
    if parameter == "core.first" and len(value) > 1:
        return value[order]
    if parameter == "core.first":
        return value.unflatten(2, (modules, -1))[:, :, order].flatten(2)
    if parameter == "core.second":
        weight, bias = value.split([modules * sizes.inner, modules])
        return torch.cat([weight.unflatten(0, (modules, -1))[order].flatten(0, 1), bias[order]])
    if parameter in ("input_weight", "state_weight", "score", "bias"):
        return value[:, :, order]
    if parameter.startswith("project"):
        split = value.split([modules * sizes.heads * sizes.head] * 3 + [modules * sizes.head], -1)
        return torch.cat([part.unflatten(-1, (modules, -1))[..., order, :].flatten(-2) for part in split], -1)
    if parameter in ("scorer.weight", "scorer.bias", "scorer.second.weight", "scorer.second.bias"):
        return value[..., order]
    return value


@pytest.mark.parametrize("gating", GATINGS)
@pytest.mark.parametrize("length", [2, 3, 10, 30])
def test_attention_does_not_know_the_order_of_tokens(gating: str, length: int) -> None:
    module, inputs = made("rules-mha", gating=gating).double(), drawn("rules-mha", length=length)
    inputs["features"] = inputs["features"].double()
    order = torch.randperm(length, generator=torch.Generator().manual_seed(1))
    moved = {k: v[:, order] for k, v in inputs.items()}
    torch.testing.assert_close(module(moved), module(inputs)[:, order], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("gating", GATINGS)
def test_a_token_does_not_attend_to_itself(gating: str) -> None:
    """Keys and values of a token have no influence on its own answer: only queries and the self path have."""
    module = made("rules-mha", gating=gating)
    sizes = module.sizes
    looking = sizes.modules * sizes.heads * sizes.head
    code = torch.randn(10 * 3, sizes.encoded)
    projected = module._project(code).detach().view(-1, 10, 3)
    changed = projected.clone()
    changed[looking : 3 * looking, 4] = 7.0
    before, after = (
        attend_to_others(projected, sizes.modules, sizes.heads),
        attend_to_others(changed, sizes.modules, sizes.heads),
    )
    assert torch.equal(before[:, :, 4], after[:, :, 4])
    assert not torch.equal(before[:, :, 5], after[:, :, 5])


@pytest.mark.parametrize("gating", GATINGS)
@pytest.mark.parametrize("cell", ["lstm", "elman"])
def test_recurrence_does_not_see_the_future(gating: str, cell: str) -> None:
    module, inputs = made("rules-rnn", gating=gating, cell=cell), drawn("rules-rnn")
    other = drawn("rules-rnn", seed=1)
    mixed = {k: torch.cat([v[:, :6], other[k][:, 6:]], 1) for k, v in inputs.items()}
    assert torch.equal(module(mixed)[:, :6], module(inputs)[:, :6])
    assert not torch.equal(module(mixed)[:, 6:], module(inputs)[:, 6:])
    assert torch.equal(module({k: v[:, :6] for k, v in inputs.items()}), module(inputs)[:, :6])


@pytest.mark.parametrize("name", MODELS)
def test_a_rule_s_module_alone_is_trained_under_truth(name: str) -> None:
    """Modules of rules that do not occur get no gradient; nor have their weights any influence."""
    module, inputs = made(name, gating="truth"), drawn(name)
    inputs["rule"] = inputs["rule"] % 2
    parameters = {k: v for k, v in module.named_parameters() if k.startswith(("core", "input_w", "state_w"))}
    prediction = module(inputs)
    gradients = torch.autograd.grad(prediction.sum(), list(parameters.values()))
    for (parameter, value), gradient in zip(parameters.items(), gradients, strict=True):
        exchanged = permuted(parameter, gradient, [2, 3, 0, 1], module)  # the two that occur with the two that do not
        assert gradient.any() and not (gradient * exchanged).any(), parameter
        with torch.no_grad():
            value += exchanged != 0
    assert torch.equal(module(inputs), prediction)


def test_evaluation_and_training_give_the_same_bits() -> None:
    for name in MODELS:
        for gating in GATINGS:
            module, inputs = made(name, gating=gating), drawn(name, length=30)
            with torch.no_grad():
                silent = module(inputs)
            assert torch.equal(silent, module(inputs))


@pytest.mark.parametrize("name", MODELS)
def test_what_a_step_keeps_is_let_go_at_once(name: str) -> None:
    """Without a cycle for the collector of garbage to find: it would come too late."""
    module, inputs = made(name), drawn(name)
    module(inputs)  # constants are made once and stay
    gc.collect()
    gc.disable()
    try:
        before = tensors()
        torch.autograd.grad(module(inputs).sum(), list(module.parameters()))
        assert tensors() == before
    finally:
        gc.enable()


@pytest.mark.parametrize("gating", ["joint", "operation", "truth"])
def test_a_second_way_back_is_refused_and_not_wrong(gating: str) -> None:
    """The backward pass of a mixture works in memory that the forward pass has kept."""
    module, inputs = made("rules-mlp", gating=gating), drawn("rules-mlp")
    loss, parameters = module(inputs).sum(), list(module.parameters())
    torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(loss, parameters, allow_unused=True)


def tensors() -> int:
    return sum(issubclass(type(thing), Tensor) for thing in gc.get_objects())


def test_foreign_specs_are_refused() -> None:
    for name, other in (("rules-mlp", "rules-rnn"), ("rules-rnn", "rules-mlp"), ("rules-mha", "rules-rnn")):
        with pytest.raises(UsageError) as error:
            build(options(name), spec(other))
        assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("name", MODELS)
def test_second_derivatives_are_refused(name: str) -> None:
    module, inputs = made(name), drawn(name)
    first = next(p for k, p in module.named_parameters() if k.startswith(("core", "input_weight")))
    (gradient,) = torch.autograd.grad(module(inputs).square().sum(), first, create_graph=True)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(gradient.sum(), first)


def test_a_whole_state_is_as_wide_as_without_gating() -> None:
    """C5: matched by parameters, the state that modules share shrinks with their number."""
    widths = {
        state: [RNNSizes(gating="truth", rules=rules, width=32, state=state).inner for rules in (2, 32)]
        for state in ("matched", "whole")
    }
    assert widths == {"matched": [91, 15], "whole": [128, 128]}
    with pytest.raises(UsageError, match="leave out match, or state"):
        options("rules-rnn", state="whole", match="exact")


@pytest.mark.parametrize("name", ["mlp", "mha", "rnn"])
def test_with_fewer_modules_than_uneven_rules_the_truth_balances_their_load(name: str) -> None:
    """Spec 6.9: the demand partition. Rule modulo modules would load zipf(1), R = 4, M = 2 with .64 and .36."""
    narrow = {"gating": "truth", "modules": 2, "width": 8}
    task = make_task(f"rules/{name}", rules=4, prior="zipf(1)")
    gate = build(options(f"rules-{name}", **narrow), task.spec).gate
    assert gate.partition == (0, 1, 1, 1) == tuple(ideal_partition(task.pi, 2))
    activation = np.eye(2)[list(gate.partition)]
    assert collapse_avg(activation, task.pi) == collapse_worst(activation, task.pi) == 0
    alternating = np.eye(2)[[0, 1, 0, 1]]
    assert round(collapse_avg(alternating, task.pi), 2) == 0.25
    # Nothing changes where rules are equally probable, or every rule has a module.
    even = make_task(f"rules/{name}", rules=4)
    assert build(options(f"rules-{name}", **narrow), even.spec).gate.partition == (0, 1, 0, 1)
    assert build(options(f"rules-{name}", gating="truth", width=8), task.spec).gate.partition == (0, 1, 2, 3)
    chosen = options(f"rules-{name}", **narrow, partition=(1, 0, 1, 0))
    assert build(chosen, task.spec).gate.partition == (1, 0, 1, 0)

"""Routers: their worked numbers and limits, noise that is a member's own, and what they leave unchanged at defaults."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from support.rules_cases import named, spec
from support.stacks import Members, assert_close_in_double, assert_same_bits, assert_same_training
from unseen.errors import UsageError
from unseen.models import options
from unseen.models.build import build
from unseen.models.context import Context, CountingContext
from unseen.models.layers.auxiliary import policy_loss
from unseen.models.layers.router import Router, RouterOptions, balance, choose_largest, straight_through
from unseen.training.optimizer import StackOptimizer
from unseen.training.recipe import recipe
from unseen.training.stack import Stack

MODELS = ("rules-mlp", "rules-mha", "rules-rnn")
ROUTERS: list[dict[str, Any]] = [
    {"router": "topk", "top_k": 1},
    {"router": "topk", "top_k": 2},
    {"router": "straight-through"},
    {"router": "gumbel"},
    {"router": "gumbel", "hard": True},
    {"router": "reinforce"},
    {"router": "sinkhorn"},
    {"temperature": 2.0, "last_temperature": 0.5},
    {"module_dropout": 0.3},
    {"uniform_steps": 5},
]
CASES = [
    (model, {"gating": gating, **router})
    for model in MODELS
    for gating in ("joint", "operation")
    for router in ROUTERS
    if router
    not in ({"router": "reinforce"}, {"uniform_steps": 5})  # scorers without a gradient: below, with the losses
]
LOGITS = torch.tensor([[2.0, 0.0, -1.0, 0.5], [1.0, 3.0, 0.0, 0.5], [0.0, -2.0, 4.0, 0.5]])
"""Three modules, four tokens; the last token has a tie."""


def make_router(modules: int = 3, **given: Any) -> Router:
    router = RouterOptions.parse({"name": "router", **given}).make_router(
        modules, modules, tuple(range(modules)), recurrent=False
    )
    assert router is not None
    return router


def training_context(like: Tensor, step: int = 0, steps: int = 100) -> Context:
    generator = torch.Generator().manual_seed(0)
    bits = torch.randint(-(2**15), 2**15, (8 * like.numel(),), generator=generator, dtype=torch.int16)
    return Context(bits, step=step, steps=steps)


# -- worked numbers -----------------------------------------------------------------------------------------------------


def test_top_k_of_all_modules_is_soft() -> None:
    assert torch.equal(choose_largest(LOGITS, 3)[0], LOGITS.softmax(0))
    given = {"name": "router", "router": "topk", "top_k": 3}
    assert RouterOptions.parse(given).make_router(3, 3, (0, 1, 2), recurrent=False) is None  # the untouched path


def test_top_2_renormalises() -> None:
    weights, shares = choose_largest(LOGITS, 2)
    expected = [[1 / (1 + math.exp(-1)), 1 / (1 + math.e), 0.0], [1 / (1 + math.exp(3)), 1 / (1 + math.exp(-3)), 0.0]]
    torch.testing.assert_close(weights[:, :2].T, torch.tensor(expected))
    assert weights[:, 3].tolist() == [0.5, 0.5, 0.0]  # in a tie, the first
    assert shares is weights


def test_top_1_is_the_unnormalised_p_with_one_hot_shares_and_a_gradient() -> None:
    logits = LOGITS.clone().requires_grad_()
    weights, shares = choose_largest(logits, 1)
    assert shares.T.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]
    torch.testing.assert_close(weights.sum(0), LOGITS.softmax(0).amax(0))
    (gradient,) = torch.autograd.grad(weights[0, 0], logits)
    p = LOGITS.softmax(0)[:, 0]
    torch.testing.assert_close(gradient[:, 0], p[0] * (torch.tensor([1.0, 0.0, 0.0]) - p))


def test_straight_through_is_one_hot_forward_and_soft_backward() -> None:
    factor = torch.tensor([[1.0], [-2.0], [0.5]])
    hard, soft = LOGITS.clone().requires_grad_(), LOGITS.clone().requires_grad_()
    weights = straight_through(hard.softmax(0))
    assert weights.T.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]
    (a,) = torch.autograd.grad((weights * factor).sum(), hard)
    (b,) = torch.autograd.grad((soft.softmax(0) * factor).sum(), soft)
    assert torch.equal(a, b)


def test_gumbel_becomes_one_hot_as_the_temperature_goes_to_0() -> None:
    logits = torch.zeros(3, 20_000)
    soft = make_router(router="gumbel", temperature=1e-4).route(logits, training_context(logits)).weights
    hard = make_router(router="gumbel", temperature=1e-4, hard=True).route(logits, training_context(logits)).weights
    assert ((soft.amax(0) > 0.99).to(torch.float32).mean()) > 0.99
    assert torch.equal(soft.argmax(0), hard.argmax(0))
    assert torch.equal(hard.sum(0), torch.ones(20_000))


@pytest.mark.parametrize("kind", ["gumbel", "reinforce"])
def test_noise_chooses_each_module_with_its_probability(kind: str) -> None:
    """The Gumbel-max trick: argmax of logit plus noise is a draw from softmax."""
    p = torch.tensor([0.5, 0.3, 0.2])
    logits = p.log()[:, None].repeat(1, 40_000)
    given = {"router": kind} | ({"hard": True} if kind == "gumbel" else {})
    shares = make_router(**given).route(logits, training_context(logits)).shares.mean(1)
    torch.testing.assert_close(shares, p, atol=0.01, rtol=0)


def test_annealing_reaches_the_last_temperature_at_80_percent() -> None:
    router = make_router(router="gumbel")
    assert router.temperature(0.0) == 1.0
    assert router.temperature(0.4) == pytest.approx(math.sqrt(0.1))
    assert router.temperature(0.8) == pytest.approx(0.1)
    assert router.temperature(1.0) == 0.1
    assert make_router(temperature=2.0).temperature(0.5) == 2.0  # soft routers keep theirs


def test_sinkhorn_balances_columns_and_sums_to_one() -> None:
    logits = torch.randn(4, 64, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    weights = balance(logits, 200)
    torch.testing.assert_close(weights.sum(0), torch.ones(64, dtype=torch.float64))
    torch.testing.assert_close(weights.sum(1), torch.full((4,), 16.0, dtype=torch.float64))
    assert (balance(logits, 10).sum(1) - 16).abs().max() < (logits.softmax(0).sum(1) - 16).abs().max() / 10
    # Scaling rows and columns keeps the ratios of odds.
    odds = weights[0, 0] * weights[1, 1] / (weights[0, 1] * weights[1, 0])
    torch.testing.assert_close(odds.log(), logits[0, 0] + logits[1, 1] - logits[0, 1] - logits[1, 0])
    router = make_router(4, router="sinkhorn")
    assert torch.equal(router.route(logits, Context()).weights, logits.softmax(0))  # in evaluation


def test_reinforce_by_hand() -> None:
    """Two sequences of two steps: losses 1, 3 and 5, 3; the loss from a step on is 2, 3 and 4, 3."""
    losses = torch.tensor([[1.0, 3.0], [5.0, 3.0]])
    log_chosen = torch.tensor([[-1.0, -2.0], [-0.5, -0.25]])
    entropy = torch.full((2, 2), 0.7)
    onward = policy_loss(log_chosen, entropy, losses, 0.01, onward=True)
    assert onward.item() == pytest.approx((-2 * -1.0 + 0 * -2.0 + 2 * -0.5 + 0) / 4 - 0.007)
    # Otherwise each token has its own loss, and the baseline is the mean of the other sequence: 4 and 2.
    token = policy_loss(log_chosen, entropy, losses, 0.0, onward=False)
    assert token.item() == pytest.approx((-3 * -1.0 + -1 * -2.0 + 3 * -0.5 + 1 * -0.25) / 4)


def test_reinforce_lowers_the_probability_of_the_worse_module() -> None:
    logits = torch.zeros(2, 2, requires_grad=True)  # two modules, two tokens: token 0 takes module 0, token 1 module 1
    log_chosen = logits.log_softmax(0).diagonal()
    policy_loss(log_chosen, torch.zeros(2), torch.tensor([2.0, 1.0]), 0.0, onward=False).backward()
    assert logits.grad is not None
    assert logits.grad[0, 0] > 0 > logits.grad[1, 1]  # descent: module 0 of token 0 down, module 1 of token 1 up


# -- in models ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=named)
def test_stack_is_solo_with_noise(case: tuple[str, dict[str, Any]]) -> None:
    name, given = case
    members = Members(options(name, **{"width": 8, **given}), spec(name, 4, "binary"), 7, count=5)
    assert_same_bits(members, [[0], [4], [3, 1]])


AUXILIARY = ("switch", "importance", "entropy", "mi_rule", "gt_ce", "z")
TRAINED = [
    *((model, {"gating": "joint", "router": "reinforce"}) for model in MODELS),
    *((model, {"gating": "operation", "router": "reinforce"}) for model in MODELS),
    *((model, {"gating": "joint", "uniform_steps": 5}) for model in MODELS),
    *((model, {"gating": "joint", "router": "gumbel", "aux": AUXILIARY}) for model in MODELS),
    *((model, {"gating": "operation", "aux": AUXILIARY}) for model in MODELS),
]


@pytest.mark.parametrize("rules", [1, 4])
@pytest.mark.parametrize("case", TRAINED, ids=named)
def test_objectives_of_a_stack_are_those_of_each_alone(case: tuple[str, dict[str, Any]], rules: int) -> None:
    name, given = case
    made = options(name, **{"width": 8, "modules": 3, **given})
    members = Members(made, spec(name, rules, "binary"), 7, count=5)
    target = members.spec.target

    def gradients(group: list[int]) -> tuple[Tensor, list[Tensor]]:
        stack = Stack([members.modules[m] for m in group])
        inputs, targets = members.data(0, group)
        losses = stack.losses(inputs, targets, target, group, step=3, steps=10)
        assert stack.together
        parameters = list(stack.parameters.values())
        return losses, list(torch.autograd.grad(losses.sum(), parameters, materialize_grads=True))

    losses, together = gradients([0, 1, 2, 3, 4])
    for group in ([0], [4], [3, 1]):
        group_losses, alone = gradients(group)
        assert torch.equal(group_losses, losses[group])
        for parameter, a, b in zip(members.names, alone, together, strict=True):
            assert torch.equal(a, b[group]), parameter
    # The value is the task's loss alone; the gradient is not.
    plain = Stack([build(options(name, width=8, modules=3, gating=given["gating"]), members.spec, 0)])
    assert plain.layout.shapes == Stack(members.modules[:1]).layout.shapes


@pytest.mark.parametrize("case", CASES[::7], ids=named)
def test_training_and_double_precision(case: tuple[str, dict[str, Any]]) -> None:
    name, given = case
    made = options(name, **{"width": 8, **given})
    assert_same_training(Members(made, spec(name, 4, "binary"), 7, count=12), 6, 11, [[11], [3, 2, 11]])
    assert_close_in_double(Members(made, spec(name, 4, "real"), 7, count=3, dtype=torch.float64), 4, [0])


@pytest.mark.parametrize("gating", ["joint", "operation"])
@pytest.mark.parametrize("model", MODELS)
def test_parameters_are_drawn_as_without_a_router(model: str, gating: str) -> None:
    plain = build(options(model, gating=gating), spec(model), 3)
    for router in ROUTERS:
        routed = build(options(model, gating=gating, **router), spec(model), 3)
        for (name, a), (other, b) in zip(plain.named_parameters(), routed.named_parameters(), strict=True):
            assert name == other
            assert torch.equal(a, b)


@pytest.mark.parametrize("gating", ["joint", "operation"])
@pytest.mark.parametrize("model", MODELS)
def test_the_path_of_routers_agrees_with_the_plain_one(model: str, gating: str) -> None:
    """An auxiliary loss changes no prediction: two ways to the same mixture, values and gradients."""
    problem = spec(model, 4, "real")
    made = [options(model, gating=gating, width=8, **given) for given in ({}, {"aux": "z"})]
    modules = [build(o, problem, 1).double() for o in made]
    members = Members(made[0], problem, 6, count=1, dtype=torch.float64)
    inputs, targets = members.data(0, [0], member=True)
    results = []
    for module in modules:
        prediction = module(inputs)
        loss = (prediction - targets).square().mean()
        results.append([prediction, *torch.autograd.grad(loss, list(module.parameters()))])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("gating", ["joint", "operation"])
@pytest.mark.parametrize("model", MODELS)
def test_what_is_captured(model: str, gating: str) -> None:
    """Shares that add up to 1 and p beside them; under a hard router the shares are one-hot."""
    problem = spec(model)
    for given in ROUTERS:
        module = build(options(model, gating=gating, width=8, **given), problem, 0)
        ctx = Context(wanted=["gating.weights", "gating.probabilities"])
        inputs, _ = Members(options(model, width=8), problem, 6, count=1).data(0, [0], member=True)
        module(inputs, ctx)
        shares, p = ctx.captured["gating.weights"], ctx.captured["gating.probabilities"]
        assert shares.shape == p.shape == (*inputs["rule"].shape, 4)
        torch.testing.assert_close(shares.sum(-1), torch.ones(inputs["rule"].shape))
        one_hot = given.get("router") in ("straight-through", "gumbel", "reinforce") or given.get("top_k") == 1
        assert bool((shares.amax(-1) == 1).all()) == one_hot
        assert torch.allclose(shares, p, atol=1e-6) == (not one_hot and given.get("top_k") != 2)


@pytest.mark.parametrize("model", MODELS)
def test_replaced_weights_are_mixed_with(model: str) -> None:
    problem = spec(model)
    inputs, _ = Members(options(model, width=8), problem, 6, count=1).data(0, [0], member=True)
    uniform = {"gating.weights": lambda weights: torch.full_like(weights, 0.25)}
    for gating in ("joint", "operation"):
        plain = build(options(model, gating=gating, width=8), problem, 0)
        hard = build(options(model, gating=gating, width=8, router="straight-through"), problem, 0)
        expected = plain(inputs, Context(replace=uniform))
        torch.testing.assert_close(hard(inputs, Context(replace=uniform)), expected, atol=1e-6, rtol=0)
        assert not torch.allclose(hard(inputs), expected, atol=1e-4)


def test_uniform_steps_and_module_dropout_act_in_training_alone() -> None:
    router = make_router(uniform_steps=5)
    assert torch.equal(router.route(LOGITS, training_context(LOGITS, 4)).weights, torch.full_like(LOGITS, 1 / 3))
    assert torch.equal(router.route(LOGITS, training_context(LOGITS, 5)).weights, LOGITS.softmax(0))
    assert torch.equal(router.route(LOGITS, Context()).weights, LOGITS.softmax(0))

    logits = torch.zeros(4, 20_000)
    dropping = make_router(4, module_dropout=0.3)
    assert torch.equal(dropping.route(logits, Context()).weights, logits.softmax(0))
    weights = dropping.route(logits, training_context(logits)).weights
    removed = (weights == 0).to(torch.float32)
    assert removed.sum(0).max() == 1
    torch.testing.assert_close(removed.mean(1), torch.full((4,), 0.3 / 4), atol=0.01, rtol=0)
    counting = CountingContext()
    dropping.route(logits, counting)
    assert counting.used == 4 * 20_000


def test_orthogonal_scorer() -> None:
    for model in MODELS:
        given = (
            {"gating": "operation", "width": 16, "gate_hidden": 8} if model == "rules-mha" else {"gating": "operation"}
        )
        module = build(options(model, orthogonal_router=True, **given), spec(model), 0)
        *_, (name, weight) = [(n, p) for n, p in module.named_parameters() if "scorer" in n and n.endswith("weight")]
        torch.testing.assert_close(weight.mT @ weight, torch.eye(4), atol=1e-5, rtol=0)
        plain = dict(build(options(model, **given), spec(model), 0).named_parameters())
        changed = [n for n, p in module.named_parameters() if not torch.equal(p, plain[n])]
        assert changed == [name]


def move(optimiser: str, gating: str, *, rate: float, router_rate: float = 1.0) -> dict[str, Tensor]:
    """How far a step moves each parameter of two members, from the same weights and gradients."""
    made = options("rules-mlp", width=8, gating=gating, router_rate=router_rate)
    stack = Stack([build(made, spec("rules-mlp"), seed).double() for seed in (0, 1)])
    assert (stack.rate_factors is None) == (router_rate == 1)
    recipes = [recipe(optimiser=optimiser, learning_rate=rate, weight_decay=0.1)] * 2
    before = stack.rows.clone()
    gradients = torch.randn(before.shape, generator=torch.Generator().manual_seed(3), dtype=before.dtype)
    StackOptimizer(stack.rows, recipes, stack.rate_factors).step(gradients, 0)
    return stack.layout.split(stack.rows - before)


@pytest.mark.parametrize("optimiser", ["adam", "adamw", "sgd"])
@pytest.mark.parametrize("gating", ["joint", "operation"])
def test_a_router_rate_moves_scorers_as_that_learning_rate_would(gating: str, optimiser: str) -> None:
    slow, fast = (move(optimiser, gating, rate=rate) for rate in (0.01, 0.03))
    faster_scorer = move(optimiser, gating, rate=0.01, router_rate=3.0)
    slower_scorer = move(optimiser, gating, rate=0.03, router_rate=1 / 3)
    assert sum("score" in name for name in slow) == 2
    for name in slow:
        first, second = (fast, slow) if "score" in name else (slow, fast)
        torch.testing.assert_close(faster_scorer[name], first[name], rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(slower_scorer[name], second[name], rtol=1e-9, atol=1e-12)
    assert not torch.allclose(slow["decoder.hidden.weight"], fast["decoder.hidden.weight"])


def test_a_router_rate_keeps_stack_and_solo_alike() -> None:
    made = options("rules-rnn", width=9, router_rate=0.1)
    modules = [build(made, spec("rules-rnn"), seed) for seed in range(5)]
    results = []
    for group in ([0, 1, 2, 3, 4], [4], [1, 4]):
        stack = Stack([modules[seed] for seed in group])
        optimizer = StackOptimizer(stack.rows, [recipe()] * len(group), stack.rate_factors)
        for step in range(4):
            gradients = torch.randn(5, stack.rows.shape[1], generator=torch.Generator().manual_seed(step))
            optimizer.step(gradients[group], step)
        results.append(stack.rows[-1])
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"router": "softmx"}, "router"),
        ({"gating": "truth", "router_rate": 2.0}, "gating 'truth' has no router"),
        ({"router_rate": 0.0}, "router_rate = 0.0"),
        ({"gating": "truth", "router": "topk"}, "gating 'truth' has no router"),
        ({"gating": "none", "aux": "switch"}, "gating 'none' has no router"),
        ({"top_k": 2}, "top_k belongs to router topk"),
        ({"router": "gumbel", "temperature": 0.5, "last_temperature": 0.7}, "must fall"),
        ({"aux": "swich"}, "unknown auxiliary loss 'swich'"),
        ({"aux": "switch(-1)"}, "expected a factor"),
        ({"aux": ("z", "z(0.1)")}, "named twice"),
        ({"orthogonal_router": True}, "belongs to gating operation"),
        ({"router": "sinkhorn", "last_temperature": 0.5}, "last_temperature belongs to router softmax or gumbel"),
    ],
)
def test_wrong_options(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match="^.*" + message.replace("(", r"\(")) as error:
        options("rules-mlp", **given)
    assert len(str(error.value).splitlines()) <= 2


def test_more_modules_than_there_are_cannot_work_on_a_token() -> None:
    with pytest.raises(UsageError, match="top_k = 5 is more than the 4 modules"):
        build(options("rules-mlp", router="topk", top_k=5), spec("rules-mlp", 4), 0)
    build(options("rules-mlp", router="topk", top_k=4), spec("rules-mlp", 4), 0)

"""The adapter and the context: a core and a call that get it, and router weights of the tokens that have a rule."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import unseen
from support.specimens import SPECS, random_inputs
from unseen.errors import UsageError
from unseen.models.context import NO_CONTEXT, Context
from unseen.tasks import task
from unseen.training.recipe import Evaluation

ASKED = Evaluation(analyses=("specialization",), examples=60, activation_examples=60, adaptation_examples=5)


class Dropping(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, states: Tensor, ctx: Context = NO_CONTEXT) -> Tensor:
        return ctx.capture("core.state", self.layer(states))


class WithContext(unseen.Adapter):
    def core(self, width: int) -> nn.Module:
        return Dropping(width)


class Router(unseen.Adapter):
    """A mixture of three linear experts."""

    def core(self, width: int) -> nn.Module:
        return nn.ModuleDict({"router": nn.Linear(width, 3), "experts": nn.Linear(width, 3 * width)})

    def weigh(self, weights: Tensor, ctx: Context) -> Tensor:
        return self.capture_gating(weights, ctx)

    def call(self, core: Any, states: Tensor, mask: Tensor | None, ctx: Context = NO_CONTEXT) -> Tensor:
        weights = self.weigh(core["router"](states).softmax(-1), ctx)
        answers = core["experts"](states).unflatten(-1, (3, -1))
        return states + (weights[..., None] * answers).sum(-2)


class Named(Router):
    """Its router is an attribute of that name, as the package's own routers are, which also capture a softmax."""

    def core(self, width: int) -> nn.Module:
        self.router = nn.Linear(width, 3)
        return nn.Linear(width, 3 * width)

    def call(self, core: Any, states: Tensor, mask: Tensor | None, ctx: Context = NO_CONTEXT) -> Tensor:
        return super().call({"router": self.router, "experts": core}, states, mask, ctx)


class AllTokens(Router):
    def weigh(self, weights: Tensor, ctx: Context) -> Tensor:
        return ctx.capture("gating.weights", weights)


class Scores(Router):
    def weigh(self, weights: Tensor, ctx: Context) -> Tensor:
        return self.capture_gating(weights * 5, ctx) / 5


def made(kind: type[unseen.Adapter], name: str) -> unseen.Adapter:
    module = unseen.build(unseen.model(kind, width=8), SPECS[name])
    assert isinstance(module, unseen.Adapter)
    return module


def test_a_core_with_the_argument_gets_the_context() -> None:
    ctx = Context(wanted=["core.state"])
    made(WithContext, "rules/rnn")(random_inputs(SPECS["rules/rnn"], 3, 0), ctx)
    assert "core.state" in ctx.captured


@pytest.mark.parametrize("name", ["rules/mlp", "rules/mha", "rules/rnn"])
def test_router_weights_are_those_of_the_tokens_with_a_rule(name: str) -> None:
    """Against the adapter's own embedding, token by token."""
    module = made(Router, name)
    inputs = random_inputs(SPECS[name], 3, 0)
    ctx = Context(wanted=["gating.weights"])
    module(inputs, ctx)
    weights = ctx.captured["gating.weights"]
    assert weights.shape == (*inputs["rule"].shape, 3)
    states = module.embed(inputs).states
    every = module.inner["router"](states).softmax(-1)  # type: ignore[index]
    tokens = every[:, 0] if inputs["rule"].dim() == 1 else every[:, : inputs["rule"].shape[1]]
    torch.testing.assert_close(weights, tokens)


def test_replaced_weights_are_those_that_mix() -> None:
    module = made(Router, "rules/rnn")
    inputs = random_inputs(SPECS["rules/rnn"], 3, 0)

    class First(Context):
        def capture(self, name: str, value: Tensor) -> Tensor:
            return torch.eye(3)[torch.zeros(value.shape[:-1], dtype=torch.long)] if name == "gating.weights" else value

    assert not torch.allclose(module(inputs, First()), module(inputs))


@pytest.mark.parametrize(("name", "kind"), [("rules/mlp", Router), ("rules/rnn", Router), ("rules/mlp", Named)])
def test_specialization_is_measured(name: str, kind: type[unseen.Adapter]) -> None:
    runs = unseen.train(task(name, rules=3), kind, seeds=1, steps=2, evaluation=ASKED, progress="none")
    assert "specialization/alignment" in set(runs.table.metric)


@pytest.mark.parametrize(
    ("kind", "message"), [(AllTokens, r"of shape \(3, 2, 3\); expected \(examples, modules\)"), (Scores, "not shares")]
)
def test_wrong_weights_are_refused_before_the_first_step(
    kind: type[unseen.Adapter], message: str, tmp_path: Any
) -> None:
    with pytest.raises(UsageError, match=message):
        unseen.train(task("rules/mlp", rules=3), kind, seeds=1, steps=2, evaluation=ASKED, out=tmp_path / "r")
    assert not (tmp_path / "r").exists()

"""Operations counted without computing them: the same as by computing, and nothing is left behind."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from support.specimens import READ_BY, RETRIEVAL, SPECS
from unseen.models import options
from unseen.models.build import build, parameter_count
from unseen.models.flops import COMPUTED_AT_MOST, build_uninitialised, forward_flops
from unseen.models.layers.constants import constant
from unseen.spec import Spec


def assert_same(model: str, spec: Spec, **given: Any) -> int:
    chosen = options(model, **given)
    quick, slow = build_uninitialised(chosen, spec), build(chosen, spec)
    assert parameter_count(quick) == parameter_count(slow)
    assert forward_flops(quick, spec, computed=False) == forward_flops(slow, spec)
    return parameter_count(quick)


@pytest.mark.parametrize(("name", "task"), [(name, task) for name in READ_BY for task in READ_BY[name]])
def test_every_model_counts_the_same_without_computing(name: str, task: str) -> None:
    assert_same(name, SPECS[task])


@pytest.mark.parametrize("gating", ["none", "joint", "operation", "truth"])
@pytest.mark.parametrize("kind", ["mlp", "mha", "rnn"])
def test_so_do_models_whose_weights_are_copied_in_a_pass(kind: str, gating: str) -> None:
    assert assert_same(f"rules-{kind}", SPECS[f"rules/{kind}"], gating=gating, width=384) > COMPUTED_AT_MOST


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "relative", "none"])
def test_so_do_all_positions(positions: str) -> None:
    assert_same("transformer", SPECS["ctl"], positions=positions)


def test_nothing_is_drawn_and_the_global_generator_stays() -> None:
    state = torch.get_rng_state()
    build_uninitialised(options("retrieval-transformer"), RETRIEVAL)
    assert torch.equal(torch.get_rng_state(), state)


class Drawn(nn.Module):
    """A user's module whose size depends on what it draws, and whose work on what it computes."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.linear = nn.Linear(36, 1)
        assert bool(self.linear.weight.abs().max() > 0)
        nn.init.ones_(self.linear.weight)

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        answer: Tensor = self.linear(torch.ones(1, 36))
        return answer if float(answer) < 30 else self.linear(self.linear.weight)


def test_a_model_of_a_user_is_drawn_and_computed() -> None:
    spec = SPECS["rules/mlp"]
    assert forward_flops(build_uninitialised(options(Drawn), spec), spec).fixed == 2 * (2 * 36)


@constant
def _squares(width: int) -> Tensor:
    return torch.eye(width) @ (2 * torch.eye(width))


class Constant(nn.Module):
    """A module that makes its constant in the first pass."""

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        return inputs["x"] @ _squares(2)


def test_a_constant_that_is_first_made_while_counting_serves_in_training() -> None:
    counted = forward_flops(Constant(), SPECS["rules/mlp"], computed=False)
    assert (counted.fixed, counted.each) == (0, 2 * 2 * 2)
    assert torch.equal(_squares(2), 2 * torch.eye(2))

"""The models of the zoo, with their products rewritten, equal the paper's equations in values and gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from support.naive import NAIVE
from support.rules_cases import ALL, VARIANTS, named, spec
from support.specimens import random_inputs
from unseen.models import options
from unseen.models.build import build
from unseen.models.context import Context

CASES = [(case, 4, 10) for case in ALL + VARIANTS] + [
    (case, rules, length) for case in ALL for rules, length in ((1, 3), (2, 30), (16, 5))
]


def compared(case: tuple[str, dict[str, Any]], rules: int, length: int, dtype: torch.dtype, batch: int) -> None:
    name, given = case
    task = spec(name, rules, "real")
    module = build(options(name, **{"width": 8, **given}), task, 3).to(dtype)
    inputs = random_inputs(task, batch, seed=1, lengths={"tokens": length})
    inputs = {k: v.to(dtype) if v.is_floating_point() else v for k, v in inputs.items()}
    ctx = Context(wanted=["gating.weights"])
    ours, (naive, weights) = module(inputs, ctx), NAIVE[name](module, inputs)
    tight = {"rtol": 1e-9, "atol": 1e-9} if dtype == torch.float64 else {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(ours, naive, **tight)
    if weights is None:
        assert not ctx.captured
    else:
        torch.testing.assert_close(ctx.captured["gating.weights"], weights, **tight)
    direction = torch.randn(ours.shape, dtype=dtype, generator=torch.Generator().manual_seed(5)) / ours.numel()
    parameters = dict(module.named_parameters())
    pair = (
        torch.autograd.grad(out, list(parameters.values()), direction, materialize_grads=True) for out in (ours, naive)
    )
    for parameter, a, b in zip(parameters, *pair, strict=True):
        torch.testing.assert_close(a, b, **tight, msg=lambda text, p=parameter: f"{p}: {text}")


@pytest.mark.parametrize(("case", "rules", "length"), CASES, ids=lambda v: named(v) if isinstance(v, tuple) else str(v))
def test_in_double_precision(case: tuple[str, dict[str, Any]], rules: int, length: int) -> None:
    compared(case, rules, length, torch.float64, batch=5)


@pytest.mark.parametrize("case", ALL, ids=named)
def test_in_single_precision(case: tuple[str, dict[str, Any]]) -> None:
    compared(case, 4, 10, torch.float32, batch=32)

from __future__ import annotations

import pytest
import torch
from torch import nn

from unseen.models.layers.linear import Linear


@pytest.mark.parametrize(("inputs", "outputs"), [(5, 3), (5, 1), (1, 4), (1, 1)])
@pytest.mark.parametrize("lead", [(6,), (2, 3)])
def test_agrees_with_the_library(inputs: int, outputs: int, lead: tuple[int, ...]) -> None:
    ours, theirs = Linear(inputs, outputs).double(), nn.Linear(inputs, outputs).double()
    theirs.weight.data, theirs.bias.data = ours.weight.data.T.clone(), ours.bias.data.clone()
    x = torch.randn(*lead, inputs, dtype=torch.float64, requires_grad=True)
    g = torch.randn(*lead, outputs, dtype=torch.float64)
    mine = [ours(x), *torch.autograd.grad(ours(x), [x, ours.weight, ours.bias], g)]
    yours = [theirs(x), *torch.autograd.grad(theirs(x), [x, theirs.weight, theirs.bias], g)]
    yours[2] = yours[2].T
    for a, b in zip(mine, yours, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_starts_within_one_over_root_inputs() -> None:
    layer = Linear(400, 300)
    for values in (layer.weight, layer.bias):
        assert 0.045 < values.abs().max() <= 0.05
        assert abs(values.mean()) < 0.01


def test_the_weight_gradient_is_contiguous() -> None:
    """The optimiser reads weight and gradient together; a transposed one costs it twice the time."""
    layer = Linear(5, 3)
    (gradient,) = torch.autograd.grad(layer(torch.randn(4, 5)).square().sum(), layer.weight)
    assert gradient.is_contiguous()


def test_without_a_bias() -> None:
    layer = Linear(3, 2, bias=False)
    x = torch.randn(4, 3)
    assert layer.bias is None and [name for name, _ in layer.named_parameters()] == ["weight"]
    assert torch.equal(layer(x), x @ layer.weight)

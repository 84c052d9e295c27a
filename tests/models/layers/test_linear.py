"""The linear layer, and activations whose bits do not depend on the position of an element."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.func import vmap

from unseen.models.layers.linear import Linear, gelu, sigmoid


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


def plain_gelu(x: Tensor) -> Tensor:
    return x / 2 * (1 + torch.erf(x / 2**0.5))


def plain_sigmoid(x: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-x))


BOTH = pytest.mark.parametrize(("function", "plain"), [(gelu, plain_gelu), (sigmoid, plain_sigmoid)])


def with_gradient(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Values and slopes, one below the other."""
    x = x.detach().requires_grad_()
    y = function(x)
    return torch.stack([y.detach(), *torch.autograd.grad(y.sum(), x)])


@BOTH
@pytest.mark.parametrize("shape", [(3, 5, 7), (4, 16), (1,), ()])
def test_activations_agree_with_their_formulas(
    function: Callable[[Tensor], Tensor], plain: Callable[[Tensor], Tensor], shape: tuple[int, ...]
) -> None:
    x = 3 * torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(with_gradient(function, x), with_gradient(plain, x), rtol=1e-12, atol=1e-12)


@BOTH
def test_activations_are_finite_at_extremes(
    function: Callable[[Tensor], Tensor], plain: Callable[[Tensor], Tensor]
) -> None:
    x = torch.tensor([-1e9, -50.0, -0.0, 0.0, 50.0, 1e9])
    assert with_gradient(function, x).isfinite().all()


@BOTH
def test_activation_bits_do_not_depend_on_the_position(
    function: Callable[[Tensor], Tensor], plain: Callable[[Tensor], Tensor]
) -> None:
    x = 2 * torch.randn(700, generator=torch.Generator().manual_seed(1))
    whole = with_gradient(function, x)
    for start, length in [(s, n) for s in (0, 1, 7, 33) for n in (1, 2, 15, 16, 17, 31, 63, 64, 65, 100, 333)]:
        part = slice(start, start + length)
        assert torch.equal(with_gradient(function, x[part].clone()), whole[:, part]), (start, length)


@BOTH
@pytest.mark.parametrize("shape", [(7, 5, 9), (3, 64), (1, 1, 3)])
def test_activation_of_a_member_has_the_bits_it_has_alone(
    function: Callable[[Tensor], Tensor], plain: Callable[[Tensor], Tensor], shape: tuple[int, ...]
) -> None:
    x = 2 * torch.randn(16, *shape, generator=torch.Generator().manual_seed(2))
    together = with_gradient(vmap(function), x)
    for members in ([0], [15], [4, 9], [1, 3, 5, 7, 9]):
        assert torch.equal(with_gradient(vmap(function), x[members]), together[:, members])

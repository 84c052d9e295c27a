"""Activations: the formulas, and that an element's bits do not depend on its place in an array."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.func import vmap

from unseen.models.layers.activation import gelu, sigmoid


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
def test_values_and_gradients(
    function: Callable[[Tensor], Tensor], plain: Callable[[Tensor], Tensor], shape: tuple[int, ...]
) -> None:
    x = 3 * torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(with_gradient(function, x), with_gradient(plain, x), rtol=1e-12, atol=1e-12)


@BOTH
def test_extremes_are_finite(function: Callable[[Tensor], Tensor], plain: Callable[[Tensor], Tensor]) -> None:
    x = torch.tensor([-1e9, -50.0, -0.0, 0.0, 50.0, 1e9])
    assert with_gradient(function, x).isfinite().all()


@BOTH
def test_bits_do_not_depend_on_the_place(
    function: Callable[[Tensor], Tensor], plain: Callable[[Tensor], Tensor]
) -> None:
    x = 2 * torch.randn(700, generator=torch.Generator().manual_seed(1))
    whole = with_gradient(function, x)
    for start, length in [(s, n) for s in (0, 1, 7, 33) for n in (1, 2, 15, 16, 17, 31, 63, 64, 65, 100, 333)]:
        part = slice(start, start + length)
        assert torch.equal(with_gradient(function, x[part].clone()), whole[:, part]), (start, length)


@BOTH
@pytest.mark.parametrize("shape", [(7, 5, 9), (3, 64), (1, 1, 3)])
def test_members_have_the_bits_they_have_alone(
    function: Callable[[Tensor], Tensor], plain: Callable[[Tensor], Tensor], shape: tuple[int, ...]
) -> None:
    x = 2 * torch.randn(16, *shape, generator=torch.Generator().manual_seed(2))
    together = with_gradient(vmap(function), x)
    for members in ([0], [15], [4, 9], [1, 3, 5, 7, 9]):
        assert torch.equal(with_gradient(vmap(function), x[members]), together[:, members])

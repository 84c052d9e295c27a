"""The linear layer and two activations, written so that a stack of members rounds exactly as each member alone."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_REGISTERS = 64
"""A multiple of the number of elements that a vectorised loop processes at once."""


def uniform_parameter(fan_in: int, *shape: int) -> nn.Parameter:
    """A parameter drawn uniformly within ±1/√fan_in, as torch's own linear and recurrent layers start."""
    bound = 1 / math.sqrt(fan_in)
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


class TensorModule(nn.Module):
    """A module whose call returns a tensor: `nn.Module` declares that a call may return anything."""

    __call__: Callable[..., Tensor]


class Linear(TensorModule):
    """x · weight + bias, initialised like `nn.Linear`: uniform within ±1/√in. Without a bias, `bias` is None.

    `weight` has shape (in, out), the transpose of `nn.Linear`'s, so that the product that computes its gradient writes it
    in the order in which the optimizer reads the weight.
    """

    bias: nn.Parameter  # may be None, which the type of `nn.Linear.bias` does not say either

    def __init__(self, in_features: int, out_features: int, *, bias: bool = True) -> None:
        super().__init__()
        self.weight = uniform_parameter(in_features, in_features, out_features)
        self.register_parameter("bias", uniform_parameter(in_features, out_features) if bias else None)

    def forward(self, x: Tensor) -> Tensor:
        return affine(x, self.weight, self.bias)


def affine(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (…, in) · weight (in, out) + bias.

    A width of 1 on either side is computed elementwise. Torch would use a matrix–vector product for a single member
    (forward or backward) and a batched matrix product for a stack, and the two round differently.
    """
    if weight.shape[1] == 1:
        y = (x * weight[:, 0]).sum(-1, keepdim=True)
    else:
        y = x * weight[0] if weight.shape[0] == 1 else x @ weight
    # In place: writing the sum to fresh memory takes nearly twice as long.
    return y if bias is None else y.add_(bias)


def gelu(x: Tensor) -> Tensor:
    """x Φ(x), with the exact normal distribution function.

    >>> gelu(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    """
    return _fill_registers(F.gelu, x)


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + e⁻ˣ).

    >>> sigmoid(torch.tensor([-1000.0, 0.0, 1000.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return _fill_registers(torch.sigmoid, x)


def _fill_registers(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Apply an elementwise function whose kernel rounds the remainder of an array differently from whole registers.

    Each member's elements are padded to a multiple of the register size, so that there is no remainder. This takes one
    fused kernel forward and one backward; composing the function from `erf` or `tanh` would take several.
    """
    missing = -x.numel() % _REGISTERS  # under vmap, the elements of one member
    if not missing:
        return function(x.contiguous())
    return function(F.pad(x.flatten(), (0, missing)))[: x.numel()].view(x.shape)

"""Activations whose library kernels round the odd end of an array differently: here an array has no odd end."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

_REGISTERS = 64
"""A multiple of the numbers that a vector loop takes at once."""


def gelu(x: Tensor) -> Tensor:
    """x Φ(x), with the exact normal distribution function.

    >>> gelu(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    """
    return _whole(F.gelu, x)


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + e⁻ˣ).

    >>> sigmoid(torch.tensor([-1000.0, 0.0, 1000.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return _whole(torch.sigmoid, x)


def _whole(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """An elementwise function of a member's numbers, padded to whole registers if they do not fill them.

    One fused kernel forward and one backward; the same from `erf` or `tanh` and arithmetic takes several.
    """
    missing = -x.numel() % _REGISTERS
    if not missing:
        return function(x.contiguous())
    return function(F.pad(x.flatten(), (0, missing)))[: x.numel()].view(x.shape)

"""The one linear layer, written so that a stack of members is fast and rounds as each member alone."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Linear(nn.Module):
    """x · weight + bias, with `weight` (in, out): the transpose of `nn.Linear`'s, so that its gradient comes out
    of the product in the order in which the optimiser reads the weight.

    Starts as `nn.Linear` does: weights and biases uniform within ±1/√in. Without a bias, `bias` is None.
    """

    bias: nn.Parameter  # as in `nn.Linear`, whose type does not say either that it may be None

    def __init__(self, in_features: int, out_features: int, *, bias: bool = True) -> None:
        super().__init__()
        bound = 1 / math.sqrt(in_features)
        self.weight = nn.Parameter(torch.empty(in_features, out_features).uniform_(-bound, bound))
        self.register_parameter(
            "bias", nn.Parameter(torch.empty(out_features).uniform_(-bound, bound)) if bias else None
        )

    def forward(self, x: Tensor) -> Tensor:
        return affine(x, self.weight, self.bias)


def affine(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (…, in) · weight (in, out) + bias, where a width of 1 is written as product and sum.

    With one column on either side, a single member is a matrix–vector product (forward or backward) and a stack is a
    batched matrix product, and the two round differently.
    """
    if weight.shape[1] == 1:
        y = (x * weight[:, 0]).sum(-1, keepdim=True)
    else:
        y = x * weight[0] if weight.shape[0] == 1 else x @ weight
    return y if bias is None else y.add_(bias)  # in place: a pass over new memory takes nearly twice as long

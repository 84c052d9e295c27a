"""The one linear layer: as `nn.Linear`, but its bits do not depend on how many members are stacked."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class Linear(nn.Linear):
    """`nn.Linear`, with width 1 written as product and sum.

    A product with a single output column is a matrix–vector product for one member and a batched matrix product for
    many, and the two round differently.
    """

    def forward(self, x: Tensor) -> Tensor:
        if self.out_features > 1:
            return F.linear(x, self.weight, self.bias)
        y = (x * self.weight[0]).sum(-1, keepdim=True)
        return y if self.bias is None else y + self.bias

"""The input embedding of the retrieval models."""

from __future__ import annotations

from torch import Tensor, nn

from unseen.models.layers.linear import Linear, affine
from unseen.models.layers.positions import sinusoids


class BitsEmbedding(nn.Module):
    """scale · (W x + b), plus sinusoidal positions if asked for: (B, n, features) → (B, n, width).

    W starts uniform within ±0.1, b as in any linear layer.
    """

    def __init__(self, features: int, width: int, *, scale: float = 1.0, positions: bool = False) -> None:
        super().__init__()
        self.scale, self.positions = scale, positions
        self.linear = Linear(features, width)
        nn.init.uniform_(self.linear.weight, -0.1, 0.1)

    def forward(self, bits: Tensor) -> Tensor:
        # Scale and positions go into the small weight and bias instead of over every token.
        weight, bias = self.linear.weight * self.scale, self.linear.bias * self.scale
        if self.positions:
            bias = bias + sinusoids(bits.shape[1], weight.shape[1], weight.dtype, weight.device)
        return affine(bits.to(weight.dtype), weight, bias)

"""The Transformer block of the gcog models, for all tokens or for the one that is read."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unseen.models.gcog.attention import Attention
from unseen.models.gcog.ends import MLP, Activation
from unseen.models.gcog.tokens import Embedded, Tokens, barrier
from unseen.models.layers.distances import DistanceTable
from unseen.models.layers.linear import Linear, affine
from unseen.models.layers.norm import LayerNorm
from unseen.models.layers.tape import Tape


class Block(nn.Module):
    """Post-norm: u = LN(h + attention(h)), LN(u + MLP(u)); the MLP has its activation after both layers."""

    def __init__(
        self,
        width: int,
        hidden: int,
        heads: int = 1,
        *,
        table: DistanceTable | None = None,
        activation: Activation = "relu",
    ) -> None:
        super().__init__()
        self.attention = Attention(width, heads=heads, table=table)
        self.mlp = MLP(width, hidden, width, activation=activation)
        self.norm_first, self.norm_second = LayerNorm(width), LayerNorm(width)

    def forward(self, tokens: Tokens, tape: Tape, name: str) -> Tensor:
        """All tokens: (B, T, width). Keeps the weights of attention, (B, heads, T, T)."""
        output = self.attention.output
        if isinstance(tokens, Embedded) and self.attention.heads == 1 and output is not None:
            return self._rest(folded(tokens, self.attention, output, tape, name))
        return self._rest(tokens.states() + self.attention(tokens, tape, name))

    def last(self, tokens: Tokens, tape: Tape, name: str) -> Tensor:
        """The token that is read: (B, width). Keeps its weights of attention, (B, heads, 1, T)."""
        before = tokens.last()
        return self._rest(before + self.attention.look(before[:, None], tokens, tape, name)[:, 0])

    def _rest(self, x: Tensor) -> Tensor:
        x = self.norm_first(x)
        result: Tensor = self.norm_second(x + self.mlp(x))
        return result


def folded(tokens: Embedded, attention: Attention, output: Linear, tape: Tape, name: str) -> Tensor:
    """h + attention(h) with one head, of tokens h = x W + c that are not made: (B, T, width).

    With queries h Q + b and keys h K, the scores are x (W Q Kᵀ Wᵀ) xᵀ + x (W Q Kᵀ cᵀ) + (c Q + b) Kᵀ Wᵀ xᵀ + a
    constant, where x has a few columns. Output and values are one map, and everything that is added up to the result
    is one product.
    """
    query_map, key_map, value_map, query_bias, value_bias = attention.maps()
    x, weight, constant = tokens.sequence.rows, tokens.weight, tokens.constant
    ours = torch.cat([weight, constant])
    columns = len(weight)
    query, key = ours @ (query_map * attention.scale), ours @ key_map
    constant_query = query[columns:] + query_bias * attention.scale
    left = affine(x, query[:columns] @ key[:columns].mT).add_(constant_query @ key[:columns].mT)
    scores = (left @ x.mT).add_(affine(x, query[:columns] @ key[columns:].mT)).add_(constant_query @ key[columns:].mT)
    padded = barrier(tokens, scores.dtype)
    weights = (scores if padded is None else scores + padded[:, 0]).softmax(-1)
    tape.keep(name, weights[:, None])
    value = ours @ (value_map @ output.weight)
    bias = affine(value_bias[None], output.weight, output.bias)
    return affine(torch.cat([x, weights @ x, weights], -1), torch.cat([weight, value])).add_(constant + bias)

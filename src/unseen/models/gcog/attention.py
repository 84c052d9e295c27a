"""Attention from a few queries, or from all tokens, to tokens that need not be made."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from unseen.errors import UsageError
from unseen.models.gcog.tokens import Tokens, barrier
from unseen.models.layers.attention import attend, causal, merge
from unseen.models.layers.distances import DistanceTable
from unseen.models.layers.linear import Linear, affine
from unseen.models.layers.tape import Tape


class Attention(nn.Module):
    """Queries of one `width` look at tokens of width `source`, with heads.

    The maps to queries, keys and values are one matrix (width + 2 source, width), one below the other. It starts
    Xavier uniform as one matrix, or as three if the widths differ; biases are zero; an output map follows. With a
    `table` of relative positions there is no output map, and everything starts as linear layers do.

    The bias of the keys changes all scores of a query alike, so that the softmax does not see it: it is declared, as
    published, and used nowhere.
    """

    def __init__(
        self, width: int, source: int | None = None, heads: int = 1, table: DistanceTable | None = None
    ) -> None:
        super().__init__()
        if width % heads:
            raise UsageError(f"attention of width {width} does not split into {heads} heads; change width or heads")
        source = width if source is None else source
        self.sizes = (width, source, source)
        self.heads, self.scale, self.table = heads, 1 / math.sqrt(width // heads), table
        linear = 0.0 if table is None else 1 / math.sqrt(width)
        fused = math.sqrt(6 / (width + 3 * width)) if source == width else 0.0
        bounds = [linear or fused or math.sqrt(6 / (inputs + width)) for inputs in self.sizes]
        parts = [torch.empty(n, width).uniform_(-b, b) for n, b in zip(self.sizes, bounds, strict=True)]
        self.weight = nn.Parameter(torch.cat(parts))
        self.bias = nn.Parameter(torch.empty(3 * width).uniform_(-linear, linear))
        self.output = Linear(width, width) if table is None else None
        if self.output is not None:
            nn.init.zeros_(self.output.bias)

    def maps(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The matrices of queries, keys and values, and the biases of queries and values."""
        query_bias, _, value_bias = self.bias.chunk(3)
        query, key, value = self.weight.split(self.sizes)
        return query, key, value, query_bias, value_bias

    def look(self, query: Tensor | None, tokens: Tokens, tape: Tape, name: str) -> Tensor:
        """From a few queries (B, Q, width) to all tokens: (B, Q, width). None is one query of zeros for each example.

        Keys and values are never formed: with k = h K, the score q · k is h · (K q), and Σ a v is (Σ a h) V. Under
        relative positions the query is the token that is read.
        """
        query_map, key_map, value_map, query_bias, value_bias = self.maps()
        if query is None:
            query = query_bias.expand(len(tokens.sequence.rows), 1, -1)
        else:
            query = affine(query, query_map, query_bias)
        query = self._by_head(query * self.scale)
        batch, count, heads = query.shape[1], query.shape[2], self.heads
        turned = _each(query, key_map.unflatten(1, (heads, -1)).permute(1, 2, 0))
        # Contiguous, here and below: a product of strided tensors is done otherwise for one member than for many.
        scores = tokens.scores(turned.transpose(0, 1).contiguous().flatten(1, 2)).unflatten(1, (heads, count))
        if self.table is not None:
            sequence = tokens.sequence
            scores = scores + self.table.to_end(query.transpose(0, 1), len(sequence.places), sequence.end)
        padded = barrier(tokens, scores.dtype)
        weights = (scores if padded is None else scores + padded).softmax(-1)
        tape.keep(name, weights)
        mixed = tokens.mix(weights.flatten(1, 2)).unflatten(1, (heads, count)).transpose(0, 1)
        found = _each(mixed, value_map.unflatten(1, (heads, -1)).transpose(0, 1))
        return self._out(found.permute(1, 2, 0, 3).reshape(batch, count, -1) + value_bias)

    def forward(self, tokens: Tokens, tape: Tape, name: str) -> Tensor:
        """From all tokens to all tokens: (B, T, width)."""
        query_map, key_map, value_map, query_bias, value_bias = self.maps()
        length = len(tokens.sequence.places)
        if length == 1:  # it sees nothing but itself
            return self._out(tokens.project(value_map, value_bias))
        maps = torch.cat([query_map * self.scale, key_map, value_map], -1)
        bias = torch.cat([query_bias * self.scale, torch.zeros_like(query_bias), value_bias])
        query, key, value = (
            self._by_head(part).transpose(0, 1).contiguous() for part in tokens.project(maps, bias).chunk(3, -1)
        )
        scores = query @ key.mT
        padded = barrier(tokens, scores.dtype)
        if self.table is not None:
            scores = scores.add_(self.table(query))
            if self.table.causal:
                future = causal(length, scores.dtype, scores.device)
                padded = future if padded is None else padded + future
        return self._out(merge(attend(scores, value, padded, tape=tape, name=name)))

    def _out(self, found: Tensor) -> Tensor:
        return found if self.output is None else affine(found, self.output.weight, self.output.bias)

    def _by_head(self, x: Tensor) -> Tensor:
        """(B, Q, width) → (heads, B, Q, width / heads)."""
        return x.view(*x.shape[:-1], self.heads, -1).permute(2, 0, 1, 3)


def _each(x: Tensor, maps: Tensor) -> Tensor:
    """A map for each head: (heads, B, Q, k) and (heads, k, m) → (heads, B, Q, m), one product per head."""
    return (x.contiguous().flatten(1, 2) @ maps.contiguous()).view(*x.shape[:3], -1)

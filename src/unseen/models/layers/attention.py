"""The one attention: explicit mathematics, so that a stack batches it and a trace can look inside."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from unseen.errors import UsageError
from unseen.models.layers.constants import constant
from unseen.models.layers.linear import Linear, affine
from unseen.models.layers.positions import Relative, Scheme, rotate
from unseen.models.layers.tape import NO_TAPE, Tape

ALL = slice(None)
"""Every token."""

_BARRED = -1e9


@constant
def causal(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """What to add to scores so that a token sees itself and what came before it: (length, length)."""
    return torch.full((length, length), _BARRED, dtype=dtype, device=device).triu(1)


def padding(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """What to add to scores so that nobody sees padding, from a mask (B, T) that is true where real."""
    return ((mask.to(dtype) - 1) * -_BARRED)[:, None, None, :]


def attend(
    scores: Tensor,
    value: Tensor,
    barrier: Tensor | None = None,
    *,
    dropout: float = 0.0,
    tape: Tape = NO_TAPE,
    name: str = "attention",
) -> Tensor:
    """softmax(scores + barrier) · value; the weights are kept under `name`, then dropped from.

    scores (…, T, U), value (…, U, k) → (…, T, k). A barrier is 0 where a query may look and hugely negative where it
    may not: the softmax makes that exactly 0.
    """
    weights = (scores if barrier is None else scores + barrier).softmax(-1)
    tape.keep(name, weights)
    return tape.dropout(weights, dropout) @ value


def project(x: Tensor, input: Linear, heads: int, rows: slice = ALL) -> tuple[Tensor, Tensor, Tensor]:
    """Queries of the tokens in `rows`, keys and values of all, from one width → 3·width map: (B, heads, T, k) each."""
    width, weight, bias = x.shape[-1], input.weight, input.bias
    if rows.indices(x.shape[1]) == (0, x.shape[1], 1):
        query, key, value = affine(x, weight, bias).chunk(3, -1)
    else:
        query_weight, other_weight = weight.split([width, 2 * width], -1)
        query_bias, other_bias = (None, None) if bias is None else bias.split([width, 2 * width], -1)
        # Contiguous: a product with a strided part of the tokens would copy the weight for every example.
        query = affine(x[:, rows].contiguous(), query_weight, query_bias)
        key, value = affine(x, other_weight, other_bias).chunk(2, -1)
    return by_head(query, heads), by_head(key, heads), by_head(value, heads)


def by_head(x: Tensor, heads: int) -> Tensor:
    """(B, T, width) → (B, heads, T, width / heads)."""
    split = x.view(*x.shape[:-1], heads, -1).transpose(1, 2)
    # A product copies this if there are several members or examples, and takes it as it is (and may round
    # differently) if there is only one. So copy always; with one head it is never copied.
    return split if heads == 1 else split.contiguous()


def merge(mixed: Tensor) -> Tensor:
    """What the heads found, side by side again: (B, heads, T, k) → (B, T, width)."""
    return mixed.transpose(1, 2).flatten(2)


class Attention(nn.Module):
    """Self-attention with heads: (B, T, width) → (B, T, width).

    Query, key and value are one width → 3·width map, Xavier uniform as one matrix with zero bias; the output map has
    the framework's default weights and zero bias. Scores are scaled by 1 / √(width / heads), from which a learned
    scale starts. `dropout` acts on the weights, `key_dropout` on the keys of tokens and of relative positions.
    """

    def __init__(
        self,
        width: int,
        heads: int = 1,
        dropout: float = 0.0,
        positions: Scheme = "none",
        *,
        key_dropout: float = 0.0,
        learned_scale: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if width % heads or (positions == "rotary" and width // heads % 2):
            raise UsageError(
                f"attention of width {width} does not split into {heads} heads"
                + (" of even width, which rotary positions need" if positions == "rotary" else "")
                + "; change width or heads"
            )
        self.heads, self.dropout, self.key_dropout = heads, dropout, key_dropout
        self.rotary = positions == "rotary"
        self.relative = Relative(width, heads, key_dropout) if positions == "relative" else None
        scale = 1 / math.sqrt(width // heads)
        self.scale = nn.Parameter(torch.full((1,), scale)) if learned_scale else scale
        self.input, self.output = Linear(width, 3 * width, bias=bias), Linear(width, width, bias=bias)
        nn.init.xavier_uniform_(self.input.weight)
        if bias:
            nn.init.zeros_(self.input.bias)
            nn.init.zeros_(self.output.bias)

    def forward(
        self,
        x: Tensor,
        barrier: Tensor | None = None,
        *,
        places: tuple[int, ...] | None = None,
        rows: slice = ALL,
        tape: Tape = NO_TAPE,
        name: str = "attention",
    ) -> Tensor:
        """Attend from the tokens in `rows` to all tokens.

        `barrier` broadcasts to (B, heads, T, T); `places` are the tokens' places, 0 … T − 1 if not given.
        """
        places = tuple(range(x.shape[1])) if places is None else places
        query, key, value = project(x, self.input, self.heads, rows)
        key = tape.dropout(key, self.key_dropout)
        scores = self._scores(query, key, places[rows], places, tape) * self.scale
        if barrier is not None and barrier.shape[-2] > 1:
            barrier = barrier[..., rows, :]
        mixed = attend(scores, value, barrier, dropout=self.dropout, tape=tape, name=name)
        result: Tensor = self.output(merge(mixed))
        return result

    def _scores(
        self, query: Tensor, key: Tensor, query_places: tuple[int, ...], key_places: tuple[int, ...], tape: Tape
    ) -> Tensor:
        if self.relative is not None:
            scores: Tensor = self.relative(query, key, query_places, key_places, tape)
            return scores
        if self.rotary:
            query, key = rotate(query, query_places), rotate(key, key_places)
        return query @ key.transpose(-1, -2)

"""Geometric attention: a query looks at its neighbours one after the other, and takes the first that matches."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unseen.models.layers.attention import ALL, merge, project
from unseen.models.layers.constants import constant
from unseen.models.layers.linear import Linear
from unseen.models.layers.tape import NO_TAPE, Tape


@constant
def scan(length: int, device: torch.device) -> Tensor:
    """The places in the order in which each place looks at them: nearest first, right before left, itself last.

    >>> scan(4, torch.device("cpu"))
    tensor([[1, 2, 3, 0],
            [2, 0, 3, 1],
            [3, 1, 0, 2],
            [2, 1, 0, 3]])
    """
    places = torch.arange(length, device=device)
    offset = places - places[:, None]
    turn = 2 * offset.abs() - (offset > 0).long()
    return turn.fill_diagonal_(2 * length).argsort(-1)


@constant
def _turns(length: int, device: torch.device) -> Tensor:
    """When each place looks at each other: the inverse of `scan`."""
    return scan(length, device).argsort(-1)


@constant
def _sides(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """1 to the right of each place, 1 to its left, 1 on either side: (3, length, length)."""
    right = torch.ones(length, length, dtype=dtype, device=device).triu(1)
    return torch.stack([right, right.T, right + right.T])


def geometric(scores: Tensor, allowed: Tensor, rows: slice = ALL) -> Tensor:
    """A_ij = p_ij · Π (1 − p_ik) over all k that i looks at before j, where p = σ(scores): (…, T, U) → (…, T, U).

    `allowed` is 1 where a query may look and 0 where not (padding, itself): p is 0 there. `rows` says which of the U
    places the T queries are. Rows sum to at most 1. Products are sums of logarithms: nothing overflows, and the
    gradients of a match that is certain, or hopeless, are finite.
    """
    length, device = scores.shape[-1], scores.device
    order, turn = (index[rows].expand(scores.shape) for index in (scan(length, device), _turns(length, device)))
    log_missed = F.logsigmoid(-scores) * allowed
    log_reached = F.pad(log_missed.gather(-1, order).cumsum(-1), (1, -1)).gather(-1, turn)
    return (F.logsigmoid(scores) + log_reached).exp() * allowed


class GeometricAttention(nn.Module):
    """Self-attention of NDR: (B, T, width) → (B, T, width). No positions but the direction.

    Scores α q·k + β d + γ, where d is one learned number of the query's state for all keys to its right and another
    for those to its left, per head; α, β, γ start at 1/√k, 1, 0. The output map has no bias. `content_bias` is the
    original NDR: a vector per head (zero at first) added to the queries, and no biases on queries, keys and values.
    """

    def __init__(self, width: int, heads: int, key_dropout: float = 0.0, *, content_bias: bool = False) -> None:
        super().__init__()
        size = width // heads
        self.heads, self.key_dropout = heads, key_dropout
        self.input, self.output = Linear(width, 3 * width, bias=not content_bias), Linear(width, width, bias=False)
        self.direction = Linear(width, 2 * heads)
        self.content = nn.Parameter(torch.zeros(heads, 1, size)) if content_bias else None
        self.content_scale = nn.Parameter(torch.full((1,), 1 / math.sqrt(size)))
        self.direction_scale, self.offset = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1))

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        rows: slice = ALL,
        tape: Tape = NO_TAPE,
        name: str = "attention",
    ) -> Tensor:
        """Attend from the tokens in `rows` to all tokens that are real by `mask` (B, T). Keeps the weights."""
        right, left, other = _sides(x.shape[1], x.dtype, x.device)[:, rows]
        allowed = other if mask is None else other * mask[:, None, None, :].to(x.dtype)
        query, key, value = project(x, self.input, self.heads, rows)
        if self.content is not None:
            query = query + self.content
        match = query @ tape.dropout(key, self.key_dropout).transpose(-1, -2)
        to_right, to_left = self.direction(x[:, rows].contiguous()).transpose(1, 2).contiguous()[..., None].chunk(2, 1)
        direction = to_right * right + to_left * left
        scores = match * self.content_scale + direction * self.direction_scale + self.offset
        weights = geometric(scores, allowed, rows)
        tape.keep(name, weights)
        result: Tensor = self.output(merge(weights @ value))
        return result

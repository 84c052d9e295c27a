"""The Neural Data Router (NDR): geometric attention, and a block whose gate decides which tokens take the result."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unseen.models.context import NO_CONTEXT, Context
from unseen.models.layers.attention import ALL, check_heads, merge_heads, project_heads
from unseen.models.layers.constants import constant
from unseen.models.layers.linear import Linear, TensorModule, gelu, sigmoid
from unseen.models.layers.norm import LayerNorm

NDRFormName = Literal["ctl++", "original"]


@constant
def scan_order(length: int, device: torch.device) -> Tensor:
    """The order in which each position scans the others: nearest first, right before left, itself last.

    >>> scan_order(4, torch.device("cpu"))
    tensor([[1, 2, 3, 0],
            [2, 0, 3, 1],
            [3, 1, 0, 2],
            [2, 1, 0, 3]])
    """
    token_positions = torch.arange(length, device=device)
    offset = token_positions - token_positions[:, None]
    # Distance d has the turns 2 d − 1 (to the right) and 2 d (to the left); the position itself comes after all others.
    turn = 2 * offset.abs() - (offset > 0).long()
    return turn.fill_diagonal_(2 * length).argsort(-1)


@constant
def _scan_turns(length: int, device: torch.device) -> Tensor:
    """The turn at which each position scans each other one: the inverse permutation of `scan_order`."""
    return scan_order(length, device).argsort(-1)


@constant
def _directions(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """1 to the right of each position, 1 to its left, 1 on either side: (3, length, length)."""
    right = torch.ones(length, length, dtype=dtype, device=device).triu(1)
    return torch.stack([right, right.T, right + right.T])


def geometric_weights(scores: Tensor, allowed: Tensor, rows: slice = ALL) -> Tensor:
    """A_ij = p_ij · Π (1 − p_ik) over all k that i scans before j, where p = σ(scores): (…, T, U) → (…, T, U).

    A query scans its neighbours one after the other and takes the first that matches. `allowed` is 1 where a query may
    attend and 0 where it may not (padding, itself): there p is 0. `rows` selects the T queries among the U positions.
    Rows sum to at most 1. Products are computed as sums of logarithms, so that nothing overflows and the gradients of a
    certain or a hopeless match are finite.
    """
    length, device = scores.shape[-1], scores.device
    order = scan_order(length, device)[rows].expand(scores.shape)
    turn = _scan_turns(length, device)[rows].expand(scores.shape)
    log_missed = F.logsigmoid(-scores) * allowed
    # In scan order the product over earlier positions is an exclusive cumulative sum: padding (1, −1) shifts it by one.
    log_reached = F.pad(log_missed.gather(-1, order).cumsum(-1), (1, -1)).gather(-1, turn)
    return (F.logsigmoid(scores) + log_reached).exp() * allowed


class GeometricAttention(TensorModule):
    """The self-attention of NDR: (B, T, width) → (B, T, width). It knows no positions except the direction.

    Scores are α q·k + β d + γ, where d is one learned function of the query's state for all keys to its right and another
    for those to its left, per head; α, β, γ start at 1/√k, 1, 0. The output map has no bias. `content_bias` is the
    original NDR: a vector per head (initially zero) added to the queries, and no biases on queries, keys and values.
    """

    def __init__(self, width: int, heads: int, key_dropout: float = 0.0, *, content_bias: bool = False) -> None:
        super().__init__()
        size = width // heads
        self.heads = heads
        self.key_dropout = key_dropout
        self.input = Linear(width, 3 * width, bias=not content_bias)
        self.output = Linear(width, width, bias=False)
        self.direction = Linear(width, 2 * heads)
        self.content = nn.Parameter(torch.zeros(heads, 1, size)) if content_bias else None
        self.content_scale = nn.Parameter(torch.full((1,), 1 / math.sqrt(size)))
        self.direction_scale = nn.Parameter(torch.ones(1))
        self.offset = nn.Parameter(torch.zeros(1))

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        rows: slice = ALL,
        ctx: Context = NO_CONTEXT,
        name: str = "attention",
    ) -> Tensor:
        """Attend from the tokens in `rows` to all tokens that are real by `mask` (B, T).

        Captured activations: the weights (B, heads, rows, T), under `name`.
        """
        to_the_right, to_the_left, other = _directions(x.shape[1], x.dtype, x.device)[:, rows]
        allowed = other if mask is None else other * mask[:, None, None, :].to(x.dtype)
        query, key, value = project_heads(x, self.input, self.heads, rows)
        if self.content is not None:
            query = query + self.content
        match = query @ ctx.dropout(key, self.key_dropout).transpose(-1, -2)
        # Contiguous before and after: the bias gradient is a sum, whose order must not depend on the number of members.
        by_direction = self.direction(x[:, rows].contiguous()).transpose(1, 2).contiguous()
        to_right, to_left = by_direction[..., None].chunk(2, 1)
        direction = to_right * to_the_right + to_left * to_the_left
        scores = match * self.content_scale + direction * self.direction_scale + self.offset
        weights = ctx.capture(name, geometric_weights(scores, allowed, rows))
        return self.output(merge_heads(weights @ value))


@dataclass(frozen=True)
class NDRForm:
    """The differences between the two published forms.

    `residual`: around the feed-forward. `inner_dropout`: after the activation, in feed-forward and gate. `content_bias`:
    instead of biases on queries, keys and values. `gain`: of the feed-forward's second map at initialisation.
    `full_output`: whether the fan-out of values and output counts all heads at initialisation, not one.
    """

    activation: Callable[[Tensor], Tensor]
    residual: bool
    inner_dropout: bool
    content_bias: bool
    gain: float
    full_output: bool


NDR_FORMS: dict[NDRFormName, NDRForm] = {
    "ctl++": NDRForm(gelu, residual=True, inner_dropout=False, content_bias=False, gain=1.0, full_output=True),
    "original": NDRForm(
        torch.relu, residual=False, inner_dropout=True, content_bias=True, gain=5 / 3, full_output=False
    ),
}


class NDRBlock(TensorModule):
    """One layer: (B, T, width) → (B, rows, width).

    a = LN(h + attention(h)), u = LN(feed-forward(a) + a), g = σ(gate(a)), and the result is (1 − g) h + g u: where the gate
    is closed, the state is copied. The gate starts nearly closed. Gate dropout closes it for whole tokens, without
    rescaling. `interleaved` initialises keys and values as the released code does.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        hidden: int,
        *,
        form: NDRFormName = "ctl++",
        dropout: float,
        key_dropout: float = 0.0,
        gate_dropout: float = 0.0,
        interleaved: bool = False,
    ) -> None:
        super().__init__()
        check_heads(width, heads)
        self.form = NDR_FORMS[form]
        self.dropout = dropout
        self.gate_dropout = gate_dropout
        self.attention = GeometricAttention(width, heads, key_dropout, content_bias=self.form.content_bias)
        self.expand = Linear(width, hidden)
        self.contract = Linear(hidden, width)
        self.gate_expand = Linear(width, width)
        self.gate_contract = Linear(width, width)
        self.norm_first = LayerNorm(width)
        self.norm_second = LayerNorm(width)
        # The order of these draws is part of what a seed means.
        nn.init.xavier_uniform_(self.expand.weight, math.sqrt(2))
        nn.init.xavier_uniform_(self.gate_expand.weight, math.sqrt(2))
        nn.init.xavier_uniform_(self.contract.weight, self.form.gain)
        nn.init.xavier_uniform_(self.gate_contract.weight, 1.0)
        nn.init.constant_(self.gate_contract.bias, -3.0)
        _initialise_attention(self.attention, self.form.full_output, interleaved)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        name: str = "encoder",
        rows: slice = ALL,
        ctx: Context = NO_CONTEXT,
    ) -> Tensor:
        """Compute the tokens in `rows`. Captured activations: `attention` (B, heads, rows, T), `gate` (B, rows, width)."""
        before = x[:, rows]
        mixed = self.attention(x, mask, rows=rows, ctx=ctx, name=f"{name}.attention")
        attended = self.norm_first(ctx.add_dropped(before, mixed, self.dropout))
        computed = self.contract(self._activate(self.expand(attended), ctx))
        after = self.norm_second(computed + attended if self.form.residual else computed)
        gate = sigmoid(self.gate_contract(self._activate(self.gate_expand(attended), ctx)))
        gate = ctx.capture(f"{name}.gate", gate)
        if ctx.training and self.gate_dropout:
            gate = gate * ctx.dropout(gate.new_ones(*gate.shape[:-1], 1), self.gate_dropout, scaled=False)
        return torch.addcmul(before, gate, after - before)

    def _activate(self, x: Tensor, ctx: Context) -> Tensor:
        x = self.form.activation(x)
        return ctx.dropout(x, self.dropout) if self.form.inner_dropout else x


def _initialise_attention(attention: GeometricAttention, full_output: bool, interleaved: bool) -> None:
    """Xavier uniform with fans (width, one head) for queries and keys, (width, width) for values and output; in the
    original form one head for all. The direction maps start like any linear layer.

    The released code intends the same but takes the first half of the columns for keys and the second for values, where
    the columns go by head, with keys and values in turn. As a result the first half of the heads gets the bound of the
    keys for both, and the second half that of the values: `interleaved`.
    """
    width = attention.output.weight.shape[0]
    size = width // attention.heads
    head_bound = math.sqrt(6 / (width + size))
    full_bound = math.sqrt(6 / (width + width)) if full_output else head_bound
    query = torch.empty(width, width).uniform_(-head_bound, head_bound)
    key = torch.empty(width, width).uniform_(-head_bound, head_bound)
    value = torch.empty(width, width).uniform_(-full_bound, full_bound)
    if interleaved:
        by_head = torch.cat([key, value], -1).view(width, attention.heads, 2, size)
        key, value = by_head.transpose(1, 2).reshape(width, 2 * width).chunk(2, -1)
    with torch.no_grad():
        attention.input.weight.copy_(torch.cat([query, key, value], -1))
        attention.output.weight.uniform_(-full_bound, full_bound)

"""The Neural Data Router's block: attend, compute, and let a gate decide which tokens take the result."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from unseen.errors import UsageError
from unseen.models.layers.activation import gelu, sigmoid
from unseen.models.layers.attention import ALL
from unseen.models.layers.geometric import GeometricAttention
from unseen.models.layers.linear import Linear
from unseen.models.layers.norm import LayerNorm
from unseen.models.layers.tape import NO_TAPE, Tape

FormName = Literal["ctl++", "original"]


@dataclass(frozen=True)
class Form:
    """In what the two published forms differ.

    `residual`: around the feed-forward. `inner_dropout`: after the activation, in feed-forward and gate.
    `content_bias`: in place of biases on queries, keys and values. `gain`: of the feed-forward's second map at the
    start. `full_output`: whether values and output count all heads, not one, among their outputs at the start.
    """

    activation: Callable[[Tensor], Tensor]
    residual: bool
    inner_dropout: bool
    content_bias: bool
    gain: float
    full_output: bool


FORMS: dict[FormName, Form] = {
    "ctl++": Form(gelu, residual=True, inner_dropout=False, content_bias=False, gain=1.0, full_output=True),
    "original": Form(torch.relu, residual=False, inner_dropout=True, content_bias=True, gain=5 / 3, full_output=False),
}


class NDRBlock(nn.Module):
    """One layer: (B, T, width) → (B, rows, width).

    a = LN(h + attention(h)), u = LN(feed-forward(a) + a), g = σ(gate(a)), and the result is (1 − g) h + g u: what the
    gate leaves closed is copied. The gate starts nearly closed. Gate dropout closes it for whole tokens, and scales
    nothing. `interleaved` starts keys and values as the released code does.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        hidden: int,
        dropout: float,
        key_dropout: float = 0.0,
        gate_dropout: float = 0.0,
        *,
        form: FormName = "ctl++",
        interleaved: bool = False,
    ) -> None:
        super().__init__()
        if width % heads:
            raise UsageError(f"attention of width {width} does not split into {heads} heads; change width or heads")
        self.form, self.dropout, self.gate_dropout = FORMS[form], dropout, gate_dropout
        self.attention = GeometricAttention(width, heads, key_dropout, content_bias=self.form.content_bias)
        self.expand, self.contract = Linear(width, hidden), Linear(hidden, width)
        self.gate_expand, self.gate_contract = Linear(width, width), Linear(width, width)
        self.norm_first, self.norm_second = LayerNorm(width), LayerNorm(width)
        for linear, gain in (
            (self.expand, math.sqrt(2)),
            (self.gate_expand, math.sqrt(2)),
            (self.contract, self.form.gain),
            (self.gate_contract, 1.0),
        ):
            nn.init.xavier_uniform_(linear.weight, gain)
        nn.init.constant_(self.gate_contract.bias, -3.0)
        _start_attention(self.attention, self.form.full_output, interleaved)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        rows: slice = ALL,
        tape: Tape = NO_TAPE,
        name: str = "encoder",
    ) -> Tensor:
        """Only the tokens in `rows` are wanted. Keeps `attention` (B, heads, rows, T) and `gate` (B, rows, width)."""
        before = x[:, rows]
        found = self.attention(x, mask, rows=rows, tape=tape, name=f"{name}.attention")
        seen = self.norm_first(tape.onto(before, found, self.dropout))
        computed = self.contract(self._inner(self.expand(seen), tape))
        after = self.norm_second(computed + seen if self.form.residual else computed)
        gate = sigmoid(self.gate_contract(self._inner(self.gate_expand(seen), tape)))
        tape.keep(f"{name}.gate", gate)
        if tape.training and self.gate_dropout:
            gate = gate * tape.dropout(gate.new_ones(*gate.shape[:-1], 1), self.gate_dropout, scaled=False)
        return torch.addcmul(before, gate, after - before)

    def _inner(self, x: Tensor, tape: Tape) -> Tensor:
        x = self.form.activation(x)
        return tape.dropout(x, self.dropout) if self.form.inner_dropout else x


def _start_attention(attention: GeometricAttention, full_output: bool, interleaved: bool) -> None:
    """Xavier uniform with (width, one head) as fans for queries and keys, (width, width) for values and output; in the
    original form one head again. The direction maps start as any linear layer.

    The released code means to do so too, but takes the first half of the columns for the keys and the second for the
    values, where they go by head, keys and values in turn. So the first half of the heads gets the bound of the keys
    for both, and the second half that of the values: `interleaved`.
    """
    width, size = attention.output.weight.shape[0], attention.output.weight.shape[0] // attention.heads
    one = math.sqrt(6 / (width + size))
    whole = math.sqrt(6 / (width + width)) if full_output else one
    query, key, value = (torch.empty(width, width).uniform_(-bound, bound) for bound in (one, one, whole))
    if interleaved:
        by_head = torch.cat([key, value], -1).view(width, attention.heads, 2, size)
        key, value = by_head.transpose(1, 2).reshape(width, 2 * width).chunk(2, -1)
    with torch.no_grad():
        attention.input.weight.copy_(torch.cat([query, key, value], -1))
        attention.output.weight.uniform_(-whole, whole)

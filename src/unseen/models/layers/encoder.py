"""The Transformer encoder: blocks of attention and feed-forward, post-norm or pre-norm."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from unseen.models.layers.attention import ALL, Attention, causal, padding
from unseen.models.layers.linear import Linear
from unseen.models.layers.norm import LayerNorm
from unseen.models.layers.positions import Scheme
from unseen.models.layers.tape import NO_TAPE, Tape

Norm = Literal["post", "pre"]


class Block(nn.Module):
    """One layer. Post-norm: u = LN(x + attention(x)), LN(u + feed-forward(u)); pre-norm normalises the inputs.

    Without self-attention that sub-layer and its residual go; the norms and the feed-forward stay.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        hidden: int,
        dropout: float,
        *,
        norm: Norm = "post",
        positions: Scheme = "none",
        self_attention: bool = True,
    ) -> None:
        super().__init__()
        self.dropout, self.norm = dropout, norm
        self.attention = Attention(width, heads, dropout, positions) if self_attention else None
        self.expand, self.contract = Linear(width, hidden), Linear(hidden, width)
        self.norm_first, self.norm_second = LayerNorm(width), LayerNorm(width)

    def forward(
        self,
        x: Tensor,
        barrier: Tensor | None,
        places: tuple[int, ...] | None,
        rows: slice,
        tape: Tape,
        name: str,
    ) -> Tensor:
        pre = self.norm == "pre"
        u = x[:, rows]
        if self.attention is not None:
            looked_at = self.norm_first(x) if pre else x
            found = self.attention(looked_at, barrier, places=places, rows=rows, tape=tape, name=name)
            u = tape.onto(u, found, self.dropout)
        if pre:
            return tape.onto(u, self._feed_forward(self.norm_second(u), tape), self.dropout)
        u = self.norm_first(u)
        result: Tensor = self.norm_second(tape.onto(u, self._feed_forward(u, tape), self.dropout))
        return result

    def _feed_forward(self, x: Tensor, tape: Tape) -> Tensor:
        inner: Tensor = self.contract(tape.dropout(self.expand(x).relu(), self.dropout))
        return inner


class Encoder(nn.Module):
    """Blocks one after the other, or one `shared` by all layers: (B, T, width) → (B, rows, width).

    Pre-norm ends with a norm of its own.
    """

    def __init__(
        self,
        width: int,
        layers: int,
        heads: int,
        hidden: int,
        dropout: float,
        *,
        norm: Norm = "post",
        positions: Scheme = "none",
        causal: bool = False,
        self_attention: bool = True,
        shared: bool = False,
    ) -> None:
        super().__init__()
        self.causal, self.layers = causal, layers
        self.blocks = nn.ModuleList(
            Block(width, heads, hidden, dropout, norm=norm, positions=positions, self_attention=self_attention)
            for _ in range(1 if shared else layers)
        )
        self.norm = LayerNorm(width) if norm == "pre" else nn.Identity()

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        places: tuple[int, ...] | None = None,
        rows: slice = ALL,
        tape: Tape = NO_TAPE,
        name: str = "encoder",
    ) -> Tensor:
        """Encode; `mask` (B, T) is true where a token is real.

        Only the tokens in `rows` are wanted: the last block works for them alone, which changes nothing else. Keeps
        the attention of every layer (`encoder.0.attention`, …; the last is `encoder.attention`) and the result.
        """
        barrier = self._barrier(x, mask)
        for i in range(self.layers):
            last = i == self.layers - 1
            part = f"{name}.attention" if last else f"{name}.{i}.attention"
            x = self.blocks[i % len(self.blocks)](x, barrier, places, rows if last else ALL, tape, part)
        x = self.norm(x)
        tape.keep(f"{name}.state", x)
        return x

    def _barrier(self, x: Tensor, mask: Tensor | None) -> Tensor | None:
        barrier = causal(x.shape[1], x.dtype, x.device) if self.causal else None
        if mask is None:
            return barrier
        padded = padding(mask, x.dtype)
        return padded if barrier is None else padded + barrier

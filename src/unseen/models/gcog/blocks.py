"""The parts of the gcog Transformers: their options, the block, the streams with their embeddings, and the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Literal, Self

import torch
from pydantic import Field as Option
from pydantic import model_validator
from torch import Tensor, nn

from unseen.config import Config
from unseen.models.context import Context
from unseen.models.gcog.attention import GcogAttention, attend_folded
from unseen.models.gcog.inputs import RULE_POSITIONS, TokenRows, make_reader
from unseen.models.gcog.tokens import DenseTokens, LazyTokens, RowEmbedding, TokenView
from unseen.models.layers.linear import Linear, TensorModule, gelu
from unseen.models.layers.norm import LayerNorm
from unseen.models.layers.positions import DistanceTable
from unseen.spec import Field, Spec

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu_, "gelu": gelu}


class GcogOptions(Config):
    """Sizes and switches; `width` is that of tokens, `hidden` that of the layers after the blocks.

    `positions`: sinusoidal codes, or a learned vector per distance (in models with two streams for the rule only).
    `causal` masks later tokens under relative positions, as released. `pos_dropout` acts on the sum of token and code:
    0.1 as released. `pad_mask`: use a mask where there is one, and read a rule at its end token; otherwise padding is
    attended to, and the last row is read.
    """

    width: int = Option(256, ge=2)
    hidden: int = Option(512, ge=2)
    positions: Literal["absolute", "relative"] = "absolute"
    causal: bool = True
    pos_dropout: float = Option(0.0, ge=0, lt=1)
    pad_mask: bool = True

    @model_validator(mode="after")
    def _check_causal(self) -> Self:
        if not self.causal and self.positions == "absolute":
            raise ValueError("causal=false belongs to positions=relative; absolute positions never bar later tokens")
        return self

    @property
    def absolute(self) -> bool:
        """Whether the codes of positions are added to the tokens."""
        return self.positions == "absolute"

    def make_table(self, heads: int = 1, more_positions: int = 0) -> DistanceTable | None:
        """The table of distances in a rule and `more_positions` tokens after it, if positions are relative."""
        if self.absolute:
            return None
        return DistanceTable(RULE_POSITIONS + more_positions, self.width // heads, causal=self.causal)


class JointOptions(GcogOptions):
    """`stim_position`: the stimulus follows the rule, or always begins at position 100."""

    stim_position: Literal["following", "fixed"] = "following"

    @model_validator(mode="after")
    def _check_absolute(self) -> Self:
        if not self.absolute and (self.stim_position == "fixed" or self.pos_dropout):
            raise ValueError(
                "stim_position=fixed and pos_dropout belong to positions=absolute: without codes there is "
                "nothing to move or drop"
            )
        return self


class MLP(TensorModule):
    """Linear layers of these widths, each followed by the activation."""

    def __init__(self, *widths: int, activation: Literal["relu", "gelu"] = "relu") -> None:
        super().__init__()
        self.layers = nn.ModuleList(Linear(*pair) for pair in pairwise(widths))
        self.activation = _ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = self.activation(layer(x))
        return x


class AnswerHead(TensorModule):
    """An optional norm and a linear map: (B, width) → (B, classes). Captured activations: `readout.state`, its input."""

    def __init__(self, width: int, classes: int, *, norm: bool = True) -> None:
        super().__init__()
        self.norm = LayerNorm(width) if norm else nn.Identity()
        self.answer = Linear(width, classes)

    def forward(self, state: Tensor, ctx: Context) -> Tensor:
        state = ctx.capture("readout.state", self.norm(state))
        return self.answer(state)


class GcogBlock(nn.Module):
    """Post-norm: u = LN(h + attention(h)), LN(u + MLP(u)); the MLP has its activation after both layers."""

    def __init__(
        self,
        width: int,
        hidden: int,
        heads: int = 1,
        *,
        table: DistanceTable | None = None,
        activation: Literal["relu", "gelu"] = "relu",
    ) -> None:
        super().__init__()
        self.attention = GcogAttention(width, heads=heads, table=table)
        self.mlp = MLP(width, hidden, width, activation=activation)
        self.norm_first = LayerNorm(width)
        self.norm_second = LayerNorm(width)

    def forward(self, tokens: TokenView, ctx: Context, name: str) -> Tensor:
        """All tokens: (B, T, width). Captured activations: the weights of attention (B, heads, T, T), under `name`."""
        output = self.attention.output
        if isinstance(tokens, LazyTokens) and self.attention.heads == 1 and output is not None:
            return self._feed_forward(attend_folded(tokens, self.attention, output, ctx, name))
        return self._feed_forward(tokens.states() + self.attention(tokens, ctx, name))

    def last(self, tokens: TokenView, ctx: Context, name: str) -> Tensor:
        """The token that is read: (B, width). Captured activations: its weights of attention (B, heads, 1, T)."""
        before = tokens.last()
        return self._feed_forward(before + self.attention.look(before[:, None], tokens, ctx, name)[:, 0])

    def _feed_forward(self, x: Tensor) -> Tensor:
        x = self.norm_first(x)
        return self.norm_second(x + self.mlp(x))


class JointStream(nn.Module):
    """Rule and stimulus embedded as one sequence."""

    def __init__(self, options: JointOptions, spec: Spec) -> None:
        super().__init__()
        self.options = options
        self.reader = make_reader(spec, options.pad_mask)
        fields = self.reader.rule_fields + self.reader.stimulus_fields
        self.embed = RowEmbedding(fields, options.width, has_codes=options.absolute, dropout=options.pos_dropout)

    def make_table(self, heads: int = 1) -> DistanceTable | None:
        """The table of distances in the sequence, if positions are relative."""
        return self.options.make_table(heads, self.reader.stimulus_length)

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context) -> TokenView:
        start = RULE_POSITIONS if self.options.stim_position == "fixed" else None
        tokens: TokenView = self.embed(self.reader.joint(inputs, self.embed.weight.dtype, start), ctx)
        return tokens


class SeparateStreams(nn.Module):
    """Rule and stimulus with an embedding and a block each; relative positions are for the rule alone."""

    def __init__(self, options: GcogOptions, spec: Spec) -> None:
        super().__init__()
        self.reader = make_reader(spec, options.pad_mask)
        self.rule = StreamBlock("rule", self.reader.rule_fields, options, options.make_table())
        self.stimulus = StreamBlock("stimulus", self.reader.stimulus_fields, options)

    def read_rows(self, inputs: Mapping[str, Tensor]) -> tuple[TokenRows, TokenRows]:
        """The rows of rule and stimulus."""
        dtype = self.rule.embed.weight.dtype
        return self.reader.rule(inputs, dtype), self.reader.stimulus(inputs, dtype)


class StreamBlock(nn.Module):
    """The embedding and the block of one stream. Without a table of distances, codes of positions are added."""

    def __init__(
        self, name: str, fields: tuple[Field, ...], options: GcogOptions, table: DistanceTable | None = None
    ) -> None:
        super().__init__()
        self.name = name
        self.embed = RowEmbedding(fields, options.width, has_codes=table is None, dropout=options.pos_dropout)
        self.block = GcogBlock(options.width, options.width, table=table)

    def forward(self, rows: TokenRows, ctx: Context) -> TokenView:
        """All tokens. Captured activations: `rule.attention` (B, 1, T, T) and `rule.state` (B, T, width), or those of the
        stimulus."""
        states = self.block(self.embed(rows, ctx), ctx, f"{self.name}.attention")
        return DenseTokens(ctx.capture(f"{self.name}.state", states), rows)

    def last(self, rows: TokenRows, ctx: Context) -> Tensor:
        """The token that is read, (B, width). The same activations are captured for it: (B, 1, 1, T) and (B, width)."""
        state = self.block.last(self.embed(rows, ctx), ctx, f"{self.name}.attention")
        return ctx.capture(f"{self.name}.state", state)

"""The parts of the gcog Transformers: attention, which need not compute its tokens; options, blocks, streams, the answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Literal, Self

import torch
from pydantic import Field as Option
from pydantic import model_validator
from torch import Tensor, nn

from unseen.config import Config
from unseen.models.context import Context
from unseen.models.gcog.inputs import (
    RULE_POSITIONS,
    DenseTokens,
    LazyTokens,
    RowEmbedding,
    TokenRows,
    TokenView,
    make_reader,
    mask_barrier,
)
from unseen.models.layers.attention import attend, causal_barrier, check_heads, merge_heads
from unseen.models.layers.linear import Linear, TensorModule, affine, gelu
from unseen.models.layers.norm import LayerNorm
from unseen.models.layers.positions import DistanceTable
from unseen.spec import Field, Spec

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu_, "gelu": gelu}


# Attention, from a few queries or from all tokens.


class GcogAttention(TensorModule):
    """Queries of one `width` attend to tokens of width `source`, with heads.

    The maps to queries, keys and values are one matrix (width + 2 source, width), one below the other. It starts Xavier
    uniform as one matrix, or as three if the widths differ; biases are zero; an output map follows. With a `table` of
    relative positions there is no output map, and everything starts like linear layers.

    The bias of the keys adds the same number to all scores of a query, which the softmax cancels: it is declared, as
    published, but not used.
    """

    def __init__(
        self, width: int, source: int | None = None, heads: int = 1, table: DistanceTable | None = None
    ) -> None:
        super().__init__()
        check_heads(width, heads)
        source = width if source is None else source
        self.sizes = (width, source, source)
        self.heads = heads
        self.scale = 1 / math.sqrt(width // heads)
        self.table = table
        bias_bound = 0.0 if table is None else 1 / math.sqrt(width)
        blocks = []
        for inputs in self.sizes:
            if table is not None:
                bound = bias_bound
            elif source == width:
                bound = math.sqrt(6 / (width + 3 * width))
            else:
                bound = math.sqrt(6 / (inputs + width))
            blocks.append(torch.empty(inputs, width).uniform_(-bound, bound))
        self.weight = nn.Parameter(torch.cat(blocks))
        self.bias = nn.Parameter(torch.empty(3 * width).uniform_(-bias_bound, bias_bound))
        self.output = Linear(width, width) if table is None else None
        if self.output is not None:
            nn.init.zeros_(self.output.bias)

    def maps(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The matrices of queries, keys and values, and the biases of queries and values."""
        query_bias, _, value_bias = self.bias.chunk(3)
        query, key, value = self.weight.split(self.sizes)
        return query, key, value, query_bias, value_bias

    def look(self, query: Tensor | None, tokens: TokenView, ctx: Context, name: str) -> Tensor:
        """From a few queries (B, Q, width) to all tokens: (B, Q, width). None is one query of zeros for each example.

        Keys and values are never computed: with k = h K, the score q · k is h · (K q), and Σ a v is (Σ a h) V. Under
        relative positions the query is the token that is read. Captured activations: the weights, under `name`.
        """
        query_map, key_map, value_map, query_bias, value_bias = self.maps()
        if query is None:
            query = query_bias.expand(len(tokens.sequence.rows), 1, -1)
        else:
            query = affine(query, query_map, query_bias)
        # Scaled here, where there are few numbers, rather than on the scores.
        query = self._by_head(query * self.scale)
        heads = self.heads
        batch, count = query.shape[1:3]
        keyed = _map_each_head(query, key_map.unflatten(1, (heads, -1)).permute(1, 2, 0))
        # Contiguous, here and below: torch computes a product of strided tensors differently for one member and for many.
        scores = tokens.scores(keyed.transpose(0, 1).contiguous().flatten(1, 2)).unflatten(1, (heads, count))
        if self.table is not None:
            sequence = tokens.sequence
            scores = scores + self.table.to_end(query.transpose(0, 1), len(sequence.positions), sequence.read_at)
        padded = mask_barrier(tokens, scores.dtype)
        weights = ctx.capture(name, (scores if padded is None else scores + padded).softmax(-1))
        mixed = tokens.mix(weights.flatten(1, 2)).unflatten(1, (heads, count)).transpose(0, 1)
        values = _map_each_head(mixed, value_map.unflatten(1, (heads, -1)).transpose(0, 1))
        return self._project_out(values.permute(1, 2, 0, 3).reshape(batch, count, -1) + value_bias)

    def forward(self, tokens: TokenView, ctx: Context, name: str) -> Tensor:
        """From all tokens to all tokens: (B, T, width). Captured activations: the weights, under `name`."""
        query_map, key_map, value_map, query_bias, value_bias = self.maps()
        length = len(tokens.sequence.positions)
        if length == 1:  # a single token attends to itself, with weight 1
            return self._project_out(tokens.project(value_map, value_bias))
        # One product for queries, keys and values; the scale goes into the small map, and keys have no bias.
        maps = torch.cat([query_map * self.scale, key_map, value_map], -1)
        bias = torch.cat([query_bias * self.scale, torch.zeros_like(query_bias), value_bias])
        query, key, value = (
            self._by_head(projected).transpose(0, 1).contiguous()
            for projected in tokens.project(maps, bias).chunk(3, -1)
        )
        scores = query @ key.mT
        padded = mask_barrier(tokens, scores.dtype)
        if self.table is not None:
            scores = scores.add_(self.table(query))
            if self.table.causal:
                future = causal_barrier(length, scores.dtype, scores.device)
                padded = future if padded is None else padded + future
        return self._project_out(merge_heads(attend(scores, value, padded, ctx=ctx, name=name)))

    def _project_out(self, mixed: Tensor) -> Tensor:
        return mixed if self.output is None else affine(mixed, self.output.weight, self.output.bias)

    def _by_head(self, x: Tensor) -> Tensor:
        """(B, Q, width) → (heads, B, Q, width / heads)."""
        return x.view(*x.shape[:-1], self.heads, -1).permute(2, 0, 1, 3)


def _map_each_head(x: Tensor, maps: Tensor) -> Tensor:
    """One map per head: (heads, B, Q, k) and (heads, k, m) → (heads, B, Q, m), one product per head."""
    return (x.contiguous().flatten(1, 2) @ maps.contiguous()).view(*x.shape[:3], -1)


def attend_folded(tokens: LazyTokens, attention: GcogAttention, output: Linear, ctx: Context, name: str) -> Tensor:
    """h + attention(h) with one head, for tokens h = x W + c that are not computed: (B, T, width).

    With queries h Q + b and keys h K, the scores are x (W Q Kᵀ Wᵀ) xᵀ + x (W Q Kᵀ cᵀ) + (c Q + b) Kᵀ Wᵀ xᵀ + a constant,
    where x has few columns. Output and values are one map, and all summands of the result are one product. Captured
    activations: the weights (B, 1, T, T), under `name`.
    """
    query_map, key_map, value_map, query_bias, value_bias = attention.maps()
    x, weight, constant = tokens.sequence.rows, tokens.weight, tokens.constant
    # W and c one below the other, so that one product maps both.
    stacked = torch.cat([weight, constant])
    columns = len(weight)
    query = stacked @ (query_map * attention.scale)
    key = stacked @ key_map
    constant_query = query[columns:] + query_bias * attention.scale
    content = affine(x, query[:columns] @ key[:columns].mT).add_(constant_query @ key[:columns].mT)
    scores = (
        (content @ x.mT).add_(affine(x, query[:columns] @ key[columns:].mT)).add_(constant_query @ key[columns:].mT)
    )
    padded = mask_barrier(tokens, scores.dtype)
    weights = (scores if padded is None else scores + padded[:, 0]).softmax(-1)
    weights = ctx.capture(name, weights.unsqueeze(1)).squeeze(1)
    value = stacked @ (value_map @ output.weight)
    bias = affine(value_bias[None], output.weight, output.bias)
    return affine(torch.cat([x, weights @ x, weights], -1), torch.cat([weight, value])).add_(constant + bias)


# Options.


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


# Blocks and streams.


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

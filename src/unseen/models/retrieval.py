"""The retrieval paper's models: its Transformer, as released and as its appendix writes it, and its LSTM.

Both encode the sequence before they know the query, and read the states with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from unseen.config import Config
from unseen.models.context import NO_CONTEXT, Context
from unseen.models.layers.attention import attend, causal_barrier
from unseen.models.layers.encoder import Encoder
from unseen.models.layers.linear import Linear, TensorModule, affine
from unseen.models.layers.positions import sinusoids
from unseen.models.requirements import refuse_target, require_field
from unseen.spec import Spec


def count_features(spec: Spec) -> tuple[int, int]:
    """The numbers of bits of a token and of a query; a task without a `sequence` and a `query` of bits is refused."""
    sequence = require_field(spec, "sequence", "bits", "sequence")
    query = require_field(spec, "query", "bits", None)
    if (spec.target.kind, spec.target.width, spec.target.along) != ("binary", 1, None):
        raise refuse_target(spec, "the retrieval models", "one yes or no")
    return sequence.width, query.width


class SinusoidalPositions(nn.Module):
    """The sinusoidal code of n positions, (n, width): a module, so that analyses can replace it."""

    def forward(self, n: int, like: Tensor) -> Tensor:
        return sinusoids(n, like.shape[1], like.dtype, like.device)


class BitsEmbedding(TensorModule):
    """scale · (W x + b), optionally plus sinusoidal positions: (B, n, features) → (B, n, width).

    W starts uniform within ±0.1, b as in any linear layer.
    """

    def __init__(self, features: int, width: int, *, scale: float = 1.0, positions: bool = False) -> None:
        super().__init__()
        self.scale = scale
        self.positions = SinusoidalPositions() if positions else None
        self.linear = Linear(features, width)
        nn.init.uniform_(self.linear.weight, -0.1, 0.1)

    def forward(self, bits: Tensor) -> Tensor:
        # Scale and positions are applied to the small weight and bias instead of to every token.
        weight = self.linear.weight * self.scale
        bias = self.linear.bias * self.scale
        if self.positions is not None:
            bias = bias + self.positions(bits.shape[1], weight)
        return affine(bits.to(weight.dtype), weight, bias)


class QueryDecoder(TensorModule):
    """Embed the query, read the states with it, answer with one logit: (B, n, width), (B, features) → (B, 1).

    α = softmax(h · q) without scaling and c = Σ α h; without attention c is the last state. Then an MLP on [c; q].
    With several `readouts`, each has its own embedding of the query and its own attention, and the MLP gets all of
    [c₁; …; c_k; q₁; …; q_k].
    """

    def __init__(
        self, features: int, width: int, *, attention: bool = True, rectified: bool = True, readouts: int = 1
    ) -> None:
        super().__init__()
        self.attention = attention
        self.rectified = rectified
        self.query = Linear(features, width)
        self.hidden = Linear(2 * readouts * width, width)
        self.answer = Linear(width, 1)
        self.more_queries = nn.ModuleList(Linear(features, width) for _ in range(readouts - 1))

    def forward(self, states: Tensor, query: Tensor, ctx: Context = NO_CONTEXT) -> Tensor:
        contents = []
        queries = []
        for number, layer in enumerate([self.query, *self.more_queries], start=1):
            embedded = layer(query.to(states.dtype))
            if self.rectified:
                embedded = embedded.relu()
            # The first keeps the name that it has alone.
            name = "decoder.attention" if number == 1 else f"decoder.attention.{number}"
            contents.append(self.read(states, embedded, ctx, name))
            queries.append(embedded)
        return self.answer(self.hidden(torch.cat([*contents, *queries], -1)).relu())

    def read(self, states: Tensor, embedded: Tensor, ctx: Context, name: str) -> Tensor:
        """The content that one read-out takes from the states: (B, width)."""
        if not self.attention:
            return states[:, -1]
        # The query is the row of the product, not its column: with a column, a single example would be a
        # matrix–vector product, which rounds differently from a batched product (see `affine`).
        weights = (embedded[:, None] @ states.transpose(1, 2)).softmax(-1)
        weights = ctx.capture(name, weights.squeeze(1)).unsqueeze(1)
        return (weights @ states)[:, 0]


class LiteralEncoder(TensorModule):
    """h = softmax(e eᵀ / √width) e, causal and without parameters; h = e without self-attention."""

    def __init__(self, self_attention: bool) -> None:
        super().__init__()
        self.self_attention = self_attention

    def forward(self, x: Tensor, *, ctx: Context = NO_CONTEXT) -> Tensor:
        if self.self_attention:
            head = x[:, None]
            scores = head @ head.transpose(-1, -2) * (1 / math.sqrt(x.shape[-1]))
            barrier = causal_barrier(x.shape[1], x.dtype, x.device)
            x = attend(scores, head, barrier, ctx=ctx, name="encoder.attention")[:, 0]
        return ctx.capture("encoder.state", x)


class RetrievalTransformer(nn.Module):
    """Embed the bits, encode causally, read the states with the query.

    `full` is the released encoder: a post-norm layer with learned projections on embeddings scaled by √features.
    `literal` is the appendix: h = softmax(e eᵀ / √width) e on unscaled embeddings, without parameters. Without
    self-attention, `full` keeps its norms and its feed-forward, and `literal` is h = e.
    """

    class Options(Config):
        """Switches of the paper's ablations, and its sizes.

        `embed_dropout`: with `with_pos`, `full` drops from the embedding only where it adds positions, `literal` always.
        `feedforward` = false, only without self-attention, also drops the feed-forward and the norms, as the paper's text
        describes −Att; the released code keeps them.
        """

        name: Literal["retrieval-transformer"] = "retrieval-transformer"
        encoder: Literal["full", "literal"] = "full"
        positions: Literal["none", "sinusoidal"] = "sinusoidal"
        self_attention: bool = True
        embed_dropout: Literal["with_pos", "always", "never"] = "with_pos"
        scale_embedding: bool = True
        feedforward: bool = True
        decoder_attention: bool = True
        layers: int = Field(1, ge=1, le=1000)
        heads: int = Field(1, ge=1)
        readouts: int = Field(
            1, ge=1, description="times the query reads the states, each with an attention of its own"
        )
        width: int = Field(100, ge=2)
        dropout: float = Field(0.2, ge=0, lt=1)

        @model_validator(mode="after")
        def _check_combination(self) -> Self:
            if self.encoder == "literal" and (self.layers, self.heads, self.scale_embedding) != (1, 1, True):
                raise ValueError(
                    "encoder 'literal' has one parameter-free layer, one head and no scale: leave out "
                    "layers, heads and scale_embedding"
                )
            if self.readouts > 1 and not self.decoder_attention:
                raise ValueError(
                    f"readouts = {self.readouts} without decoder_attention would read the same last state again: "
                    "leave readouts out"
                )
            if not self.feedforward and (self.self_attention or self.encoder == "literal"):
                raise ValueError(
                    "feedforward=false leaves nothing of the encoder but the embedding: it goes with "
                    "self_attention=false and encoder=full"
                )
            return self

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        in_features, query_features = count_features(spec)
        full = options.encoder == "full"
        positions = options.positions == "sinusoidal"
        drops_embedding = {"with_pos": positions or not full, "always": True, "never": False}[options.embed_dropout]
        self.embed_dropout = options.dropout if drops_embedding else 0.0
        scale = math.sqrt(in_features) if full and options.scale_embedding else 1.0
        self.embed = BitsEmbedding(in_features, options.width, scale=scale, positions=positions)
        self.encoder: nn.Module
        if full and options.feedforward:
            self.encoder = Encoder(
                options.width,
                options.layers,
                options.heads,
                options.width,
                options.dropout,
                causal=True,
                self_attention=options.self_attention,
            )
        else:
            self.encoder = LiteralEncoder(options.self_attention)
        self.decoder = QueryDecoder(
            query_features, options.width, attention=options.decoder_attention, readouts=options.readouts
        )

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """The logit (B, 1) of yes. Captured activations: `encoder.attention`, `encoder.state`, `decoder.attention`
        (of a further read-out `decoder.attention.2`, …)."""
        embedded = ctx.dropout(self.embed(inputs["sequence"]), self.embed_dropout)
        return self.decoder(self.encoder(embedded, ctx=ctx), inputs["query"], ctx)


class RetrievalLSTM(nn.Module):
    """Run an LSTM over the bits and read its states with the query.

    `basic` and `attention` are the released models: the LSTM reads the bits directly, the query embedding has no ReLU,
    and there is no dropout; `basic` reads the last state, `attention` all of them. `matched` is what the paper describes,
    the Transformer with only its encoder replaced: scaled embeddings with dropout, ReLU on the query, attention.
    """

    class Options(Config):
        """`dropout` is used by `matched` only: on the embedding and between layers."""

        name: Literal["retrieval-lstm"] = "retrieval-lstm"
        form: Literal["basic", "attention", "matched"] = "attention"
        width: int = Field(100, ge=2)
        layers: int = Field(1, ge=1, le=1000)
        dropout: float = Field(0.2, ge=0, lt=1)

    def __init__(self, options: Options, spec: Spec) -> None:
        from unseen.models.layers.recurrent import Recurrence  # inside, because the Transformer does not need it

        super().__init__()
        in_features, query_features = count_features(spec)
        width = options.width
        matched = options.form == "matched"
        self.dropout = options.dropout if matched else 0.0
        self.embed = BitsEmbedding(in_features, width, scale=math.sqrt(in_features)) if matched else None
        self.recurrence = Recurrence(width if matched else in_features, width, options.layers, self.dropout)
        self.decoder = QueryDecoder(query_features, width, attention=options.form != "basic", rectified=matched)
        if not matched:
            nn.init.uniform_(self.decoder.query.weight, -0.1, 0.1)

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """The logit (B, 1) of yes. Captured activations: `encoder.state`, `decoder.attention`."""
        bits = inputs["sequence"].to(self.decoder.query.weight.dtype)
        x = bits if self.embed is None else ctx.dropout(self.embed(bits), self.dropout)
        states = ctx.capture("encoder.state", self.recurrence(x, ctx=ctx))
        return self.decoder(states, inputs["query"], ctx)

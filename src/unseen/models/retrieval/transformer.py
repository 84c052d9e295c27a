"""The retrieval paper's Transformer, as released and as its appendix writes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator
from torch import Tensor, nn

from unseen.config import Config
from unseen.models.layers.attention import attend, causal
from unseen.models.layers.encoder import Encoder
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.models.retrieval.decoder import Decoder, features
from unseen.models.retrieval.embedding import BitsEmbedding
from unseen.spec import Spec


class RetrievalTransformer(nn.Module):
    """Embed the bits, encode causally, read the states with the query.

    `full` is the released encoder: a post-norm layer with learned projections on embeddings scaled by √features.
    `literal` is the appendix: h = softmax(e eᵀ / √width) e on unscaled embeddings, no parameters. Without
    self-attention `full` keeps its norms and its feed-forward, and `literal` is h = e.
    """

    class Options(Config):
        """Switches of the paper's ablations, and its sizes.

        `embed_dropout` = `with_pos` is what each version does: `full` drops from the embedding only where it adds
        positions, `literal` always. `feedforward` = false, without self-attention only, drops the feed-forward and the
        norms as well: what the paper's text says of −Att, where the released code keeps them.
        """

        name: Literal["retrieval-transformer"] = "retrieval-transformer"
        encoder: Literal["full", "literal"] = "full"
        positions: Literal["none", "sinusoidal"] = "sinusoidal"
        self_attention: bool = True
        embed_dropout: Literal["with_pos", "always", "never"] = "with_pos"
        scale_embedding: bool = True
        feedforward: bool = True
        decoder_attention: bool = True
        layers: int = Field(1, ge=1)
        heads: int = Field(1, ge=1)
        width: int = Field(100, ge=2)
        dropout: float = Field(0.2, ge=0, lt=1)

        @model_validator(mode="after")
        def _literal_is_fixed(self) -> Self:
            if self.encoder == "literal" and (self.layers, self.heads, self.scale_embedding) != (1, 1, True):
                raise ValueError(
                    "encoder 'literal' has one parameter-free layer, one head and no scale: leave out "
                    "layers, heads and scale_embedding"
                )
            if not self.feedforward and (self.self_attention or self.encoder == "literal"):
                raise ValueError(
                    "feedforward=false leaves nothing of the encoder but the embedding: it goes with "
                    "self_attention=false and encoder=full"
                )
            return self

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        in_features, query_features = features(spec)
        full, positions = options.encoder == "full", options.positions == "sinusoidal"
        dropped = {"with_pos": positions or not full, "always": True, "never": False}
        self.embed_dropout = options.dropout if dropped[options.embed_dropout] else 0.0
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
        self.decoder = Decoder(query_features, options.width, attention=options.decoder_attention)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """The logit (B, 1) of yes. Traces: `encoder.attention`, `encoder.state`, `decoder.attention`."""
        embedded = tape.dropout(self.embed(inputs["sequence"]), self.embed_dropout)
        logit: Tensor = self.decoder(self.encoder(embedded, tape=tape), inputs["query"], tape)
        return logit


class LiteralEncoder(nn.Module):
    """h = softmax(e eᵀ / √width) e, causal and without parameters; h = e without self-attention."""

    def __init__(self, self_attention: bool) -> None:
        super().__init__()
        self.self_attention = self_attention

    def forward(self, x: Tensor, *, tape: Tape = NO_TAPE) -> Tensor:
        if self.self_attention:
            head = x[:, None]
            scores = head @ head.transpose(-1, -2) * (1 / math.sqrt(x.shape[-1]))
            barrier = causal(x.shape[1], x.dtype, x.device)
            x = attend(scores, head, barrier, tape=tape, name="encoder.attention")[:, 0]
        tape.keep("encoder.state", x)
        return x

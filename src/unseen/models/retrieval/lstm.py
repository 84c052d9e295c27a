"""The retrieval paper's LSTM."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from unseen.config import Config
from unseen.models.layers.recurrence import Recurrence
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.models.retrieval.decoder import Decoder, features
from unseen.models.retrieval.embedding import BitsEmbedding
from unseen.spec import Spec


class RetrievalLSTM(nn.Module):
    """Run an LSTM over the bits, read its states with the query.

    `basic` and `attention` are the released models: the bits go straight in, the query embedding has no ReLU, there is
    no dropout; `basic` reads the last state, `attention` all of them. `matched` is what the paper describes, the
    Transformer with only its encoder replaced: scaled and dropped embeddings, ReLU on the query, attention.
    """

    class Options(Config):
        """`dropout` is used by `matched` only: on the embedding and between layers."""

        name: Literal["retrieval-lstm"] = "retrieval-lstm"
        form: Literal["basic", "attention", "matched"] = "attention"
        width: int = Field(100, ge=2)
        layers: int = Field(1, ge=1)
        dropout: float = Field(0.2, ge=0, lt=1)

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        in_features, query_features = features(spec)
        matched, width = options.form == "matched", options.width
        self.dropout = options.dropout if matched else 0.0
        self.embed = BitsEmbedding(in_features, width, scale=math.sqrt(in_features)) if matched else None
        self.recurrence = Recurrence(width if matched else in_features, width, options.layers, self.dropout)
        self.decoder = Decoder(query_features, width, attention=options.form != "basic", rectified=matched)
        if not matched:
            nn.init.uniform_(self.decoder.query.weight, -0.1, 0.1)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """The logit (B, 1) of yes. Traces: `encoder.state`, `decoder.attention`."""
        bits = inputs["sequence"].to(self.decoder.query.weight.dtype)
        x = bits if self.embed is None else tape.dropout(self.embed(bits), self.dropout)
        states = self.recurrence(x, tape=tape)
        tape.keep("encoder.state", states)
        logit: Tensor = self.decoder(states, inputs["query"], tape)
        return logit

"""What both retrieval models do with the query, which arrives only after the sequence has been encoded."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unseen.errors import UsageError
from unseen.models.layers.linear import Linear
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Field, Spec


def features(spec: Spec) -> tuple[int, int]:
    """How many bits a token and a query have; a task without a `sequence` and a `query` of bits is refused."""
    sequence, query = spec.field("sequence").width, spec.field("query").width
    spec.require(Field("sequence", "bits", sequence, "sequence"))
    spec.require(Field("query", "bits", query))
    if (spec.target.kind, spec.target.width, spec.target.along) != ("binary", 1, None):
        raise UsageError(f"the retrieval models answer yes or no once per example, the target is {spec.target}")
    return sequence, query


class Decoder(nn.Module):
    """Embed the query, read the states with it, answer with one logit: (B, n, width), (B, features) → (B, 1).

    α = softmax(h · q) without scaling and c = Σ α h; without attention c is the last state. Then an MLP on [c; q].
    """

    def __init__(self, features: int, width: int, *, attention: bool = True, rectified: bool = True) -> None:
        super().__init__()
        self.attention, self.rectified = attention, rectified
        self.query = Linear(features, width)
        self.hidden, self.answer = Linear(2 * width, width), Linear(width, 1)

    def forward(self, states: Tensor, query: Tensor, tape: Tape = NO_TAPE) -> Tensor:
        embedded = self.query(query.to(states.dtype))
        if self.rectified:
            embedded = embedded.relu()
        read = self._read(states, embedded, tape) if self.attention else states[:, -1]
        logit: Tensor = self.answer(self.hidden(torch.cat([read, embedded], -1)).relu())
        return logit

    def _read(self, states: Tensor, query: Tensor, tape: Tape) -> Tensor:
        # The query is the row, not the column, of the product: for one example a column is a matrix–vector product,
        # which rounds differently from a batched one (see `Linear`).
        scores = query[:, None] @ states.transpose(1, 2)
        weights = scores.softmax(-1)
        tape.keep("decoder.attention", weights[:, 0])
        return (weights @ states)[:, 0]

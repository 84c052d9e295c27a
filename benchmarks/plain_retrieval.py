"""The retrieval Transformer as anybody would write it: the yardstick for stacked training.

Library layers. It shares no code with the zoo.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class PlainTransformer(nn.Module):
    """T+Pos+Att of the retrieval paper: one post-norm layer, one head, width 100, dropout 0.2."""

    def __init__(self, features: int = 36, width: int = 100, dropout: float = 0.2, length: int = 64) -> None:
        super().__init__()
        self.scale, self.width = math.sqrt(features), width
        self.embed, self.query = nn.Linear(features, width), nn.Linear(features, width)
        self.in_projection, self.out_projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.hidden, self.answer = nn.Linear(2 * width, width), nn.Linear(width, 1)
        self.dropout = nn.Dropout(dropout)
        place, dim = torch.arange(length)[:, None], torch.arange(0, width, 2)
        angle = place * torch.exp(-math.log(10000.0) * dim / width)
        self.register_buffer("positions", torch.stack([angle.sin(), angle.cos()], -1).flatten(1), persistent=False)
        self.register_buffer("future", torch.ones(length, length).triu(1).bool(), persistent=False)

    def forward(self, sequence: Tensor, query: Tensor) -> Tensor:
        n = sequence.shape[1]
        e = self.dropout(self.scale * self.embed(sequence) + self.get_buffer("positions")[:n])
        q, k, v = self.in_projection(e).chunk(3, -1)
        scores = q @ k.transpose(1, 2) / math.sqrt(self.width)
        weights = scores.masked_fill(self.get_buffer("future")[:n, :n], -math.inf).softmax(-1)
        u = self.norm1(e + self.dropout(self.out_projection(self.dropout(weights) @ v)))
        h = self.norm2(u + self.dropout(self.second(self.dropout(F.relu(self.first(u))))))
        asked = F.relu(self.query(query))
        attention = (h @ asked[:, :, None]).softmax(1)
        read = (attention * h).sum(1)
        out: Tensor = self.answer(F.relu(self.hidden(torch.cat([read, asked], -1))))
        return out

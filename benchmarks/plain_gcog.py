"""The gCOG paper's models as anybody would write them: the yardstick for training, and for exact shortcuts.

Library layers, every token through every layer, ten latents; sub-modules are named as in the zoo. They share no code
with it, and know no padding: examples of one length at a time.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CLASSES = 138


class PlainRelative(nn.Module):
    """Attention with a learned vector per distance, in an array of all pairs; no output map."""

    def __init__(self, width: int, heads: int, length: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.length, self.causal = heads, length, causal
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.table = nn.Parameter(torch.randn(length if causal else 2 * length - 1, width // heads))

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        query, key, value = (
            layer(x).view(batch, tokens, self.heads, -1).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        place = torch.arange(tokens)
        distance = place[:, None] - place
        vectors = self.table[self.length - 1 - (distance.clamp(min=0) if self.causal else distance)]
        scores = query @ key.transpose(2, 3) + torch.einsum("bhik,ijk->bhij", query, vectors)
        scores = scores / math.sqrt(width // self.heads)
        if self.causal:
            scores = scores.masked_fill(distance < 0, -math.inf)
        found: Tensor = (scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, tokens, width)
        return found


class PlainMLP(nn.Module):
    """Linear layers, each with an activation."""

    def __init__(self, *widths: int, gelu: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        self.gelu = gelu

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = F.gelu(layer(x)) if self.gelu else F.relu(layer(x))
        return x


class PlainBlock(nn.Module):
    """Codes of places with dropout (or relative positions), then a post-norm layer, for all tokens."""

    def __init__(
        self,
        width: int,
        hidden: int,
        heads: int = 1,
        relative: int | None = None,
        causal: bool = True,
        gelu: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.relative = relative is not None
        self.attention: nn.Module = (
            nn.MultiheadAttention(width, heads, batch_first=True)
            if relative is None
            else PlainRelative(width, heads, relative, causal)
        )
        self.mlp = PlainMLP(width, hidden, width, gelu=gelu)
        self.norm_first, self.norm_second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, start: int | None = None, rule: int = 0) -> Tensor:
        if self.relative:
            found = self.attention(x)
        else:
            x = self.dropout(x + codes(x.shape[1], x.shape[2], start, rule).to(x.dtype))
            found = self.attention(x, x, x, need_weights=False)[0]
        u = self.norm_first(x + found)
        result: Tensor = self.norm_second(u + self.mlp(u))
        return result


def codes(tokens: int, width: int, start: int | None = None, rule: int = 0) -> Tensor:
    """Sinusoidal codes; after `rule` tokens the places go on at `start`, if that is given."""
    place = torch.arange(tokens)
    if start is not None:
        place = torch.where(place < rule, place, place - rule + start)
    angle = place[:, None] * torch.exp(-math.log(10000.0) / width * torch.arange(0, width, 2).double())
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


class PlainHead(nn.Module):
    """A norm, unless without, and a linear map."""

    def __init__(self, width: int, norm: bool = True) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width) if norm else nn.Identity()
        self.answer = nn.Linear(width, CLASSES)

    def forward(self, state: Tensor) -> Tensor:
        logits: Tensor = self.answer(self.norm(state))
        return logits


class PlainStream(nn.Module):
    """Embedding and block of one stream."""

    def __init__(self, inputs: int, width: int, relative: bool, **given: bool) -> None:
        super().__init__()
        self.embed = nn.Linear(inputs, width)
        self.block = PlainBlock(width, width, relative=100 if relative else None, **given)

    def forward(self, x: Tensor) -> Tensor:
        states: Tensor = self.block(self.embed(x))
        return states


class _TwoStreams(nn.Module):
    def __init__(self, rule: int, stimulus: int, width: int, relative: bool = False, causal: bool = True) -> None:
        super().__init__()
        self.rule = PlainStream(rule, width, relative, causal=causal)
        self.stimulus = PlainStream(stimulus, width, False)


def joined(rule: Tensor, stimulus: Tensor) -> Tensor:
    """Rule rows, then stimulus rows, each in columns of its own."""
    return torch.cat([F.pad(rule, (0, stimulus.shape[2])), F.pad(stimulus, (rule.shape[2], 0))], 1)


class PlainSingleStream(nn.Module):
    """SSTfmr: one block, then three layers for every token; the last is read."""

    def __init__(
        self,
        rule: int = 8,
        stimulus: int = 3,
        width: int = 256,
        hidden: int = 512,
        relative: bool = False,
        causal: bool = True,
        start: int | None = None,
        places: int = 201,
    ) -> None:
        super().__init__()
        self.start = start
        self.embed = nn.Linear(rule + stimulus, width)
        self.block = PlainBlock(width, width, relative=places if relative else None, causal=causal)
        self.mlp = PlainMLP(width, hidden, 2 * hidden, hidden)
        self.head = PlainHead(hidden)

    def forward(self, rule: Tensor, stimulus: Tensor) -> Tensor:
        x = self.block(self.embed(joined(rule, stimulus)), self.start, rule.shape[1])
        logits: Tensor = self.head(self.mlp(x)[:, -1])
        return logits


class PlainDualStream(_TwoStreams):
    """DSTfmr: a block and a layer for every token of each stream; the last tokens are added."""

    def __init__(self, rule: int = 8, stimulus: int = 3, width: int = 256, hidden: int = 512, **given: bool) -> None:
        super().__init__(rule, stimulus, width, **given)
        self.rule_mlp, self.stimulus_mlp = PlainMLP(width, hidden), PlainMLP(width, hidden)
        self.norm, self.mlp = nn.LayerNorm(hidden), PlainMLP(hidden, 2 * hidden, 2 * hidden, hidden)
        self.head = PlainHead(hidden)

    def forward(self, rule: Tensor, stimulus: Tensor) -> Tensor:
        both = self.rule_mlp(self.rule(rule))[:, -1] + self.stimulus_mlp(self.stimulus(stimulus))[:, -1]
        logits: Tensor = self.head(self.mlp(self.norm(both)))
        return logits


class PlainCrossAttention(_TwoStreams):
    """CrossAttn: all rule tokens look at the stimulus; the last is read."""

    def __init__(self, rule: int = 8, stimulus: int = 3, width: int = 256, hidden: int = 512, **given: bool) -> None:
        super().__init__(rule, stimulus, width, **given)
        self.cross = nn.MultiheadAttention(width, 1, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.mlp = PlainMLP(width, hidden, hidden)
        self.head = PlainHead(hidden)

    def forward(self, rule: Tensor, stimulus: Tensor) -> Tensor:
        asking, asked = self.rule(rule), self.stimulus(stimulus)
        found = self.cross(asking, asked, asked, need_weights=False)[0]
        logits: Tensor = self.head(self.mlp(self.norm(found) + asking)[:, -1])
        return logits


class PlainGlance(nn.Module):
    """Cross-attention of latents, a norm, a layer."""

    def __init__(self, hidden: int, width: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(hidden, 1, kdim=width, vdim=width, batch_first=True)
        self.norm, self.mlp = nn.LayerNorm(hidden), PlainMLP(hidden, hidden)

    def forward(self, latents: Tensor, tokens: Tensor) -> Tensor:
        found = self.norm(self.attention(latents, tokens, tokens, need_weights=False)[0])
        result: Tensor = found + self.mlp(found)
        return result


class PlainPerceiver(_TwoStreams):
    """Perceiver: ten latents, zero or learned; the last is read."""

    def __init__(
        self,
        rule: int = 8,
        stimulus: int = 3,
        width: int = 256,
        hidden: int = 512,
        learned: bool = False,
        **given: bool,
    ) -> None:
        super().__init__(rule, stimulus, width, **given)
        self.to_rule, self.to_stimulus = PlainGlance(hidden, width), PlainGlance(hidden, width)
        self.among, self.norm = nn.MultiheadAttention(hidden, 1, batch_first=True), nn.LayerNorm(hidden)
        self.mlp, self.head = PlainMLP(hidden, hidden), PlainHead(hidden, norm=False)
        if learned:
            self.latents = nn.Parameter(torch.randn(10, hidden) * 0.02)
        else:
            self.register_buffer("latents", torch.zeros(10, hidden), persistent=False)

    def forward(self, rule: Tensor, stimulus: Tensor) -> Tensor:
        latents = self.latents.expand(len(rule), -1, -1)
        for glance, tokens in ((self.to_rule, self.rule(rule)), (self.to_stimulus, self.stimulus(stimulus))):
            latents = self.norm(latents + glance(latents, tokens))
            latents = self.norm(latents + self.among(latents, latents, latents, need_weights=False)[0])
        logits: Tensor = self.head(self.mlp(latents)[:, -1])
        return logits


class PlainBert(nn.Module):
    """The BERT-like series: codes at every layer, the last token is read."""

    def __init__(
        self,
        rule: int = 8,
        stimulus: int = 3,
        width: int = 256,
        hidden: int = 1024,
        layers: int = 4,
        heads: int = 8,
        relative: bool = True,
        causal: bool = True,
        start: int | None = None,
        places: int = 201,
    ) -> None:
        super().__init__()
        self.start = start
        self.embed = nn.Linear(rule + stimulus, width)
        self.blocks = nn.ModuleList(
            PlainBlock(width, hidden, heads, places if relative else None, causal, gelu=True) for _ in range(layers)
        )
        self.head = PlainHead(width, norm=False)

    def forward(self, rule: Tensor, stimulus: Tensor) -> Tensor:
        x = self.embed(joined(rule, stimulus))
        for block in self.blocks:
            x = block(x, self.start, rule.shape[1])
        logits: Tensor = self.head(x[:, -1])
        return logits


class PlainRecurrent(nn.Module):
    """RNN and GRU: the flattened stimulus beside every rule token; the last state is normed and read."""

    def __init__(
        self, rule: int = 8, stimulus: int = 303, width: int = 512, gated: bool = False, activation: str = "relu"
    ) -> None:
        super().__init__()
        self.layer: nn.RNNBase = (
            nn.GRU(rule + stimulus, width, batch_first=True)
            if gated
            else nn.RNN(rule + stimulus, width, nonlinearity=activation, batch_first=True)
        )
        self.head = PlainHead(width)

    def forward(self, rule: Tensor, stimulus: Tensor) -> Tensor:
        always = stimulus.flatten(1)[:, None].expand(-1, rule.shape[1], -1)
        logits: Tensor = self.head(self.layer(torch.cat([rule, always], -1))[0][:, -1])
        return logits

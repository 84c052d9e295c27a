"""Models written by hand, in which everybody knows where each variable is and what is done with it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WIDTH = 32


def random_rotation(width: int) -> Tensor:
    return torch.linalg.qr(torch.randn(width, width, generator=torch.Generator().manual_seed(1)))[0]


class Embed(nn.Module):
    """The symbol as one of the first axes of a rotated space, at its own token; functions have no state yet."""

    def __init__(self, symbols: int) -> None:
        super().__init__()
        self.symbols = symbols
        self.register_buffer("axes", random_rotation(WIDTH)[:, :symbols].contiguous())

    def forward(self, token: Tensor) -> Tensor:
        is_symbol = (token < self.symbols)[..., None]
        code = F.one_hot(token.clamp_max(self.symbols - 1), self.symbols).to(self.axes.dtype) * is_symbol
        return code @ self.axes.mT


class Step(nn.Module):
    """Every function looks up what its right neighbour has; a symbol stays where it is."""

    def __init__(self, tables: Tensor) -> None:
        super().__init__()
        self.symbols = symbols = tables.shape[1]
        self.register_buffer("maps", F.one_hot(tables.long(), symbols).float())  # (functions, from, to)

    def forward(self, states: Tensor, token: Tensor, axes: Tensor) -> Tensor:
        code = states @ axes
        function = (token - self.symbols).clamp(0, len(self.maps) - 1)
        neighbour = torch.cat([code[:, 1:], torch.zeros_like(code[:, :1])], 1)
        looked_up = (neighbour[:, :, None] @ self.maps[function])[:, :, 0]
        is_symbol = (token < self.symbols)[..., None]
        is_function = ((token >= self.symbols) & (token < self.symbols + len(self.maps)))[..., None]
        return (code * is_symbol + looked_up * is_function) @ axes.mT


class TableLookUp(nn.Module):
    """Solves chains of up to `steps` functions, written backward. The k-th call of `step` (`step`, `step:1`, …) has the
    symbol after the k-th function at that function's token; the answer is read at the first of the functions."""

    def __init__(self, tables: Tensor, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self.embed = Embed(tables.shape[1])
        self.step = Step(tables)
        self.scale = nn.Parameter(torch.full((1,), 10.0))

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        token = inputs["token"]
        states = self.embed(token)
        for _ in range(self.steps):
            states = self.step(states, token, self.embed.axes)
        return states[:, 1] @ self.embed.axes * self.scale


class Carry(nn.Module):
    """The features of each token and, beside them, those of all earlier tokens."""

    def forward(self, sequence: Tensor) -> Tensor:
        so_far = sequence.cumsum(1) - sequence
        return torch.cat([sequence, so_far.clamp_max(1)], -1)


class LaterToken(nn.Module):
    """Solves T6 by the later token: it carries whether the earlier feature came before it. `carry` is (B, n, 2 F)."""

    def __init__(self, first: Tensor, second: Tensor) -> None:
        super().__init__()
        self.register_buffer("first", first)
        self.register_buffer("second", second)
        self.carry = Carry()
        self.scale = nn.Parameter(torch.full((1,), 10.0))

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        states = self.carry(inputs["sequence"])
        own, earlier = states.chunk(2, -1)
        query = inputs["query"][:, None]
        second = (own * (query @ self.second)).sum(-1)
        first = (earlier * (query @ self.first)).sum(-1)
        return ((second * first).amax(1, keepdim=True) - 0.5) * self.scale


class Place(nn.Module):
    """Where a feature is, as one-hot positions."""

    def forward(self, sequence: Tensor, feature: Tensor) -> Tensor:
        return (sequence * feature).sum(-1)


class TwoPlaces(nn.Module):
    """Solves T6 by comparing two positions: `first` and `second`, (B, n) each. No token carries the order."""

    def __init__(self, first: Tensor, second: Tensor) -> None:
        super().__init__()
        self.register_buffer("first_of", first)
        self.register_buffer("second_of", second)
        self.first = Place()
        self.second = Place()
        self.scale = nn.Parameter(torch.full((1,), 10.0))

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        query = inputs["query"][:, None]
        first = self.first(inputs["sequence"], query @ self.first_of)
        second = self.second(inputs["sequence"], query @ self.second_of)
        before = first.cumsum(1) - first
        return ((before * second).amax(1, keepdim=True).clamp_max(1) - 0.5) * self.scale

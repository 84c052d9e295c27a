"""Positional schemes: what is added to a stream's tokens, and what attention does with their places."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from unseen.errors import UsageError
from unseen.models.layers.constants import constant
from unseen.models.layers.linear import affine
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Grid, Stream

Scheme = Literal["none", "sinusoidal", "learned", "rotary", "relative"]


def waves(places: Tensor, width: int) -> Tensor:
    """Sines on even and cosines on odd channels of falling frequency (base 10 000): (T,) → (T, width).

    >>> waves(torch.arange(2), 4)[0]
    tensor([0., 1., 0., 1.], dtype=torch.float64)
    """
    angles = places.double()[:, None] * _frequencies(width, places.device)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :width]


def _frequencies(width: int, device: torch.device) -> Tensor:
    return torch.exp(torch.arange(0, width, 2, device=device).double() * (-math.log(10_000.0) / width))


@constant
def sinusoids(length: int, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The sinusoidal code of places 0 … length − 1: (length, width)."""
    return waves(torch.arange(length, device=device), width).to(dtype)


@constant
def grid_sinusoids(length: int, grid: Grid, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Row code on the first half of the channels, column code on the rest; zero past the grid."""
    cells = torch.arange(length, device=device)
    half = width // 2
    code = torch.cat([waves(cells // grid.columns, half), waves(cells % grid.columns, width - half)], 1)
    return (code * (cells < grid.rows * grid.columns)[:, None]).to(dtype)


class AddedPositions(nn.Module):
    """What a scheme adds to the tokens of one stream: (T, width), or None.

    A set has no positions. A grid has a row and a column code, also under `rotary` and `relative`, which see
    places in one dimension only; whatever lies past its cells has none. `learned` positions are for so many `places` of
    a sequence, by default as many as it has in the spec; those never met in training stay as they were drawn.
    """

    def __init__(self, stream: Stream, width: int, scheme: Scheme, places: int | None = None) -> None:
        super().__init__()
        self.stream, self.width = stream, width
        grid, between_tokens = isinstance(stream.order, Grid), scheme in ("rotary", "relative")
        self.places = stream.length if grid or places is None else places
        self.scheme = "none" if stream.order == "set" else "sinusoidal" if between_tokens and grid else scheme
        if self.scheme == "learned":
            if self.places < stream.length:
                raise UsageError(
                    f"positions 'learned' for {self.places} places: stream '{stream.name}' has "
                    f"{stream.length}; choose more places"
                )
            sizes = (stream.order.rows, stream.order.columns) if isinstance(stream.order, Grid) else (self.places,)
            self.tables = nn.ParameterList([nn.init.normal_(torch.empty(n, width), std=0.02) for n in sizes])

    def forward(self, length: int, like: Tensor) -> Tensor | None:
        order = self.stream.order
        if self.scheme == "sinusoidal":
            if isinstance(order, Grid):
                return grid_sinusoids(length, order, self.width, like.dtype, like.device)
            return sinusoids(length, self.width, like.dtype, like.device)
        if self.scheme != "learned":
            return None
        if length > self.places:
            raise UsageError(
                f"positions 'learned' know {self.places} places of stream '{self.stream.name}', {length} arrived; for "
                "other lengths choose more places, or positions sinusoidal, rotary, relative or none"
            )
        if not isinstance(order, Grid):
            table: Tensor = self.tables[0][:length]
            return table
        cells: Tensor = (self.tables[0][:, None] + self.tables[1]).flatten(0, 1)
        return nn.functional.pad(cells, (0, 0, 0, max(0, length - len(cells))))[:length]


@constant
def _turns(places: tuple[int, ...], width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Cosines and sines of the rotary angles: (2, T, width / 2)."""
    angles = torch.tensor(places, device=device).double()[:, None] * _frequencies(width, device)
    return torch.stack([angles.cos(), angles.sin()]).to(dtype)


def rotate(x: Tensor, places: tuple[int, ...]) -> Tensor:
    """Rotary positions: turn each pair of channels (…, T, width) by an angle proportional to its place.

    The product of two turned vectors depends on the difference of their places alone.
    """
    cosine, sine = _turns(places, x.shape[-1], x.dtype, x.device)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cosine - b * sine, a * sine + b * cosine], -1)


@constant
def _offsets(
    queries: tuple[int, ...], keys: tuple[int, ...], width: int, dtype: torch.dtype, device: torch.device
) -> Tensor:
    """The sinusoidal code of every distinct offset, lowest first."""
    return waves(torch.arange(*_offset_range(queries, keys), device=device), width).to(dtype)


@constant
def _offset_index(queries: tuple[int, ...], keys: tuple[int, ...], device: torch.device) -> Tensor:
    """Which of the offsets lies between each query and each key: (T, U)."""
    offsets = torch.tensor(keys, device=device) - torch.tensor(queries, device=device)[:, None]
    return offsets - _offset_range(queries, keys)[0]


def _offset_range(queries: tuple[int, ...], keys: tuple[int, ...]) -> tuple[int, int]:
    low, high = min(keys) - max(queries), max(keys) - min(queries)
    return low, max(high, low + 1) + 1  # at least two: a product with one column rounds by its own rule (see `affine`)


class Relative(nn.Module):
    """Relative scores in the Transformer-XL form: (q + u)·k + (q + v)·(W e_offset), offset = key − query place.

    u and v, one per head, start at zero; W is Xavier uniform without bias; e is the sinusoidal code. Dropout acts on
    the keys W e, alike for the whole batch.
    """

    def __init__(self, width: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.width, self.dropout = width, dropout
        self.content = nn.Parameter(torch.zeros(heads, 1, width // heads))
        self.position = nn.Parameter(torch.zeros(heads, 1, width // heads))
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(width, width)))

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        query_places: tuple[int, ...],
        key_places: tuple[int, ...],
        tape: Tape = NO_TAPE,
    ) -> Tensor:
        """Scores (B, heads, T, U) before scaling, from queries (B, heads, T, k) and keys (B, heads, U, k)."""
        batch, heads, length, size = query.shape
        code = _offsets(query_places, key_places, self.width, query.dtype, query.device)
        keys = tape.dropout(affine(code, self.weight), self.dropout)
        keys = keys.view(-1, heads, size).permute(1, 2, 0).contiguous()
        # (q + v)·r as (q + u)·r + (v − u)·r: the second is a few numbers, where q + v is as many as there are queries.
        query = query + self.content
        # One product per head for the whole batch, whose offsets are the same.
        by_head = query.transpose(0, 1).reshape(heads, batch * length, size) @ keys
        by_head = by_head.add_((self.position - self.content) @ keys)
        by_offset = by_head.view(heads, batch, length, -1).transpose(0, 1)
        index = _offset_index(query_places, key_places, query.device)
        by_place = by_offset.gather(-1, index.expand(batch, heads, *index.shape))
        by_content: Tensor = query @ key.transpose(-1, -2)
        return by_content + by_place

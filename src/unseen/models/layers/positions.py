"""Positional schemes: codes added to the tokens of a stream, rotations of queries and keys, and relative scores."""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unseen.errors import UsageError
from unseen.models.context import NO_CONTEXT, Context
from unseen.models.layers.constants import arange, constant
from unseen.models.layers.linear import affine
from unseen.spec import GridShape, Stream

Scheme = Literal["none", "sinusoidal", "learned", "rotary", "relative"]


def sinusoidal_code(token_positions: Tensor, width: int) -> Tensor:
    """Sines on even and cosines on odd channels, of falling frequency (base 10 000): (T,) → (T, width).

    >>> sinusoidal_code(torch.arange(2), 4)[0]
    tensor([0., 1., 0., 1.], dtype=torch.float64)
    """
    angles = token_positions.double()[:, None] * _frequencies(width, token_positions.device)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :width]


def _frequencies(width: int, device: torch.device) -> Tensor:
    return torch.exp(torch.arange(0, width, 2, device=device).double() * (-math.log(10_000.0) / width))


@constant
def sinusoids(length: int, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The sinusoidal code of positions 0 … length − 1: (length, width)."""
    return sinusoidal_code(torch.arange(length, device=device), width).to(dtype)


@constant
def grid_sinusoids(length: int, grid: GridShape, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The code of the row on the first half of the channels, that of the column on the second; zero past the grid."""
    cells = torch.arange(length, device=device)
    half = width // 2
    rows = sinusoidal_code(cells // grid.columns, half)
    columns = sinusoidal_code(cells % grid.columns, width - half)
    # Multiplied rather than masked: tokens past the grid, such as an end token, have no position.
    return (torch.cat([rows, columns], 1) * (cells < grid.rows * grid.columns)[:, None]).to(dtype)


class AddedPositions(nn.Module):
    """The code that a scheme adds to the tokens of one stream: (T, width), or None.

    A set has no positions. A grid has a row and a column code, also under `rotary` and `relative`, which know positions
    in one dimension only; tokens past its cells have none. `learned` positions have a table of `places` positions of a
    sequence, by default as many as it has in the spec; entries that never occur in training keep their initial values.
    """

    def __init__(self, stream: Stream, width: int, scheme: Scheme, places: int | None = None) -> None:
        super().__init__()
        self.stream = stream
        self.width = width
        grid = isinstance(stream.order, GridShape)
        self.places = stream.length if grid or places is None else places
        if stream.order == "set":
            self.scheme: Scheme = "none"
        elif grid and scheme in ("rotary", "relative"):
            self.scheme = "sinusoidal"
        else:
            self.scheme = scheme
        if self.scheme == "learned":
            if self.places < stream.length:
                raise UsageError(
                    f"places = {self.places}: expected at least the {stream.length} positions of stream "
                    f"'{stream.name}'; choose a larger number of places"
                )
            sizes = (stream.order.rows, stream.order.columns) if isinstance(stream.order, GridShape) else (self.places,)
            self.tables = nn.ParameterList([nn.init.normal_(torch.empty(n, width), std=0.02) for n in sizes])

    def forward(self, length: int, like: Tensor) -> Tensor | None:
        """The codes of the first `length` tokens, with the type and device of `like`."""
        order = self.stream.order
        if self.scheme == "sinusoidal":
            if isinstance(order, GridShape):
                return grid_sinusoids(length, order, self.width, like.dtype, like.device)
            return sinusoids(length, self.width, like.dtype, like.device)
        if self.scheme != "learned":
            return None
        if length > self.places:
            raise UsageError(
                f"positions 'learned' know {self.places} places of stream '{self.stream.name}', {length} arrived; for "
                "other lengths choose more places, or positions sinusoidal, rotary, relative or none"
            )
        if not isinstance(order, GridShape):
            table: Tensor = self.tables[0][:length]
            return table
        cells: Tensor = (self.tables[0][:, None] + self.tables[1]).flatten(0, 1)
        return F.pad(cells, (0, 0, 0, max(0, length - len(cells))))[:length]


def rotate(x: Tensor, token_positions: tuple[int, ...]) -> Tensor:
    """Rotary positions: rotate each pair of channels of (…, T, width) by an angle proportional to its position.

    The product of two rotated vectors depends only on the difference of their positions.
    """
    cosine, sine = _rotary_angles(token_positions, x.shape[-1], x.dtype, x.device)
    # Channel i of the first half and channel i of the second are the pair that is rotated.
    a, b = x.chunk(2, -1)
    return torch.cat([a * cosine - b * sine, a * sine + b * cosine], -1)


@constant
def _rotary_angles(token_positions: tuple[int, ...], width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Cosines and sines of the rotary angles: (2, T, width / 2)."""
    angles = torch.tensor(token_positions, device=device).double()[:, None] * _frequencies(width, device)
    return torch.stack([angles.cos(), angles.sin()]).to(dtype)


class RelativeScores(nn.Module):
    """Relative scores in the Transformer-XL form: (q + u)·k + (q + v)·(W e_offset), offset = key − query position.

    u and v, one per head, start at zero; W is Xavier uniform without bias; e is the sinusoidal code. Dropout acts on the
    keys W e, with one mask for the whole batch.
    """

    def __init__(self, width: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.width = width
        self.dropout = dropout
        self.content = nn.Parameter(torch.zeros(heads, 1, width // heads))
        self.position = nn.Parameter(torch.zeros(heads, 1, width // heads))
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(width, width)))

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        query_positions: tuple[int, ...],
        key_positions: tuple[int, ...],
        ctx: Context = NO_CONTEXT,
    ) -> Tensor:
        """Scores (B, heads, T, U) before scaling, from queries (B, heads, T, k) and keys (B, heads, U, k)."""
        batch, heads, length, size = query.shape
        code = _offset_codes(query_positions, key_positions, self.width, query.dtype, query.device)
        keys = ctx.dropout(affine(code, self.weight), self.dropout)
        keys = keys.view(-1, heads, size).permute(1, 2, 0).contiguous()
        # (q + v)·r is computed as (q + u)·r + (v − u)·r: the second term is small, whereas q + v is as large as the queries.
        query = query + self.content
        # One product per head for the whole batch, because all examples have the same offsets.
        by_head = query.transpose(0, 1).reshape(heads, batch * length, size) @ keys
        by_head = by_head.add_((self.position - self.content) @ keys)
        by_offset = by_head.view(heads, batch, length, -1).transpose(0, 1)
        index = _offset_index(query_positions, key_positions, query.device)
        by_position = by_offset.gather(-1, index.expand(batch, heads, *index.shape))
        by_content: Tensor = query @ key.transpose(-1, -2)
        return by_content + by_position


@constant
def _offset_codes(
    queries: tuple[int, ...], keys: tuple[int, ...], width: int, dtype: torch.dtype, device: torch.device
) -> Tensor:
    """The sinusoidal code of every distinct offset, lowest first."""
    return sinusoidal_code(torch.arange(*_offset_range(queries, keys), device=device), width).to(dtype)


@constant
def _offset_index(queries: tuple[int, ...], keys: tuple[int, ...], device: torch.device) -> Tensor:
    """The index of the offset between each query and each key: (T, U)."""
    offsets = torch.tensor(keys, device=device) - torch.tensor(queries, device=device)[:, None]
    return offsets - _offset_range(queries, keys)[0]


def _offset_range(queries: tuple[int, ...], keys: tuple[int, ...]) -> tuple[int, int]:
    low = min(keys) - max(queries)
    high = max(keys) - min(queries)
    # At least two offsets: a product with a single column rounds differently (see `affine`).
    return low, max(high, low + 1) + 1


class DistanceTable(nn.Module):
    """q · r(i − j) for a query at position i and a key at position j, with one table r for all heads, initially normal.

    `causal` (Huang et al., 2018): the table has a row for each distance from `length` − 1 down to 0, which is the last;
    it has none for later keys, which attention has to mask. Otherwise rows for negative distances follow.
    """

    def __init__(self, length: int, size: int, *, causal: bool) -> None:
        super().__init__()
        self.length = length
        self.causal = causal
        self.weight = nn.Parameter(torch.empty(length if causal else 2 * length - 1, size).normal_())

    def forward(self, query: Tensor) -> Tensor:
        """From every position to every position: (B, heads, T, size) → (B, heads, T, T)."""
        length = query.shape[-2]
        products = self._products(query, length, length if self.causal else 2 * length - 1)
        # Row i of the products starts with distance T − 1 and should start with distance i, T − 1 − i columns later. With
        # one more column in front, and the memory read as rows that are one shorter, each row starts one column later
        # than the row before, which is the shift that is needed.
        memory = F.pad(products, (1, 0)).flatten(-2)
        return memory[..., length:].view(*products.shape)[..., :length]

    def to_end(self, query: Tensor, length: int, end: Tensor | None) -> Tensor:
        """From position `end` (B,), by default the last, to all positions: (B, heads, Q, size) → (B, heads, Q, T)."""
        products = self._products(query, length, length)
        if end is None:
            return products
        index = (arange(length, end.device) + (length - 1 - end)[:, None]).clamp_max(length - 1)
        return products.gather(-1, index[:, None, None].expand(products.shape))

    def _products(self, query: Tensor, length: int, count: int) -> Tensor:
        """Queries times the first `count` rows that start with distance `length` − 1: (B, heads, Q, count)."""
        if length > self.length:
            raise UsageError(
                f"relative positions know distances up to {self.length - 1}, {length} tokens arrived; for "
                "longer questions choose absolute positions"
            )
        rows = self.weight[self.length - length :][:count]
        # As one matrix: whether torch folds a product of four axes into one depends on the number of members.
        return affine(query.flatten(0, 2), rows.mT).view(*query.shape[:3], -1)

"""From the inputs of any task to one sequence of tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unseen.errors import UsageError
from unseen.models.layers.linear import affine
from unseen.models.layers.positions import AddedPositions, Scheme
from unseen.spec import Field, Spec


@dataclass(frozen=True)
class Tokens:
    """One sequence of tokens.

    `states` (B, T, width); `mask` (B, T), true where real, or None if all are; `places` of the T tokens, for schemes
    that act between tokens; `read`, the tokens at which the target is read.
    """

    states: Tensor
    mask: Tensor | None
    places: tuple[int, ...]
    read: slice


class Embed(nn.Module):
    """Every stream in order, then one token for what is given once, then one to read the answer from.

    A token is the sum of its fields' embeddings, a vector of its stream and its position. A target along a stream is
    read there: then no read-out token is made, and what is given once comes first, in time for a recurrence. Places
    count from 0 in every stream, so that padding one moves nothing in another; a set or a grid sits at place 0, the
    extra tokens at −1.
    """

    def __init__(self, spec: Spec, width: int, positions: Scheme = "none", places: int | None = None) -> None:
        super().__init__()
        self.spec = spec
        streams: list[str | None] = [s.name for s in spec.streams]
        once: list[str | None] = [None] if spec.along(None) else []
        self.order = once + streams if spec.target.along else streams + once
        for stream in self.order:
            if all(f.kind == "mask" for f in spec.along(stream)):
                raise UsageError(f"stream '{stream}' has no field to embed; give it one, or leave it out of the spec")
        self.fields = nn.ModuleDict({f.name: _embedding(f, width) for f in spec.inputs if f.kind != "mask"})
        self.positions = nn.ModuleDict({s.name: AddedPositions(s, width, positions, places) for s in spec.streams})
        self.vectors = nn.Parameter(torch.empty(len(self.order), width).normal_(std=0.02))
        self.read = None if spec.target.along else nn.Parameter(torch.empty(width).normal_(std=0.02))

    def forward(self, inputs: Mapping[str, Tensor]) -> Tokens:
        parts = [self._part(*pair, inputs) for pair in zip(self.order, self.vectors, strict=True)]
        masks = [self._mask(stream, inputs) for stream in self.order]
        places = [self._places(stream, part.shape[1]) for stream, part in zip(self.order, parts, strict=True)]
        if self.read is None:
            index = self.order.index(self.spec.target.along)
            start = sum(part.shape[1] for part in parts[:index])
            read = slice(start, start + parts[index].shape[1])
        else:
            parts.append(self.read.expand(len(parts[0]), 1, -1))
            masks.append(None)
            places.append((-1,))
            start = sum(part.shape[1] for part in parts) - 1
            read = slice(start, start + 1)
        return Tokens(torch.cat(parts, 1), _joined(masks, parts), sum(places, ()), read)

    def _part(self, stream: str | None, vector: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        names = [f.name for f in self.spec.along(stream) if f.kind != "mask"]
        content: Tensor = sum(self.fields[name](inputs[name]) for name in names)
        if stream is None:
            return (content + vector)[:, None]
        position = self.positions[stream](content.shape[1], content)
        return content + (vector if position is None else vector + position)

    def _mask(self, stream: str | None, inputs: Mapping[str, Tensor]) -> Tensor | None:
        masks = [inputs[f.name].bool() for f in self.spec.along(stream) if f.kind == "mask"]
        return masks[0] if masks else None

    def _places(self, stream: str | None, length: int) -> tuple[int, ...]:
        if stream is None:
            return (-1,)
        return tuple(range(length)) if self.spec.stream(stream).order == "sequence" else (0,) * length


class _Category(nn.Module):
    def __init__(self, values: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(values, width).normal_())

    def forward(self, x: Tensor) -> Tensor:
        return F.embedding(x.long(), self.weight)


class _Numbers(nn.Module):
    """A linear map without bias: the stream's vector is one."""

    def __init__(self, numbers: int, width: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(numbers)
        self.weight = nn.Parameter(torch.empty(numbers, width).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        return affine(x.to(self.weight.dtype), self.weight)


def _embedding(field: Field, width: int) -> nn.Module:
    return (_Category if field.kind == "category" else _Numbers)(field.width, width)


def _joined(masks: list[Tensor | None], parts: list[Tensor]) -> Tensor | None:
    if all(mask is None for mask in masks):
        return None
    full = [
        torch.ones(part.shape[:2], dtype=torch.bool, device=part.device) if mask is None else mask
        for mask, part in zip(masks, parts, strict=True)
    ]
    return torch.cat(full, 1)

"""From the inputs of any task to one sequence of tokens, and from states to a prediction in the shape of the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unseen.errors import UsageError
from unseen.models.context import NO_CONTEXT, Context
from unseen.models.layers.constants import arange
from unseen.models.layers.linear import Linear, TensorModule, affine, uniform_parameter
from unseen.models.layers.positions import AddedPositions, Scheme
from unseen.spec import Spec


@dataclass(frozen=True)
class TokenSequence:
    """One sequence of tokens.

    `states` (B, T, width); `mask` (B, T), true where a token is real, or None if all are; `token_positions`, those of the
    T tokens for schemes that act between tokens; `read`, the tokens at which the target is read.
    """

    states: Tensor
    mask: Tensor | None
    token_positions: tuple[int, ...]
    read: slice


class Embed(nn.Module):
    """Every stream in order, then one token for the fields given once per example, then one to read the answer from.

    A token is the sum of its fields' embeddings, a vector of its stream and its position. A target along a stream is read
    there: then there is no read-out token, and the fields given once come first, early enough for a recurrence. Positions
    count from 0 in every stream, so that padding one stream moves nothing in another; all tokens of a set or a grid have
    position 0, the extra tokens −1.
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
        self.fields = nn.ModuleDict()
        for field in spec.inputs:
            if field.kind == "category":
                self.fields[field.name] = TokenEmbedding(field.width, width)
            elif field.kind != "mask":
                self.fields[field.name] = _NumberEmbedding(field.width, width)
        self.positions = nn.ModuleDict({s.name: AddedPositions(s, width, positions, places) for s in spec.streams})
        self.vectors = nn.Parameter(torch.empty(len(self.order), width).normal_(std=0.02))
        self.read = None if spec.target.along else nn.Parameter(torch.empty(width).normal_(std=0.02))

    def forward(self, inputs: Mapping[str, Tensor]) -> TokenSequence:
        """Embed inputs by field name, batch first."""
        states: list[Tensor] = []
        masks: list[Tensor | None] = []
        token_positions: tuple[int, ...] = ()
        read = slice(0)
        for stream, vector in zip(self.order, self.vectors, strict=True):
            embedded = self._embed_stream(stream, vector, inputs)
            length = embedded.shape[1]
            if stream is None:
                token_positions += (-1,)
            elif self.spec.stream(stream).order == "sequence":
                token_positions += tuple(range(length))
            else:
                token_positions += (0,) * length
            if stream is not None and stream == self.spec.target.along:
                read = slice(len(token_positions) - length, len(token_positions))
            states.append(embedded)
            masks.append(next((inputs[f.name].bool() for f in self.spec.along(stream) if f.kind == "mask"), None))
        if self.read is not None:
            states.append(self.read.expand(len(states[0]), 1, -1))
            masks.append(None)
            read = slice(len(token_positions), len(token_positions) + 1)
            token_positions += (-1,)
        return TokenSequence(torch.cat(states, 1), _join_masks(masks, states), token_positions, read)

    def _embed_stream(self, stream: str | None, vector: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        names = [f.name for f in self.spec.along(stream) if f.kind != "mask"]
        # The fields of a token are added up, so that any number of fields makes one token.
        content: Tensor = sum(self.fields[name](inputs[name]) for name in names)
        if stream is None:
            return (content + vector)[:, None]
        position = self.positions[stream](content.shape[1], content)
        return content + (vector if position is None else vector + position)


def _join_masks(masks: list[Tensor | None], states: list[Tensor]) -> Tensor | None:
    """The masks of all streams side by side, true where a stream has none; None if no stream has a mask."""
    if all(mask is None for mask in masks):
        return None
    joined = []
    for mask, x in zip(masks, states, strict=True):
        joined.append(torch.ones(x.shape[:2], dtype=torch.bool, device=x.device) if mask is None else mask)
    return torch.cat(joined, 1)


class TokenEmbedding(TensorModule):
    """A vector per value of a category, initially normal: (B, T) → (B, T, width)."""

    def __init__(self, values: int, width: int, std: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(values, width).normal_(std=std))

    def forward(self, x: Tensor) -> Tensor:
        return F.embedding(x.long(), self.weight)


class _NumberEmbedding(nn.Module):
    """A linear map without bias, because the vector of the stream is one."""

    def __init__(self, numbers: int, width: int) -> None:
        super().__init__()
        self.weight = uniform_parameter(numbers, numbers, width)

    def forward(self, x: Tensor) -> Tensor:
        return affine(x.to(self.weight.dtype), self.weight)


class ReadOut(TensorModule):
    """A linear map of the states at `TokenSequence.read`: (B, T, width) → (B, T, target), or (B, target) if given once.

    Binary targets get one logit per bit, categories one per value, real targets the number itself. Captured activations:
    `readout.state`, the input of the map.
    """

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.once = spec.target.along is None
        self.project = Linear(width, spec.target.width)

    def forward(self, states: Tensor, ctx: Context = NO_CONTEXT) -> Tensor:
        state = ctx.capture("readout.state", states[:, -1] if self.once else states)
        return self.project(state)


def gather_real(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Move real tokens side by side to the end, in order, and padding before them: `x` (B, T, width), `mask` (B, T).

    Returns the moved tokens, the moved mask, and the new position of each token, from which `take_tokens` restores them.

    >>> x, mask = torch.tensor([[[1.0], [9.0], [2.0]]]), torch.tensor([[True, False, True]])
    >>> moved, real, position = gather_real(x, mask)
    >>> moved.flatten().tolist(), real.tolist(), position.tolist()
    ([9.0, 1.0, 2.0], [[False, True, True]], [[1, 0, 2]])
    """
    real = mask.long()
    real_so_far = real.cumsum(1)  # the number of real tokens up to and including each
    numbers = arange(mask.shape[1], mask.device)
    padded = numbers.shape[0] - real_so_far[:, -1:]
    # A padded token moves to the number of padded tokens before it; the k-th real token moves to padded + k − 1. The two
    # cases are selected by multiplication, because `where` is slower.
    position = (numbers - real_so_far) + real * (padded + 2 * real_so_far - 1 - numbers)
    return take_tokens(x, position.argsort(1)), numbers >= padded, position


def take_tokens(x: Tensor, position: Tensor) -> Tensor:
    """The tokens at these positions: (B, T, width) and (B, T) → (B, T, width)."""
    return x.gather(1, position[..., None].expand(x.shape))

"""The discrete symbol of every token: what a modular model may choose its modules by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from unseen.spec import Field, Spec


class Symbols:
    """Numbers 0 … `count` − 1 for the tokens that `Embed` makes in this order.

    A token's symbol is its value in the first category field of its stream (the rule, the function, the operator), or,
    where a stream has no such field, the stream itself. Streams share no symbols. The read-out token answers for the
    whole example: it has the symbol of what is given once, if that has a category, or else one of its own.

    `main` is what the task's own symbols lie along: the first stream that has some (None: what is given once), or the
    first of all.

    >>> from unseen.spec import Target
    >>> rule = Field("x", "real", 2), Field("rule", "category", 4)
    >>> Symbols(Spec((), rule, Target("binary")), [None]).count
    4
    """

    def __init__(self, spec: Spec, order: Sequence[str | None]) -> None:
        self._spec, self._order = spec, order
        self._fields = {stream: _category(spec, stream) for stream in order}
        self._first: dict[str | None, int] = {}
        self.count = 0
        for stream, field in self._fields.items():
            self._first[stream] = self.count
            self.count += 1 if field is None else field.width
        self.main = next((stream for stream in order if self._fields[stream]), order[0])
        self._reads, self._shared = spec.target.along is None, self._fields.get(None) is not None
        if self._reads and not self._shared:
            self.count += 1

    def __call__(self, inputs: Mapping[str, Tensor]) -> tuple[Tensor, slice]:
        """The symbols, (B, T), and which of the tokens are those along `main`."""
        parts = [self._part(stream, inputs) for stream in self._order]
        index = self._order.index(self.main)
        start = sum(part.shape[1] for part in parts[:index])
        if self._reads:
            parts.append(self._part(None, inputs) if self._shared else torch.full_like(parts[0][:, :1], self.count - 1))
        return torch.cat(parts, 1), slice(start, start + parts[index].shape[1])

    def _part(self, stream: str | None, inputs: Mapping[str, Tensor]) -> Tensor:
        field, first = self._fields[stream], self._first[stream]
        if field is not None:
            values = inputs[field.name].long() + first
            return values if stream else values[:, None]
        some = inputs[self._spec.along(stream)[0].name]
        shape = some.shape[:2] if stream else (len(some), 1)
        return torch.full(shape, first, dtype=torch.int64, device=some.device)


def _category(spec: Spec, stream: str | None) -> Field | None:
    return next((field for field in spec.along(stream) if field.kind == "category"), None)

"""The specification of a task: its streams, its input fields and its target.

Embeddings, losses, metrics and chance levels are derived from it, so that any model can be trained on any task.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from unseen.errors import UsageError, nearest
from unseen.notebook import html_table

FieldKind = Literal["real", "bits", "category", "mask"]
TargetKind = Literal["binary", "category", "real"]


@dataclass(frozen=True)
class GridShape:
    """An order in rows and columns; positions from `rows * columns` on (an end token) lie outside the grid."""

    rows: int
    columns: int


Order = Literal["sequence", "set"] | GridShape


@dataclass(frozen=True)
class Stream:
    """An axis along which fields lie. `length` is that of the training data; a split may be longer or shorter."""

    name: str
    length: int
    order: Order = "sequence"


@dataclass(frozen=True)
class Field:
    """An input. Shapes, batch first: `real` and `bits` (B, [T,] width); `category` and `mask` (B, [T]).

    `width` of a category is its number of values; a mask is true where the stream is real, false where padded.
    `along` is the name of a stream, or None for a field with one value per example. `prior` are the probabilities of a
    category's values in training, where they matter to a model and are not equal.
    """

    name: str
    kind: FieldKind
    width: int = 1
    along: str | None = None
    prior: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Target:
    """The answer. Shapes: `binary` and `real` (B, [T,] width); `category` (B, [T]) with `width` values."""

    kind: TargetKind
    width: int = 1
    along: str | None = None

    @property
    def chance(self) -> float:
        """The accuracy of guessing; NaN for a real target."""
        return {"binary": 0.5, "category": 1 / self.width, "real": math.nan}[self.kind]


@dataclass(frozen=True)
class Spec:
    """Streams, inputs and target of a task.

    >>> spec = Spec((Stream("tokens", 10),), (Field("token", "category", 30, "tokens"),), Target("category", 8))
    >>> spec.field("token").width
    30
    """

    streams: tuple[Stream, ...]
    inputs: tuple[Field, ...]
    target: Target

    def __post_init__(self) -> None:
        streams = [stream.name for stream in self.streams]
        fields = [field.name for field in self.inputs]
        for noun, names in (("stream", streams), ("field", fields)):
            if len(set(names)) != len(names):
                raise UsageError(f"spec: two {noun}s have the same name: {', '.join(names)}")
        for along in [*(field.along for field in self.inputs), self.target.along]:
            if along is not None and along not in streams:
                raise UsageError(
                    f"spec: a field lies along '{along}', which is not a stream. {nearest(along, streams)}"
                )
        for field in self.inputs:
            if field.width < 1 or (field.kind == "mask" and field.along is None):
                raise UsageError(f"spec: field '{field.name}' needs a positive width, and a mask needs a stream")
        if self.target.width < 1:
            raise UsageError(f"spec: the target needs a positive width, got {self.target.width}")

    def _repr_html_(self) -> str:
        rows: list[tuple[object, ...]] = []
        for field in self.inputs:
            rows.append((field.name, field.kind, field.width, field.along or "once"))
        rows.append(("target", self.target.kind, self.target.width, self.target.along or "once"))
        streams = ", ".join(f"{stream.name} ({stream.length})" for stream in self.streams) or "none"
        return html_table(("field", "kind", "width", "along"), rows, f"streams: {streams}")

    def field(self, name: str) -> Field:
        """The input field of that name."""
        for field in self.inputs:
            if field.name == name:
                return field
        names = ", ".join(field.name for field in self.inputs)
        raise UsageError(
            f"the task has no input field '{name}'; it has {names}. Choose a model "
            "that reads these fields: a backbone (unseen models) reads any"
        )

    def stream(self, name: str) -> Stream:
        """The stream of that name."""
        for stream in self.streams:
            if stream.name == name:
                return stream
        raise UsageError(f"the task has no stream '{name}'. {nearest(name, [s.name for s in self.streams])}")

    def along(self, stream: str | None) -> tuple[Field, ...]:
        """The fields along a stream, or (None) those with one value per example."""
        return tuple(f for f in self.inputs if f.along == stream)

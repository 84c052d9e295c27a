"""The inputs of a task as plain columns of numbers, which is all that a shortcut baseline reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unseen.spec import Field, Spec
from unseen.tasks.base import Array, Examples

Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class Columns:
    """Columns of one origin: a field given once, a field at one place of its stream, or a sum over places.

    `values` is (answers, columns): an answer per example or, where the target lies along a stream, per place.
    """

    origin: Literal["once", "place", "pooled", "total"]
    name: str
    values: Matrix


def columns(spec: Spec, examples: Examples) -> Iterator[Columns]:
    """Every column of every field: at each place, pooled over its stream, and the total of the field.

    A category counts as one column per value; padded places count as zeros. For an answer at one place of a
    stream, the fields along that stream are read at that place alone.
    """
    along = spec.target.along
    places = 1 if along is None else examples.targets.shape[1]
    for field in spec.inputs:
        parts = _parts(spec, field, examples)
        if field.along is None:
            pooled = next(parts)
            yield Columns("once", field.name, _repeat(pooled, places))
        elif field.along == along:
            here = np.stack(list(parts), axis=1)
            pooled = here.sum(1)
            yield Columns("place", f"{field.name} at its place", here.reshape(-1, here.shape[-1]))
        else:
            pooled = np.zeros((len(examples), _breadth(field)), np.float32)
            for place, part in enumerate(parts):
                pooled += part
                yield Columns("place", f"{field.name} at {place}", _repeat(part, places))
        if field.along is not None:
            yield Columns("pooled", f"{field.name} summed over {field.along}", _repeat(pooled, places))
        if field.kind in ("real", "bits") and field.width > 1:
            yield Columns("total", f"total of {field.name}", _repeat(pooled.sum(1, keepdims=True), places))
    if along is not None:
        place_of = np.tile(np.eye(places, dtype=np.float32), (len(examples), 1))
        yield Columns("place", f"place in {along}", place_of)


def _parts(spec: Spec, field: Field, examples: Examples) -> Iterator[Matrix]:
    """The numbers of a field, (B, columns), at each place of its stream or once."""
    values = examples.inputs[field.name]
    if field.along is None:
        yield _numbers(field, values)
        return
    masks = [examples.inputs[f.name] for f in spec.along(field.along) if f.kind == "mask"]
    for place in range(values.shape[1]):
        part = _numbers(field, values[:, place])
        for mask in masks:
            part *= mask[:, place, None]
        yield part


def _breadth(field: Field) -> int:
    return 1 if field.kind == "mask" else field.width


def _numbers(field: Field, values: Array) -> Matrix:
    if field.kind == "category":
        return np.eye(field.width, dtype=np.float32)[values]
    return values.reshape(len(values), _breadth(field)).astype(np.float32)


def _repeat(values: Matrix, places: int) -> Matrix:
    return np.repeat(values, places, axis=0) if places > 1 else values

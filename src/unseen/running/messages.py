"""Chunks and outcomes as bytes for workers that share only a disk: safetensors with a JSON header, no pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from unseen.config import Config
from unseen.errors import CheckFailed
from unseen.models import options as make_model
from unseen.running.chunk import Chunk, EndedWeights
from unseen.store.schema import Evaluated, Finished, Outcome, Span
from unseen.studies.trial import Trial
from unseen.tasks import task as make_task
from unseen.training.evaluate import Measure
from unseen.training.recipe import Evaluation, Recipe
from unseen.training.trainer import Point

_HEADER = "message"
_TENSOR = "tensor of bytes"
"""The key of an object that stands in the JSON for bytes: the name of the tensor that has them."""
_ROWS = (Measure, Point, Span)
"""Of these there may be thousands in a message: they are written as lists of their values, without their names."""


def pack_chunk(chunk: Chunk) -> bytes:
    """A chunk as bytes."""
    return _pack(chunk)


def unpack_chunk(data: bytes) -> Chunk:
    """The chunk in these bytes. A trial that is another one here (another release, another plug-in) is an error."""
    values = _unpack(data)
    if values["weights"] is not None:
        values["weights"] = {key: EndedWeights(**ended) for key, ended in values["weights"].items()}
    values["trials"] = tuple(map(_make_trial, values["trials"]))
    values["evaluations"] = tuple(map(Evaluation.parse, values["evaluations"]))
    values["preflight"] = _tuple_or_none(values["preflight"])
    for name in ("missing", "probe_sizes"):
        values[name] = tuple(values[name])
    return Chunk(**values)


def pack_outcome(outcome: Outcome) -> bytes:
    """An outcome as bytes. Numbers keep every bit: JSON writes floats so that they are read back exactly."""
    return _pack(outcome)


def unpack_outcome(data: bytes) -> Outcome:
    """The outcome in these bytes."""
    values = _unpack(data)
    values["points"] = [Point(*row) for row in values["points"]]
    values["preflight"] = _tuple_or_none(values["preflight"])
    if values["spans"] is not None:
        values["spans"] = {key: Span(*row) for key, row in values["spans"].items()}
    for name, kind in (("finished", Finished), ("evaluated", Evaluated)):
        if values[name] is not None:
            for ended in values[name].values():
                ended["measures"] = _make_measures(ended["measures"])
            values[name] = {key: kind(**ended) for key, ended in values[name].items()}
    return Outcome(**values)


def _make_trial(values: Mapping[str, Any]) -> Trial:
    trial = Trial(
        make_task(**values["task"]),
        make_model(**values["model"]),
        Recipe.parse(values["recipe"]),
        Evaluation.parse(values["evaluation"]),
        values["seed"],
        values["data_seed"],
    )
    if trial.id != values["id"]:
        raise CheckFailed(
            f"trial {values['id']} is {trial.id} on this node: it has another release of Unseen, or of a plug-in"
        )
    return trial


def _make_measures(by_evaluation: Mapping[str, Mapping[str, list[list[Any]]]]) -> dict[str, dict[str, list[Measure]]]:
    measures: dict[str, dict[str, list[Measure]]] = {}
    for evaluation, by_selection in by_evaluation.items():
        measures[evaluation] = {name: [Measure(*row) for row in rows] for name, rows in by_selection.items()}
    return measures


def _tuple_or_none(values: list[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)


def _pack(message: Chunk | Outcome) -> bytes:
    """A message as JSON in the header of a safetensors file whose tensors are the message's bytes."""
    tensors: dict[str, np.ndarray[Any, np.dtype[np.uint8]]] = {}

    def simplify(value: Any) -> Any:
        if isinstance(value, bytes):
            name = str(len(tensors))
            tensors[name] = np.frombuffer(value, np.uint8)
            return {_TENSOR: name}
        if isinstance(value, Config):
            return value.options()  # as in a store
        if isinstance(value, _ROWS):
            return [simplify(getattr(value, field.name)) for field in fields(value)]
        if isinstance(value, Trial):
            return {**by_field(value), "id": value.id}
        if is_dataclass(value):
            return by_field(value)
        if isinstance(value, Mapping):
            return {key: simplify(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return list(map(simplify, value))
        return value.item() if isinstance(value, np.generic) else value

    def by_field(value: Any) -> dict[str, Any]:
        return {field.name: simplify(getattr(value, field.name)) for field in fields(value)}

    header = json.dumps(simplify(message))
    return save(tensors, {_HEADER: header})


def _unpack(data: bytes) -> Any:
    """The values of a message's fields, with the bytes in their places."""
    tensors = load(data)

    def restore(values: dict[str, Any]) -> Any:
        return tensors[values[_TENSOR]].tobytes() if values.keys() == {_TENSOR} else values

    length = int.from_bytes(data[:8], "little")  # of the header, which is JSON with our JSON as one of its texts
    return json.loads(json.loads(data[8 : 8 + length])["__metadata__"][_HEADER], object_hook=restore)

"""Stand-ins for the specs of all tasks, the models that read them, and random inputs and targets for any spec."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from unseen.models import BACKBONES
from unseen.spec import Field, GridShape, Spec, Stream, Target

RETRIEVAL = Spec(
    (Stream("sequence", 5),),
    (Field("sequence", "bits", 36, "sequence"), Field("query", "bits", 36)),
    Target("binary"),
)

SPECS: dict[str, Spec] = {
    "rules/mlp": Spec((), (Field("x", "real", 2), Field("rule", "category", 4)), Target("binary")),
    "rules/mlp real": Spec((), (Field("x", "real", 2), Field("rule", "category", 4)), Target("real")),
    "rules/mha": Spec(
        (Stream("tokens", 10, "set"),),
        (Field("features", "real", 16, "tokens"), Field("rule", "category", 4, "tokens")),
        Target("real", 1, "tokens"),
    ),
    "rules/rnn": Spec(
        (Stream("tokens", 10),),
        (Field("x", "real", 32, "tokens"), Field("rule", "category", 4, "tokens")),
        Target("real", 32, "tokens"),
    ),
    "rules/rnn binary": Spec(
        (Stream("tokens", 10),),
        (Field("x", "real", 32, "tokens"), Field("rule", "category", 4, "tokens")),
        Target("binary", 1, "tokens"),
    ),
    "ctl": Spec(
        (Stream("tokens", 8),),
        (Field("token", "category", 42, "tokens"), Field("mask", "mask", 1, "tokens")),
        Target("category", 8),
    ),
    "gcog integer": Spec(
        (Stream("rule", 5), Stream("stimulus", 101, GridShape(10, 10))),
        (
            Field("rule", "real", 8, "rule"),
            Field("mask", "mask", 1, "rule"),
            Field("stimulus", "real", 3, "stimulus"),
        ),
        Target("category", 138),
    ),
    "gcog embedding": Spec(
        (Stream("rule", 5), Stream("stimulus", 101, GridShape(10, 10))),
        (
            Field("operator", "category", 11, "rule"),
            Field("shape", "category", 27, "rule"),
            Field("color", "category", 11, "rule"),
            Field("mask", "mask", 1, "rule"),
            Field("cell_shape", "category", 28, "stimulus"),
            Field("cell_color", "category", 12, "stimulus"),
        ),
        Target("category", 138),
    ),
    "retrieval": RETRIEVAL,
}

_GCOG = ("rnn", "gru", "single-stream", "dual-stream", "cross-attention", "perceiver", "bert")
READ_BY: dict[str, list[str]] = {
    "retrieval-transformer": ["retrieval"],
    "retrieval-lstm": ["retrieval"],
    "ctl-bilstm": ["ctl"],
    "ctl-transformer": ["ctl"],
    "ctl-ndr": ["ctl"],
    "rules-mlp": ["rules/mlp", "rules/mlp real"],
    "rules-mha": ["rules/mha"],
    "rules-rnn": ["rules/rnn", "rules/rnn binary"],
    **{f"gcog-{name}": ["gcog integer", "gcog embedding"] for name in _GCOG},
    **{name: list(SPECS) for name in BACKBONES},
}
"""The specs that each registered model reads; it must refuse all others."""


def random_inputs(
    spec: Spec, batch: int, seed: int = 0, lengths: Mapping[str, int] = {}, members: int | None = None
) -> dict[str, Tensor]:
    """Random inputs of a spec, batch first (members first if given); masks keep at least one real token, in front."""
    generator = torch.Generator().manual_seed(seed)
    inputs = {}
    for field in spec.inputs:
        shape = [] if members is None else [members]
        shape.append(batch)
        if field.along:
            shape.append(lengths.get(field.along, spec.stream(field.along).length))
        if field.kind == "category":
            inputs[field.name] = torch.randint(field.width, shape, generator=generator)
        elif field.kind == "mask":
            count = torch.randint(1, shape[-1] + 1, shape[:-1], generator=generator)
            inputs[field.name] = torch.arange(shape[-1]) < count[..., None]
        elif field.kind == "bits":
            inputs[field.name] = (torch.rand(*shape, field.width, generator=generator) < 0.2).float()
        else:
            inputs[field.name] = torch.randn(*shape, field.width, generator=generator)
    return inputs


def prediction_shape(spec: Spec, batch: int, lengths: Mapping[str, int] = {}) -> tuple[int, ...]:
    """The shape a prediction must have."""
    along = spec.target.along
    middle = (lengths.get(along, spec.stream(along).length),) if along else ()
    return (batch, *middle, spec.target.width)

"""Examples of the gcog tasks, and plain models with the weights of ours."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from benchmarks import plain_gcog as plain
from unseen.models import options
from unseen.models.build import build
from unseen.models.gcog.blocks import GcogAttention
from unseen.models.gcog.inputs import RowEmbedding
from unseen.models.layers.linear import Linear
from unseen.spec import Field, GridShape, Spec, Stream, Target

RULES, CELLS = (2, 5, 5, 2, 3), 12
"""The lengths of the rules of five examples; the cells of a small grid, and one for its end."""


def spec(coding: str = "integer", masked: bool = True, cells: int = CELLS, longest: int = 5) -> Spec:
    """The spec of a gcog task on a smaller grid."""
    fields: tuple[Field, ...] = {
        "integer": (Field("rule", "real", 8, "rule"), Field("stimulus", "real", 3, "stimulus")),
        "onehot": (Field("rule", "real", 84, "rule"), Field("stimulus", "real", 37, "stimulus")),
        "embedding": (
            Field("rule_operator", "category", 11, "rule"),
            Field("rule_shape", "category", 27, "rule"),
            Field("rule_number", "real", 1, "rule"),
            Field("stimulus_color", "category", 12, "stimulus"),
            Field("stimulus_shape", "category", 28, "stimulus"),
        ),
    }[coding]
    mask = (Field("rule_mask", "mask", 1, "rule"),) if masked else ()
    streams = (Stream("rule", longest), Stream("stimulus", cells + 1, GridShape(3, cells // 3)))
    return Spec(streams, (*fields, *mask), Target("category", plain.CLASSES))


def inputs(of: Spec, seed: int = 0) -> dict[str, Tensor]:
    """Five examples, in double precision; padding looks like tokens."""
    generator = torch.Generator().manual_seed(seed)
    made: dict[str, Tensor] = {}
    for field in of.inputs:
        shape = [len(RULES), of.stream(str(field.along)).length]
        if field.kind == "mask":
            made[field.name] = torch.arange(shape[1]) < torch.tensor(RULES)[:, None]
        elif field.kind == "category":
            made[field.name] = torch.randint(field.width, shape, generator=generator)
        else:
            made[field.name] = torch.randn(*shape, field.width, generator=generator, dtype=torch.float64)
    return made


def rows(of: Spec, given: dict[str, Tensor], stream: str) -> Tensor:
    """The fields of a stream side by side, categories as zeros and a one."""
    return torch.cat(
        [
            F.one_hot(given[f.name], f.width).double() if f.kind == "category" else given[f.name]
            for f in of.along(stream)
            if f.kind != "mask"
        ],
        -1,
    )


def model(name: str, of: Spec, **given: Any) -> nn.Module:
    """In double precision, with every parameter moved away from where it starts."""
    made = build(options(name, **given), of, 0).double()
    generator = torch.Generator().manual_seed(1)
    for parameter in made.parameters():
        parameter.data += 0.2 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return made


def weights(ours: nn.Module, theirs: nn.Module) -> dict[str, Tensor]:
    """The parameters of a plain model, made of those of ours: a gradient finds its way to them."""
    made: dict[str, Tensor] = {}
    for name, part in theirs.named_modules():
        if name.endswith((".query", ".key", ".value")):
            continue  # done with the attention they belong to
        if isinstance(part, nn.Linear | nn.LayerNorm | nn.MultiheadAttention | plain.PlainRelative | nn.RNNBase):
            mine = ours if isinstance(part, nn.RNNBase) else ours.get_submodule(_counterpart(name))
            made |= {f"{name}.{key}": value for key, value in _converted(mine, part).items()}
    if isinstance(getattr(theirs, "latents", None), nn.Parameter):
        made["latents"] = ours.latents
    return {name: made[name] for name, _ in theirs.named_parameters()}


def _counterpart(name: str) -> str:
    """Our name of a part of a plain model: what comes before the blocks is in a module of its own."""
    place = {"embed": "stream.", "rule": "streams.", "stimulus": "streams."}.get(name.split(".")[0], "")
    return place + name.replace(".out_proj", ".output")


def _converted(mine: nn.Module, part: nn.Module) -> dict[str, Tensor]:
    if isinstance(mine, Linear | RowEmbedding):
        return {"weight": mine.weight.mT, "bias": mine.bias}
    if isinstance(mine, nn.LayerNorm):
        return {"weight": mine.weight, "bias": mine.bias}
    if isinstance(part, plain.PlainRelative):
        assert isinstance(mine, GcogAttention) and mine.table is not None
        pairs = zip(("query", "key", "value"), mine.weight.split(mine.sizes), mine.bias.chunk(3), strict=True)
        return {"table": mine.table.weight} | {
            f"{name}.{key}": value
            for name, weight, bias in pairs
            for key, value in (("weight", weight.mT), ("bias", bias))
        }
    if isinstance(part, nn.MultiheadAttention):
        assert isinstance(mine, GcogAttention)
        parts = [weight.mT for weight in mine.weight.split(mine.sizes)]
        separate = dict(zip(("q_proj_weight", "k_proj_weight", "v_proj_weight"), parts, strict=True))
        fused = {"in_proj_weight": torch.cat(parts)} if part._qkv_same_embed_dim else separate
        return {**fused, "in_proj_bias": mine.bias}
    return {
        "weight_ih_l0": mine.input_weight.mT,
        "weight_hh_l0": mine.state_weight.mT,
        "bias_ih_l0": mine.input_bias,
        "bias_hh_l0": mine.state_bias,
    }


def reference(ours: nn.Module, theirs: nn.Module, of: Spec, given: dict[str, Tensor], masked: bool = True) -> Tensor:
    """What the plain model says with our weights; if `masked`, of every example alone and without padding."""
    theirs, own = theirs.double(), weights(ours, theirs)
    rule, stimulus = rows(of, given, "rule"), rows(of, given, "stimulus")
    if not masked:
        return functional_call(theirs, own, (rule, stimulus))
    return torch.cat(
        [
            functional_call(theirs, own, (rule[i : i + 1, :length], stimulus[i : i + 1]))
            for i, length in enumerate(RULES)
        ]
    )


def agree(ours: nn.Module, prediction: Tensor, expected: Tensor) -> None:
    """Values and gradients of all parameters."""
    torch.testing.assert_close(prediction, expected, rtol=1e-10, atol=1e-10)
    g = torch.linspace(-1, 2, prediction.numel(), dtype=prediction.dtype).view(prediction.shape)
    pairs = (torch.autograd.grad(p, list(ours.parameters()), g, materialize_grads=True) for p in (prediction, expected))
    for (name, _), a, b in zip(ours.named_parameters(), *pairs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-8, msg=lambda m, name=name: f"{name}: {m}")

"""Every backbone with every scheme and gating, small; small tasks of all families; models in double precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from unseen.models import options
from unseen.models.build import build
from unseen.spec import Spec
from unseen.tasks import task
from unseen.tasks.base import Array, Task

SCHEMES = ("none", "sinusoidal", "learned", "rotary", "relative")
GATINGS = ("none", "joint", "operation", "truth")
Case = tuple[str, dict[str, Any]]


def _placed(name: str, schemes: Sequence[str] = SCHEMES, **given: Any) -> list[Case]:
    places = {"learned": {"places": 40}}
    return [(name, {"positions": scheme, **places.get(scheme, {}), **given}) for scheme in schemes]


RECURRENT: list[Case] = [
    ("lstm", {"width": 10}),
    ("gru", {"width": 10}),
    ("gru", {"width": 9, "layers": 2}),
    ("rnn", {"width": 11}),
    ("rnn", {"width": 10, "layers": 2, "activation": "relu"}),
]
TRANSFORMERS: list[Case] = [
    *_placed("transformer", width=12, heads=2),
    ("transformer", {"width": 12, "heads": 3, "norm": "post", "causal": True}),
    *_placed("universal-transformer", width=12, heads=2, layers=3),
    ("universal-transformer", {"width": 9, "heads": 1, "norm": "post", "causal": True}),
]
ROUTERS: list[Case] = [
    ("ndr", {"width": 12, "heads": 2, "layers": 3}),
    ("ndr", {"width": 9, "heads": 1, "layers": 1, "form": "original"}),
]
PERCEIVERS: list[Case] = [
    *_placed("perceiver", SCHEMES[:3], width=12, heads=2, latents=5),
    ("perceiver", {"width": 10, "heads": 1, "latents": 2, "layers": 1}),
]
MODULAR: list[Case] = [
    *(("modular", {"width": 16, "heads": 2, "gating": gating}) for gating in GATINGS),
    *_placed("modular", width=16, heads=2, gating="truth", modules=3),
    ("modular", {"width": 16, "heads": 1, "gating": "operation", "modules": 2, "layers": 1}),
]
EXPERTS: list[Case] = [
    *_placed("moe-transformer", ("none", "sinusoidal", "relative"), width=16, heads=2, experts=3),
    ("moe-transformer", {"width": 16, "heads": 1, "experts": 5, "top_k": 1, "feedforward": 2, "layers": 1}),
]
LINEAR: list[Case] = [
    ("s4d", {"width": 10, "state": 3}),
    ("s4d", {"width": 9, "layers": 1, "state": 1, "feedforward": 3}),
    ("mamba", {"width": 10, "state": 3, "kernel": 3}),
    ("mamba", {"width": 9, "layers": 1, "state": 2, "expand": 1, "kernel": 2}),
    ("gla", {"width": 12, "heads": 2}),
    ("gla", {"width": 9, "heads": 1, "layers": 1, "kernel": 1}),
    ("deltanet", {"width": 12, "heads": 2}),
    ("deltanet", {"width": 9, "heads": 1, "layers": 1, "kernel": 2, "negative_eigenvalues": True}),
]
CASES = RECURRENT + TRANSFORMERS + ROUTERS + PERCEIVERS + MODULAR + EXPERTS + LINEAR
STEPWISE = tuple(dict.fromkeys(name for name, _ in RECURRENT + LINEAR))
"""Backbones that read one token after the other."""

TASKS: dict[str, Task] = {
    "rules/mlp": task("rules/mlp", rules=4),
    "rules/mha": task("rules/mha", rules=4, setting="regression"),
    "rules/rnn": task("rules/rnn", rules=4),
    "ctl": task("ctl/lengths"),
    "gcog": task("gcog/systematic-trees", grid=(4, 4), coding="embedding", distractors=(1, 2)),
    "retrieval": task("retrieval/T6", length=5, train_size=300, evaluation_size=50),
}


def named(case: object) -> str:
    """The id of a case."""
    if isinstance(case, tuple):
        return " ".join([case[0], *(f"{k}={v}" for k, v in case[1].items())])
    return str(case)


def double(case: Case, spec: Spec, seed: int = 0) -> nn.Module:
    """A backbone in double precision, with every parameter moved away from where it starts."""
    name, given = case
    module = build(options(name, **given), spec, seed).double()
    generator = torch.Generator().manual_seed(seed)
    for p in module.parameters():
        p.data += 0.1 * torch.randn(p.shape, generator=generator, dtype=p.dtype)
    return module


def as_tensors(inputs: dict[str, Array], spec: Spec, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """Inputs of a task as a model takes them."""
    kinds = {"category": torch.int64, "mask": torch.bool}
    return {f.name: torch.as_tensor(inputs[f.name]).to(kinds.get(f.kind, dtype)) for f in spec.inputs}

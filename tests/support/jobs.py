"""Jobs small enough to train in a test, on a real task."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from unseen.models import options
from unseen.models.build import build
from unseen.tasks import task
from unseen.training.recipe import recipe
from unseen.training.trainer import Job, Member

SMALL = task("retrieval/T6", length=5, train_size=700, evaluation_size=400)

MODELS = {
    "transformer full": ("retrieval-transformer", {}),
    "transformer -Pos": ("retrieval-transformer", {"positions": "none"}),
    "transformer -Att": ("retrieval-transformer", {"self_attention": False}),
    "transformer -Pos-Att": ("retrieval-transformer", {"positions": "none", "self_attention": False}),
    "transformer literal": ("retrieval-transformer", {"encoder": "literal"}),
    "transformer 2 read-outs": ("retrieval-transformer", {"readouts": 2}),
    "transformer 2 layers": ("retrieval-transformer", {"layers": 2, "heads": 2}),
    "lstm basic": ("retrieval-lstm", {"form": "basic"}),
    "lstm attention": ("retrieval-lstm", {"form": "attention"}),
    "lstm matched": ("retrieval-lstm", {"form": "matched"}),
    "generic lstm": ("lstm", {"width": 24}),
    "generic transformer": ("transformer", {"width": 24}),
}


def job(
    seeds: Sequence[int], model: str = "transformer full", dtype: torch.dtype = torch.float32, **given: object
) -> Job:
    """A job of these seeds; `given` replaces options of the recipe."""
    used = recipe(**{"steps": 60, "batch": 10, "validate_every": 20, "validation_examples": 100, **given})
    name, chosen = MODELS[model]
    chosen_options = options(name, **chosen)
    members = tuple(Member(f"run{s}", s, s, used) for s in seeds)
    return Job(SMALL, lambda seed: build(chosen_options, SMALL.spec, seed), members, dtype=dtype)

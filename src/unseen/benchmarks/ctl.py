"""How near a training step of the ctl models comes to what the machine can do at all."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from unseen.benchmarks.step import operations, stepping
from unseen.benchmarks.timing import medians, pinned
from unseen.engine.recipe import recipe
from unseen.engine.threads import one_thread
from unseen.models import options
from unseen.spec import Field, Spec, Stream, Target

MODELS = ("ctl-bilstm", "ctl-transformer", "ctl-ndr")
TOKENS = 8
"""Five functions, the symbol and the two markers."""

SPEC = Spec(
    (Stream("tokens", TOKENS),),
    (Field("token", "category", 42, "tokens"), Field("mask", "mask", 1, "tokens")),
    Target("category", 8),
)


def step(quick: bool = False) -> Iterator[dict[str, object]]:
    """Rows (model, S, GFLOP and milliseconds per model and step, the machine's GFLOP/s, share): a step of training.

    Models of the paper's width on batches of 512 that are ready made; dropout bits, gradients, clipping and AdamW are
    in the step. GFLOP are those of the matrix products that it does. `share` is their rate against that of one large
    product in float32, measured in turn with the step.
    """
    batch, size = (16, 256) if quick else (512, 2048)
    left, right, out = (torch.full((size, size), 1e-3) for _ in range(3))
    used = recipe(optimiser="adamw", learning_rate=1.5e-4, clip=1.0)
    for model in MODELS:
        work = products(model, batch)
        for members in (1,) if quick else (1, 4):
            train = stepping(options(model), SPEC, used, *_examples(members, batch))
            with one_thread(), pinned():
                found = medians({"product": lambda: torch.mm(left, right, out=out), "step": train}, 1 if quick else 7)
            seconds, rate = found["step"] / members, 2 * size**3 / found["product"]
            yield {"model": model, "S": members, "gflop": round(work / 1e9, 3), "milliseconds": round(seconds * 1e3, 1),
                   "machine": round(rate / 1e9, 1), "share": round(work / seconds / rate, 3)}


def products(model: str, batch: int) -> int:
    """How many floating-point operations the matrix products of one model's step take, forward and backward."""
    inputs, targets = _examples(1, batch)
    return operations(options(model), SPEC, {name: value[0] for name, value in inputs.items()}, targets[0])


def _examples(members: int, batch: int) -> tuple[dict[str, Tensor], Tensor]:
    """Chains of random tokens between the two markers, without padding, and random answers."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(40, (members, batch, TOKENS), generator=generator)
    tokens[..., 0], tokens[..., -1] = 41, 40
    inputs = {"token": tokens, "mask": torch.ones(tokens.shape, dtype=torch.bool)}
    return inputs, torch.randint(8, (members, batch), generator=generator)

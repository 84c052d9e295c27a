"""Stacked training against a plain PyTorch loop of the same model."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from unseen.benchmarks.plain import plain_loop
from unseen.benchmarks.timing import medians, pinned
from unseen.engine.feed import Feeds, target_tensor, tensors
from unseen.engine.recipe import recipe
from unseen.engine.threads import one_thread
from unseen.engine.train import Job, Member, Trainer
from unseen.models import options
from unseen.models.build import build
from unseen.tasks import task


def stack(quick: bool = False) -> Iterator[dict[str, object]]:
    """Rows (batch, S, milliseconds per model and step of both, ratio): the default retrieval Transformer at length 10.

    Dropout and clipping are on, data and dropout bits are drawn inside the stacked step; the plain loop is given its
    batches ready made.
    """
    sizes = (1, 4) if quick else (1, 2, 5, 10, 20, 40)
    for batch in (10,) if quick else (10, 30, 100):
        for size in sizes:
            yield _compare(batch, size, rounds=3 if quick else 7, steps=2 if quick else 12)


def _compare(batch: int, size: int, rounds: int, steps: int) -> dict[str, object]:
    made = task("retrieval/T6", length=10, train_size=20_000)
    used = recipe(steps=10**9, validate_every=10**9, batch=batch)
    model = options("retrieval-transformer")
    members = tuple(Member(str(s), s, s, used) for s in range(size))
    trainer = Trainer(Job(made, lambda seed: build(model, made.spec, seed), members))
    loop = plain_loop(used.learning_rate, used.clip or 0.0)
    drawn = Feeds(batch, "shuffled").batch(0, [(made, 0)])
    inputs = tensors(drawn.inputs, made.spec, torch.float32, "cpu")
    targets = target_tensor(drawn.targets, made.spec, torch.float32, "cpu")

    def plain() -> None:
        for _ in range(steps * 4):
            loop(inputs["sequence"][0], inputs["query"][0], targets[0])

    def stacked() -> None:
        trainer.advance(steps=steps)

    with one_thread(), pinned():
        found = medians({"plain": plain, "stacked": stacked}, rounds)
    plain_ms, stacked_ms = found["plain"] / (steps * 4) * 1e3, found["stacked"] / steps / size * 1e3
    return {"batch": batch, "S": size, "plain_ms": round(plain_ms, 3), "stacked_ms": round(stacked_ms, 3),
            "ratio": round(plain_ms / stacked_ms, 2)}

"""Stacked training of the rules family's models against plain PyTorch loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from unseen.benchmarks.plain_rules import PlainMHA, PlainMLP, PlainRNN, plain_loop
from unseen.benchmarks.timing import medians, pinned
from unseen.engine.feed import Feeds, target_tensor, tensors
from unseen.engine.recipe import recipe
from unseen.engine.threads import one_thread
from unseen.engine.train import Job, Member, Trainer
from unseen.models import options
from unseen.models.build import build
from unseen.tasks import task

_PLAIN = {"mlp": PlainMLP, "mha": PlainMHA, "rnn": PlainRNN}
_COMPARED = (("none", "none plain"), ("joint", "joint naive"), ("joint", "joint rewritten"), ("joint", "none"))
"""What is compared with what: ours by gating, the plain ones by gating and how they are written."""


def rules(quick: bool = False) -> Iterator[dict[str, object]]:
    """Rows (model, rules, S, ours, against, milliseconds per model and step of both, ratio), width 32, batch 256.

    Data are drawn inside the stacked step; plain loops are given their batches ready made. Against `joint naive`:
    plain grouped layers; `joint rewritten`: plain layers that mix before the second one; `none`: our own, stacked,
    without modules.
    """
    cases = [("mlp", 2, 2)] if quick else [("mlp", 2, 20), ("mlp", 8, 20), ("mlp", 32, 20),
                                           *((kind, count, size) for kind in ("mha", "rnn")
                                             for count, size in ((2, 5), (8, 5), (32, 1)))]
    for kind, count, size in cases:
        steps = 12 if kind == "mlp" else 3
        yield from _compare(kind, count, size, rounds=1 if quick else 7, steps=1 if quick else steps)


def _compare(kind: str, count: int, size: int, rounds: int, steps: int) -> Iterator[dict[str, object]]:
    ours = {gating: _stacked(kind, gating, count, size, steps) for gating in ("none", "joint")}
    plain = {"none plain": _loop(kind, count, steps, gating="none"),
             "joint naive": _loop(kind, count, steps, gating="joint")}
    if kind == "mlp":
        plain["joint rewritten"] = _loop(kind, count, steps, gating="joint", rewritten=True)
    with one_thread(), pinned():
        found = medians({**ours, **plain}, rounds)
    milliseconds = {name: seconds / steps * 1e3 / (size if name in ours else 1) for name, seconds in found.items()}
    for own, other in _COMPARED:
        if other in milliseconds:
            yield {"model": f"rules-{kind}", "rules": count, "S": size, "ours": own, "against": other,
                   "against_ms": round(milliseconds[other], 3), "ours_ms": round(milliseconds[own], 3),
                   "ratio": round(milliseconds[other] / milliseconds[own], 2)}


def _stacked(kind: str, gating: str, count: int, size: int, steps: int) -> Callable[[], object]:
    made, chosen = task(f"rules/{kind}", rules=count), options(f"rules-{kind}", gating=gating)
    used = recipe(f"rules-{kind}-paper", steps=10**9, validate_every=10**9)
    members = tuple(Member(str(s), s, s, used) for s in range(size))
    trainer = Trainer(Job(made, lambda seed: build(chosen, made.spec, seed), members))
    return lambda: trainer.advance(steps=steps)


def _loop(kind: str, count: int, steps: int, **given: object) -> Callable[[], object]:
    made, used = task(f"rules/{kind}", rules=count), recipe(f"rules-{kind}-paper")
    step = plain_loop(_PLAIN[kind](rules=count, width=32, **given), used.learning_rate, used.clip)
    drawn = Feeds(used.batch, "shuffled").batch(0, [(made, 0)])
    inputs = {k: v[0] for k, v in tensors(drawn.inputs, made.spec, torch.float32, "cpu").items()}
    answer = target_tensor(drawn.targets, made.spec, torch.float32, "cpu")[0]

    def run() -> None:
        for _ in range(steps):
            step(inputs, answer)

    return run

"""Training steps of the gcog models: against plain ones, and against what the machine can do at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from unseen.benchmarks import plain_gcog as plain
from unseen.benchmarks.step import operations, stepping
from unseen.benchmarks.timing import medians, pinned
from unseen.engine.recipe import recipe
from unseen.engine.threads import one_thread
from unseen.models import options
from unseen.spec import Field, Grid, Spec, Stream, Target

RULE = 5
"""The tokens of a question of depth 3."""

SPEC = Spec(
    (Stream("rule", RULE), Stream("stimulus", 101, Grid(10, 10))),
    (Field("rule", "real", 8, "rule"), Field("stimulus", "real", 3, "stimulus"), Field("rule_mask", "mask", 1, "rule")),
    Target("category", plain.CLASSES),
)


@dataclass(frozen=True)
class Case:
    """A model, a plain one of the same numbers, how many are stacked, and the batch."""

    model: str
    plain: Callable[..., nn.Module]
    members: tuple[int, ...] = (1, 4)
    batch: int = 256
    options: Mapping[str, Any] = field(default_factory=dict)
    plain_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The model and its options."""
        return " ".join([self.model, *(f"{key}={value}" for key, value in self.options.items())])


def _bert(layers: int, heads: int, members: tuple[int, ...] = (1, 4)) -> Case:
    given = {"layers": layers, "heads": heads}
    return Case("gcog-bert", plain.PlainBert, members, 64, given, given)


_SMALL = (1, 4, 16)
_RELATIVE = {"positions": "relative"}, {"relative": True}
CASES = (
    Case("gcog-rnn", plain.PlainRecurrent, _SMALL),
    Case("gcog-gru", plain.PlainRecurrent, _SMALL, plain_options={"gated": True}),
    Case("gcog-single-stream", plain.PlainSingleStream, _SMALL),
    Case("gcog-single-stream", plain.PlainSingleStream, (1,), 256, *_RELATIVE),
    Case("gcog-dual-stream", plain.PlainDualStream, _SMALL),
    Case("gcog-cross-attention", plain.PlainCrossAttention),
    Case("gcog-perceiver", plain.PlainPerceiver),
    _bert(1, 1), _bert(1, 8), _bert(2, 8, (1,)), _bert(4, 8, (1,)),
)


def step(quick: bool = False) -> Iterator[dict[str, object]]:
    """Rows (model, batch, S, GFLOP of a model's step, the machine's GFLOP/s, share, milliseconds per model and step of
    the plain loop and of ours, ratio): a step of training, at the size of the paper.

    Questions of depth 3, coding `integer`, batches ready made for both; gradients, clipping and AdamW are in the step.
    GFLOP are those of the matrix products that ours does, `share` is their rate against that of one large product in
    float32; plain loop, stacks and product are measured in turn.
    """
    size = 256 if quick else 2048
    left, right, out = (torch.full((size, size), 1e-3) for _ in range(3))
    used = recipe(optimiser="adamw", learning_rate=1e-4, weight_decay=0.01, clip=1.0)
    for case in CASES:
        model, batch = options(case.model, **case.options), 4 if quick else case.batch
        sizes = case.members[:1] if quick else case.members
        inputs, targets = examples(max(sizes), batch)
        first = {name: value[0] for name, value in inputs.items()}
        loop = plain.plain_loop(case.plain(**case.plain_options))
        contenders: dict[str, Callable[[], object]] = {
            "product": partial(torch.mm, left, right, out=out),
            "plain": partial(loop, first["rule"], first["stimulus"], targets[0]),
        }
        for s in sizes:
            contenders[f"S={s}"] = stepping(model, SPEC, used, {k: v[:s] for k, v in inputs.items()}, targets[:s])
        with one_thread(), pinned():
            seconds = medians(contenders, 1 if quick else 5)
        work, rate = operations(model, SPEC, first, targets[0]), 2 * size**3 / seconds["product"]
        for members in sizes:
            own = seconds[f"S={members}"] / members
            yield {"model": case.name, "batch": batch, "S": members, "gflop": round(work / 1e9, 3),
                   "machine": round(rate / 1e9, 1), "share": round(work / own / rate, 3),
                   "plain_ms": round(seconds["plain"] * 1e3, 1), "ours_ms": round(own * 1e3, 1),
                   "ratio": round(seconds["plain"] / own, 2)}


def examples(members: int, batch: int) -> tuple[dict[str, Tensor], Tensor]:
    """Numbers in place of tokens, without padding, and random answers."""
    generator = torch.Generator().manual_seed(0)
    inputs = {"rule": torch.rand(members, batch, RULE, 8, generator=generator),
              "stimulus": torch.rand(members, batch, 101, 3, generator=generator),
              "rule_mask": torch.ones(members, batch, RULE, dtype=torch.bool)}
    return inputs, torch.randint(plain.CLASSES, (members, batch), generator=generator)

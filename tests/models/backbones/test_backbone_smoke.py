"""Any architecture on any task: every backbone, scheme and gating learns a little on every family."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
import torch
from torch import Tensor

from support.backbone_cases import CASES, TASKS, Case, as_tensors, named
from unseen.models import BACKBONES, MODELS, options
from unseen.models.build import build
from unseen.models.context import Context, CountingContext
from unseen.tasks import task
from unseen.tasks.base import Task
from unseen.training.batches import target_tensor
from unseen.training.loss import loss


def test_the_list_of_backbones_is_the_registry() -> None:
    assert set(BACKBONES) == {e.name for e in MODELS if e.target.startswith("unseen.models.backbones.")}
    assert {name for name, _ in CASES} == set(BACKBONES)
    assert all(options(name).width == 128 for name in BACKBONES)


@cache
def batch(family: str) -> tuple[dict[str, Tensor], Tensor]:
    made = TASKS[family]
    drawn = made.sample("train", 6)
    return as_tensors(dict(drawn.inputs), made.spec), target_tensor(drawn.targets, made.spec, torch.float32, "cpu")


@pytest.mark.parametrize("family", TASKS)
@pytest.mark.parametrize("case", CASES, ids=named)
def test_three_steps(case: Case, family: str) -> None:
    """Forward, backward and three steps with dropout; then the batch is answered better than before."""
    spec, (inputs, targets) = TASKS[family].spec, batch(family)
    module = build(options(case[0], **case[1]), spec, 1)
    counting = CountingContext()
    module(inputs, counting)
    optimiser = torch.optim.Adam(module.parameters(), 3e-3)
    with torch.no_grad():
        before = loss(module(inputs), targets, spec.target)
    start = {name: p.detach().clone() for name, p in module.named_parameters()}
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        bits = torch.randint(-(2**15), 2**15, (counting.used,), generator=generator, dtype=torch.int16)
        optimiser.zero_grad()
        loss(module(inputs, Context(bits)), targets, spec.target).backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in module.parameters())
        optimiser.step()
    with torch.no_grad():
        assert loss(module(inputs), targets, spec.target) < before
    still = [name for name, p in module.named_parameters() if torch.equal(p, start[name])]
    assert not still, still


def variants() -> Iterator[Task]:
    for kind in ("mlp", "mha", "rnn"):
        for given in ({}, {"setting": "regression"}, {"preset": "paper", "setting": "regression"}):
            yield task(f"rules/{kind}", rules=3, **given)
    for kind in ("A", "R", "S", "graph", "lengths"):
        for preset in ("clean", "released", "paper") if kind in ("A", "lengths") else ("clean",):
            yield task(f"ctl/{kind}", preset=preset)
    for kind in ("distractor", "systematic-operators", "systematic-trees", "productive"):
        for given in ({}, {"preset": "released"}, {"coding": "onehot"}, {"coding": "embedding"}):
            yield task(f"gcog/{kind}", **given)
    yield task("gcog/distractor", coding="embedding", two_objects=0.5)
    for kind in range(1, 8):
        for preset in ("clean", "released", "paper"):
            yield task(f"retrieval/T{kind}", preset=preset, train_size=100, evaluation_size=50)


SMALL = {
    **{name: {"width": 6} for name in ("lstm", "gru", "rnn")},
    **{name: {"width": 4, "heads": 2, "layers": 2} for name in ("transformer", "universal-transformer", "ndr")},
    "perceiver": {"width": 4, "heads": 2, "latents": 3, "layers": 1},
    "modular": {"width": 4, "heads": 2, "modules": 3},
    "moe-transformer": {"width": 4, "heads": 2, "experts": 3},
    **{name: {"width": 4, "layers": 1} for name in ("s4d", "mamba")},
    **{name: {"width": 4, "heads": 2, "layers": 1} for name in ("gla", "deltanet")},
}


def test_every_task_preset_and_split() -> None:
    """Whatever a task shows, in training and in testing, is read and answered in the shape of its target."""
    seen, lengths = set(), set()
    for made in variants():
        for split in made.splits:
            drawn = made.sample(split, 2)
            form = (made.spec, tuple((k, v.shape) for k, v in drawn.inputs.items()))
            if form in seen:  # a model knows nothing else of a task
                continue
            seen.add(form)
            lengths |= {v.shape[1] for v in drawn.inputs.values() if v.ndim > 1}
            inputs = as_tensors(dict(drawn.inputs), made.spec)
            shape = (
                (*drawn.targets.shape, made.spec.target.width)
                if made.spec.target.kind == "category"
                else (drawn.targets.shape)
            )
            for name in BACKBONES:
                module = build(options(name, **SMALL[name]), made.spec, 0)
                with torch.no_grad():
                    prediction = module(inputs)
                assert prediction.shape == shape and prediction.isfinite().all(), (name, made.name, split)
    assert len(seen) > 40 and {3, 30, 13, 23, 101} <= lengths

"""The contract: member s of a stack equals the run of seed s alone, dropout and clipping on."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from jobs import MODELS, job
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1] / "tasks"))
from standins import Clean, Line, Tagging

from unseen.config import Config
from unseen.engine.evaluate import predictions
from unseen.engine.recipe import recipe
from unseen.engine.train import Job, Member, Point, Trainer
from unseen.errors import UsageError
from unseen.models import BACKBONES, options
from unseen.models import MODELS as REGISTERED
from unseen.models.build import build
from unseen.tasks import task
from unseen.tasks.base import Array, Task


def run(trainer: Trainer) -> tuple[Trainer, list[Point]]:
    points = trainer.advance()
    assert trainer.done
    return trainer, points


def stacks_of(member: int) -> dict[int, list[list[int]]]:
    """Stacks of each size with a member in the first, a middle or the last place."""
    found = {}
    for size, places in {2: (0, 1), 5: (2, 4), 16: (0, 15)}.items():
        others = list(range(100, 100 + size - 1))
        found[size] = [[*others[:place], member, *others[place:]] for place in places]
    return found


@pytest.mark.parametrize("model", MODELS)
def test_bit_for_bit_in_float32(model: str) -> None:
    short = {"steps": 36, "validate_every": 12}
    alone, curve = run(Trainer(job([7], model, **short)))
    start = Trainer(job([7], model)).stack.member(0)
    assert any(not torch.equal(start[k], alone.last["run7"][k]) for k in start)  # it did train
    for size, stacks in stacks_of(7).items():
        for seeds in stacks:
            together, points = run(Trainer(job(seeds, model, **short)))
            for name, value in alone.last["run7"].items():
                assert torch.equal(together.last["run7"][name], value), (size, seeds, name)
            assert [p for p in points if p.key == "run7"] == curve


@pytest.mark.parametrize("model", MODELS)
def test_to_1e9_in_float64(model: str) -> None:
    alone, _ = run(Trainer(job([7], model, torch.float64)))
    together, _ = run(Trainer(job([3, 7, 5], model, torch.float64)))
    for name, value in alone.last["run7"].items():
        assert value.dtype == torch.float64
        torch.testing.assert_close(together.last["run7"][name], value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("batch", [1, 7, 33])
def test_odd_batches(batch: int) -> None:
    alone, _ = run(Trainer(job([2], batch=batch, steps=10)))
    together, _ = run(Trainer(job([0, 1, 2], batch=batch, steps=10)))
    assert all(torch.equal(together.last["run2"][k], v) for k, v in alone.last["run2"].items())


def test_members_may_differ_in_rates() -> None:
    from dataclasses import replace

    slow, fast = (
        job([s], learning_rate=rate, clip=clip).members[0] for s, rate, clip in ((0, 1e-4, None), (1, 1e-2, 0.1))
    )
    both = replace(job([0]), members=(slow, fast))
    together, _ = run(Trainer(both))
    for member in (slow, fast):
        alone, _ = run(Trainer(replace(both, members=(member,))))
        assert all(torch.equal(together.last[member.key][k], v) for k, v in alone.last[member.key].items())


@pytest.mark.parametrize("name", [entry.name for entry in REGISTERED if entry.target.startswith("unseen.")])
@pytest.mark.parametrize("kind", [Clean, Tagging, Line])
def test_every_registered_model_on_every_kind_of_target(name: str, kind: type[Task]) -> None:
    """Whatever is registered inherits the contract, through the real trainer: binary, category along a stream, real."""
    made, chosen = kind(), options(name)
    try:
        build(chosen, made.spec, 0)
    except UsageError:  # a model of one family on a task of another
        assert "-" in name
        return
    assert_place_does_not_matter(made, chosen, steps=11, stacks=[[3, 7, 5]])


@pytest.mark.parametrize("gating", ["none", "joint", "operation", "truth"])
@pytest.mark.parametrize("kind", ["mlp", "mha", "rnn"])
@pytest.mark.parametrize("setting", ["classification", "regression"])
def test_rules_models_with_every_gating(kind: str, gating: str, setting: str) -> None:
    made = task(f"rules/{kind}", rules=4, setting=setting)
    others = list(range(100, 115))
    stacks = [[7, 3], [3, 1, 4, 2, 7], [*others[:8], 7, *others[8:]]]
    assert_place_does_not_matter(made, options(f"rules-{kind}", gating=gating, width=8), steps=5, stacks=stacks)


FAMILIES = {
    "rules/mlp": {"rules": 4},
    "rules/mha": {"rules": 4, "setting": "regression"},
    "ctl/lengths": {},
    "gcog/systematic-trees": {"grid": (4, 4), "coding": "embedding", "distractors": (1, 2)},
    "retrieval/T6": {"length": 5, "train_size": 300, "evaluation_size": 50},
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", BACKBONES)
def test_backbones_on_every_family(name: str, family: str) -> None:
    made = task(family, **FAMILIES[family])
    assert_place_does_not_matter(made, options(name, width=20), steps=4, stacks=[[3, 7], [1, 2, 7, 4, 5]])


def assert_place_does_not_matter(made: Task, chosen: Config, steps: int, stacks: list[list[int]]) -> None:
    """Seed 7 has the same parameters after some steps alone and in each of the stacks, and predicts the same."""
    used = recipe(steps=steps + 1, batch=7, validate_every=10**6, validation_examples=100)

    def trained(seeds: list[int]) -> tuple[Tensor, Array]:
        members = tuple(Member(f"run{s}", s, s, used) for s in seeds)
        trainer = Trainer(Job(made, lambda seed: build(chosen, made.spec, seed), members))
        trainer.advance(steps=steps)
        assert trainer.stack.together
        predicted = predictions(trainer.stack, made.sample("train", 11), made.spec)["prediction"]
        return trainer.stack.rows[seeds.index(7)], predicted[seeds.index(7)]

    row, predicted = trained([7])
    for seeds in stacks:
        other_row, other_predicted = trained(seeds)
        assert torch.equal(row, other_row), seeds
        assert np.array_equal(predicted, other_predicted), seeds

"""The contract: member s of a stack equals the run of seed s alone, dropout and clipping on.

Every model at S = 3 in the middle; S = 16 and other positions for one model per type of layer (`MODELS`, and one gating
of each rules model). The tests of models check predictions and gradients of one step for every model at other sizes.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from support.jobs import MODELS, job
from support.standins import Clean, Line, Tagging
from unseen.config import Config
from unseen.errors import UsageError
from unseen.models import BACKBONES, options
from unseen.models import MODELS as REGISTERED
from unseen.models.build import build
from unseen.tasks import task
from unseen.tasks.base import Array, Task
from unseen.training.evaluate import predict
from unseen.training.recipe import recipe
from unseen.training.trainer import Job, Member, Point, Trainer


def run(trainer: Trainer) -> tuple[Trainer, list[Point]]:
    points = trainer.advance()
    assert trainer.done
    return trainer, points


POSITIONS = {2: (0, 1), 5: (2, 4), 16: (0, 15)}
"""Sizes of stacks, and two positions in each: the first, a middle or the last one."""


def stacks_of(member: int, number: int) -> list[list[int]]:
    """A stack of each size with a member in one of its positions; the number of a model alternates between them."""
    stacks = []
    for offset, (size, positions) in enumerate(POSITIONS.items()):
        position = positions[(number + offset) % 2]
        others = list(range(100, 100 + size - 1))
        stacks.append([*others[:position], member, *others[position:]])
    return stacks


def test_models_with_attention_and_recurrent_ones_come_in_every_position() -> None:
    for kind in ("transformer", "lstm"):
        numbers = [number for number, name in enumerate(MODELS) if kind in name]
        stacks = [stack for number in numbers for stack in stacks_of(7, number)]
        assert {(len(stack), stack.index(7)) for stack in stacks} == {
            (size, position) for size, positions in POSITIONS.items() for position in positions
        }


@pytest.mark.parametrize("model", MODELS)
def test_bit_for_bit_in_float32(model: str) -> None:
    short = {"steps": 36, "validate_every": 12}
    alone, curve = run(Trainer(job([7], model, **short)))
    start = Trainer(job([7], model)).stack.member(0)
    assert any(not torch.equal(start[k], alone.last["run7"][k]) for k in start)  # it did train
    for seeds in stacks_of(7, list(MODELS).index(model)):
        together, points = run(Trainer(job(seeds, model, **short)))
        for name, value in alone.last["run7"].items():
            assert torch.equal(together.last["run7"][name], value), (seeds, name)
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


def fits(name: str, kind: type[Task]) -> bool:
    """Whether a model reads a task: models of one family refuse those of another."""
    try:
        build(options(name), kind().spec, 0)
    except UsageError:
        return False
    return True


NAMES = [entry.name for entry in REGISTERED if entry.target.startswith("unseen.")]
PAIRS = [(name, kind) for name in NAMES for kind in (Clean, Tagging, Line)]


@pytest.mark.parametrize(("name", "kind"), [pair for pair in PAIRS if fits(*pair)])
def test_every_registered_model_on_every_target_that_it_reads(name: str, kind: type[Task]) -> None:
    """Every registered model inherits the contract, through the real trainer: binary, category along a stream, real."""
    assert_position_does_not_matter(kind(), options(name), steps=11, stacks=[[3, 7, 5]])


def test_only_models_of_a_family_refuse_a_target() -> None:
    refused = {name for name, kind in PAIRS if not fits(name, kind)}
    assert refused and not refused & set(BACKBONES)
    assert {name for name, kind in PAIRS if fits(name, kind)} >= set(BACKBONES)


@pytest.mark.parametrize("gating", ["none", "joint", "operation", "truth"])
@pytest.mark.parametrize("kind", ["mlp", "mha", "rnn"])
@pytest.mark.parametrize("setting", ["classification", "regression"])
def test_rules_models_with_every_gating(kind: str, gating: str, setting: str) -> None:
    made = task(f"rules/{kind}", rules=4, setting=setting)
    others = list(range(100, 115))
    stacks = [[3, 7, 5]]
    if gating == "joint" and setting == "classification":
        stacks += [[7, 3], [3, 1, 4, 2, 7], [*others[:8], 7, *others[8:]]]
    assert_position_does_not_matter(made, options(f"rules-{kind}", gating=gating, width=8), steps=5, stacks=stacks)


FAMILIES = {
    "rules/mlp": {"rules": 4},
    "rules/mha": {"rules": 4, "setting": "regression"},
    "ctl/lengths": {},
    "gcog/systematic-trees": {"grid": (4, 4), "coding": "embedding", "distractors": (1, 2)},
    "retrieval/T6": {"length": 5, "train_size": 300, "evaluation_size": 50},
}


@pytest.mark.parametrize(
    ("name", "family"),
    # Two families for every backbone in turn; targets of all kinds are in the test of every registered model above.
    [(name, list(FAMILIES)[(number + k) % len(FAMILIES)]) for number, name in enumerate(BACKBONES) for k in (0, 2)],
)
def test_backbones_on_real_tasks(name: str, family: str) -> None:
    made = task(family, **FAMILIES[family])
    assert_position_does_not_matter(made, options(name, width=20), steps=4, stacks=[[3, 7, 5]])


def assert_position_does_not_matter(made: Task, chosen: Config, steps: int, stacks: list[list[int]]) -> None:
    """Seed 7 has the same parameters after some steps alone and in each of the stacks, and predicts the same."""
    used = recipe(steps=steps + 1, batch=7, validate_every=10**6, validation_examples=100)

    def trained(seeds: list[int]) -> tuple[Tensor, Array]:
        members = tuple(Member(f"run{s}", s, s, used) for s in seeds)
        trainer = Trainer(Job(made, lambda seed: build(chosen, made.spec, seed), members))
        trainer.advance(steps=steps)
        assert trainer.stack.together
        predicted = predict(trainer.stack, made.sample("train", 11), made.spec)["prediction"]
        return trainer.stack.rows[seeds.index(7)], predicted[seeds.index(7)]

    row, predicted = trained([7])
    for seeds in stacks:
        other_row, other_predicted = trained(seeds)
        assert torch.equal(row, other_row), seeds
        assert np.array_equal(predicted, other_predicted), seeds

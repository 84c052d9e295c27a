"""A model on small tasks: what its checks look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from unseen.config import Config
from unseen.engine.feed import tensors
from unseen.engine.fit import check_forward
from unseen.engine.predict import draw
from unseen.engine.recipe import recipe
from unseen.engine.stack import Stack
from unseen.engine.train import Job, Member, Trainer
from unseen.errors import CheckFailed, UsageError
from unseen.kit.plugins import Plugin, installed
from unseen.models import options
from unseen.models.build import build, parameter_count
from unseen.tasks import task as make
from unseen.tasks.base import Examples, Task

SMALL: Mapping[str, dict[str, Any]] = {
    "rules/mlp": {"rules": 4},
    "rules/mha": {"rules": 4, "setting": "regression"},
    "rules/rnn": {"rules": 4},
    "ctl/lengths": {},
    "gcog/distractor": {"grid": (4, 4), "distractors": (1, 3), "ood_distractors": (5,)},
    "gcog/systematic-trees": {"grid": (4, 4), "coding": "embedding", "distractors": (1, 2)},
    "retrieval/T6": {"length": 5, "train_size": 300, "evaluation_size": 50},
}
"""A task of every kind of spec: none, one and two streams, a set, a grid, masks, every kind of field and target."""
SEED, STEPS = 7, 3
"""The run that is looked at, and how long it is trained."""
_BATCH, _EXAMPLES = 7, 32


@dataclass(frozen=True)
class Case:
    """A model on one task."""

    options: Config
    task: Task

    @cached_property
    def module(self) -> nn.Module:
        """Freshly built."""
        return build(self.options, self.task.spec, SEED)

    @cached_property
    def stack(self) -> Stack:
        """The module as it is trained, alone."""
        check_forward(self.module)
        return Stack([self.module])

    @cached_property
    def examples(self) -> Examples:
        """Some training examples."""
        return draw(self.task, "train", _EXAMPLES, 0)

    @cached_property
    def inputs(self) -> dict[str, Tensor]:
        """Their inputs, as the module gets them."""
        return tensors(self.examples.inputs, self.task.spec, torch.float32, "cpu")

    @cached_property
    def alone(self) -> Trainer:
        """A run of one seed, after some steps."""
        return self.trained([SEED])

    def trained(self, seeds: Sequence[int]) -> Trainer:
        """Runs of these seeds as one stack, after some steps."""
        used = recipe(steps=STEPS + 1, batch=_BATCH, validate_every=10**6, validation_examples=100)
        members = tuple(Member(f"run{seed}", seed, seed, used) for seed in seeds)
        trainer = Trainer(Job(self.task, lambda seed: build(self.options, self.task.spec, seed), members))
        trainer.advance(steps=STEPS)
        return trainer


def find_cases(plugin: Plugin) -> tuple[list[Case], dict[str, str]]:
    """The model on the small tasks, and on those of its own package; and what it says of the tasks it refuses.

    A `UsageError` says that a task is not for this model; anything else is a crash.
    """
    chosen, cases, refused = options(plugin.name), list[Case](), dict[str, str]()
    own = [make(one.name) for one in installed() if one.kind == "task" and one.package == plugin.package]
    for task in [*(make(name, **given) for name, given in SMALL.items()), *own]:
        try:
            first, again, other = (build(chosen, task.spec, seed) for seed in (1, 1, 2))
        except UsageError as error:
            if error.__cause__ is not None and not isinstance(error.__cause__, UsageError):
                raise
            refused[task.name] = str(error)
            continue
        _check_seeds(first, again, other, task)
        cases.append(Case(chosen, task))
    return cases, refused


def _check_seeds(first: nn.Module, again: nn.Module, other: nn.Module, task: Task) -> None:
    own, same, another = (module.state_dict() for module in (first, again, other))
    if not parameter_count(first):
        raise CheckFailed(f"on {task.name} it has no parameters to train")
    wrong = [name for name in own if not torch.equal(own[name], same[name])]
    if wrong:
        raise CheckFailed(
            f"on {task.name} {wrong[0]} differs between two models of one seed; draw parameters with "
            "torch's functions and its own generator"
        )
    if all(torch.equal(own[name], another[name]) for name in own):
        raise CheckFailed(f"on {task.name} all seeds begin with the same parameters; draw them at random")

"""A step of training on ready-made batches: to be timed, and how many operations its products take."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from unseen.config import Config
from unseen.engine.loss import loss
from unseen.engine.optimiser import Optimiser
from unseen.engine.recipe import Recipe
from unseen.engine.stack import Stack
from unseen.models.build import build
from unseen.models.layers.tape import CountingTape, Tape
from unseen.spec import Spec


def stepping(
    model: Config, spec: Spec, recipe: Recipe, inputs: Mapping[str, Tensor], targets: Tensor
) -> Callable[[], None]:
    """What trains a stack by one step each time it is called, each member on its own batch (leading axis: members)."""
    members = range(len(targets))
    stack = Stack([build(model, spec, seed) for seed in members])
    optimiser = Optimiser(stack.rows, [recipe] * len(members))
    parameters = list(stack.parameters.values())
    done = 0

    def step() -> None:
        nonlocal done
        losses = stack.losses(inputs, targets, spec.target, members, done)
        optimiser.step(stack.layout.join(torch.autograd.grad(losses.sum(), parameters)), done)
        done += 1

    return step


def operations(model: Config, spec: Spec, inputs: Mapping[str, Tensor], targets: Tensor) -> int:
    """How many floating-point operations the matrix products of one model's step take, forward and backward."""
    module, counting = build(model, spec), CountingTape()
    module(inputs, counting)
    # Outside of vmap, in which the counter would count twice. It does not know products in place by itself.
    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.baddbmm_: _in_place}) as counter:
        found = loss(module(inputs, Tape(torch.zeros(counting.used, dtype=torch.int16))), targets, spec.target)
        torch.autograd.grad(found, list(module.parameters()))
    return int(counter.get_total_flops())


def _in_place(added: torch.Size, left: torch.Size, right: torch.Size, **others: object) -> int:
    """The operations of `added.baddbmm_(left, right)`, from their shapes."""
    return 2 * left.numel() * right[-1]

"""Members trained as one stack, as the trainer does: vmap, plain autograd, Adam on stacked tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from support.specimens import random_inputs
from unseen.config import Config
from unseen.models.build import build
from unseen.models.context import Context, CountingContext
from unseen.spec import Spec


def lanes(module: nn.Module, inputs: dict[str, Tensor]) -> int:
    """How many dropout lanes one forward pass takes."""
    ctx = CountingContext()
    module(inputs, ctx)
    return ctx.used


def member_loss(spec: Spec, prediction: Tensor, target: Tensor) -> Tensor:
    """Mean loss of one member, from functions whose bits do not depend on an element's place in its array.

    (The backward pass of `binary_cross_entropy_with_logits` is a sigmoid, whose bits do.)
    """
    if spec.target.kind == "binary":
        return -F.logsigmoid(prediction * (2 * target - 1)).mean()
    if spec.target.kind == "real":
        return (prediction - target).square().mean()
    return -prediction.log_softmax(-1).gather(-1, target[..., None]).mean()


class Members:
    """A fixed set of members, each with its own parameters, data and dropout bits per step; any of them can be run
    together.
    """

    def __init__(
        self, options: Config, spec: Spec, batch: int, count: int = 16, dtype: torch.dtype = torch.float32
    ) -> None:
        self.spec, self.batch, self.count, self.dtype = spec, batch, count, dtype
        self.modules = [build(options, spec, seed).to(dtype) for seed in range(count)]
        self.lanes = lanes(self.modules[0], self.data(0, [0], member=True)[0])
        self.names = list(dict(self.modules[0].named_parameters()))

    def data(self, step: int, members: Sequence[int], member: bool = False) -> tuple[dict[str, Tensor], Tensor]:
        generator = torch.Generator().manual_seed(1000 + step)
        inputs = random_inputs(self.spec, self.batch, step, members=self.count)
        inputs = {k: v.to(self.dtype) if v.is_floating_point() else v for k, v in inputs.items()}
        target = self.spec.target
        shape = [self.count, self.batch] + ([self.spec.stream(target.along).length] if target.along else [])
        if target.kind == "category":
            targets = torch.randint(target.width, shape, generator=generator)
        else:
            targets = torch.randn(*shape, target.width, generator=generator, dtype=self.dtype)
            targets = (targets > 0).to(self.dtype) if target.kind == "binary" else targets
        chosen = members[0] if member else list(members)
        return {k: v[chosen] for k, v in inputs.items()}, targets[chosen]

    def bits(self, step: int, members: Sequence[int]) -> Tensor:
        generator = torch.Generator().manual_seed(2000 + step)
        drawn = torch.randint(-(2**15), 2**15, (self.count, max(1, self.lanes)), generator=generator, dtype=torch.int16)
        return drawn[list(members)]

    def parameters(self, members: Sequence[int]) -> dict[str, Tensor]:
        stacked, buffers = stack_module_state([self.modules[m] for m in members])
        assert not buffers
        return {k: v.detach().requires_grad_() for k, v in stacked.items()}

    def gradients(
        self, parameters: dict[str, Tensor], members: Sequence[int], step: int
    ) -> tuple[Tensor, list[Tensor]]:
        """The predictions of these members at one step, and the gradients of their losses."""
        inputs, targets = self.data(step, members)

        def one(
            own: dict[str, Tensor], bits: Tensor, inputs: dict[str, Tensor], target: Tensor
        ) -> tuple[Tensor, Tensor]:
            prediction = functional_call(self.modules[0], own, (inputs, Context(bits)))
            return member_loss(self.spec, prediction, target), prediction

        losses, predictions = vmap(one)(parameters, self.bits(step, members), inputs, targets)
        return predictions.detach(), list(torch.autograd.grad(losses.sum(), list(parameters.values())))

    def train(self, members: Sequence[int], steps: int, rate: float = 3e-3) -> list[Tensor]:
        """The stacked parameters after some steps of Adam with clipping per member."""
        parameters = self.parameters(members)
        values = list(parameters.values())
        first, second = [torch.zeros_like(v) for v in values], [torch.zeros_like(v) for v in values]
        for step in range(steps):
            _, gradients = self.gradients(parameters, members, step)
            norm = sum(g.flatten(1).square().sum(1) for g in gradients).sqrt()  # type: ignore[union-attr]
            scale = (0.5 / (norm + 1e-6)).clamp(max=1)
            for p, m, v, g in zip(values, first, second, gradients, strict=True):
                g = g * scale.view(-1, *[1] * (g.dim() - 1))
                m.lerp_(g, 0.1)
                v.mul_(0.999).addcmul_(g, g, value=0.001)
                c1, c2 = 1 - 0.9 ** (step + 1), 1 - 0.999 ** (step + 1)
                p.data.addcdiv_(m / c1, (v / c2).sqrt_().add_(1e-8), value=-rate)
        return [v.detach() for v in values]


def assert_same_bits(members: Members, groups: Sequence[Sequence[int]]) -> list[Tensor]:
    """Predictions and gradients of one step agree bit for bit between all members and each group; returns gradients."""
    everyone = range(members.count)
    together, gradients = members.gradients(members.parameters(everyone), everyone, 0)
    assert all(g.isfinite().all() for g in gradients)
    for group in groups:
        predictions, group_gradients = members.gradients(members.parameters(group), group, 0)
        assert torch.equal(predictions, together[list(group)]), group
        for parameter, a, b in zip(members.names, group_gradients, gradients, strict=True):
            assert torch.equal(a, b[list(group)]), (group, parameter)
    return gradients


def assert_same_training(members: Members, steps: int, member: int, groups: Sequence[Sequence[int]]) -> None:
    """After some steps of training a member has the same bits in every group as among all members."""
    together = members.train(range(members.count), steps)
    for group in groups:
        index = list(group).index(member)
        for parameter, a, b in zip(members.names, members.train(group, steps), together, strict=True):
            assert torch.equal(a[index], b[member]), (group, parameter)


def assert_close_in_double(members: Members, steps: int, alone: Sequence[int]) -> None:
    """In double precision, a member trained alone agrees to 1e-9 with itself among all members."""
    assert members.dtype == torch.float64
    together = members.train(range(members.count), steps)
    for member in alone:
        for a, b in zip(members.train([member], steps), together, strict=True):
            torch.testing.assert_close(a[0], b[member], rtol=0, atol=1e-9)

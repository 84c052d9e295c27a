"""A stack: models of equal shape trained together along a leading axis.

Contract: member s equals the run of seed s alone, bit for bit in float32 on one thread, at every size of the stack and at
every position in it. So the size is free: nothing but time depends on it.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from unseen.errors import UsageError, nearest
from unseen.models.context import Context, CountingContext
from unseen.models.sites import SiteList, list_submodules, report_submodules
from unseen.randomness import stream
from unseen.spec import Target
from unseen.training.device_random import lanes16
from unseen.training.loss import training_loss

# A foreign module may use an operation that vmap does member by member: no reason to send users to torch's issues.
torch._C._functorch._set_vmap_fallback_warning_enabled(False)  # type: ignore[attr-defined]

State = dict[str, Tensor]
"""Tensors by name; in a stack, with the members along the first axis."""
_REFUSAL = RuntimeError
"""Torch raises it where vmap can't batch an operation. A real fault is raised again when members run one by one."""
# Rows are padded to whole vector registers: a fused kernel treats the odd end of a tensor by other instructions than
# its body, and then a member's bits would depend on its position in the stack.
_REGISTER = 64


@dataclass(frozen=True)
class Edit:
    """The value with which members continue instead of an activation: `apply(activation, *operands)`.

    Operands have the members along the first axis; `apply` sees those of one member.
    """

    apply: Callable[..., Tensor]
    operands: tuple[Tensor, ...] = ()


def load_member(module: nn.Module, state: State) -> nn.Module:
    """Give a module the parameters and buffers of a member (tied ones once, temporary buffers too)."""
    with torch.no_grad():
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            tensor.copy_(state[name])
    return module


class ParameterLayout:
    """All parameters of a stack in one tensor: a row per member, and which columns of it belong to which parameter.

    One row makes an optimizer's step, a gradient's norm and a checkpoint one operation each.
    """

    def __init__(self, shapes: Mapping[str, Sequence[int]]) -> None:
        self.shapes = {name: tuple(shape) for name, shape in shapes.items()}
        used = sum(math.prod(shape) for shape in self.shapes.values())
        self.padding = -used % _REGISTER
        self.width = used + self.padding

    def join(self, tensors: Sequence[Tensor]) -> Tensor:
        """Stacked tensors (members, …) in the layout's order, as rows (members, width)."""
        rows = [tensor.reshape(len(tensor), -1) for tensor in tensors]
        return torch.cat([*rows, rows[0].new_zeros(len(rows[0]), self.padding)], dim=1)

    def split(self, rows: Tensor) -> State:
        """Views of rows (members, width), or of one row (width,), by parameter name."""
        views: State = {}
        start = 0
        for name, shape in self.shapes.items():
            stop = start + math.prod(shape)
            views[name] = rows[..., start:stop].view(*rows.shape[:-1], *shape)
            start = stop
        return views


class Stack:
    """The parameters of S modules as stacked tensors, and one forward pass for all of them.

    A module that `vmap` refuses (`nn.LSTM`, or one that draws its own random numbers) is run member by member through the same methods;
    `note` says so.
    """

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        parameters, buffers = stack_module_state(list(modules))
        trained = [name for name, p in modules[0].named_parameters() if p.requires_grad]
        frozen = {name: p for name, p in parameters.items() if name not in trained}
        self.layout = ParameterLayout({name: parameters[name].shape[1:] for name in trained})
        first = next(iter({**parameters, **buffers}.values()), torch.zeros(0))
        self.dtype = first.dtype if first.is_floating_point() else torch.float32
        if trained:
            self.load(self.layout.join([parameters[name].detach() for name in trained]))
        else:
            self.load(torch.zeros(len(modules), 0, dtype=self.dtype, device=first.device))
        # Parameters that are not trained are kept with the buffers: the optimizer never sees them.
        self.buffers: State = {k: v.detach().clone() for k, v in {**frozen, **buffers}.items()}
        # A module may name parameters that learn at another rate: `rate_factors`, by name.
        factors: Mapping[str, float] = getattr(modules[0], "rate_factors", {})
        self.rate_factors = self._make_factors(factors) if factors else None
        # The code that all members run, with parameters from the rows in place of its own; a copy, because the module
        # belongs to the caller.
        self.skeleton = copy.deepcopy(modules[0])
        self.skeleton.requires_grad_(False)
        self.takes_context = "ctx" in inspect.signature(self.skeleton.forward).parameters
        self.together = True
        self._lanes: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def _make_factors(self, factors: Mapping[str, float]) -> Tensor:
        """The factor of the learning rate of every column of the rows, (width,)."""
        row = torch.ones(self.layout.width, dtype=self.dtype, device=self.rows.device)
        for name, columns in self.layout.split(row).items():
            columns.fill_(factors.get(name, 1.0))
        return row

    def load(self, rows: Tensor) -> None:
        """Set the parameters, one row per member; `parameters` are views of the rows."""
        # Contiguous, so that a member's row can be viewed as its parameters, and groups of rows as one tensor.
        self.rows = rows.contiguous()
        self.parameters = {k: v.detach().requires_grad_() for k, v in self.layout.split(self.rows).items()}

    @property
    def note(self) -> str:
        """A note for the record if the members were not trained together."""
        return "" if self.together else "trained member by member: vmap refused the module"

    def choose_batching(self, inputs: Mapping[str, Tensor], targets: Tensor, target: Target) -> None:
        """Try a forward pass: if vmap refuses the module, its members run one by one. Changes of buffers are undone."""
        before = self.save_buffers()
        try:
            self.losses(inputs, targets, target, seeds=range(len(self)), step=0)
        except _REFUSAL:
            self.together = False
        self.buffers = before

    def save_buffers(self) -> State:
        """A copy of the buffers: a module may change its own in a forward pass."""
        return {k: v.clone() for k, v in self.buffers.items()}

    def losses(
        self,
        inputs: Mapping[str, Tensor],
        targets: Tensor,
        target: Target,
        seeds: Iterable[int],
        step: int,
        steps: int | None = None,
    ) -> Tensor:
        """The mean loss of each member on its own batch (leading axis: members), dropout on.

        `steps` is the length of training, for what changes in its course. What a module adds to the loss is in the
        gradient alone: see `training_loss`.
        """
        self.skeleton.train()
        seeds = list(seeds)
        bits = self.bits(inputs, seeds, step)
        if not self.together:
            losses = []
            for index, seed in enumerate(seeds):
                member_inputs = take_member(inputs, index)
                ctx = Context(bits[index], step=step, steps=steps)
                prediction = self._call_seeded(index, seed, step, member_inputs, ctx)
                losses.append(training_loss(prediction, targets[index], target, ctx.objectives))
            return torch.stack(losses)

        def member(parameters: State, buffers: State, inputs: State, targets: Tensor, bits: Tensor) -> Tensor:
            ctx = Context(bits, step=step, steps=steps)
            return training_loss(self._call(parameters, buffers, inputs, ctx), targets, target, ctx.objectives)

        batched: Callable[..., Tensor] = vmap(member)
        return batched(self.parameters, self.buffers, dict(inputs), targets, bits)

    def predict(
        self,
        inputs: Mapping[str, Tensor],
        captured: Sequence[str] = (),
        *,
        inputs_per_member: bool = False,
        edits: Mapping[str, Edit] | None = None,
        differentiable: bool = False,
    ) -> tuple[Tensor, State]:
        """Predictions and captured activations of every member, dropout off: on the same inputs, or (`inputs_per_member`)
        each member on its own, along a leading axis.

        Activations are named by their site (`unseen.models.sites`). `edits` changes them on the way; `differentiable`
        keeps gradients, to learn the operands of an edit.
        """
        with torch.set_grad_enabled(differentiable):
            self.skeleton.eval()
            # Shared inputs are given to every member as its own: products with shared ones would be folded into one wide
            # product, which rounds differently for one member and for many.
            stacked = dict(inputs)
            if not inputs_per_member:
                for name, value in inputs.items():
                    stacked[name] = value.expand(len(self), *value.shape)

            edits = edits or {}
            all_operands = {site: edit.operands for site, edit in edits.items()}
            reported: set[str] = set()

            def member(
                parameters: State, buffers: State, inputs: State, operands: Mapping[str, tuple[Tensor, ...]]
            ) -> tuple[Tensor, State]:
                replace = {site: _bind(edit.apply, operands[site]) for site, edit in edits.items()}
                ctx = Context(None, captured, replace)
                prediction = self._call(parameters, buffers, inputs, ctx)
                reported.update(ctx.reported)
                return prediction, ctx.captured

            if self.together:
                batched: Callable[..., tuple[Tensor, State]] = vmap(member)
                try:
                    result = batched(self.parameters, self.buffers, stacked, all_operands)
                except _REFUSAL:
                    self.together = False
                else:
                    self._check_edits(edits, reported, stacked)
                    return result
            predictions = []
            activations = []
            for index in range(len(self)):
                member_inputs = take_member(stacked, index)
                member_operands = {}
                for site, operands in all_operands.items():
                    member_operands[site] = tuple(operand[index] for operand in operands)
                prediction, captures = member(*self._views(index), member_inputs, member_operands)
                predictions.append(prediction)
                activations.append(captures)
            self._check_edits(edits, reported, stacked)
            stacked_activations = {}
            for name in activations[0]:
                stacked_activations[name] = torch.stack([captures[name] for captures in activations])
            return torch.stack(predictions), stacked_activations

    @torch.no_grad()
    def answer(self, inputs: Mapping[str, Tensor]) -> Any:
        """The return value of the first member's module in evaluation, which may be anything."""
        self.skeleton.eval()
        return self._call(*self._views(0), dict(inputs), Context())

    def bits(self, inputs: Mapping[str, Tensor], seeds: Iterable[int], step: int) -> Tensor:
        """The dropout bits of a step, one row per member, from the streams (dropout, seed, step)."""
        shapes = tuple((name, value.shape[1:]) for name, value in inputs.items())
        if shapes not in self._lanes:
            # How many bits a forward pass takes depends on the shapes alone: counted once for each.
            ctx = CountingContext()
            with torch.no_grad():
                if self.takes_context:
                    self._call(*self._views(0), take_member(inputs, 0), ctx)
            self._lanes[shapes] = ctx.used
        count = self._lanes[shapes]
        streams = [stream("dropout", seed) for seed in seeds]
        if self.rows.device.type != "cpu":  # the same bits, made where they are needed
            return lanes16(streams, step, count, self.rows.device)
        rows = [seed_stream.block(step).lanes(count, np.uint16) for seed_stream in streams]
        # The same bits as signed numbers: torch has few operations on unsigned ones.
        return torch.from_numpy(np.stack(rows).view(np.int16))

    def select(self, members: Sequence[int]) -> None:
        """Keep only these members, in this order."""
        index = torch.tensor(list(members), dtype=torch.int64)
        self.load(self.rows[index])
        self.buffers = {k: v[index] for k, v in self.buffers.items()}

    def member(self, index: int) -> State:
        """A copy of one member's parameters and buffers by name; `load_member` puts them into a module."""
        return {k: v[index].detach().clone() for k, v in {**self.parameters, **self.buffers}.items()}

    def names(self, inputs: Mapping[str, Tensor]) -> list[str]:
        """The names of the activations that a forward pass offers to capture, in evaluation."""
        ctx = CountingContext(training=False)
        with torch.no_grad():
            self._call(*self._views(0), dict(inputs), ctx)
        return ctx.names

    @torch.no_grad()
    def sites(self, inputs: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
        """All activations that can be captured and replaced in evaluation, in order, with their shapes for these inputs:
        those that the module reports, and what each of its submodules returns."""
        sites = SiteList()
        self.skeleton.eval()
        with list_submodules(self.skeleton, sites):
            self._call(*self._views(0), dict(inputs), sites)
        return sites.shapes

    def _check_edits(self, edits: Mapping[str, Edit], reported: set[str], stacked: Mapping[str, Tensor]) -> None:
        """Refuse edits of activations that the model does not have: they would silently change nothing."""
        unknown = [site for site in edits if site not in reported]
        if unknown:
            sites = self.sites(take_member(stacked, 0))
            raise UsageError(f"the model has no activation '{unknown[0]}'. {nearest(unknown[0], sites)}")

    def _call(self, parameters: State, buffers: State, inputs: State, ctx: Context) -> Tensor:
        extra = {"ctx": ctx} if self.takes_context else {}
        # In training no activations are requested, and there is nothing to set up.
        with report_submodules(self.skeleton, ctx) if ctx.named else nullcontext():
            out: Tensor = functional_call(self.skeleton, (parameters, buffers), (inputs,), extra)
        return out

    def _call_seeded(self, index: int, seed: int, step: int, inputs: State, ctx: Context) -> Tensor:
        """Call one member; for modules with randomness of their own, torch's generator is forked and seeded."""
        with torch.random.fork_rng(devices=[]):
            # Of a word's 64 bits all but the lowest: a seed that fits a signed integer.
            torch.manual_seed(int(stream("dropout", seed).block(step).words(1)[0] >> np.uint64(1)))
            return self._call(*self._views(index), inputs, ctx)

    def _views(self, index: int) -> tuple[State, State]:
        return take_member(self.parameters, index), take_member(self.buffers, index)


def take_member(tensors: Mapping[str, Tensor], index: int) -> State:
    """The tensors of one member, by name, from stacked ones."""
    return {name: tensor[index] for name, tensor in tensors.items()}


def _bind(apply: Callable[..., Tensor], operands: tuple[Tensor, ...]) -> Callable[[Tensor], Tensor]:
    return lambda value: apply(value, *operands)

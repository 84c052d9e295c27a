"""A stack: models of equal shape trained together along a leading axis.

Contract: member s equals the run of seed s alone, bit for bit in float32 on one thread, at every size of the stack and at
every position in it. So the size is free: nothing but time depends on it.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from unseen.models.context import Context, CountingContext
from unseen.randomness import stream
from unseen.spec import Target
from unseen.training.loss import loss

# A foreign module may use an operation that vmap does member by member: no reason to send users to torch's issues.
torch._C._functorch._set_vmap_fallback_warning_enabled(False)  # type: ignore[attr-defined]

State = dict[str, Tensor]
"""Tensors by name; in a stack, with the members along the first axis."""
_REFUSAL = RuntimeError
"""Torch raises it where vmap can't batch an operation. A real fault is raised again when members run one by one."""
# Rows are padded to whole vector registers: a fused kernel treats the odd end of a tensor by other instructions than
# its body, and then a member's bits would depend on its position in the stack.
_REGISTER = 64


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

    A module that `vmap` refuses (`nn.LSTM`, randomness of its own) is run member by member through the same methods;
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
        self.buffers: State = {k: v.detach().clone() for k, v in {**frozen, **buffers}.items()}
        self.skeleton = copy.deepcopy(modules[0])
        self.skeleton.requires_grad_(False)
        self.takes_context = "ctx" in inspect.signature(self.skeleton.forward).parameters
        self.together = True
        self._lanes: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def load(self, rows: Tensor) -> None:
        """Set the parameters, one row per member; `parameters` are views of the rows."""
        self.rows = rows.contiguous()
        self.parameters = {k: v.detach().requires_grad_() for k, v in self.layout.split(self.rows).items()}

    @property
    def note(self) -> str:
        """A note for the record if the members were not trained together."""
        return "" if self.together else "trained member by member: vmap refused the module"

    def settle(self, inputs: Mapping[str, Tensor], targets: Tensor, target: Target) -> None:
        """Find out by a forward pass whether vmap can batch the module; changes of its buffers are undone."""
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
        self, inputs: Mapping[str, Tensor], targets: Tensor, target: Target, seeds: Iterable[int], step: int
    ) -> Tensor:
        """The mean loss of each member on its own batch (leading axis: members), dropout on."""
        self.skeleton.train()
        seeds = list(seeds)
        bits = self.bits(inputs, seeds, step)
        if not self.together:
            losses = []
            for index, seed in enumerate(seeds):
                own_inputs = {name: value[index] for name, value in inputs.items()}
                prediction = self._call_seeded(index, seed, step, own_inputs, Context(bits[index]))
                losses.append(loss(prediction, targets[index], target))
            return torch.stack(losses)

        def member(parameters: State, buffers: State, inputs: State, targets: Tensor, bits: Tensor) -> Tensor:
            return loss(self._call(parameters, buffers, inputs, Context(bits)), targets, target)

        batched: Callable[..., Tensor] = vmap(member)
        return batched(self.parameters, self.buffers, dict(inputs), targets, bits)

    @torch.no_grad()
    def predict(
        self, inputs: Mapping[str, Tensor], captured: Sequence[str] = (), *, own: bool = False
    ) -> tuple[Tensor, State]:
        """Predictions and captured activations of every member, dropout off: on the same inputs, or (`own`) each member
        on its own, along a leading axis.
        """
        self.skeleton.eval()
        # Shared inputs are given to every member as its own: products with shared ones would be folded into one wide
        # product, which rounds differently for one member and for many.
        stacked = dict(inputs) if own else {k: v.expand(len(self), *v.shape) for k, v in inputs.items()}

        def member(parameters: State, buffers: State, inputs: State) -> tuple[Tensor, State]:
            ctx = Context(None, captured)
            return self._call(parameters, buffers, inputs, ctx), ctx.captured

        if self.together:
            batched: Callable[..., tuple[Tensor, State]] = vmap(member)
            try:
                return batched(self.parameters, self.buffers, stacked)
            except _REFUSAL:
                self.together = False
        predictions = []
        activations = []
        for index in range(len(self)):
            own_inputs = {name: value[index] for name, value in stacked.items()}
            prediction, captures = member(*self._views(index), own_inputs)
            predictions.append(prediction)
            activations.append(captures)
        return torch.stack(predictions), {k: torch.stack([a[k] for a in activations]) for k in activations[0]}

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
                    self._call(*self._views(0), {name: value[0] for name, value in inputs.items()}, ctx)
            self._lanes[shapes] = ctx.used
        count = self._lanes[shapes]
        rows = [stream("dropout", seed).block(step).lanes(count, np.uint16) for seed in seeds]
        return torch.from_numpy(np.stack(rows).view(np.int16)).to(self.rows.device)

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

    def _call(self, parameters: State, buffers: State, inputs: State, ctx: Context) -> Tensor:
        extra = {"ctx": ctx} if self.takes_context else {}
        out: Tensor = functional_call(self.skeleton, (parameters, buffers), (inputs,), extra)
        return out

    def _call_seeded(self, index: int, seed: int, step: int, inputs: State, ctx: Context) -> Tensor:
        """Call one member; for modules with randomness of their own, torch's generator is forked and seeded."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(stream("dropout", seed).block(step).words(1)[0] >> np.uint64(1)))
            return self._call(*self._views(index), inputs, ctx)

    def _views(self, index: int) -> tuple[State, State]:
        return ({k: v[index] for k, v in self.parameters.items()}, {k: v[index] for k, v in self.buffers.items()})

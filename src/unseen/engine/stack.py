"""A stack: models of equal shape trained together along a leading axis.

Contract: member s equals the run of seed s alone, bit for bit in float32 on one thread, whatever the size of the stack
and its place in it. So the size is free: nothing but time depends on it.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from unseen.engine.flat import Layout, State
from unseen.engine.loss import loss
from unseen.models.layers.tape import CountingTape, Tape
from unseen.randomness import stream
from unseen.spec import Target

# A foreign module may use an operation that vmap does member by member: no reason to send users to torch's issues.
torch._C._functorch._set_vmap_fallback_warning_enabled(False)  # type: ignore[attr-defined]

_REFUSAL = RuntimeError
"""What torch raises where vmap can't batch an operation. A real fault is raised again by the member-by-member way."""


def load_member(module: nn.Module, state: State) -> nn.Module:
    """Give a module the parameters and buffers of a member (tied ones once, temporary buffers too)."""
    with torch.no_grad():
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            tensor.copy_(state[name])
    return module


class Stack:
    """The parameters of S modules as stacked tensors, and one forward pass for all of them.

    A module that `vmap` refuses (`nn.LSTM`, randomness of its own) is run member by member through the same methods;
    `note` says so.
    """

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        parameters, buffers = stack_module_state(list(modules))
        trained = [name for name, p in modules[0].named_parameters() if p.requires_grad]
        frozen = {name: p for name, p in parameters.items() if name not in trained}
        self.layout = Layout({name: parameters[name].shape[1:] for name in trained})
        some = next(iter({**parameters, **buffers}.values()), torch.zeros(0))
        self.dtype = some.dtype if some.is_floating_point() else torch.float32
        empty = torch.zeros(len(modules), 0, dtype=self.dtype, device=some.device)
        self.load(self.layout.join([parameters[name].detach() for name in trained]) if trained else empty)
        self.buffers: State = {k: v.detach().clone() for k, v in {**frozen, **buffers}.items()}
        self.skeleton = copy.deepcopy(modules[0])
        self.skeleton.requires_grad_(False)
        self.takes_tape = "tape" in inspect.signature(self.skeleton.forward).parameters
        self.together = True
        self._lanes: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def load(self, rows: Tensor) -> None:
        """Take these parameters, one row per member; `parameters` are views of them."""
        self.rows = rows.contiguous()
        self.parameters = {k: v.detach().requires_grad_() for k, v in self.layout.split(self.rows).items()}

    @property
    def note(self) -> str:
        """How the members were trained, where that is not the usual way."""
        return "" if self.together else "trained member by member: vmap refused the module"

    def settle(self, inputs: Mapping[str, Tensor], targets: Tensor, target: Target) -> None:
        """Find out, by trying, whether the module can be batched; what the trial does to buffers is undone."""
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
            parts = [
                self._alone(s, seed, step, {k: v[s] for k, v in inputs.items()}, Tape(bits[s]))
                for s, seed in enumerate(seeds)
            ]
            return torch.stack([loss(p, t, target) for p, t in zip(parts, targets, strict=True)])

        def member(parameters: State, buffers: State, inputs: State, targets: Tensor, bits: Tensor) -> Tensor:
            return loss(self._call(parameters, buffers, inputs, Tape(bits)), targets, target)

        batched: Callable[..., Tensor] = vmap(member)
        return batched(self.parameters, self.buffers, dict(inputs), targets, bits)

    @torch.no_grad()
    def predict(
        self, inputs: Mapping[str, Tensor], wanted: Sequence[str] = (), *, own: bool = False
    ) -> tuple[Tensor, State]:
        """Predictions and kept intermediates of every member, dropout off: on the same inputs, or (`own`) each member
        on its own, along a leading axis.
        """
        self.skeleton.eval()
        # Shared inputs are given to every member as its own: products with shared ones would be folded into one wide
        # product, which rounds differently for one member and for many.
        each = dict(inputs) if own else {k: v.expand(len(self), *v.shape) for k, v in inputs.items()}
        if self.together:
            try:
                return self._predict_together(each, wanted)
            except _REFUSAL:
                self.together = False
        tapes = [Tape(wanted=wanted) for _ in range(len(self))]
        parts = [self._call(*self._views(s), {k: v[s] for k, v in each.items()}, tape) for s, tape in enumerate(tapes)]
        return torch.stack(parts), {k: torch.stack([t.kept[k] for t in tapes]) for k in tapes[0].kept}

    @torch.no_grad()
    def answer(self, inputs: Mapping[str, Tensor]) -> Any:
        """What the first member's module returns in evaluation, whatever that is."""
        self.skeleton.eval()
        return self._call(*self._views(0), dict(inputs), Tape())

    def _predict_together(self, inputs: State, wanted: Sequence[str]) -> tuple[Tensor, State]:

        def member(parameters: State, buffers: State, inputs: State) -> tuple[Tensor, State]:
            tape = Tape(wanted=wanted)
            return self._call(parameters, buffers, inputs, tape), tape.kept

        batched: Callable[..., tuple[Tensor, State]] = vmap(member)
        return batched(self.parameters, self.buffers, inputs)

    def bits(self, inputs: Mapping[str, Tensor], seeds: Iterable[int], step: int) -> Tensor:
        """The dropout bits of a step, one row per member, from the streams (dropout, seed, step)."""
        count = self._count(inputs)
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
        """The intermediates a forward pass offers to keep, in evaluation."""
        tape = CountingTape(training=False)
        with torch.no_grad():
            self._call(*self._views(0), dict(inputs), tape)
        return tape.names

    def _count(self, inputs: Mapping[str, Tensor]) -> int:
        shapes = tuple((k, v.shape[1:]) for k, v in inputs.items())
        if shapes not in self._lanes:
            tape = CountingTape()
            with torch.no_grad():
                if self.takes_tape:
                    self._call(*self._views(0), {k: v[0] for k, v in inputs.items()}, tape)
            self._lanes[shapes] = tape.used
        return self._lanes[shapes]

    def _call(self, parameters: State, buffers: State, inputs: State, tape: Tape) -> Tensor:
        extra = {"tape": tape} if self.takes_tape else {}
        out: Tensor = functional_call(self.skeleton, (parameters, buffers), (inputs,), extra)
        return out

    def _alone(self, index: int, seed: int, step: int, inputs: State, tape: Tape) -> Tensor:
        """One member of a module with randomness of its own: torch's generator is forked and seeded."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(stream("dropout", seed).block(step).words(1)[0] >> np.uint64(1)))
            return self._call(*self._views(index), inputs, tape)

    def _views(self, index: int) -> tuple[State, State]:
        return ({k: v[index] for k, v in self.parameters.items()}, {k: v[index] for k, v in self.buffers.items()})

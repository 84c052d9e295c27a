"""A training step reads nothing back from the device, and how often losses are read changes no number."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from support.jobs import job
from support.specimens import READ_BY, SPECS
from support.stacks import Members
from unseen.models import MODELS, options
from unseen.training import process
from unseen.training.checkpoint import pack
from unseen.training.optimizer import StackOptimizer
from unseen.training.recipe import recipe
from unseen.training.stack import Stack
from unseen.training.trainer import Job, Trainer

NAMES = [entry.name for entry in MODELS if entry.target.startswith("unseen.")]
READS = ("_local_scalar_dense", "equal", "nonzero", "is_nonzero", "unique_dim", "masked_select")
"""Operations that wait for a device, since their result, or its shape, is needed on the host."""


class NoHostReads(TorchDispatchMode):
    """Refuses to read a number back to the host."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ in READS:
            raise AssertionError(f"{func} waits for the device")
        return func(*args, **(kwargs or {}))


def take_step(name: str, device: str) -> Stack:
    """One step of two members, as the trainer does it, on a device."""
    spec = SPECS[READ_BY[name][0]]
    members = Members(options(name), spec, batch=3, count=2)
    inputs, targets = members.data(0, [0, 1])
    inputs = {field: values.to(device) for field, values in inputs.items()}
    stack = Stack([module.to(device) for module in members.modules])
    optimizer = StackOptimizer(stack.rows, [recipe(clip=0.5)] * 2, reads=False)
    stack.choose_batching(inputs, targets.to(device), spec.target)  # fills what is cached by shape
    assert stack.together
    with NoHostReads():
        losses = stack.losses(inputs, targets.to(device), spec.target, [0, 1], step=1)
        gradients = torch.autograd.grad(losses.sum(), list(stack.parameters.values()), materialize_grads=True)
        optimizer.step(stack.layout.join(gradients), 0)
    return stack


def test_the_gate_notices_reads() -> None:
    for read in (torch.Tensor.item, bool, lambda x: x.nonzero(), lambda x: float(x)):
        with NoHostReads(), pytest.raises(AssertionError, match="waits for the device"):
            read(torch.ones(1))


@pytest.mark.parametrize("name", NAMES)
def test_a_step_reads_nothing(name: str) -> None:
    before = [build.clone() for build in Members(options(name), SPECS[READ_BY[name][0]], 3, 2).modules[0].parameters()]
    stack = take_step(name, "cpu")
    after = stack.member(0).values()
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_a_step_runs_where_there_are_no_numbers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the meta device there is nothing to read: whatever asks for a number, in whatever way, is an error."""
    # Torch's fused optimizers do work there; only their list of devices lacks it.
    optimizer = sys.modules["torch.optim.optimizer"]
    monkeypatch.setattr(optimizer, "_get_fused_kernels_supported_devices", lambda: ["cpu", "meta"])
    assert take_step(name, "meta").rows.device.type == "meta"


def test_a_whole_step_of_the_trainer_reads_nothing() -> None:
    trainer = Trainer(replace(job([0, 1], clip=0.1), read_every=8))
    trainer.advance(steps=1)
    with NoHostReads():
        assert all(trainer._train_step() for _ in range(5))


def trained(made: Job, spoil: Callable[[Trainer], object], steps: list[int]) -> tuple[Trainer, list[Any]]:
    """Trained to its end in pieces; after the first, something is spoilt."""
    trainer = Trainer(made)
    points: list[Any] = []
    for number, piece in enumerate([*steps, None]):
        points += trainer.advance(steps=piece)
        if not number:
            spoil(trainer)
        trainer = Trainer(made, trainer.save())
    for progress in trainer.progress.values():
        progress.seconds = progress.cpu_seconds = 0.0
    return trainer, points


def explode(trainer: Trainer) -> None:
    """So large that some steps later, at a step which nobody knows in advance, the loss is not finite."""
    trainer.stack.rows[1] *= 1e18


@pytest.mark.parametrize("every", [2, 7, 16, 1000])
@pytest.mark.parametrize("spoil", [lambda trainer: None, explode], ids=["sound", "diverging"])
def test_reading_seldom_changes_nothing(every: int, spoil: Callable[[Trainer], object]) -> None:
    """Also where a member diverges: its step and its last weights are those of reading at every step."""
    made = job([0, 1, 2], learning_rate=0.05, steps=47, validate_every=17)
    reference, expected = trained(made, spoil, [5, 9])
    trainer, points = trained(replace(made, read_every=every), spoil, [5, 9])
    assert points == expected
    assert pack(trainer.save()) == pack(reference.save())


@pytest.mark.parametrize("every", [1, 16])
def test_ended_members_are_masked_until_half_have_ended_then_leave_the_stack(every: int) -> None:
    """One of four diverges and stays in its row, a second one follows and both leave; nobody's numbers notice."""
    made = job([0, 1, 2, 3], learning_rate=0.05, steps=60, validate_every=20)
    reference, masked = Trainer(made), Trainer(replace(made, compact_at=0.5, read_every=every))
    assert (made.compacts_at, replace(made, device="cuda").compacts_at) == (1.0, 0.5)
    sizes = []
    for trainer in (reference, masked):
        for row, step in ((1, 10), (2, 30)):
            trainer.advance(steps=step - trainer.step)
            trainer.stack.rows[row if trainer is masked or row == 1 else 1] = math.nan
        trainer.advance(steps=5)
        sizes.append(len(trainer.stack))
        trainer.advance()
    assert sizes == [2, 2]
    for trainer in (reference, masked):
        assert [trainer.progress[f"run{seed}"].ending for seed in range(4)] == [
            "finished",
            "diverged",
            "diverged",
            "finished",
        ]
        for progress in trainer.progress.values():
            progress.seconds = progress.cpu_seconds = 0.0
    assert pack(masked.save()) == pack(reference.save())


def test_a_checkpoint_holds_no_masked_member() -> None:
    made = replace(job([0, 1, 2], steps=60), compact_at=0.5)
    trainer = Trainer(made)
    trainer.advance(steps=5)
    trainer.stack.rows[0] = math.nan
    trainer.advance(steps=5)
    assert len(trainer.stack) == 3 and len(trainer.running) == 2
    again = Trainer(made, trainer.save())
    assert len(again.stack) == 2
    for either in (trainer, again):
        either.advance()
        for progress in either.progress.values():
            progress.seconds = progress.cpu_seconds = 0.0
    assert pack(again.save()) == pack(trainer.save())


def test_a_member_that_diverges_within_a_window_keeps_its_step() -> None:
    trainer = Trainer(replace(job([0, 1], steps=60, validate_every=60), read_every=16))
    trainer.advance(steps=5)
    step = trainer._batches.batch

    def poisoned(number: int, sources: Any) -> Any:
        batch = step(number, sources)
        targets = batch.targets.astype("float32")
        if number == 13 and len(sources) == 2:
            targets[0] = math.nan
        return replace(batch, targets=targets)

    trainer._batches.batch = poisoned  # type: ignore[method-assign]
    trainer.advance()
    assert (trainer.progress["run0"].ending, trainer.progress["run0"].step) == ("diverged", 13)
    alone = Trainer(job([1], steps=60, validate_every=60))
    alone.advance()
    assert all(torch.equal(a, trainer.last["run1"][name]) for name, a in alone.last["run1"].items())


def test_losses_are_read_at_every_step_on_a_cpu_only() -> None:
    assert job([0]).reads_every == 1
    assert replace(job([0]), device="cuda").reads_every == 16


def test_workers_take_the_devices_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "count_devices", lambda kind: 2)
    assert [process.worker_device("cuda", worker) for worker in range(3)] == ["cuda:0", "cuda:1", "cuda:0"]
    assert process.worker_device("cuda:1", 0) == "cuda:1" and process.worker_device("cpu", 1) == "cpu"


def test_the_clock_waits_for_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is read after the device has caught up; on a CPU the clock is the time of this process."""
    calls: list[str] = []
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda device: calls.append(str(device)))
    monkeypatch.setattr(process.time, "perf_counter", lambda: calls.append("time read") or 7.0)
    assert process.device_clock("cuda:1")() == 7.0
    assert calls == ["cuda:1", "time read"]
    assert process.device_clock("cpu") is process.time.process_time

"""The loop: members of a stack, step by step, from any checkpoint to the end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from unseen.engine.feed import Feeds, target_tensor, tensors
from unseen.engine.flat import State
from unseen.engine.memory import keep_memory
from unseen.engine.optimiser import Optimiser
from unseen.engine.predict import draw, member_loss, predictions
from unseen.engine.recipe import PER_MEMBER, Evaluation, Recipe
from unseen.engine.stack import Stack
from unseen.engine.threads import one_thread
from unseen.errors import UsageError
from unseen.metrics.accuracy import accuracy
from unseen.tasks.base import DataSeed, Examples, Task

Ending = Literal["running", "finished", "stopped", "diverged"]


@dataclass(frozen=True)
class Member:
    """One run: its key (the cell's id), its seed, whose data it sees, its recipe, and its instance of the task (None:
    the job's)."""

    key: str
    seed: int
    data_seed: DataSeed
    recipe: Recipe
    task: Task | None = None


@dataclass(frozen=True)
class Job:
    """What a stack trains: members of equal shape on one task."""

    task: Task
    build: Callable[[int], nn.Module]
    members: tuple[Member, ...]
    evaluation: Evaluation = field(default_factory=Evaluation)
    device: str = "cpu"
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        shapes = {tuple((f, v) for f, v in m.recipe if f not in PER_MEMBER) for m in self.members}
        tasks = {str(self.task_of(m).model_dump(exclude=set(self.task.instance))) for m in self.members}
        if len(shapes) != 1 or len(tasks) != 1:
            free = sorted({*PER_MEMBER, *self.task.instance} - {"name"})
            raise UsageError(f"the members of a stack may differ only in {', '.join(free)}")

    def task_of(self, member: Member) -> Task:
        """The task a member learns: an instance of the job's."""
        return member.task or self.task

    @property
    def recipe(self) -> Recipe:
        """What all members share of their recipes."""
        return self.members[0].recipe


@dataclass(frozen=True)
class Point:
    """One point of a learning curve."""

    key: str
    step: int
    condition: str
    metric: str
    value: float


@dataclass
class Progress:
    """How far one member is, its validations (`scores`: the larger the better) and the best of them so far."""

    ending: Ending = "running"
    step: int = 0
    best: float = -math.inf
    best_step: int = 0
    worse: int = 0
    scores: list[float] = field(default_factory=list)
    loss_sum: float = 0.0
    loss_steps: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0


@dataclass
class Checkpoint:
    """All that is needed to go on: tensors by `key/kind/name`, and the members' progress. Plain data, no code."""

    step: int
    progress: dict[str, dict[str, Any]]
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def only(self, key: str) -> Checkpoint:
        """The part of one member, from which it goes on alone."""
        own = {name: value for name, value in self.tensors.items() if name.startswith(f"{key}/")}
        return Checkpoint(self.step, {key: self.progress[key]}, own)


class Trainer:
    """A job on its way. `advance` moves it; `save` and a new `Trainer(job, checkpoint)` continue it bit for bit."""

    def __init__(self, job: Job, checkpoint: Checkpoint | None = None, feeds: Feeds | None = None) -> None:
        keep_memory()
        self.job, self.step = job, 0
        self.progress = {m.key: Progress() for m in job.members}
        self.best: dict[str, State] = {}
        self.last: dict[str, State] = {}
        if checkpoint is not None:
            self._restore(checkpoint)
        self.running = [m for m in job.members if self.progress[m.key].ending == "running"]
        self.stack = self._build([m.seed for m in (self.running or job.members[:1])])
        if checkpoint is not None and self.running:
            self._restore_stack(checkpoint)
        self._optimiser = Optimiser(self.stack.rows, [m.recipe for m in (self.running or job.members[:1])])
        if checkpoint is not None and self.running:
            self._restore_optimiser(checkpoint)
        self._feeds = feeds or Feeds(job.recipe.batch, job.recipe.batches)
        self._validation: dict[Task, Examples] = {}
        self._settled = False

    @property
    def done(self) -> bool:
        """No member is running any more."""
        return not self.running

    def begin(self) -> list[Point]:
        """The first points of the curves: how the untrained models do, before the first step."""
        if self.step:
            return []
        with one_thread():
            return [p for m, found in zip(self.running, self._scores(), strict=True) for p in self._points(m, found)]

    def advance(
        self, steps: int | None = None, seconds: float | None = None, on_step: Callable[[Trainer], bool] | None = None
    ) -> list[Point]:
        """Train for some steps, some seconds (at least a step), or to the end; returns the new points of the curves.

        `on_step` is called after each step; it stops the loop by answering True.
        """
        points: list[Point] = []
        end = self.job.recipe.steps if steps is None else min(self.step + steps, self.job.recipe.steps)
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        with one_thread():
            while self.running and self.step < end:
                began, began_cpu, members = time.perf_counter(), time.process_time(), self.running
                if self._train_step() and (
                    self.step % self.job.recipe.validate_every == 0 or self.step == self.job.recipe.steps
                ):
                    points += self._validate()
                for member in members:
                    self.progress[member.key].seconds += (time.perf_counter() - began) / len(members)
                    self.progress[member.key].cpu_seconds += (time.process_time() - began_cpu) / len(members)
                if (on_step is not None and on_step(self)) or time.monotonic() >= deadline:
                    break
        return points

    def save(self) -> Checkpoint:
        """The state between two steps, on the CPU."""
        stacked = {
            "parameters": {"row": self.stack.rows},
            "buffers": self.stack.buffers,
            "memory": self._optimiser.save(),
        }
        saved = {
            f"{m.key}/{kind}/{name}": value[i].detach().cpu().clone()
            for kind, named in stacked.items()
            for name, value in named.items()
            for i, m in enumerate(self.running)
        }
        for kind, states in (("best", self.best), ("last", self.last)):
            saved |= {f"{key}/{kind}/{name}": v.cpu() for key, state in states.items() for name, v in state.items()}
        return Checkpoint(self.step, {k: asdict(p) for k, p in self.progress.items()}, saved)

    def _train_step(self) -> bool:
        """One step of all members; False if some diverged instead, and the others have yet to do it."""
        job = self.job
        batch = self._feeds.batch(self.step, [(job.task_of(m), m.data_seed) for m in self.running])
        inputs = tensors(batch.inputs, job.task.spec, job.dtype, job.device)
        targets = target_tensor(batch.targets, job.task.spec, job.dtype, job.device)
        if not self._settled:
            self.stack.settle(inputs, targets, job.task.spec.target)
            self._settled = True
        before = self.stack.save_buffers()
        losses = self.stack.losses(inputs, targets, job.task.spec.target, [m.seed for m in self.running], self.step)
        values = losses.tolist()
        if not all(map(math.isfinite, values)):
            self.stack.buffers = before  # the step will be done again
            self._end({i: "diverged" for i, v in enumerate(values) if not math.isfinite(v)})
            return False
        gradients = torch.autograd.grad(losses.sum(), list(self.stack.parameters.values()), materialize_grads=True)
        self._optimiser.step(self.stack.layout.join(gradients), self.step)
        for member, value in zip(self.running, values, strict=True):
            self.progress[member.key].loss_sum += value
            self.progress[member.key].loss_steps += 1
        self.step += 1
        return True

    def _validate(self) -> list[Point]:
        """Where the members stand; selects the best so far and ends those that are done."""
        recipe, ended, points = self.job.recipe, dict[int, Ending](), list[Point]()
        for i, (member, found) in enumerate(zip(self.running, self._scores(), strict=True)):
            now = self.progress[member.key]
            points += [Point(member.key, self.step, "train", "loss", now.loss_sum / now.loss_steps)]
            points += self._points(member, found)
            now.loss_sum, now.loss_steps = 0.0, 0
            score = found.get("accuracy", -found["loss"])
            now.scores.append(score)
            now.worse = 0 if score > now.best else now.worse + 1
            if score > now.best or (score == now.best and recipe.ties == "latest"):
                now.best, now.best_step = score, self.step
                self.best[member.key] = self.stack.member(i)
            if not math.isfinite(found["loss"]):
                ended[i] = "diverged"
            elif self.step == recipe.steps:
                ended[i] = "finished"
            elif member.recipe.patience is not None and now.worse >= member.recipe.patience:
                ended[i] = "stopped"
        self._end(ended)
        return points

    def _scores(self) -> list[dict[str, float]]:
        """Loss and, where it has a meaning, accuracy of every running member on the validation data of its task."""
        tasks, spec = [self.job.task_of(m) for m in self.running], self.job.task.spec
        for task in {*tasks} - self._validation.keys():
            self._validation[task] = draw(task, task.validation, self.job.recipe.validation_examples, "validation")
        examples = [self._validation[task] for task in tasks]
        predicted = predictions(self.stack, examples, spec)["prediction"]
        found = [{"loss": member_loss(p, e.targets, spec)} for p, e in zip(predicted, examples, strict=True)]
        if spec.target.kind != "real":
            for scores, p, e in zip(found, predicted, examples, strict=True):
                scores["accuracy"] = accuracy(p, e.targets, spec.target.kind).value
        return found

    def _points(self, member: Member, found: Mapping[str, float]) -> list[Point]:
        return [Point(member.key, self.step, self.job.task.validation, k, v) for k, v in found.items()]

    def _end(self, endings: Mapping[int, Ending]) -> None:
        """Take members out of the stack and keep their weights; the others go on as if nothing had happened."""
        if not endings:
            return
        for i, ending in endings.items():
            key = self.running[i].key
            self.progress[key].ending, self.progress[key].step = ending, self.step
            self.last[key] = self.stack.member(i)
        stay = [i for i in range(len(self.running)) if i not in endings]
        memory = self._optimiser.save()
        self.running = [self.running[i] for i in stay]
        if self.running:
            self.stack.select(stay)
            self._optimiser = Optimiser(self.stack.rows, [m.recipe for m in self.running])
            self._optimiser.load({slot: rows[stay] for slot, rows in memory.items()}, self.step)

    def _build(self, seeds: Sequence[int]) -> Stack:
        return Stack([self.job.build(s).to(self.job.device, self.job.dtype) for s in seeds])

    def _restore(self, checkpoint: Checkpoint) -> None:
        self.step = checkpoint.step
        self.progress = {key: Progress(**p) for key, p in checkpoint.progress.items()}
        for key in self.progress:
            for kind, states in (("best", self.best), ("last", self.last)):
                prefix = f"{key}/{kind}/"
                found = {k.removeprefix(prefix): v for k, v in checkpoint.tensors.items() if k.startswith(prefix)}
                if found:
                    states[key] = found

    def _restore_stack(self, checkpoint: Checkpoint) -> None:
        self.stack.load(self._stacked(checkpoint, "parameters")["row"])
        self.stack.buffers = self._stacked(checkpoint, "buffers")

    def _restore_optimiser(self, checkpoint: Checkpoint) -> None:
        self._optimiser.load(self._stacked(checkpoint, "memory"), self.step)

    def _stacked(self, checkpoint: Checkpoint, kind: str) -> State:
        """The running members' tensors of one kind, by name."""
        names = [k.split("/", 2)[2] for k in checkpoint.tensors if k.startswith(f"{self.running[0].key}/{kind}/")]
        return {
            name: torch.stack([checkpoint.tensors[f"{m.key}/{kind}/{name}"] for m in self.running]).to(self.job.device)
            for name in names
        }

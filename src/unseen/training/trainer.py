"""The training loop: the members of a stack, step by step, from any checkpoint to the end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from unseen.analysis.accuracy import accuracy
from unseen.errors import UsageError
from unseen.tasks.base import DataSeed, Examples, Task
from unseen.training.batches import StackBatches, input_tensors, target_tensor
from unseen.training.evaluate import draw_examples, member_loss, predict
from unseen.training.optimizer import StackOptimizer
from unseen.training.process import keep_memory, one_thread
from unseen.training.recipe import PER_MEMBER, Recipe
from unseen.training.stack import Stack, State

Ending = Literal["running", "finished", "stopped", "diverged"]


@dataclass(frozen=True)
class Member:
    """One run: its key (the trial's id), seed, data seed, recipe, and its instance of the task (None: the job's)."""

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
        """The recipe of the first member, for the options that all members share."""
        return self.members[0].recipe


@dataclass(frozen=True)
class Point:
    """One point of a learning curve."""

    key: str
    step: int
    split: str
    metric: str
    value: float


@dataclass
class MemberProgress:
    """The step of one member, its validations (`scores`: the larger the better) and the best of them so far."""

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
    """Everything needed to continue: tensors by `key/group/name`, and the members' progress. Plain data, no code."""

    step: int
    progress: dict[str, dict[str, Any]]
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def only(self, key: str) -> Checkpoint:
        """The checkpoint of one member, from which it continues alone."""
        tensors = {name: value for name, value in self.tensors.items() if name.startswith(f"{key}/")}
        return Checkpoint(self.step, {key: self.progress[key]}, tensors)


class Trainer:
    """A job in progress. `advance` moves it; `save` and a new `Trainer(job, checkpoint)` continue it bit for bit."""

    def __init__(self, job: Job, checkpoint: Checkpoint | None = None, batches: StackBatches | None = None) -> None:
        keep_memory()
        self.job = job
        self.step = 0
        self.progress = {m.key: MemberProgress() for m in job.members}
        self.best: dict[str, State] = {}
        self.last: dict[str, State] = {}
        if checkpoint is not None:
            self._restore_progress(checkpoint)
        self.running = [m for m in job.members if self.progress[m.key].ending == "running"]
        members = self.running or list(job.members[:1])  # if all have ended, the stack still tells how it was run
        self.stack = Stack([job.build(m.seed).to(job.device, job.dtype) for m in members])
        resumed = checkpoint is not None and bool(self.running)
        if checkpoint is not None and resumed:
            self.stack.load(self._stacked(checkpoint, "parameters")["row"])
            self.stack.buffers = self._stacked(checkpoint, "buffers")
        # The optimizer holds views of the stack's rows, so it is made after they were loaded.
        self._optimizer = StackOptimizer(self.stack.rows, [m.recipe for m in members])
        if checkpoint is not None and resumed:
            self._optimizer.load(self._stacked(checkpoint, "memory"), self.step)
        self._batches = batches or StackBatches(job.recipe.batch, job.recipe.batches)
        self._validation: dict[Task, Examples] = {}
        self._settled = False

    @property
    def done(self) -> bool:
        """No member is running any more."""
        return not self.running

    def begin(self) -> list[Point]:
        """The first points of the curves: the scores of the untrained models, before the first step."""
        points: list[Point] = []
        if self.step == 0:
            with one_thread():
                for member, scores in zip(self.running, self._scores(), strict=True):
                    points += self._points(member, scores)
        return points

    def advance(
        self, steps: int | None = None, seconds: float | None = None, on_step: Callable[[Trainer], bool] | None = None
    ) -> list[Point]:
        """Train for some steps, some seconds (at least a step), or to the end; returns the new points of the curves.

        `on_step` is called after each step; it stops the loop by answering True.
        """
        points: list[Point] = []
        recipe = self.job.recipe
        last_step = recipe.steps if steps is None else min(self.step + steps, recipe.steps)
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        with one_thread():
            while self.running and self.step < last_step:
                began = time.perf_counter()
                began_cpu = time.process_time()
                members = self.running
                trained = self._train_step()
                if trained and (self.step % recipe.validate_every == 0 or self.step == recipe.steps):
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
            "memory": self._optimizer.save(),
        }
        tensors: dict[str, Tensor] = {}
        for group, by_name in stacked.items():
            for name, value in by_name.items():
                for i, member in enumerate(self.running):
                    tensors[f"{member.key}/{group}/{name}"] = value[i].detach().cpu().clone()
        for group, states in (("best", self.best), ("last", self.last)):
            for key, state in states.items():
                for name, value in state.items():
                    tensors[f"{key}/{group}/{name}"] = value.cpu()
        return Checkpoint(self.step, {key: asdict(p) for key, p in self.progress.items()}, tensors)

    def _train_step(self) -> bool:
        """One step of all members; False if some diverged instead, and the others have yet to do it."""
        job = self.job
        spec = job.task.spec
        batch = self._batches.batch(self.step, [(job.task_of(m), m.data_seed) for m in self.running])
        inputs = input_tensors(batch.inputs, spec, job.dtype, job.device)
        targets = target_tensor(batch.targets, spec, job.dtype, job.device)
        if not self._settled:
            self.stack.settle(inputs, targets, spec.target)
            self._settled = True
        before = self.stack.save_buffers()
        losses = self.stack.losses(inputs, targets, spec.target, [m.seed for m in self.running], self.step)
        values = losses.tolist()
        if not all(map(math.isfinite, values)):
            self.stack.buffers = before  # the step will be done again, without the diverged members
            self._end({i: "diverged" for i, v in enumerate(values) if not math.isfinite(v)})
            return False
        gradients = torch.autograd.grad(losses.sum(), list(self.stack.parameters.values()), materialize_grads=True)
        self._optimizer.step(self.stack.layout.join(gradients), self.step)
        for member, value in zip(self.running, values, strict=True):
            self.progress[member.key].loss_sum += value
            self.progress[member.key].loss_steps += 1
        self.step += 1
        return True

    def _validate(self) -> list[Point]:
        """Validate all members; selects the best weights so far and ends members that are done."""
        recipe = self.job.recipe
        endings: dict[int, Ending] = {}
        points: list[Point] = []
        for i, (member, scores) in enumerate(zip(self.running, self._scores(), strict=True)):
            progress = self.progress[member.key]
            points.append(Point(member.key, self.step, "train", "loss", progress.loss_sum / progress.loss_steps))
            points += self._points(member, scores)
            progress.loss_sum = 0.0
            progress.loss_steps = 0
            score = scores.get("accuracy", -scores["loss"])
            progress.scores.append(score)
            progress.worse = 0 if score > progress.best else progress.worse + 1
            if score > progress.best or (score == progress.best and recipe.ties == "latest"):
                progress.best = score
                progress.best_step = self.step
                self.best[member.key] = self.stack.member(i)
            if not math.isfinite(scores["loss"]):
                endings[i] = "diverged"
            elif self.step == recipe.steps:
                endings[i] = "finished"
            elif member.recipe.patience is not None and progress.worse >= member.recipe.patience:
                endings[i] = "stopped"
        self._end(endings)
        return points

    def _scores(self) -> list[dict[str, float]]:
        """Loss and, where it has a meaning, accuracy of every running member on the validation data of its task."""
        spec = self.job.task.spec
        tasks = [self.job.task_of(m) for m in self.running]
        for task in {*tasks} - self._validation.keys():
            n = self.job.recipe.validation_examples
            self._validation[task] = draw_examples(task, task.validation, n, "validation")
        examples = [self._validation[task] for task in tasks]
        predictions = predict(self.stack, examples, spec)["prediction"]
        scores = []
        for prediction, shown in zip(predictions, examples, strict=True):
            by_metric = {"loss": member_loss(prediction, shown.targets, spec)}
            if spec.target.kind != "real":
                by_metric["accuracy"] = accuracy(prediction, shown.targets, spec.target.kind).value
            scores.append(by_metric)
        return scores

    def _points(self, member: Member, scores: Mapping[str, float]) -> list[Point]:
        return [Point(member.key, self.step, self.job.task.validation, k, v) for k, v in scores.items()]

    def _end(self, endings: Mapping[int, Ending]) -> None:
        """Remove members from the stack and keep their weights; the others continue unchanged."""
        if not endings:
            return
        for i, ending in endings.items():
            key = self.running[i].key
            self.progress[key].ending = ending
            self.progress[key].step = self.step
            self.last[key] = self.stack.member(i)
        remaining = [i for i in range(len(self.running)) if i not in endings]
        memory = self._optimizer.save()
        self.running = [self.running[i] for i in remaining]
        if self.running:
            self.stack.select(remaining)
            self._optimizer = StackOptimizer(self.stack.rows, [m.recipe for m in self.running])
            self._optimizer.load({slot: rows[remaining] for slot, rows in memory.items()}, self.step)

    def _restore_progress(self, checkpoint: Checkpoint) -> None:
        self.step = checkpoint.step
        self.progress = {key: MemberProgress(**p) for key, p in checkpoint.progress.items()}
        for group, states in (("best", self.best), ("last", self.last)):
            for name, value in checkpoint.tensors.items():
                key, tensor_group, tensor_name = name.split("/", 2)
                if tensor_group == group:
                    states.setdefault(key, {})[tensor_name] = value

    def _stacked(self, checkpoint: Checkpoint, group: str) -> State:
        """The running members' tensors of one group, by name."""
        prefix = f"{self.running[0].key}/{group}/"
        names = [name.removeprefix(prefix) for name in checkpoint.tensors if name.startswith(prefix)]
        stacked: State = {}
        for name in names:
            rows = [checkpoint.tensors[f"{member.key}/{group}/{name}"] for member in self.running]
            stacked[name] = torch.stack(rows).to(self.job.device)
        return stacked

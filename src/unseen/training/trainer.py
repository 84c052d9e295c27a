"""The training loop: the members of a stack, step by step, from any checkpoint to the end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Literal, TypeVar

import torch
from torch import Tensor, nn

from unseen.analysis.accuracy import accuracy
from unseen.errors import UsageError
from unseen.tasks.base import DataSeed, Examples, Task
from unseen.training.batches import StackBatches
from unseen.training.checkpoint import Checkpoint
from unseen.training.convergence import at_plateau
from unseen.training.evaluate import draw_examples, member_loss, metric_names, overall_scores, predict
from unseen.training.optimizer import StackOptimizer
from unseen.training.process import keep_memory, one_thread
from unseen.training.recipe import PER_MEMBER, CurveSplit, Recipe, curve_steps
from unseen.training.stack import Stack, State

T = TypeVar("T")
Ending = Literal["running", "finished", "stopped", "diverged"]
"""How a run ended: after all its steps, before them at a plateau, or with a loss that is not finite."""
READ_EVERY = 16
"""Steps between two reads of the losses on a device other than the CPU: each read waits until the device has caught up."""


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
    """The work of a stack: members of equal shape on one task. `curve` are splits to measure in the course of it.

    The losses are read every `read_every` steps (default: at every step on a CPU, where reading costs nothing, else
    every 16). No number depends on it: a window of steps in which a member diverged is done again, step by step.

    Members that have ended leave the stack as soon as at most a share `compact_at` of it is still running (default: at
    once on a CPU, else at half, since every size of a stack has kernels of its own). Until then they go on, unread.
    """

    task: Task
    build: Callable[[int], nn.Module]
    members: tuple[Member, ...]
    device: str = "cpu"
    dtype: torch.dtype = torch.float32
    curve: tuple[CurveSplit, ...] = ()
    read_every: int | None = None
    compact_at: float | None = None

    def __post_init__(self) -> None:
        recipes = set()
        tasks = set()
        for member in self.members:
            recipes.add(member.recipe.model_dump_json(exclude=set(PER_MEMBER)))
            tasks.add(str(self.task_of(member).model_dump(exclude=set(self.task.instance_options))))
        if len(recipes) != 1 or len(tasks) != 1:
            free = sorted({*PER_MEMBER, *self.task.instance_options} - {"name"})
            raise UsageError(f"the members of a stack may differ only in {', '.join(free)}")

    def task_of(self, member: Member) -> Task:
        """The task a member learns: an instance of the job's."""
        return member.task or self.task

    @property
    def reads_every(self) -> int:
        """The number of steps between two reads of the losses."""
        return self.read_every or (1 if torch.device(self.device).type == "cpu" else READ_EVERY)

    @property
    def compacts_at(self) -> float:
        """The share of a stack that may still run when those that have ended leave it."""
        return self.compact_at or (1.0 if torch.device(self.device).type == "cpu" else 0.5)

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
    """The step of one member, its validations (`scores`: the larger the better) and the best of them so far.

    `start` is the score of the untrained model, if it was validated.
    """

    ending: Ending = "running"
    step: int = 0
    best: float = -math.inf
    best_step: int = 0
    scores: list[float] = field(default_factory=list)
    start: float | None = None
    loss_sum: float = 0.0
    loss_steps: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0


@dataclass
class _Window:
    """Steps whose losses have not been read: the state before the first of them, and the losses of each."""

    step: int
    rows: Tensor
    buffers: State
    memory: State
    losses: list[Tensor] = field(default_factory=list)


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
        # The members of the stack, row by row; if all have ended, the stack still tells how it was run.
        self._stacked = self.running or list(job.members[:1])
        self._rows = list(range(len(self.running)))  # the rows of those that are running
        self.stack = Stack([job.build(m.seed).to(job.device, job.dtype) for m in self._stacked])
        resumed = checkpoint is not None and bool(self.running)
        if checkpoint is not None and resumed:
            self.stack.load(self._stack_tensors(checkpoint, "parameters")["row"])
            self.stack.buffers = self._stack_tensors(checkpoint, "buffers")
        # The optimizer holds views of the stack's rows, so it is made after they were loaded.
        self._optimizer = self._make_optimizer()
        if checkpoint is not None and resumed:
            self._optimizer.load(self._stack_tensors(checkpoint, "memory"), self.step)
        self._batches = batches or StackBatches(job.recipe.batch, job.recipe.batches)
        self._validation: dict[Task, Examples] = {}
        self._curve_examples: dict[tuple[Task, DataSeed, CurveSplit], Examples] = {}
        self._curve_steps: dict[tuple[CurveSplit, str], frozenset[int]] = {}
        for curve_split in job.curve:
            for member in job.members:
                self._curve_steps[curve_split, member.key] = curve_steps(member.recipe, curve_split.points)
        self._all_curve_steps = frozenset[int]().union(*self._curve_steps.values())
        self._settled = False  # whether the first step has found out if the members can be run together
        self._window: _Window | None = None
        self._read_each_until = 0  # up to this step losses are read at every step: a member diverged on the way

    @property
    def done(self) -> bool:
        """No member is running any more."""
        return not self.running

    def settle(self) -> None:
        """Find out, as the first step does, whether the members can be run together."""
        (inputs, targets) = self._batch()
        with one_thread():
            self.stack.choose_batching(inputs, targets, self.job.task.spec.target)

    def begin(self) -> list[Point]:
        """The first points of the curves: the scores of the untrained models, before the first step."""
        points: list[Point] = []
        if self.step == 0:
            with one_thread():
                for member, scores in zip(self.running, self._scores(), strict=True):
                    points += self._points(member, scores)
                    self.progress[member.key].start = _score(scores)
                points += self._measure_curve()
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
        if self.step == 0 and any(self._needs_start(member) for member in self.running):
            self.begin()
        with one_thread():
            while self.running and self.step < last_step:
                began = time.perf_counter()
                began_cpu = time.process_time()
                members = self.running
                trained = self._train_step()
                validates = self.step % recipe.validate_every == 0 or self.step == recipe.steps
                stops = self.step >= last_step or time.monotonic() >= deadline
                if validates or stops or self.step in self._all_curve_steps or self._window_is_full():
                    trained = self._read_losses() and trained
                if trained:
                    points += self._measure_curve()
                if trained and validates:
                    points += self._validate()
                for member in members:
                    self.progress[member.key].seconds += (time.perf_counter() - began) / len(members)
                    self.progress[member.key].cpu_seconds += (time.process_time() - began_cpu) / len(members)
                stops = time.monotonic() >= deadline
                if (on_step is not None and on_step(self)) or stops:
                    self._read_losses()
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
                for i, member in zip(self._rows, self.running, strict=True):
                    # Cloned: on a CPU the value is a view of the rows, which the next step changes in place.
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
        (inputs, targets) = self._batch()
        if not self._settled:
            self.stack.choose_batching(inputs, targets, spec.target)
            self._settled = True
        reads = job.reads_every == 1 or self.step < self._read_each_until
        if not reads and self._window is None:
            rows = self.stack.rows.clone()
            self._window = _Window(self.step, rows, self.stack.save_buffers(), self._optimizer.save())
        before = self.stack.save_buffers() if reads else {}
        seeds = [m.seed for m in self._stacked]
        losses = self.stack.losses(inputs, targets, spec.target, seeds, self.step, job.recipe.steps)
        if reads:
            values = self._of_running(losses.tolist())
            if not all(map(math.isfinite, values)):
                self.stack.buffers = before  # the step will be done again, without the diverged members
                self._end({i: "diverged" for i, v in enumerate(values) if not math.isfinite(v)})
                return False
            self._add_losses(values)
        elif self._window is not None:
            self._window.losses.append(losses.detach())
        # The gradient of the sum is that of each member: no loss depends on the parameters of another. Parameters without
        # a gradient get zeros, as their columns of the rows must be filled.
        gradients = torch.autograd.grad(losses.sum(), list(self.stack.parameters.values()), materialize_grads=True)
        self._optimizer.step(self.stack.layout.join(gradients), self.step)
        self.step += 1
        return True

    def _batch(self) -> tuple[State, Tensor]:
        """The inputs and targets of this step, members first."""
        job = self.job
        sources = [(job.task_of(m), m.data_seed) for m in self._stacked]
        return self._batches.tensors(self.step, sources, job.task.spec, job.dtype, job.device)

    def _of_running(self, values: Sequence[T]) -> list[T]:
        """Of values by row of the stack, those of the members that are running."""
        return [values[row] for row in self._rows]

    def _window_is_full(self) -> bool:
        return self._window is not None and len(self._window.losses) >= self.job.reads_every

    def _read_losses(self) -> bool:
        """Read the losses of the steps since the last read; False if a member diverged, and the steps are undone."""
        window = self._window
        self._window = None
        if window is None:
            return True
        values = [self._of_running(losses) for losses in torch.stack(window.losses).tolist()]
        if all(all(map(math.isfinite, losses)) for losses in values):
            for losses in values:
                self._add_losses(losses)
            return True
        # The steps are done again, to the same bits, reading at each of them: so the step is found at which a member
        # diverged, and its weights are those before it.
        self._read_each_until = self.step
        self.step = window.step
        self.stack.load(window.rows)
        self.stack.buffers = window.buffers
        self._optimizer = self._make_optimizer()
        self._optimizer.load(window.memory, self.step)
        return False

    def _add_losses(self, losses: Sequence[float]) -> None:
        for member, value in zip(self.running, losses, strict=True):
            self.progress[member.key].loss_sum += value
            self.progress[member.key].loss_steps += 1

    def _make_optimizer(self) -> StackOptimizer:
        reads = self.job.reads_every == 1
        return StackOptimizer(self.stack.rows, [m.recipe for m in self._stacked], self.stack.rate_factors, reads=reads)

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
            score = _score(scores)
            progress.scores.append(score)
            # Ties are common at an accuracy of 1; the papers differ in whether the first or the latest of them is the
            # best.
            if score > progress.best or (score == progress.best and recipe.ties == "latest"):
                progress.best = score
                progress.best_step = self.step
                self.best[member.key] = self.stack.member(self._rows[i])
            if not math.isfinite(scores["loss"]):
                endings[i] = "diverged"
            elif self.step == recipe.steps:
                endings[i] = "finished"
            elif self._at_plateau(member):
                endings[i] = "stopped"
        self._end(endings)
        return points

    def _at_plateau(self, member: Member) -> bool:
        """Whether a member may end here, by its validations and the score it began with."""
        recipe = member.recipe
        progress = self.progress[member.key]
        # While the learning rate falls, a flat curve is not a plateau: the end of the decay brings its own gain.
        least = max(recipe.least_steps, recipe.decay or 0)
        if recipe.plateau is None or self.step < least or progress.start is None:
            return False
        steps = range(0, (len(progress.scores) + 1) * recipe.validate_every, recipe.validate_every)
        return at_plateau(steps, [progress.start, *progress.scores], recipe.plateau)

    def _needs_start(self, member: Member) -> bool:
        return member.recipe.plateau is not None and self.progress[member.key].start is None

    def _measure_curve(self) -> list[Point]:
        """The points of the splits that are on the curve at this step.

        The trainer's own points of a split (its validations, the training loss) are not replaced: a curve has one value
        of a metric at a step.
        """
        if self.step not in self._all_curve_steps:
            return []
        validated = self.job.task.validation
        reserved = {("train", "loss"), (validated, "loss"), (validated, "accuracy")}
        points: list[Point] = []
        for curve_split in self.job.curve:
            metrics = [name for name in metric_names(self.job.task) if (curve_split.split, name) not in reserved]
            if not metrics:
                continue
            due = [member for member in self.running if self.step in self._curve_steps[curve_split, member.key]]
            if not due:
                continue
            examples = [self._examples_on_curve(member, curve_split) for member in self._stacked]
            predictions = predict(self.stack, examples, self.job.task.spec)["prediction"]
            for i, member in zip(self._rows, self.running, strict=True):
                if member in due:
                    scores = overall_scores(predictions[i], examples[i], self.job.task_of(member))
                    for metric in metrics:
                        points.append(Point(member.key, self.step, curve_split.split, metric, scores[metric].value))
        return points

    def _examples_on_curve(self, member: Member, curve_split: CurveSplit) -> Examples:
        """The first test examples of a split; of `train`, the first that this member was trained on."""
        task = self.job.task_of(member)
        data_seed: DataSeed = member.data_seed if curve_split.split == "train" else "test"
        key = (task, data_seed, curve_split)
        if key not in self._curve_examples:
            self._curve_examples[key] = draw_examples(task, curve_split.split, curve_split.examples, data_seed)
        return self._curve_examples[key]

    def _scores(self) -> list[dict[str, float]]:
        """Loss and, where it has a meaning, accuracy of every running member on the validation data of its task."""
        spec = self.job.task.spec
        tasks = [self.job.task_of(m) for m in self._stacked]
        for task in {*tasks} - self._validation.keys():
            n = self.job.recipe.validation_examples
            self._validation[task] = draw_examples(task, task.validation, n, "validation")
        examples = [self._validation[task] for task in tasks]
        predictions = predict(self.stack, examples, spec)["prediction"]
        scores = []
        for row in self._rows:
            targets = examples[row].targets
            by_metric = {"loss": member_loss(predictions[row], targets, spec)}
            if spec.target.kind != "real":
                by_metric["accuracy"] = accuracy(predictions[row], targets, spec.target.kind).value
            scores.append(by_metric)
        return scores

    def _points(self, member: Member, scores: Mapping[str, float]) -> list[Point]:
        return [Point(member.key, self.step, self.job.task.validation, k, v) for k, v in scores.items()]

    def _end(self, endings: Mapping[int, Ending]) -> None:
        """End members and keep their weights; the others continue unchanged."""
        if not endings:
            return
        # `endings` counts the running members; `_rows` has the row of each in a stack that is not compacted at once.
        for i, ending in endings.items():
            key = self.running[i].key
            self.progress[key].ending = ending
            self.progress[key].step = self.step
            self.last[key] = self.stack.member(self._rows[i])
        remaining = [i for i in range(len(self.running)) if i not in endings]
        self.running = [self.running[i] for i in remaining]
        self._rows = [self._rows[i] for i in remaining]
        if self.running and len(self.running) <= self.job.compacts_at * len(self._stacked):
            self._compact()

    def _compact(self) -> None:
        """Remove the members that have ended from the stack."""
        # A smaller stack and a new optimizer with the old moments: the others go on to the same bits as before.
        memory = self._optimizer.save()
        self.stack.select(self._rows)
        self._stacked = list(self.running)
        self._optimizer = self._make_optimizer()
        self._optimizer.load({slot: rows[self._rows] for slot, rows in memory.items()}, self.step)
        self._rows = list(range(len(self.running)))

    def _restore_progress(self, checkpoint: Checkpoint) -> None:
        self.step = checkpoint.step
        # A checkpoint of an earlier release may count validations that were no better (`worse`): it is no longer read.
        names = {option.name for option in fields(MemberProgress)}
        self.progress = {}
        for key, facts in checkpoint.progress.items():
            self.progress[key] = MemberProgress(**{name: facts[name] for name in facts.keys() & names})
        self.best = checkpoint.states("best")
        self.last = checkpoint.states("last")

    def _stack_tensors(self, checkpoint: Checkpoint, group: str) -> State:
        """The running members' tensors of one group, by name, on the device."""
        stacked = checkpoint.stack([member.key for member in self.running], group)
        return {name: value.to(self.job.device) for name, value in stacked.items()}


def _score(scores: Mapping[str, float]) -> float:
    """The score by which validations are compared, the larger the better: accuracy, or else the negative loss."""
    return scores["accuracy"] if "accuracy" in scores else -scores["loss"]

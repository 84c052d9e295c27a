"""The checks of a model, on a small task of every family that it does not refuse."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unseen.config import Config
from unseen.errors import CheckFailed, UsageError
from unseen.kit.check import run_check
from unseen.kit.plugins import Plugin, installed_plugins
from unseen.models import options
from unseen.models.build import build, parameter_count
from unseen.models.context import Context, CountingContext
from unseen.randomness import stream
from unseen.tasks import task as make_task
from unseen.tasks.base import Examples, Task
from unseen.tasks.verify.checks import Verdict
from unseen.training.batches import input_tensors, target_tensor
from unseen.training.evaluate import draw_examples, predict
from unseen.training.preflight import check_answers, check_forward
from unseen.training.process import one_thread
from unseen.training.recipe import recipe
from unseen.training.stack import Stack
from unseen.training.trainer import Job, Member, Trainer

SMALL: Mapping[str, dict[str, Any]] = {
    "rules/mlp": {"rules": 4},
    "rules/mha": {"rules": 4, "setting": "regression"},
    "rules/rnn": {"rules": 4},
    "ctl/lengths": {},
    "gcog/distractor": {"grid": (4, 4), "distractors": (1, 3), "ood_distractors": (5,)},
    "gcog/systematic-trees": {"grid": (4, 4), "coding": "embedding", "distractors": (1, 2)},
    "retrieval/T6": {"length": 5, "train_size": 300, "evaluation_size": 50},
}
"""Tasks with every kind of spec: no, one and two streams, a set, a grid, masks, every kind of field and target."""
SEED = 7
"""The seed of the run that is checked."""
STEPS = 3
"""The number of training steps of that run."""
STACKS = ((7, 3), (1, 2, 7, 4, 5))
"""Stacks in which the run of `SEED` must come out as it does alone."""
_BATCH = 7
_EXAMPLES = 32
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class ModelOnTask:
    """A model on one task, with what the checks need of it, computed once."""

    options: Config
    task: Task

    @cached_property
    def module(self) -> nn.Module:
        """A freshly built module."""
        return build(self.options, self.task.spec, SEED)

    @cached_property
    def stack(self) -> Stack:
        """The module as it is trained: here, a stack of one."""
        check_forward(self.module)
        return Stack([self.module])

    @cached_property
    def examples(self) -> Examples:
        """Some training examples."""
        return draw_examples(self.task, "train", _EXAMPLES, 0)

    @cached_property
    def inputs(self) -> dict[str, Tensor]:
        """Their inputs, as the module gets them."""
        return input_tensors(self.examples.inputs, self.task.spec, torch.float32, "cpu")

    @cached_property
    def trained(self) -> Trainer:
        """The run of `SEED` alone, after `STEPS` steps."""
        return self.train([SEED])

    def train(self, seeds: Sequence[int]) -> Trainer:
        """Train these seeds as one stack for `STEPS` steps."""
        used_recipe = recipe(steps=STEPS + 1, batch=_BATCH, validate_every=10**6, validation_examples=100)
        members = tuple(Member(f"run{seed}", seed, seed, used_recipe) for seed in seeds)
        trainer = Trainer(Job(self.task, lambda seed: build(self.options, self.task.spec, seed), members))
        trainer.advance(steps=STEPS)
        return trainer


def check_model(plugin: Plugin) -> Iterator[tuple[str, Verdict]]:
    """Every check of a model. Tasks on which it can't be built, or does not answer, are skipped by later checks."""
    with one_thread():
        loaded = run_check(lambda: _loads(plugin.name))
        yield "loads", loaded
        if loaded[0] == "FAIL":
            return
        cases: list[ModelOnTask] = []
        yield "builds", run_check(lambda: _builds(plugin, cases))
        for name, judge in CHECKS.items():
            if not cases:
                return
            verdicts = [(case, run_check(partial(judge, case))) for case in cases]
            yield name, _summarize_verdicts(verdicts)
            if name == "answers":
                cases = [case for case, (status, _) in verdicts if status != "FAIL"]


def _loads(name: str) -> Verdict:
    model_options = options(name)
    if options(**json.loads(json.dumps(model_options.options()))) != model_options:
        raise CheckFailed("its options change when they are written as JSON and read again")
    names = [key for key in type(model_options).model_fields if key not in ("name", "source")]
    return "ok", f"options {', '.join(names) or 'none'}"


def _builds(plugin: Plugin, cases: list[ModelOnTask]) -> Verdict:
    """Build the model on the small tasks and on the tasks of its own package, and append the tasks that it accepts.

    A `UsageError` means that a task is not for this model; any other error is a crash.
    """
    model_options = options(plugin.name)
    tasks = [make_task(name, **task_options) for name, task_options in SMALL.items()]
    for other in installed_plugins():
        if other.kind == "task" and other.package == plugin.package:
            tasks.append(make_task(other.name))
    refused: dict[str, str] = {}
    for task in tasks:
        try:
            first = build(model_options, task.spec, 1)
            again = build(model_options, task.spec, 1)
            other_seed = build(model_options, task.spec, 2)
        except UsageError as error:
            # The error may wrap a crash inside the model.
            if error.__cause__ is not None and not isinstance(error.__cause__, UsageError):
                raise
            refused[task.name] = str(error)
            continue
        _check_initialization(first, again, other_seed, task)
        cases.append(ModelOnTask(model_options, task))
    if not cases:
        name, message = next(iter(refused.items()))
        raise CheckFailed(f"it refuses every task; of {name} it says: {message}")
    counts = sorted(parameter_count(case.module) for case in cases)
    suffix = f"; it refuses {', '.join(refused)}" if refused else ""
    return "ok", f"on {len(cases)} of {len(tasks)} tasks, {counts[0]} to {counts[-1]} parameters{suffix}"


def _check_initialization(first: nn.Module, again: nn.Module, other_seed: nn.Module, task: Task) -> None:
    """Equal seeds must give equal parameters, and different seeds different ones."""
    if not parameter_count(first):
        raise CheckFailed(f"on {task.name} it has no parameters to train")
    weights = first.state_dict()
    weights_again = again.state_dict()
    for name, values in weights.items():
        if not torch.equal(values, weights_again[name]):
            raise CheckFailed(
                f"on {task.name} {name} differs between two models of one seed; draw parameters with "
                "torch's functions and its own generator"
            )
    other_weights = other_seed.state_dict()
    if all(torch.equal(values, other_weights[name]) for name, values in weights.items()):
        raise CheckFailed(f"on {task.name} all seeds begin with the same parameters; draw them at random")


def _answers(case: ModelOnTask) -> Verdict:
    check_answers(case.stack, case.task, ["train"], type(case.module).__name__, data_seed=0)
    return "ok", "shape and type of the target, deterministic, and independent of the other examples of a batch"


def _lengths(case: ModelOnTask) -> Verdict:
    splits = [name for name in case.task.splits if name != "train"]
    check_answers(case.stack, case.task, splits, type(case.module).__name__)
    return "ok", "every other split, including longer and shorter sequences"


def _context(case: ModelOnTask) -> Verdict:
    """Two training passes with the same dropout bits and two states of torch's generator; one pass with other bits."""
    if not case.stack.takes_context:
        if not torch.equal(_training_pass(case, None, torch_seed=0), _training_pass(case, None, torch_seed=1)):
            raise CheckFailed(
                "two training passes differ: the model has randomness of its own. Take forward(inputs, ctx) and use "
                "ctx.dropout(x, p) instead of nn.Dropout"
            )
        return "ok", "no randomness, and no context"
    counting = CountingContext()
    with torch.no_grad():
        case.module.train()(case.inputs, counting)
    bits = _dropout_bits(counting.used, seed=0)
    other_bits = _dropout_bits(counting.used, seed=1)
    first = _training_pass(case, bits, torch_seed=0)
    if not torch.equal(first, _training_pass(case, bits, torch_seed=1)):
        raise CheckFailed(
            "two training passes with the same context differ: the model has randomness of its own. Use "
            "ctx.dropout(x, p) instead of nn.Dropout, F.dropout or torch.rand"
        )
    if counting.used and torch.equal(first, _training_pass(case, other_bits, torch_seed=0)):
        raise CheckFailed("it takes dropout bits from the context and does nothing with them")
    repeated = [name for name in counting.names if counting.names.count(name) > 1]
    if repeated:
        raise CheckFailed(f"it captures two intermediates called '{repeated[0]}'; give each a name of its own")
    return "ok", "randomness from the context only" if counting.used else "no randomness"


def _dropout_bits(count: int, seed: int) -> Tensor:
    return torch.from_numpy(stream("kit", seed).block().lanes(count, np.uint16).view(np.int16))


@torch.no_grad()
def _training_pass(case: ModelOnTask, bits: Tensor | None, torch_seed: int) -> Tensor:
    """A forward pass in training mode, with these dropout bits and torch's generator seeded."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(torch_seed)
        case.module.train()
        prediction: Tensor = case.module(case.inputs) if bits is None else case.module(case.inputs, Context(bits))
        return prediction


def _stack(case: ModelOnTask) -> Verdict:
    """The run must have the same parameters and predictions, bit for bit, alone and in every stack."""
    solo = case.trained.stack
    spec = case.task.spec
    parameters = solo.rows[0]
    prediction = predict(solo, case.examples, spec)["prediction"][0]
    for seeds in STACKS:
        stack = case.train(seeds).stack
        position = seeds.index(SEED)
        difference = float((stack.rows[position] - parameters).abs().max())
        stacked_prediction = predict(stack, case.examples, spec)["prediction"][position]
        if difference or (stacked_prediction != prediction).any():
            raise CheckFailed(
                f"among {len(seeds)} seeds a run differs from the same run alone by {difference:.1g} after {STEPS} "
                "steps. The rounding of some torch layers depends on the batch; that of "
                "unseen.models.layers.linear.Linear, tanh and exp does not"
            )
    if not solo.together:
        return "shown", "trained seed by seed, which is slower: torch.func.vmap refuses the module"
    return "ok", f"bit for bit the same alone and among {' and '.join(str(len(seeds)) for seeds in STACKS)}"


def _gradients(case: ModelOnTask) -> Verdict:
    """Computed after some steps, so that parameters which start at zero have moved."""
    stack = case.trained.stack
    spec = case.task.spec
    inputs = {name: values[None] for name, values in case.inputs.items()}
    targets = target_tensor(case.examples.targets, spec, torch.float32, "cpu")
    losses = stack.losses(inputs, targets[None], spec.target, [SEED], STEPS)
    gradients = torch.autograd.grad(losses.sum(), list(stack.parameters.values()), allow_unused=True)
    idle = []
    for name, gradient in zip(stack.parameters, gradients, strict=True):
        if gradient is None or not gradient.any():
            idle.append(name)
    if idle:
        raise CheckFailed(f"no gradient reaches {len(idle)} of {len(gradients)} parameters: {', '.join(idle[:3])}")
    return "ok", "reach every parameter"


def _padding(case: ModelOnTask) -> Verdict:
    """Answers must not change if the content of padding changes, or if the padding is cut off."""
    spec = case.task.spec
    answers = case.stack.answer(case.inputs)
    masks = [field for field in spec.inputs if field.kind == "mask" and not case.inputs[field.name].all()]
    for mask in masks:
        real = case.inputs[mask.name].bool()
        fields = [field for field in spec.along(mask.along) if field.kind != "mask"]
        changed = dict(case.inputs)
        for field in fields:
            values = case.inputs[field.name]
            if field.kind == "category":
                changed[field.name] = torch.where(real, values, (values + 1) % field.width)
            else:
                changed[field.name] = torch.where(real[..., None], values, 1 - values)
        if not torch.allclose(case.stack.answer(changed), answers, rtol=_TOLERANCE, atol=_TOLERANCE):
            raise CheckFailed(f"the content of the padding of {mask.along} ({mask.name} false) changes the answer")
        # One of the shortest examples, cut to its length; only possible if its padding is at the end.
        length = int(real.sum(1).min())
        shortest = (real.sum(1) == length).nonzero()[:1, 0]
        if not real[shortest, :length].all() or spec.target.along == mask.along:
            continue
        names = {field.name for field in (*fields, mask)}
        cut = {}
        for name, values in case.inputs.items():
            cut[name] = values[shortest, :length] if name in names else values[shortest]
        if not torch.allclose(case.stack.answer(cut), answers[shortest], rtol=_TOLERANCE, atol=_TOLERANCE):
            raise CheckFailed(f"an answer changes when the padding of {mask.along} is cut off")
    return ("ok", "changes no answer") if masks else ("shown", "nothing is padded")


CHECKS: Mapping[str, Callable[[ModelOnTask], Verdict]] = {
    "answers": _answers,
    "lengths": _lengths,
    "context": _context,
    "stack": _stack,
    "gradients": _gradients,
    "padding": _padding,
}


def _summarize_verdicts(verdicts: Sequence[tuple[ModelOnTask, Verdict]]) -> Verdict:
    """One verdict for a check on all tasks: the first failure, or else the first `ok`."""
    failures = [(case, reason) for case, (status, reason) in verdicts if status == "FAIL"]
    if failures:
        case, reason = failures[0]
        prefix = "" if case.task.name in reason else f"{case.task.name}: "
        suffix = f" · and on {len(failures) - 1} more" if len(failures) > 1 else ""
        return "FAIL", f"{prefix}{reason}{suffix}"
    alike = [verdict for _, verdict in verdicts if verdict[0] == "ok"] or [verdict for _, verdict in verdicts]
    status, reason = alike[0]
    return status, f"{reason} · {len(alike)} task{'s' * (len(alike) > 1)}"

"""Whether a model fits a task: a few examples of every condition, before anything is trained or measured.

Whatever would go wrong in a late step, or quietly, is said at once: an answer of another shape or type, a field that is
not there, test sequences longer than the model can take, examples that influence each other.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from unseen.engine.evaluate import Origin, why_not
from unseen.engine.feed import target_tensor, tensors
from unseen.engine.lengths import ByLength, shorten
from unseen.engine.predict import NOT_KEPT, conditions, draw
from unseen.engine.recipe import Evaluation, Recipe
from unseen.engine.stack import Stack
from unseen.errors import UsageError
from unseen.spec import Spec
from unseen.tasks.base import DataSeed, Examples, Task

FEW = 4
"""Examples that are tried of each condition."""
_ROUNDING = 1e-4
"""Answers that differ by less, relative to the largest, are the same."""


def check_fit(
    build: Callable[[], nn.Module],
    task: Task,
    recipe: Recipe,
    evaluation: Evaluation,
    data_seed: DataSeed = 0,
    device: str = "cpu",
) -> list[str]:
    """What is odd about a model; one that can't be trained and evaluated on a task as recipe and evaluation say is
    refused. `build` makes it as it is before training, each time anew; `data_seed` is whose data it is trained on."""
    module = build()
    name = type(module).__name__
    check_forward(module)
    _check_parameters(module, build())
    stack = _stack(module, device)
    check_answers(stack, task, ["train", task.validation, *conditions(task, evaluation)], name, data_seed)
    losses = _losses(stack, task, recipe, name, data_seed)
    if not torch.isfinite(losses).all():
        raise UsageError(f"{name} on {task.name}: the loss of the untrained model is {losses.tolist()[0]}")
    if not losses.requires_grad:
        raise UsageError(f"{name}: no gradient reaches any parameter; is the prediction detached?")
    gradients = _gradients(stack, losses)
    for parameter, gradient in gradients.items():
        if gradient is not None and not torch.isfinite(gradient).all():
            raise UsageError(f"{name} on {task.name}: the gradient of {parameter} is not finite before the first step")
    return _oddities(module, gradients)


def check_traces(stack: Stack, task: Task, evaluation: Evaluation, model: str) -> None:
    """Refuse analyses that read what the model does not keep, by the name of the trace."""
    reasons = why_not(stack, task, evaluation, Origin([0], lambda: stack))
    for name, reason in reasons.items():
        trace = reason.removeprefix(NOT_KEPT)
        if trace != reason:
            raise UsageError(
                f"the analysis {name} reads the trace {trace}, which {model} does not keep. Keep it by "
                f"tape.keep({trace.split(', ')[0]!r}, …) in forward(inputs, tape), or leave the analysis "
                "out"
            )


def check_forward(module: nn.Module) -> None:
    """Refuse a forward that can't be called as `forward(inputs)` or `forward(inputs, tape)`."""
    parameters = list(inspect.signature(module.forward).parameters.values())
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not parameters or len([name for name in needed if name != "tape"]) > 1:
        call = f"forward({', '.join(p.name for p in parameters)})"
        raise UsageError(
            f"{type(module).__name__} has {call}; expected forward(inputs) or forward(inputs, tape), "
            "where inputs is a dict by field name"
        )


def check_answers(stack: Stack, task: Task, names: Iterable[str], model: str, data_seed: DataSeed = "test") -> None:
    """Refuse a model that does not answer each example of these conditions for itself, in the shape of the target.

    `train` is what is drawn by `data_seed`; the other conditions have test data.
    """
    for number, condition in enumerate(dict.fromkeys(names)):
        examples = draw(task, condition, FEW, data_seed if condition == "train" else "test")
        inputs = tensors(examples.inputs, task.spec, stack.dtype, str(stack.rows.device))
        place = f"{model} on {task.name}, condition {condition}"
        expected = _expected(examples, task.spec)
        answer = _answer(stack, inputs, expected, task.spec, place)
        if number:
            continue  # what is left is the same in every condition
        if not _same(answer, _answer(stack, inputs, expected, task.spec, place)):
            raise UsageError(
                f"{place}: two calls on the same examples give different answers; in evaluation nothing "
                "may be random (nn.Dropout knows when, tape.dropout too)"
            )
        middle = slice(len(examples) // 2, len(examples) // 2 + 1)  # there are others before it and after it
        alone = {name: value[middle] for name, value in inputs.items()}
        if not _same(answer[middle], _answer(stack, alone, (1, *expected[1:]), task.spec, place)):
            raise UsageError(
                f"{place}: the answer to an example depends on the others in its batch. Inputs are batch "
                "first, (batch, place, …): is there an nn.LSTM or nn.TransformerEncoder without "
                "batch_first=True, or a mean or softmax over dimension 0?"
            )


def _check_parameters(module: nn.Module, again: nn.Module) -> None:
    """Refuse parameters and buffers that a stack can't hold, or that another module of the seed does not share."""
    name = type(module).__name__
    if not any(p.requires_grad for p in module.parameters()):
        raise UsageError(f"{name} has no parameters to train; `unseen.evaluate` measures it as it is")
    for (place, value), (_, other) in zip(_numbers(module), _numbers(again), strict=False):
        if isinstance(value, nn.parameter.UninitializedParameter | nn.parameter.UninitializedBuffer):
            raise UsageError(
                f"{name}: {place} has no shape before the first batch (a lazy layer); give it one from the spec"
            )
        if value.is_complex():
            raise UsageError(
                f"{name}: {place} is complex; keep its real and imaginary part as real numbers, and join "
                "them in forward (torch.view_as_complex)"
            )
        if not torch.equal(value, other):
            raise UsageError(
                f"{name}: {place} is not the same in two modules of one seed. Give it values (torch.empty "
                "does not), drawn by torch: its generator is seeded, those of NumPy and Python are not"
            )


def _numbers(module: nn.Module) -> list[tuple[str, Tensor]]:
    return [*module.named_parameters(), *module.named_buffers()]


def _oddities(module: nn.Module, gradients: Mapping[str, Tensor | None]) -> list[str]:
    """What is odd about a module, though it can be trained."""
    found, idle = [], [name for name, gradient in gradients.items() if gradient is None]
    if idle:
        some = ", ".join(idle[:3]) + (", …" if len(idle) > 3 else "")
        found.append(f"{len(idle)} of {len(gradients)} parameters get no gradient: {some}")
    if any(isinstance(part, _BatchNorm) for part in module.modules()):
        found.append("batch normalisation: in training the answer to an example depends on its batch")
    return found


def measured(module: nn.Module) -> Stack:
    """A stack of one trained module, which stays as it is; nothing of it is to be trained."""
    name = type(module).__name__
    check_forward(module)
    try:
        stack = Stack([copy.deepcopy(module).requires_grad_(False)])
    except Exception as error:
        raise UsageError(
            f"{name} can't be copied: {_line(error)}. Does it keep a tensor of an earlier forward pass? Detach it"
        ) from error
    if stack.dtype not in (torch.float32, torch.float64):
        raise UsageError(
            f"{name} is of type {str(stack.dtype).removeprefix('torch.')}; expected float32 or float64: "
            "give module.float()"
        )
    return stack


def _stack(module: nn.Module, device: str) -> Stack:
    """A stack of one module, as it is trained."""
    try:
        module = module.to(device, torch.float32)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"device '{device}' can't be used here: {_line(error)}") from error
    return Stack([module])


def _answer(stack: Stack, inputs: Mapping[str, Tensor], expected: Sequence[int], spec: Spec, place: str) -> Tensor:
    """The prediction, if it is one."""
    kind = "numbers" if spec.target.kind == "real" else "logits"
    wanted = f"one tensor of {kind}, {str(stack.dtype).removeprefix('torch.')} {tuple(expected)}"
    try:
        answer = stack.answer(inputs)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from error
    except Exception as error:
        given = ", ".join(f"{k} {str(v.dtype).removeprefix('torch.')} {tuple(v.shape)}" for k, v in inputs.items())
        absent = " is no input of this task" if isinstance(error, KeyError) and error.args[0] not in inputs else ""
        raise UsageError(
            f"{place}: {type(error).__name__}: {_line(error)}{absent}. The inputs are a dict: {given}"
            f"{_longer(inputs, spec)}"
        ) from error
    if not isinstance(answer, Tensor):
        raise UsageError(f"{place}: forward returned {_what(answer)}; expected {wanted}")
    if tuple(answer.shape) != tuple(expected):
        raise UsageError(
            f"{place}: the model's prediction has shape {tuple(answer.shape)}; expected {wanted}"
            f"{_hint(answer, expected)}"
        )
    if answer.dtype != stack.dtype:
        raise UsageError(
            f"{place}: the model's prediction is of type {str(answer.dtype).removeprefix('torch.')}; expected {wanted}"
        )
    if answer.isnan().any():
        bad = int(answer.isnan().flatten(1).any(1).sum())
        raise UsageError(f"{place}: the model answers NaN on {bad} of {len(answer)} examples")
    return answer


def _losses(stack: Stack, task: Task, recipe: Recipe, model: str, data_seed: DataSeed) -> Tensor:
    """The loss on a few training examples, in training: of batches by length, the shortest there are."""
    few = min(FEW, recipe.batch)
    examples = draw(task, "train", few, data_seed)
    inputs, targets = examples.inputs, examples.targets
    if recipe.batches == "lengths":
        ByLength(task, recipe.batch)  # refuses tasks without lengths
        lengths = np.asarray(task.schedule())[: task.block]
        short = np.argsort(lengths, kind="stable")[:few]
        examples = draw(task, "train", task.block, data_seed)[short]
        inputs, targets = shorten(examples.inputs, task.spec, int(lengths[short].max())), examples.targets
    device = str(stack.rows.device)
    given = {k: v[None] for k, v in tensors(inputs, task.spec, stack.dtype, device).items()}
    wanted = target_tensor(targets, task.spec, stack.dtype, device)[None]
    try:
        stack.settle(given, wanted, task.spec.target)
        return stack.losses(given, wanted, task.spec.target, [0], 0)
    except UsageError as error:
        raise UsageError(f"{model} on {task.name}, in training: {error}") from error
    except Exception as error:
        raise UsageError(f"{model} on {task.name}, in training: {type(error).__name__}: {_line(error)}") from error


def _gradients(stack: Stack, losses: Tensor) -> dict[str, Tensor | None]:
    found = torch.autograd.grad(losses.sum(), list(stack.parameters.values()), allow_unused=True)
    return dict(zip(stack.parameters, found, strict=True))


def _expected(examples: Examples, spec: Spec) -> tuple[int, ...]:
    shape = examples.targets.shape
    return (*shape, spec.target.width) if spec.target.kind == "category" else shape


def _same(one: Tensor, other: Tensor) -> bool:
    """Whether two answers agree up to rounding; infinite ones must be equal."""
    finite = one.isfinite() & other.isfinite()
    if not torch.equal(one[~finite], other[~finite]):
        return False
    one, other = one[finite], other[finite]
    return not len(one) or bool((one - other).abs().max() <= _ROUNDING * (1 + one.abs().max()))


def _hint(answer: Tensor, expected: Sequence[int]) -> str:
    if tuple(answer.shape) == tuple(expected[:-1]) and expected[-1] == 1:
        return " (add the last dimension: prediction[..., None])"
    if answer.dim() == len(expected) and answer.dim() > 1 and tuple(answer.transpose(0, 1).shape) == tuple(expected):
        return " (batch first)"
    return ""


def _longer(inputs: Mapping[str, Tensor], spec: Spec) -> str:
    """Streams that are longer than the spec says: a condition may have such."""
    found = {f.along: inputs[f.name].shape[1] for f in spec.inputs if f.along is not None}
    long = [
        f"{name} has {length} places here, {spec.stream(name).length} in the spec"
        for name, length in found.items()
        if length > spec.stream(name).length
    ]
    return f" ({'; '.join(long)})" if long else ""


def _what(answer: Any) -> str:
    """What a forward pass returned instead of a tensor."""
    if isinstance(answer, Mapping):
        return f"a {type(answer).__name__} of {', '.join(map(str, answer))}"
    if isinstance(answer, tuple | list):
        return f"a {type(answer).__name__} of {len(answer)} ({', '.join(type(part).__name__ for part in answer)})"
    return f"a {type(answer).__name__}" if answer is not None else "nothing"


def _line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "").rstrip(".")

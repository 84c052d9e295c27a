"""Preflight: a dry run of a model on a few examples of every split, before anything is trained or measured.

Mistakes that would show up in a late step, or never, are reported at once: a prediction of another shape or type, an
input field that does not exist, test sequences longer than the model can take, examples that influence each other.
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

from unseen.errors import UsageError, first_line, format_error
from unseen.models.foreign import required_arguments
from unseen.spec import Spec
from unseen.tasks.base import DataSeed, Task
from unseen.training.batches import BalancedLengths, ByLength, input_tensors, shorten, target_tensor
from unseen.training.evaluate import Origin, draw_examples, measured_splits, unavailable_analyses
from unseen.training.recipe import Evaluation, Recipe
from unseen.training.stack import Stack

EXAMPLES = 4
"""Examples of each split in the dry run."""
_ROUNDING = 1e-4
"""Predictions that differ by less, relative to the largest, count as equal."""


def check_model(
    build: Callable[[], nn.Module],
    task: Task,
    recipe: Recipe,
    evaluations: Sequence[Evaluation],
    data_seed: DataSeed = 0,
    device: str = "cpu",
    *,
    require_analyses: bool = False,
) -> list[str]:
    """Refuse a model that can't be trained on a task or evaluated; returns notes on oddities that do not prevent it.

    `build` makes the untrained model, each time anew; `data_seed` is that of its training data. With
    `require_analyses`, analyses that the task or the model can't have are refused, too.
    """
    module = build()
    name = type(module).__name__
    check_forward(module)
    if not any(p.requires_grad for p in module.parameters()):
        raise UsageError(f"{name} has no parameters to train; `unseen.evaluate` measures it as it is")
    # Built twice from one seed: weights that differ then would differ between a run and its repetition, too.
    _check_tensors(module, build())
    try:
        stack = Stack([module.to(device, torch.float32)])
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"device '{device}' can't be used here: {first_line(error)}") from error
    splits = ["train", task.validation]
    for evaluation in evaluations:
        splits += measured_splits(task, evaluation)
    check_answers(stack, task, splits, name, data_seed)
    for evaluation in evaluations:
        if require_analyses:
            check_analyses(stack, task, evaluation, name)
        else:
            # An activation that is missing only leaves its analysis out; one of a wrong shape is refused here, too.
            unavailable_analyses(stack, task, evaluation, Origin([0], lambda: stack))
    losses = _training_losses(stack, task, recipe, name, data_seed)
    if not torch.isfinite(losses).all():
        raise UsageError(f"{name} on {task.name}: the loss of the untrained model is {losses.tolist()[0]}")
    if not losses.requires_grad:
        raise UsageError(f"{name}: no gradient reaches any parameter; is the prediction detached?")
    gradients = torch.autograd.grad(losses.sum(), list(stack.parameters.values()), allow_unused=True)
    idle: list[str] = []
    for parameter, gradient in zip(stack.parameters, gradients, strict=True):
        if gradient is None:
            idle.append(parameter)
        elif not torch.isfinite(gradient).all():
            raise UsageError(f"{name} on {task.name}: the gradient of {parameter} is not finite before the first step")
    notes = []
    if idle:
        names = ", ".join(idle[:3]) + (", …" if len(idle) > 3 else "")
        notes.append(f"{len(idle)} of {len(gradients)} parameters get no gradient: {names}")
    if any(isinstance(layer, _BatchNorm) for layer in module.modules()):
        notes.append("batch normalisation: in training the answer to an example depends on its batch")
    return notes


def check_analyses(stack: Stack, task: Task, evaluation: Evaluation, model: str) -> None:
    """Refuse analyses that are not about this task, or need activations which the model does not capture."""
    reasons = unavailable_analyses(stack, task, evaluation, Origin([0], lambda: stack))
    for name, missing in reasons.items():
        if missing.activations:
            raise UsageError(
                f"the analysis {name} needs the activations {', '.join(missing.activations)}, which {model} does not "
                f"capture. Capture them by x = ctx.capture({missing.activations[0]!r}, x) in forward(inputs, ctx), or "
                "leave the analysis out"
            )
        raise UsageError(f"the analysis {name} can't be made of {task.name}: {missing.reason}. Leave it out")


def check_forward(module: nn.Module) -> None:
    """Refuse a forward that can't be called as `forward(inputs)` or `forward(inputs, ctx)`."""
    parameters = inspect.signature(module.forward).parameters
    needed = set(required_arguments(parameters.values())) - {"ctx"}
    if not parameters or len(needed) > 1:
        raise UsageError(
            f"{type(module).__name__} has forward({', '.join(parameters)}); expected forward(inputs) or forward(inputs, ctx), "
            "where inputs is a dict by field name"
        )


def check_answers(stack: Stack, task: Task, splits: Iterable[str], model: str, data_seed: DataSeed = "test") -> None:
    """Refuse a model whose predictions on these splits are not one per example, in the shape of the target.

    The data of `train` are those of `data_seed`; the other splits have test data.
    """
    for number, split in enumerate(dict.fromkeys(splits)):
        examples = draw_examples(task, split, EXAMPLES, data_seed if split == "train" else "test")
        inputs = input_tensors(examples.inputs, task.spec, stack.dtype, str(stack.rows.device))
        title = f"{model} on {task.name}, split {split}"
        shape: tuple[int, ...] = examples.targets.shape
        if task.spec.target.kind == "category":
            shape = (*shape, task.spec.target.width)
        answer = _answer(stack, inputs, shape, task.spec, title)
        if number:
            continue  # the two checks that follow are the same on every split
        if not _same(answer, _answer(stack, inputs, shape, task.spec, title)):
            raise UsageError(
                f"{title}: two calls on the same examples give different answers; in evaluation nothing "
                "may be random (nn.Dropout knows when, ctx.dropout too)"
            )
        middle = slice(len(examples) // 2, len(examples) // 2 + 1)  # an example with others before and after it
        alone = {name: value[middle] for name, value in inputs.items()}
        if not _same(answer[middle], _answer(stack, alone, (1, *shape[1:]), task.spec, title)):
            raise UsageError(
                f"{title}: the answer to an example depends on the others in its batch. Inputs are batch "
                "first, (batch, position, …): is there an nn.LSTM or nn.TransformerEncoder without "
                "batch_first=True, or a mean or softmax over dimension 0?"
            )


def _check_tensors(module: nn.Module, again: nn.Module) -> None:
    """Refuse parameters and buffers that a stack can't hold, or that differ in another module of the same seed."""
    name = type(module).__name__
    tensors = [*module.named_parameters(), *module.named_buffers()]
    others = [*again.named_parameters(), *again.named_buffers()]
    for (tensor_name, value), (_, other) in zip(tensors, others, strict=False):
        if isinstance(value, nn.parameter.UninitializedParameter | nn.parameter.UninitializedBuffer):
            raise UsageError(
                f"{name}: {tensor_name} has no shape before the first batch (a lazy layer); give it one from the spec"
            )
        if value.is_complex():
            raise UsageError(
                f"{name}: {tensor_name} is complex; keep its real and imaginary part as real numbers, and join "
                "them in forward (torch.view_as_complex)"
            )
        if not torch.equal(value, other):
            raise UsageError(
                f"{name}: {tensor_name} is not the same in two modules of one seed. Give it values (torch.empty "
                "does not), drawn by torch: its generator is seeded, those of NumPy and Python are not"
            )


def stack_trained(module: nn.Module, device: str | None = None) -> Stack:
    """A stack of one trained module, which is copied (to a device, if one is named) and will not be trained."""
    name = type(module).__name__
    check_forward(module)
    try:
        copied = copy.deepcopy(module).requires_grad_(False)
        stack = Stack([copied if device is None else copied.to(device)])
    except Exception as error:
        raise UsageError(
            f"{name} can't be copied: {first_line(error)}. Does it keep a tensor of an earlier forward pass? Detach it"
        ) from error
    if stack.dtype not in (torch.float32, torch.float64):
        raise UsageError(
            f"{name} is of type {_name_dtype(stack.dtype)}; expected float32 or float64: give module.float()"
        )
    return stack


def _answer(stack: Stack, inputs: Mapping[str, Tensor], shape: Sequence[int], spec: Spec, title: str) -> Tensor:
    """The prediction, if it is a tensor of this shape, of the stack's type and without NaN."""
    dtype = _name_dtype(stack.dtype)
    expected = f"one tensor of {'numbers' if spec.target.kind == 'real' else 'logits'}, {dtype} {tuple(shape)}"
    try:
        answer = stack.answer(inputs)
    except UsageError as error:
        raise UsageError(f"{title}: {error}") from error
    except (Exception, SystemExit) as error:  # a forward that calls sys.exit() would end the command, with success
        fields = ", ".join(f"{name} {_name_dtype(x.dtype)} {tuple(x.shape)}" for name, x in inputs.items())
        absent = " is not an input of this task" if isinstance(error, KeyError) and error.args[0] not in inputs else ""
        raise UsageError(
            f"{title}: {format_error(error)}{absent}. The inputs are a dict: {fields}{_describe_longer(inputs, spec)}"
        ) from error
    if not isinstance(answer, Tensor):
        raise UsageError(f"{title}: forward returned {_describe(answer)}; expected {expected}")
    if tuple(answer.shape) != tuple(shape):
        hint = ""
        if tuple(answer.shape) == tuple(shape[:-1]) and shape[-1] == 1:
            hint = " (add the last dimension: prediction[..., None])"
        elif answer.dim() == len(shape) > 1 and tuple(answer.transpose(0, 1).shape) == tuple(shape):
            hint = " (batch first)"
        raise UsageError(f"{title}: the model's prediction has shape {tuple(answer.shape)}; expected {expected}{hint}")
    if answer.dtype != stack.dtype:
        raise UsageError(f"{title}: the model's prediction is of type {_name_dtype(answer.dtype)}; expected {expected}")
    if answer.isnan().any():
        count = int(answer.isnan().flatten(1).any(1).sum())
        raise UsageError(f"{title}: the model answers NaN on {count} of {len(answer)} examples")
    return answer


def _training_losses(stack: Stack, task: Task, recipe: Recipe, model: str, data_seed: DataSeed) -> Tensor:
    """The loss on a few training examples, in training mode: of batches by length, the shortest there are."""
    n = min(EXAMPLES, recipe.batch)
    examples = draw_examples(task, "train", n, data_seed)
    arrays = examples.inputs
    if recipe.batches == "balanced":
        index, longest = BalancedLengths(task, recipe.batch).batch(0)  # refuses tasks without lengths
        examples = draw_examples(task, "train", len(np.asarray(task.schedule())), data_seed)[index[:n]]
        arrays = shorten(examples.inputs, task.spec, longest)
    if recipe.batches == "lengths":
        ByLength(task, recipe.batch)  # refuses tasks without lengths
        lengths = np.asarray(task.schedule())[: task.block]
        shortest = np.argsort(lengths, kind="stable")[:n]
        examples = draw_examples(task, "train", task.block, data_seed)[shortest]
        arrays = shorten(examples.inputs, task.spec, int(lengths[shortest].max()))
    device = str(stack.rows.device)
    inputs = {k: v[None] for k, v in input_tensors(arrays, task.spec, stack.dtype, device).items()}
    targets = target_tensor(examples.targets, task.spec, stack.dtype, device)[None]
    try:
        stack.choose_batching(inputs, targets, task.spec.target)
        return stack.losses(inputs, targets, task.spec.target, [0], 0)
    except UsageError as error:
        raise UsageError(f"{model} on {task.name}, in training: {error}") from error
    except (Exception, SystemExit) as error:
        raise UsageError(f"{model} on {task.name}, in training: {format_error(error)}") from error


def _same(first: Tensor, second: Tensor) -> bool:
    """Whether two predictions agree up to rounding; infinite values must be equal."""
    finite = first.isfinite() & second.isfinite()
    if not torch.equal(first[~finite], second[~finite]):
        return False
    first = first[finite]
    second = second[finite]
    return not len(first) or bool((first - second).abs().max() <= _ROUNDING * (1 + first.abs().max()))


def _describe_longer(inputs: Mapping[str, Tensor], spec: Spec) -> str:
    """The streams that are longer in this split than the spec says."""
    lengths = {f.along: inputs[f.name].shape[1] for f in spec.inputs if f.along is not None}
    longer = []
    for name, length in lengths.items():
        if length > spec.stream(name).length:
            longer.append(f"{name} has {length} positions here, {spec.stream(name).length} in the spec")
    return f" ({'; '.join(longer)})" if longer else ""


def _describe(answer: Any) -> str:
    """The return value of a forward pass that is not a tensor, in words."""
    if answer is None:
        return "nothing"
    if isinstance(answer, Mapping):
        return f"a {type(answer).__name__} of {', '.join(map(str, answer))}"
    if isinstance(answer, tuple | list):
        return f"a {type(answer).__name__} of {len(answer)} ({', '.join(type(item).__name__ for item in answer)})"
    return f"a {type(answer).__name__}"


def _name_dtype(dtype: torch.dtype) -> str:
    """The name of a type without that of its package, such as `float32`."""
    return str(dtype).removeprefix("torch.")

"""The memory that a trial needs: estimated from its configs on torch's meta device, where nothing is allocated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from unseen.config import Config
from unseen.errors import UsageError, format_error
from unseen.memory import refuse_beyond
from unseen.models import is_ours
from unseen.running.stacks import stack_key
from unseen.spec import Spec
from unseen.studies.trial import Trial, format_options, identity_text
from unseen.training.batches import typical_spec

if TYPE_CHECKING:
    from torch import nn

FLOAT = 4
"""Bytes of a number in training (float32)."""
COPIES = 5
"""How often a parameter is kept: its value, its gradient, two moments of Adam, and the best weights so far."""
BACKWARD = 2
"""The numbers of a forward pass are kept for the backward pass, which makes about as many gradients."""
COUNTED = 20
"""Of how many shapes of a study intermediates are counted."""
_ADVICE = {
    "parameters": "Most of this is parameters: choose a narrower model",
    "activations": "Most of this is activations: use a smaller batch or shorter inputs",
    "examples": "Most of this is examples: choose shorter inputs, or fewer examples to validate and evaluate on",
}
_BATCHES = (2, 4)
"""The batches on which intermediates are counted; a line through both gives those of a pass and of each example."""
_LENGTHS = (64, 128, 256)
"""The lengths on which intermediates of longer streams are counted."""


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes of a stack: parameters with gradients and moments, intermediates of a step, examples."""

    parameters: float
    activations: float
    examples: float

    @property
    def total(self) -> float:
        """All of them."""
        return self.parameters + self.activations + self.examples


_PARAMETERS: dict[tuple[str, Spec], int] = {}
_ACTIVATIONS: dict[tuple[str, Spec, Spec], tuple[float, float]] = {}


def estimate_memory(trial: Trial, members: int = 1) -> MemoryEstimate:
    """Estimate the memory of a stack of this many such trials, to within a factor of about two; nothing is allocated.

    A model that can't be built without numbers (a user's class may look at what it has drawn) counts nothing: it is
    built as usual later, and refused by the allocator if it is too large.

    >>> from unseen.training.recipe import Evaluation, recipe
    >>> from unseen.models import options
    >>> from unseen.tasks import task
    >>> trial = Trial(task("retrieval/T6", length=5), options("retrieval-transformer"), recipe(), Evaluation(), 0, 0)
    >>> estimate_memory(trial).parameters == 88_601 * 4 * 5
    True
    """
    spec = trial.task.spec
    typical = typical_spec(trial.task, trial.recipe.batches)
    parameters = _count_parameters(trial.model, spec)
    fixed, per_example = _count_activations(trial.model, spec, typical)
    step = fixed + per_example * trial.recipe.batch
    return MemoryEstimate(
        parameters=float(members * parameters * FLOAT * COPIES),
        activations=float(members * step * BACKWARD),
        examples=float(_examples_bytes(trial)),
    )


def check_memory(
    trials: Iterable[Trial], device: str = "cpu", stack: int | None = None, *, seeds: int | None = None
) -> None:
    """Refuse trials that do not fit the memory of the machine, or of a device: each alone, or `stack` of them if that
    was asked for. `seeds` is how many trials of one shape there are at most (default: as many as the stack)."""
    limit = _device_memory(device)
    members = 1 if stack is None else min(stack, seeds or stack)
    for trial in _select_largest(trials):
        names = f"{format_options(trial.model.options())} on {format_options(trial.task.options())}"
        alone = estimate_memory(trial)
        largest = max(("parameters", "activations", "examples"), key=lambda name: getattr(alone, name))
        refuse_beyond(alone.total, names, _ADVICE[largest], limit)
        if members > 1:
            total = estimate_memory(trial, members).total
            refuse_beyond(total, f"a stack of {members} times {names}", "Choose a smaller stack", limit)


def stack_memory(stacks: Iterable[Sequence[Trial]]) -> float:
    """The bytes that the largest of these stacks needs."""
    sizes: dict[str, int] = {}
    first: dict[str, Trial] = {}
    for members in stacks:
        key = stack_key(members[0])
        first.setdefault(key, members[0])
        sizes[key] = max(sizes.get(key, 0), len(members))
    largest = _select_largest(first.values())
    return max((estimate_memory(trial, sizes[stack_key(trial)]).total for trial in largest), default=0.0)


def _select_largest(trials: Iterable[Trial]) -> list[Trial]:
    """A trial of each of the `COUNTED` shapes that have most parameters times positions times examples.

    To count intermediates takes some hundredths of a second, and a study may have a thousand shapes. Most of them are
    small: what decides are the largest.
    """
    first: dict[str, Trial] = {}
    for trial in trials:
        first.setdefault(stack_key(trial), trial)  # thousands of trials have few shapes
    if len(first) <= COUNTED:
        return list(first.values())

    def size(trial: Trial) -> float:
        positions = sum(stream.length for stream in trial.task.spec.streams) or 1
        return _count_parameters(trial.model, trial.task.spec) * positions * trial.recipe.batch

    return sorted(first.values(), key=size, reverse=True)[:COUNTED]


def _count_parameters(model: Config, spec: Spec) -> int:
    """Parameters and buffers, of a model on the meta device; 0 if it can't be built there."""
    key = (identity_text(model), spec)
    if key not in _PARAMETERS:
        module = _build_on_meta(model, spec)
        tensors = [] if module is None else [*module.parameters(), *module.buffers()]
        count = 0
        with suppress(ValueError):  # lazy layers have no shape yet; the preflight refuses them
            count = sum(tensor.numel() for tensor in tensors)
        _PARAMETERS[key] = count
    return _PARAMETERS[key]


def _build_on_meta(model: Config, spec: Spec) -> nn.Module | None:
    """The model without numbers; None if it is a user's and can't be built so."""
    import torch

    from unseen.models.build import build

    try:
        with torch.device("meta"):
            return build(model, spec)
    except (UsageError, RuntimeError) as error:
        if is_ours(model.name):
            if "overflow" in str(error):  # torch counts the bytes of a tensor in 64 bits
                raise UsageError(
                    f"{format_options(model.options())} is too large: one of its weights alone takes more than 9 EB "
                    "(2^63 bytes). Choose a smaller width"
                ) from error
            # A number of parameters beyond 2**63 is a RuntimeError of torch.
            reason = str(error) if isinstance(error, UsageError) else format_error(error)
            raise UsageError(f"{format_options(model.options())} can't be built: {reason}") from error
        return None
    except Exception:
        return None


def _count_activations(model: Config, spec: Spec, typical: Spec) -> tuple[float, float]:
    """The bytes that a forward pass makes: once, and for each example. (0, 0) for a model that looks at numbers, which
    the meta device does not have."""
    key = (identity_text(model), spec, typical)
    if key not in _ACTIVATIONS:
        module = _build_on_meta(model, spec)
        small = large = 0.0
        if module is not None:
            with suppress(Exception, SystemExit):  # training refuses a model that exits, in words
                small, large = (_extrapolate(module, typical, examples) for examples in _BATCHES)
        per_example = (large - small) / (_BATCHES[1] - _BATCHES[0])
        _ACTIVATIONS[key] = (max(0.0, small - _BATCHES[0] * per_example), per_example)
    return _ACTIVATIONS[key]


def _extrapolate(module: nn.Module, spec: Spec, examples: int) -> float:
    """The bytes that a forward pass makes. Those of long streams follow from shorter ones by a parabola: recurrence is
    linear in the length, attention quadratic, and a recurrence over 50 000 positions would take minutes to count."""
    longest = max((stream.length for stream in spec.streams), default=1)
    if longest <= _LENGTHS[-1]:
        return float(_intermediates(module, spec, examples))
    counts = []
    for length in _LENGTHS:
        streams = tuple(replace(stream, length=min(stream.length, length)) for stream in spec.streams)
        counts.append(_intermediates(module, replace(spec, streams=streams), examples))
    return float(np.polyval(np.polyfit(_LENGTHS, counts, 2), longest))


def _intermediates(module: nn.Module, spec: Spec, examples: int) -> int:
    """The bytes of all tensors that a forward pass makes; views of another tensor make none."""
    import torch

    from unseen.models.flops import CountingMode, run_blank

    class Counter(CountingMode):
        """Adds up the bytes of results."""

        total = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            if not any(returned.alias_info for returned in func._schema.returns):
                # What an operation returns as an alias of its input was counted when the input was made.
                for tensor in result if isinstance(result, tuple | list) else (result,):
                    if isinstance(tensor, torch.Tensor):
                        Counter.total += tensor.numel() * tensor.element_size()
            return result

    meta = torch.device("meta")
    with meta:  # for what the model makes itself on the way
        run_blank(module, spec, examples, meta, Counter())  # type: ignore[no-untyped-call]
    return Counter.total


def _examples_bytes(trial: Trial) -> int:
    """The examples that are in memory at once: those of a validation, of a split's evaluation, and a batch."""
    from unseen.training.evaluate import evaluated_splits

    evaluated = 0
    for split in evaluated_splits(trial.task, trial.evaluation):
        size = trial.task.size(split)
        evaluated = max(evaluated, trial.evaluation.examples if size is None else min(size, trial.evaluation.examples))
    count = trial.recipe.validation_examples + max(evaluated, trial.task.block) + trial.recipe.batch
    return count * trial.task.example_bytes()


def _device_memory(device: str) -> int | None:
    """The memory of an accelerator; None for the machine's own."""
    import torch

    if torch.device(device).type == "cuda" and torch.cuda.is_available():  # else it is that of a cluster's workers
        return int(torch.cuda.get_device_properties(device).total_memory)
    return None

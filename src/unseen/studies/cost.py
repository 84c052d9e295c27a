"""What a cell's steps cost, counted: parameters trained, and floating-point operations."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from unseen.config import Config
from unseen.engine.feed import tensors
from unseen.engine.lengths import typical
from unseen.errors import UsageError
from unseen.models.build import parameter_count
from unseen.spec import Field, Spec
from unseen.studies.cell import Cell, build_model
from unseen.tasks.base import Array

BACKWARD = 2
"""A backward pass costs about twice its forward pass."""
_FEW, _MORE = 2, 4
"""Batches on which a forward pass is counted; what it costs is a line through both."""


@dataclass(frozen=True)
class Cost:
    """Parameters one member trains, and the operations (a multiply-add is two) of one of its steps, whole batch."""

    parameters: int
    flops: float


@dataclass(frozen=True)
class _Forward:
    """A forward pass costs `fixed + each · examples` operations."""

    parameters: int
    fixed: float
    each: float


_COUNTED: dict[tuple[type[Config], str, Spec, type[nn.Module] | None], _Forward] = {}


def cost(cell: Cell, cls: type[nn.Module] | None = None) -> Cost:
    """Count a training step of one member: three times the forward pass of a freshly built module on a batch.

    Products of matrices are counted, elementwise work is not: a linear layer of width 1 is written elementwise and
    counts nothing. Masked and causal attention count as if every token looked at every other. `cls` is the class of a
    model that is not registered.

    >>> from unseen.engine.recipe import Evaluation, recipe
    >>> from unseen.models import options
    >>> from unseen.tasks import task
    >>> cell = Cell(task("retrieval/T6", length=5), options("retrieval-transformer"), recipe(), Evaluation(), 0, 0)
    >>> cost(cell)
    Cost(parameters=88601, flops=208560000.0)
    """
    spec = typical(cell.task, cell.recipe.batches == "lengths")
    key = (type(cell.model), cell.model.model_dump_json(), spec, cls)
    if key not in _COUNTED:
        try:
            _COUNTED[key] = _count(build_model(cell.model, cell.task.spec, 0, cls), spec)
        except UsageError:
            raise
        except Exception:
            _COUNTED[key] = _Forward(0, 0.0, 0.0)  # it can't be used: its cells will fail, and say why
    forward = _COUNTED[key]
    return Cost(forward.parameters, (1 + BACKWARD) * (forward.fixed + forward.each * cell.recipe.batch))


def _count(module: nn.Module, spec: Spec) -> _Forward:
    few, more = (_operations(module, spec, examples) for examples in (_FEW, _MORE))
    each = (more - few) / (_MORE - _FEW)
    return _Forward(parameter_count(module), few - _FEW * each, each)


def _operations(module: nn.Module, spec: Spec, examples: int) -> int:
    inputs = tensors({field.name: _blank(field, spec, examples) for field in spec.inputs}, spec, torch.float32, "cpu")
    # In train mode torch's own Transformer layers are what they are in training: many operations, not one.
    module.train()
    counter = _Counter()
    with torch.random.fork_rng(devices=[]), torch.no_grad(), _unfused(), counter:
        module(inputs)
    return counter.operations


class _Counter(TorchDispatchMode):
    """Adds up, by torch's own formulas, what is computed inside.

    As torch's `FlopCounterMode`, which first imports torch's compiler: that takes longer than to count a large study.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # to skip the compiler, torch would import it first

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        formula = _FORMULAS.get(func._overloadpacket)
        if formula is None:
            with self:
                made_of_others = func.decompose(*args, **kwargs)
            if made_of_others is not NotImplemented:
                return made_of_others
        out = func(*args, **kwargs)
        if formula is not None:
            self.operations += formula(*args, **kwargs, out_val=out)
        return out


def _added_in_place(total: Tensor, left: Tensor, right: Tensor, **options: object) -> int:
    """Products added in place, as our recurrence does it; torch has a formula for the other form only."""
    return 2 * math.prod(left.shape) * right.shape[-1]


_FORMULAS: dict[Any, Callable[..., int]] = {**flop_registry, torch.ops.aten.baddbmm_: _added_in_place}


@contextmanager
def _unfused() -> Iterator[None]:
    """While inside, `nn.LSTM` is made of products that can be counted instead of one oneDNN call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the switch complains of an Intel GPU that is not there
        with torch.backends.mkldnn.flags(enabled=False):
            yield


def _blank(field: Field, spec: Spec, examples: int) -> Array:
    """Inputs that say nothing, of the right shape: zeros, and nothing masked."""
    along = (spec.stream(field.along).length,) if field.along else ()
    width = (field.width,) if field.kind in ("real", "bits") else ()
    return np.full((examples, *along, *width), field.kind == "mask", dtype=np.float32)

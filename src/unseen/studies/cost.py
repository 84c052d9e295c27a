"""What a cell's steps cost, counted: parameters trained, and floating-point operations."""

from __future__ import annotations

from dataclasses import dataclass

from unseen.config import Config
from unseen.engine.lengths import typical
from unseen.errors import UsageError
from unseen.models.build import parameter_count
from unseen.models.flops import Forward, forward_flops
from unseen.spec import Spec
from unseen.studies.cell import Cell, build_model

BACKWARD = 2
"""A backward pass costs about twice its forward pass."""


@dataclass(frozen=True)
class Cost:
    """Parameters one member trains, and the operations (a multiply-add is two) of one of its steps, whole batch."""

    parameters: int
    flops: float


@dataclass(frozen=True)
class _Counted:
    """What is counted once for many cells."""

    parameters: int
    forward: Forward


_COUNTED: dict[tuple[type[Config], str, Spec], _Counted] = {}


def cost(cell: Cell) -> Cost:
    """Count a training step of one member: three times the forward pass of a freshly built module on a batch.

    Products of matrices are counted, elementwise work is not: a linear layer of width 1 is written elementwise and
    counts nothing. Masked and causal attention count as if every token looked at every other.

    >>> from unseen.engine.recipe import Evaluation, recipe
    >>> from unseen.models import options
    >>> from unseen.tasks import task
    >>> cell = Cell(task("retrieval/T6", length=5), options("retrieval-transformer"), recipe(), Evaluation(), 0, 0)
    >>> cost(cell)
    Cost(parameters=88601, flops=208560000.0)
    """
    spec = typical(cell.task, cell.recipe.batches == "lengths")
    key = (type(cell.model), cell.model.model_dump_json(), spec)
    if key not in _COUNTED:
        try:
            module = build_model(cell.model, cell.task.spec, 0)
            _COUNTED[key] = _Counted(parameter_count(module), forward_flops(module, spec))
        except UsageError:
            raise
        except Exception:
            _COUNTED[key] = _Counted(0, Forward(0.0, 0.0))  # it can't be used: its cells will fail, and say why
    counted = _COUNTED[key]
    forward = counted.forward.fixed + counted.forward.each * cell.recipe.batch
    return Cost(counted.parameters, (1 + BACKWARD) * forward)

"""FLOPs: what a trial's steps cost, counted, and the number of parameters it trains."""

from __future__ import annotations

from dataclasses import dataclass

from unseen.config import Config
from unseen.errors import UsageError, format_error
from unseen.models import is_ours
from unseen.spec import Spec
from unseen.studies.trial import Trial, identity_text
from unseen.training.batches import typical_spec

BACKWARD = 2
"""A backward pass costs about twice its forward pass."""


@dataclass(frozen=True)
class StepCost:
    """Parameters one member trains, and the FLOPs (a multiply-add is two) of one of its steps, whole batch.

    `error` says why nothing could be counted; it is empty for a model that can be used.
    """

    parameters: int
    flops: float
    error: str = ""


@dataclass(frozen=True)
class _Counted:
    """Counts of a model on a spec: parameters, and a forward pass of `fixed + per_example · examples` FLOPs."""

    parameters: int
    fixed: float
    per_example: float
    error: str = ""


def step_cost(trial: Trial) -> StepCost:
    """Count a training step of one member: three times the forward pass of a freshly built module on a batch.

    Products of matrices are counted, elementwise work is not: a linear layer of width 1 is written elementwise and
    counts nothing. Masked and causal attention count as if every token attended to every other. Batches by length are
    taken to be as long as they are on average.

    >>> from unseen.training.recipe import Evaluation, recipe
    >>> from unseen.models import options
    >>> from unseen.tasks import task
    >>> trial = Trial(task("retrieval/T6", length=5), options("retrieval-transformer"), recipe(), Evaluation(), 0, 0)
    >>> step_cost(trial)
    StepCost(parameters=88601, flops=208560000.0, error='')
    """
    batches = trial.recipe.batches
    key = (trial.model.as_json, trial.task.as_json, batches)
    if key not in _BY_TASK:
        # Thousands of tasks share few specs: counted once for each model and spec.
        spec = trial.task.spec
        typical = typical_spec(trial.task, batches)
        shared_key = (identity_text(trial.model), spec, typical)
        if shared_key not in _BY_SPEC:
            _BY_SPEC[shared_key] = _count(trial.model, spec, typical)
        _BY_TASK[key] = _BY_SPEC[shared_key]
    counted = _BY_TASK[key]
    flops = (1 + BACKWARD) * (counted.fixed + counted.per_example * trial.recipe.batch)
    return StepCost(counted.parameters, flops, counted.error)


_BY_TASK: dict[tuple[str, str, str], _Counted] = {}
_BY_SPEC: dict[tuple[str, Spec, Spec], _Counted] = {}


def _count(model: Config, spec: Spec, typical: Spec) -> _Counted:
    from unseen.models.build import parameter_count  # loads torch
    from unseen.models.flops import build_uninitialised, forward_flops

    try:
        module = build_uninitialised(model, spec)
        forward = forward_flops(module, typical, computed=not is_ours(model.name))
        return _Counted(parameter_count(module), forward.fixed, forward.each)
    except UsageError:
        raise
    except Exception as error:  # the model can't be used: its trials will fail, and say why
        return _Counted(0, 0.0, 0.0, format_error(error))

"""Unseen: does a neural network handle what it has never seen, and if not, why?

import unseen
task = unseen.task("retrieval/T6", length=5)
runs = unseen.train(task, "retrieval-transformer", seeds=5, steps=2000)
runs.accuracy()
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unseen.activations import activation, attention, cosines
    from unseen.api import CapturedActivations, Runs, claims, compare, evaluate, exam, results, run, train
    from unseen.errors import CheckFailed, UsageError
    from unseen.export.write import write_export as export
    from unseen.models import options as model
    from unseen.models.adapter import Adapter
    from unseen.models.build import build
    from unseen.report.page import write_page as report
    from unseen.tasks import task
    from unseen.training.inside import average_over_seeds
    from unseen.training.interventions import Component
    from unseen.training.recipe import Evaluation, Recipe, recipe

__version__ = "0.1.0"

# MKL may otherwise choose other kernels for a product alone than for the same product inside a batch (seen on AMD CPUs),
# and round them differently: then a member of a stack would not equal its run alone. MKL reads this at its first product.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

# Names are imported when first used, so that `import unseen` stays light and tasks never need torch.
_HOMES = {
    "task": "unseen.tasks:task",
    "model": "unseen.models:options",
    "Adapter": "unseen.models.adapter:Adapter",
    "build": "unseen.models.build:build",
    "recipe": "unseen.training.recipe:recipe",
    "Recipe": "unseen.training.recipe:Recipe",
    "Evaluation": "unseen.training.recipe:Evaluation",
    "Component": "unseen.training.interventions:Component",
    "average_over_seeds": "unseen.training.inside:average_over_seeds",
    "train": "unseen.api:train",
    "evaluate": "unseen.api:evaluate",
    "results": "unseen.api:results",
    "run": "unseen.api:run",
    "exam": "unseen.api:exam",
    "cosines": "unseen.activations:cosines",
    "activation": "unseen.activations:activation",
    "attention": "unseen.activations:attention",
    "compare": "unseen.api:compare",
    "claims": "unseen.claims",  # the package itself: called, it judges
    "report": "unseen.report",  # the package itself: called, it writes a report
    "export": "unseen.export",  # the same: called, it writes examples
    "Runs": "unseen.api:Runs",
    "CapturedActivations": "unseen.api:CapturedActivations",
    "UsageError": "unseen.errors:UsageError",
    "CheckFailed": "unseen.errors:CheckFailed",
}
__all__ = [
    "Adapter",
    "CapturedActivations",
    "CheckFailed",
    "Component",
    "Evaluation",
    "Recipe",
    "Runs",
    "UsageError",
    "activation",
    "attention",
    "average_over_seeds",
    "build",
    "claims",
    "compare",
    "cosines",
    "evaluate",
    "exam",
    "export",
    "model",
    "recipe",
    "report",
    "results",
    "run",
    "task",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'unseen' has no attribute '{name}'")
    module, _, attribute = _HOMES[name].partition(":")
    loaded = import_module(module)
    return getattr(loaded, attribute) if attribute else loaded


def __dir__() -> list[str]:
    return sorted(__all__)

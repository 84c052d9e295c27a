"""What the ctl studies have in common: models with their published recipes, small worlds and narrow models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unseen.studies.catalog.retrieval import Axis

BILSTM, TRANSFORMER, NDR = MODELS = ("ctl-bilstm", "ctl-transformer", "ctl-ndr")

Changes = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""By model, options of `model` and `recipe` that are not the published ones."""

TINY: dict[str, Any] = {
    "symbols": 4,
    "functions": 8,
    "max_length": 3,
    "train_size": 150,
    "iid_size": 40,
    "ood_size": 100,
}
"""A world for trying whether everything runs."""
TINY_RECIPE = {"steps": 60, "batch": 32, "warmup": 5, "learning_rate": 1e-3, "validate_every": 20}
TINY_MODELS: Changes = {
    BILSTM: {"model": {"embedding": 16, "width": 16}},
    TRANSFORMER: {"model": {"width": 16, "feedforward": 32, "layers": 2}},
    NDR: {"model": {"width": 16, "feedforward": 32, "layers": 2}},
}

NOTES = (
    "preset clean: sampling uniform over examples, exact counts, every function alone in training in place of every "
    "pair, IID examples kept out of all of training, training data of their own for each seed (published: one set)",
    "NDR's keys and values start as was meant (released code: in the bounds of each other's heads)",
    "float32 throughout (published: mixed precision in training)",
    "all runs are reported; the published Transformer means are of the 25 runs that converged out of 50",
)


def models(task: str, changes: Changes | None = None, names: Sequence[str] = MODELS) -> Axis:
    """The axis of models, each with the recipe it was published with for a task, but for `changes`."""
    from unseen.engine.recipe import published

    axis: dict[Any, Any] = {}
    for name in names:
        theirs, other = published(task, name), (changes or {}).get(name, {})
        assert theirs is not None
        axis[name] = {
            "model": {"name": name, **other.get("model", {})},
            "recipe": {"name": theirs.name, **other.get("recipe", {})},
        }
    return axis

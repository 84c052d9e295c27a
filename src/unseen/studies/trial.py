"""A trial: one training run, fully described, with an id that says what it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from unseen.config import Config, canonical
from unseen.errors import UsageError
from unseen.models import MODELS, options
from unseen.tasks.base import Task
from unseen.training.recipe import Evaluation, Recipe

if TYPE_CHECKING:  # describing a trial, or reading one from a store, does not load torch
    from torch import nn

__all__ = [
    "COMPONENTS",
    "Entry",
    "Trial",
    "describe_difference",
    "evaluation_id",
    "format_options",
    "identity_text",
    "model_config",
]

COMPONENTS = ("task", "model", "recipe")
"""The configs that, with the two seeds, make a trial what it is."""
_IDENTITIES: dict[tuple[type[Config], str], str] = {}


@dataclass(frozen=True)
class Trial:
    """One training run: task, model, recipe, seed and data seed.

    `evaluation` says what is measured once it is trained. It is no part of the trial's identity: two trials that differ
    in nothing else are equal, have one id, and are trained once.
    """

    task: Task
    model: Config
    recipe: Recipe
    evaluation: Evaluation = field(compare=False)
    seed: int
    data_seed: int

    def __post_init__(self) -> None:
        # Never a string: `validation` and `test` are the data seeds on which nothing is trained.
        for name, seed in (("seed", self.seed), ("data seed", self.data_seed)):
            if not isinstance(seed, int) or seed < 0:
                raise UsageError(f"{name} {seed!r}: seeds are 0, 1, 2, …")

    @property
    def work(self) -> dict[str, Any]:
        """What is trained and measured, without the seeds."""
        return {name: json.loads(identity_text(getattr(self, name))) for name in (*COMPONENTS, "evaluation")}

    @property
    def identity(self) -> str:
        """Everything that makes the trial what it is, and nothing else, as canonical JSON; some kilobytes."""
        texts = {name: identity_text(getattr(self, name)) for name in COMPONENTS}
        texts |= {"seed": str(self.seed), "data_seed": str(self.data_seed)}
        return "{" + ",".join(f'"{name}":{texts[name]}' for name in sorted(texts)) + "}"

    @cached_property
    def id(self) -> str:
        """The first 16 hex digits of the SHA-256 of the identity."""
        return hashlib.sha256(self.identity.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Entry:
    """A trial in a study: its level on every axis. The seed is no axis; it is in the trial."""

    levels: Mapping[str, str | int | float | bool]
    trial: Trial


def evaluation_id(evaluation: Evaluation) -> str:
    """The id of an evaluation: the first 16 hex digits of the SHA-256 of its identity."""
    return hashlib.sha256(identity_text(evaluation).encode()).hexdigest()[:16]


def identity_text(config: Config) -> str:
    """The canonical identity of a config. Thousands of trials share few configs, so it is made once for each."""
    key = (type(config), config.as_json)
    if key not in _IDENTITIES:
        _IDENTITIES[key] = canonical(config.identity())
    return _IDENTITIES[key]


def format_options(options: Mapping[str, Any]) -> str:
    """A task, model or recipe for people: its name, and the options that differ from their defaults.

    >>> format_options({"name": "retrieval/T6", "version": 1, "length": 5})
    'retrieval/T6 length=5'
    """
    hidden = ("name", "version", "mapping", "source")
    changed = [f"{name}={value}" for name, value in options.items() if name not in hidden]
    return " ".join([str(options.get("name", "")), *changed])


def describe_difference(old_work: Mapping[str, Any], new_work: Mapping[str, Any]) -> str:
    """The first difference between two descriptions of work, in words."""
    for component in sorted({*old_work, *new_work}):
        old = old_work.get(component)
        new = new_work.get(component)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            default = "the default"
            key = next(k for k in sorted({*old, *new}) if old.get(k, default) != new.get(k, default))
            return f"{component} {key} is {old.get(key, default)} there and {new.get(key, default)} here"
        return f"{component} is {old} there and {new} here"
    return "nothing differs"


def model_config(model: str | Config | type[nn.Module]) -> Config:
    """The config of a model: of a registered name, of options, of a user's class or `module:Class`."""
    if isinstance(model, Config):
        if model.name not in MODELS:
            from unseen.models.foreign import ForeignModel

            if not isinstance(model, ForeignModel):
                raise UsageError(
                    f"'{model.name}' is no registered model; give unseen.model(Class, option=…) instead of "
                    "the class's Options"
                )
        return model
    if not isinstance(model, str | type):
        raise UsageError(
            f"model is a {type(model).__name__}; give a registered name, options from unseen.model(…), an "
            "nn.Module class (not an instance: every seed builds its own), or module:Class"
        )
    return options(model)

"""A trial: one training run, fully described, with an id that is a hash of the description."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from unseen.config import Config, canonical
from unseen.errors import UsageError, format_value
from unseen.models import MODELS, options
from unseen.tasks.base import Task
from unseen.training.recipe import Evaluation, Recipe

if TYPE_CHECKING:  # describing a trial, or reading one from a store, does not load torch
    from torch import nn

COMPONENTS = ("task", "model", "recipe")
"""The configs that, with the two seeds, are the identity of a trial."""
_IDENTITIES: dict[tuple[type[Config], str], str] = {}


@dataclass(frozen=True)
class Trial:
    """One training run: task, model, recipe, seed and data seed.

    `evaluation` says what is measured after training. It is not part of the trial's identity: two trials that differ in
    nothing else are equal, have one id, and are trained once.
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
            if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**63:
                raise UsageError(f"{name} {format_value(seed)}: seeds are 0, 1, 2, … below 2**63")

    @property
    def work(self) -> dict[str, Any]:
        """The components of the trial and its evaluation, without the seeds."""
        return {name: json.loads(identity_text(getattr(self, name))) for name in (*COMPONENTS, "evaluation")}

    @property
    def identity(self) -> str:
        """The identity as canonical JSON, some kilobytes: task, model, recipe, seed and data seed."""
        texts = {name: identity_text(getattr(self, name)) for name in COMPONENTS}
        texts |= {"seed": str(self.seed), "data_seed": str(self.data_seed)}
        return "{" + ",".join(f'"{name}":{texts[name]}' for name in sorted(texts)) + "}"

    @cached_property
    def id(self) -> str:
        """The first 16 hex digits of the SHA-256 of the identity."""
        return hashlib.sha256(self.identity.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Entry:
    """A trial in a study: its level on every axis. The seed is not an axis; it is part of the trial."""

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
    return " ".join(filter(None, [str(options.get("name", "")), format_changes(options)]))


def format_changes(options: Mapping[str, Any]) -> str:
    """The options of a task, model or recipe that differ from their defaults, without its name.

    >>> format_changes({"name": "retrieval/T6", "version": 1, "length": 5})
    'length=5'
    """
    hidden = ("name", "version", "mapping", "source")
    return " ".join(f"{name}={value}" for name, value in options.items() if name not in hidden)


def describe_training(seeds: Sequence[int], deviations: Sequence[str]) -> dict[str, Any]:
    """The facts about a single `train`, whose only scale is ''; its question is made from its task and model."""
    scale = {"trials": len(seeds), "seeds": list(seeds), "minutes": None, "deviations": list(deviations)}
    return {"question": "", "axes": [], "claims": [], "notes": [], "selection": "best", "scales": {"": scale}}


def describe_difference(old_work: Mapping[str, Any], new_work: Mapping[str, Any]) -> str:
    """The most telling difference between two descriptions of work, in words: the study, then task and model.

    >>> describe_difference({"study": "mine@1"}, {"task": {"name": "ctl/A"}, "data_seed": "own"})
    'study mine@1 there and a single training here'
    >>> old, new = ({"evaluation": {"examples": i}, "task": {"name": f"ctl/{name}"}} for i, name in enumerate("AS"))
    >>> describe_difference(old, new)
    'task name is ctl/A there and ctl/S here'
    """
    if ("study" in old_work) != ("study" in new_work):
        texts = [f"study {work['study']}" if "study" in work else "a single training" for work in (old_work, new_work)]
        return f"{texts[0]} there and {texts[1]} here"
    components = {*old_work, *new_work}
    for component in [*(name for name in ("study", *COMPONENTS) if name in components), *sorted(components)]:
        old = old_work.get(component)
        new = new_work.get(component)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            default = "the default"
            keys = ["name", *sorted({*old, *new})]
            key = next(key for key in keys if old.get(key, default) != new.get(key, default))
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
                    f"'{model.name}' is not a registered model; give unseen.model(Class, option=…) instead of "
                    "the class's Options"
                )
        return model
    if not isinstance(model, str | type):
        raise UsageError(
            f"model is a {type(model).__name__}; give a registered name, options from unseen.model(…), an "
            "nn.Module class (not an instance: every seed builds its own), or module:Class"
        )
    return options(model)

"""A cell: one training run, fully described, with an id that says what it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from unseen.config import Config, canonical
from unseen.engine.recipe import Evaluation, Recipe
from unseen.errors import UsageError
from unseen.models import MODELS, options
from unseen.models.foreign import ForeignModel
from unseen.spec import Spec
from unseen.tasks.base import Task

if TYPE_CHECKING:  # to describe a cell, or to read one from a store, is not to load torch
    from torch import nn

__all__ = ["PARTS", "Cell", "ForeignModel", "build_model", "difference", "identity_text", "model_config", "words"]

PARTS = ("task", "model", "recipe", "evaluation")
_TEXTS: dict[tuple[type[Config], str], str] = {}


@dataclass(frozen=True)
class Cell:
    """(task, model, recipe, evaluation, seed, data seed): the unit of a study."""

    task: Task
    model: Config
    recipe: Recipe
    evaluation: Evaluation
    seed: int
    data_seed: int

    def __post_init__(self) -> None:
        # Never a string: nobody trains on the validation or the test data.
        for what, seed in (("seed", self.seed), ("data seed", self.data_seed)):
            if not isinstance(seed, int) or seed < 0:
                raise UsageError(f"{what} {seed!r}: seeds are 0, 1, 2, …")

    @property
    def work(self) -> dict[str, Any]:
        """What the cell does, whatever its seeds."""
        return {part: json.loads(identity_text(getattr(self, part))) for part in PARTS}

    @property
    def identity(self) -> str:
        """Everything that makes the cell what it is, and nothing else, as canonical JSON; some kilobytes."""
        whole = {part: identity_text(getattr(self, part)) for part in PARTS}
        whole |= {"seed": str(self.seed), "data_seed": str(self.data_seed)}
        return "{" + ",".join(f'"{part}":{whole[part]}' for part in sorted(whole)) + "}"

    @cached_property
    def id(self) -> str:
        """The first 16 hex digits of the SHA-256 of the identity."""
        return hashlib.sha256(self.identity.encode()).hexdigest()[:16]


def identity_text(part: Config) -> str:
    """The canonical identity of a part. Thousands of cells share few parts, so it is made once for each."""
    key = (type(part), part.as_json)
    if key not in _TEXTS:
        _TEXTS[key] = canonical(part.identity())
    return _TEXTS[key]


def words(options: Mapping[str, Any]) -> str:
    """A part of a cell for people: its name, and the options that differ from their defaults.

    >>> words({"name": "retrieval/T6", "version": 1, "length": 5})
    'retrieval/T6 length=5'
    """
    rest = [f"{k}={v}" for k, v in options.items() if k not in ("name", "version", "mapping", "source")]
    return " ".join([str(options.get("name", "")), *rest])


def difference(held: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """The first place where two descriptions of work differ, in words."""
    for part in sorted({*held, *asked}):
        old, new = held.get(part), asked.get(part)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            absent = "the default"
            key = next(k for k in sorted({*old, *new}) if old.get(k, absent) != new.get(k, absent))
            return f"{part} {key} is {old.get(key, absent)} there and {new.get(key, absent)} here"
        return f"{part} is {old} there and {new} here"
    return "nothing differs"


def model_config(model: str | Config | type[nn.Module]) -> Config:
    """The config of a model: of a registered name, of options, of a user's class or `module:Class`."""
    if isinstance(model, Config):
        if not isinstance(model, ForeignModel) and model.name not in MODELS:
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


def build_model(model: Config, spec: Spec, seed: int) -> nn.Module:
    """A freshly initialised module of a registered model, or of a user's class, which is imported if need be."""
    from unseen.models.build import build

    return build(model, spec, seed)

"""A cell: one training run, fully described, with an id that says what it is."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from unseen.config import Config, canonical, digest
from unseen.engine.recipe import Evaluation, Recipe
from unseen.errors import UsageError
from unseen.models import options
from unseen.spec import Spec
from unseen.tasks.base import Task

if TYPE_CHECKING:  # to describe a cell, or to read one from a store, is not to load torch
    from torch import nn

PARTS = ("task", "model", "recipe", "evaluation")
_TEXTS: dict[tuple[type[Config], str], str] = {}


class ForeignModel(Config):
    """A user's `nn.Module` class, known by its place and what its code does."""

    name: str
    source: str


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
        return {part: json.loads(_text_of(getattr(self, part))) for part in PARTS}

    @cached_property
    def identity(self) -> str:
        """Everything that makes the cell what it is, and nothing else, as canonical JSON."""
        whole = {part: _text_of(getattr(self, part)) for part in PARTS}
        whole |= {"seed": str(self.seed), "data_seed": str(self.data_seed)}
        return "{" + ",".join(f'"{part}":{whole[part]}' for part in sorted(whole)) + "}"

    @cached_property
    def id(self) -> str:
        """The first 16 hex digits of the SHA-256 of the identity."""
        return hashlib.sha256(self.identity.encode()).hexdigest()[:16]


def _text_of(part: Config) -> str:
    """The canonical identity of a part. Thousands of cells share few parts, so it is made once for each."""
    key = (type(part), part.model_dump_json())
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
    """The config of a registered model (name or options), or of a user's class."""
    if isinstance(model, Config):
        return model
    if isinstance(model, str):
        return options(model)
    from torch import nn

    if not (isinstance(model, type) and issubclass(model, nn.Module)):
        raise UsageError(f"model = {model!r}: give a registered name, options from unseen.model(…), or an nn.Module "
                         "class (not an instance: every seed builds its own)")
    return ForeignModel(name=f"{model.__module__}:{model.__qualname__}", source=digest(_text(model)))


def _text(cls: type) -> list[str]:
    """What a class does: its text, or its bytecode where it has none (a notebook), and what its methods enclose."""
    methods = [f for f in vars(cls).values() if inspect.isfunction(f)]
    try:
        text = [inspect.getsource(cls)]
    except (OSError, TypeError):
        text = [_constant(f.__code__) for f in methods]
    return text + [_constant(cell.cell_contents) for f in methods for cell in f.__closure__ or ()]


def _constant(value: object) -> str:
    """A value as text that is the same in every process."""
    if isinstance(value, CodeType):
        return f"{value.co_code.hex()} {value.co_names} {[_constant(c) for c in value.co_consts]}"
    if isinstance(value, frozenset):
        return str(sorted(map(repr, value)))
    return value.__qualname__ if isinstance(value, type | FunctionType) else repr(value)


def build_model(model: Config, spec: Spec, seed: int, cls: type[nn.Module] | None = None) -> nn.Module:
    """A freshly initialised module: a registered one, or one of a user's class, made as `cls(spec)` if it needs an
    argument and as `cls()` if not."""
    from unseen.models.build import build, initialised

    if not isinstance(model, ForeignModel):
        return build(model, spec, seed)
    if cls is None:
        raise UsageError(f"'{model.name}' is not a registered model; pass its class")
    needed = [p.name for p in inspect.signature(cls.__init__).parameters.values()
              if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][1:]
    if len(needed) > 1:
        raise UsageError(f"{model.name} needs {', '.join(needed)} to be built; it may need the task's spec, or nothing")
    return initialised(partial(cls, spec) if needed else cls, seed)

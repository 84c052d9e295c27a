"""What the package says about a model: where it can be built, its size, its options, its activations."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import torch
from option_tables import shown, words
from torch import nn

from unseen.cli.option_text import MEANINGS
from unseen.config import Config
from unseen.errors import UsageError
from unseen.models import BACKBONES, MODELS, options
from unseen.models.build import build, parameter_count
from unseen.models.context import Context, CountingContext
from unseen.models.flops import ForwardFlops, forward_flops
from unseen.spec import Spec
from unseen.tasks import TASKS, task
from unseen.training.batches import input_tensors

EXAMPLES = 3
"""The number of examples on which a model is tried, to see what it captures."""
WORDS = {**MEANINGS, "gating": "how modules are chosen: [the rules family](../rules.md)"}
"""Options that need no docstring, in words."""


@dataclass(frozen=True)
class Size:
    """A model on tasks of one spec."""

    tasks: tuple[str, ...]
    spec: Spec
    parameters: int
    forward: ForwardFlops


@dataclass(frozen=True)
class Option:
    """An option of a model: its values and default as they are written, and what it does."""

    name: str
    values: str
    default: str
    words: str


@cache
def specs() -> Mapping[Spec, tuple[str, ...]]:
    """The tasks at their default options, by spec: a model can't tell tasks of one spec apart."""
    found: dict[Spec, list[str]] = {}
    for entry in TASKS:
        found.setdefault(task(entry.name).spec, []).append(entry.name)
    return {spec: tuple(names) for spec, names in found.items()}


def family(model: str) -> str:
    """The family a model was published with; '' for one that reads any task.

    >>> family("ctl-ndr"), family("ndr")
    ('ctl', '')
    """
    first = model.partition("-")[0]
    return first if first in {entry.name.partition("/")[0] for entry in TASKS} else ""


@cache
def module(model: str, spec: Spec) -> nn.Module | None:
    """A model with its default options, or None if it refuses the task."""
    try:
        return build(options(model), spec)
    except UsageError:
        return None


@cache
def sizes(model: str) -> tuple[Size, ...]:
    """A model on every kind of task that it can be built for."""
    return tuple(
        Size(names, spec, parameter_count(made), forward_flops(made, spec))
        for spec, names in specs().items()
        if (made := module(model, spec)) is not None
    )


def reference(model: str) -> str:
    """The task for which numbers are shown: of the model's own family, if it has one."""
    if model in BACKBONES:
        return "retrieval/T6"
    return next(names[0] for spec, names in specs().items() if module(model, spec) is not None)


def tensors_of(made: nn.Module) -> list[tuple[str, tuple[int, ...], int]]:
    """Every trained tensor: its name, its shape and how many there are; those that layers repeat are one."""
    found: dict[tuple[str, tuple[int, ...]], int] = {}
    for name, parameter in made.named_parameters():
        key = re.sub(r"\.\d+(?=\.|$)", ".*", name), tuple(parameter.shape)
        found[key] = found.get(key, 0) + 1
    return [(name, shape, count) for (name, shape), count in found.items()]


def parts(made: nn.Module) -> dict[str, int]:
    """Parameters by submodule."""
    found: dict[str, int] = {}
    for name, parameter in made.named_parameters():
        part = name.partition(".")[0]
        found[part] = found.get(part, 0) + parameter.numel()
    return found


def captured(model: str, where: str) -> dict[str, tuple[int, ...]]:
    """The activations that a model captures on a task, with their shapes for one example."""
    chosen = task(where)
    made = module(model, chosen.spec)
    if made is None or "ctx" not in inspect.signature(made.forward).parameters:
        return {}
    examples = chosen.sample("train", EXAMPLES)
    inputs = input_tensors(examples.inputs, chosen.spec, torch.float32, "cpu")
    with torch.no_grad():
        counting = CountingContext(training=False)
        made(inputs, ctx=counting)
        ctx = Context(wanted=counting.names)
        made(inputs, ctx=ctx)
    return {name: tuple(ctx.captured[name].shape[1:]) for name in dict.fromkeys(counting.names)}


def model_options(model: str) -> list[Option]:
    """Every option of a model but its name."""
    cls = type(options(model))
    return [
        Option(
            name,
            words(field.annotation, field.metadata),
            shown(field.default),
            field.description or _said(name, cls) or WORDS.get(name, ""),
        )
        for name, field in cls.model_fields.items()
        if name != "name"
    ]


def docstrings(cls: type) -> list[str]:
    """The docstrings of a class and of its bases, the nearest first."""
    ours = [one for one in cls.__mro__ if one.__module__.startswith("unseen.") and one is not Config]
    return [inspect.cleandoc(one.__doc__) for one in ours if one.__doc__]


def remarks(model: str) -> list[str]:
    """What is said of the options of a model, but for sentences on a single one, which stand with it."""
    cls = type(options(model))
    found = [
        " ".join(sentence for sentence in _sentences(text) if not re.match(r"See `|`\w+`", sentence))
        for text in docstrings(cls)
    ]
    return [text for text in found if text]


def _said(option: str, cls: type) -> str:
    """The first sentence of the docstrings that begins with an option; a name with a colon is not said twice."""
    found = [
        sentence for text in docstrings(cls) for sentence in _sentences(text) if sentence.startswith(f"`{option}`")
    ]
    return " ".join(found[:1]).removeprefix(f"`{option}`: ").rstrip(".")


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=\.)\s+(?=[A-Z`])", re.sub(r"\s+", " ", text))


def registered() -> list[tuple[str, str]]:
    """Every model with its line of the registry."""
    return [(entry.name, entry.summary) for entry in MODELS]


def thousands(number: int) -> str:
    """Digits in threes, with narrow spaces that do not break.

    >>> thousands(1234567) == "1\\u202f234\\u202f567"
    True
    """
    return f"{number:,}".replace(",", "\u202f")

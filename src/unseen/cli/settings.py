"""`--set key=value`: parse options, and find out whether they belong to the task, the model or the recipe."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from unseen.errors import UsageError, nearest

if TYPE_CHECKING:
    from unseen.config import Config

HELP = (
    "Set an option as key=value, e.g. --set length=5. Where several components have the option, prefix it "
    "(task.…, model.…, recipe.…). May be repeated."
)


def parse_settings(
    assignments: Sequence[str], components: Mapping[str, type[Config]], flag: str = "--set"
) -> dict[str, dict[str, Any]]:
    """The options of each component (task, model, recipe), from texts like `length=5` or `recipe.clip=null`.

    A key without a prefix belongs to the only component that has such an option. `flag` is the command-line option that
    error messages mention.

    >>> from unseen.training.recipe import Recipe
    >>> parse_settings(["steps=20", "recipe.clip=null"], {"recipe": Recipe})
    {'recipe': {'steps': 20, 'clip': None}}
    >>> from unseen.training.recipe import Evaluation
    >>> parse_settings(["splits=train,iid"], {"evaluation": Evaluation})
    {'evaluation': {'splits': ['train', 'iid']}}
    """
    settings: dict[str, dict[str, Any]] = {component: {} for component in components}
    option_names = {
        component: [name for name in config.model_fields if name != "name"] for component, config in components.items()
    }
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals:
            raise UsageError(f"{flag} {assignment}: expected key=value, e.g. {flag} length=5")
        prefix, dot, suffix = key.partition(".")
        prefixed = bool(dot) and prefix in components
        option = suffix if prefixed else key
        candidates = [prefix] if prefixed else list(components)
        owners = [component for component in candidates if option in option_names[component]]
        if not owners:
            names = {name for component in candidates for name in option_names[component]}
            raise UsageError(f"{flag} {assignment}: unknown option '{key}'. {nearest(option, names)}")
        if len(owners) > 1:
            choices = " or ".join(f"{owner}.{key}" for owner in owners)
            raise UsageError(f"{flag} {assignment}: several components have the option '{key}'; write {choices}")
        owner = owners[0]
        if option in settings[owner]:
            raise UsageError(f"{flag} {assignment}: '{option}' is given twice")
        settings[owner][option] = _parse_option(text, components[owner].model_fields[option].annotation)
    return settings


def add_steps(settings: Mapping[str, dict[str, Any]], steps: int | None) -> None:
    """Put `--steps` among the recipe's options, and refuse it beside `--set steps=…`."""
    if steps is None:
        return
    if "steps" in settings["recipe"]:
        raise UsageError("--steps and --set steps=… mean the same; give one of them")
    settings["recipe"]["steps"] = steps


def _parse_option(text: str, annotation: Any) -> Any:
    """The value of an option; where its type is a tuple, 1,3 becomes [1, 3] and 5 becomes [5].

    A text stays a text if the option also accepts strings (`prior=zipf(1)`), and if the tuple holds tuples: then it
    names a file.
    """
    value = _parse_value(text)
    types = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    tuples = [form for form in types if get_origin(form) is tuple and get_origin(get_args(form)[0]) is not tuple]
    if str in types or not tuples or value is None or isinstance(value, list | dict):
        return value
    return [_parse_value(item.strip()) for item in text.split(",") if item.strip()]


def _parse_value(text: str) -> Any:
    """A JSON value, or else the text itself (`preset=released`, `length=5`, `mapping=null`)."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return {"True": True, "False": False, "None": None}.get(text, text)

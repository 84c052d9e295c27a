"""`--set key=value`: which option of the task, the model or the recipe is meant."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from unseen.errors import UsageError, nearest

if TYPE_CHECKING:
    from unseen.config import Config

HELP = "An option as key=value, e.g. --set length=5; prefix it where two parts know it (task.…, model.…, recipe.…)."


def settings(given: Sequence[str], parts: Mapping[str, type[Config]], flag: str = "--set") -> dict[str, dict[str, Any]]:
    """The options of each part: a bare key goes to the one part that knows it, `part.key` where it says. `flag` is the
    command's option by which they were given.

    >>> from unseen.engine.recipe import Recipe
    >>> settings(["steps=20", "recipe.clip=null"], {"recipe": Recipe})
    {'recipe': {'steps': 20, 'clip': None}}
    >>> from unseen.engine.recipe import Evaluation
    >>> settings(["conditions=train,iid"], {"evaluation": Evaluation})
    {'evaluation': {'conditions': ['train', 'iid']}}
    """
    found: dict[str, dict[str, Any]] = {part: {} for part in parts}
    known = {part: [k for k in config.model_fields if k != "name"] for part, config in parts.items()}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"{flag} {text}: expected key=value, e.g. {flag} length=5")
        part, dot, option = key.partition(".")
        prefixed = dot and part in parts
        owners = [p for p in parts if (p == part and option in known[p] if prefixed else key in known[p])]
        option = option if prefixed else key
        if not owners:
            names = known[part] if prefixed else {name for options in known.values() for name in options}
            raise UsageError(f"{flag} {text}: unknown option '{key}'. {nearest(option, names)}")
        if len(owners) > 1:
            choices = " or ".join(f"{owner}.{key}" for owner in owners)
            raise UsageError(f"{flag} {text}: '{key}' is an option of several parts; say {choices}")
        if option in found[owners[0]]:
            raise UsageError(f"{flag} {text}: '{option}' is given twice")
        found[owners[0]][option] = _option(value, parts[owners[0]].model_fields[option].annotation)
    return found


def _option(text: str, kind: Any) -> Any:
    """A value of an option; where several are asked for, 1,3 is [1, 3] and 5 is [5].

    Not where a word will do (`prior=zipf(1)`), nor where each of the several is itself a list: then it names a file.
    """
    value = _value(text)
    forms = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    several = str not in forms and any(
        get_origin(one) is tuple and get_origin(get_args(one)[0]) is not tuple for one in forms
    )
    if not several or value is None or isinstance(value, list | dict):
        return value
    return [_value(part.strip()) for part in text.split(",") if part.strip()]


def _value(text: str) -> Any:
    """A JSON value, or else the text itself (`preset=released`, `length=5`, `mapping=null`)."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return {"True": True, "False": False, "None": None}.get(text, text)

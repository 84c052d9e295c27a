"""The options of a config, and what its presets say: tables made from the classes themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from writing import table

from unseen.config import Config

BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
LONGEST = 60
FIELD = re.compile(r"^- `(\w+)`: (.*?)[;.]?(?=\n- |\n\n|\Z)", re.MULTILINE | re.DOTALL)


def option_table(config: type[Config]) -> str:
    """Every option but the name: what it takes, its default, what it is for."""
    rows = [
        (
            f"`{name}`",
            words(option.annotation, option.metadata),
            "required" if option.is_required() else f"`{shown(option.default)}`",
            option.description or "",
        )
        for name, option in config.model_fields.items()
        if name != "name"
    ]
    return table(("option", "takes", "default", "what it is for"), rows)


def preset_table(presets: Mapping[str, Any]) -> str:
    """Presets that are dataclasses, field by field. The class explains its fields as a list: - `field`: words."""
    kind = type(next(iter(presets.values())))
    told = dict(FIELD.findall(inspect.cleandoc(kind.__doc__ or "")))
    rows = [
        (
            f"`{field.name}`",
            " ".join(told.get(field.name, "").split()),
            *(shown(getattr(preset, field.name)) for preset in presets.values()),
        )
        for field in fields(kind)
    ]
    return table(("", "what", *(f"`{name}`" for name in presets)), rows)


def words(annotation: Any, metadata: Iterable[Any] = ()) -> str:
    """A type for people.

    >>> words(Literal["a", "b"] | None), words(tuple[int, ...]), words(int)
    ('`a`, `b` or None', 'int, …', 'int')
    """
    bounds = [
        f" {sign} {getattr(one, key)}"
        for one in flat(metadata)
        for key, sign in BOUNDS.items()
        if getattr(one, key, None) is not None
    ]
    return f"{_type(annotation)}{','.join(bounds)}"


def flat(metadata: Iterable[Any]) -> Iterable[Any]:
    """Bounds may stand inside a field."""
    for one in metadata:
        yield from flat(one.metadata) if hasattr(one, "metadata") else (one,)


def _type(annotation: Any) -> str:
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return words(inside[0], inside[1:])
    if origin is Literal:
        return _either([f"`{value}`" for value in inside])
    if origin in (Union, UnionType):
        return _either([part for kind in inside for part in _parts(kind)])
    if origin is tuple:
        return f"{_type(inside[0])}, …" if Ellipsis in inside else f"({', '.join(_type(kind) for kind in inside)})"
    return "None" if annotation is NoneType else getattr(annotation, "__name__", str(annotation))


def _parts(kind: Any) -> list[str]:
    return [f"`{value}`" for value in get_args(kind)] if get_origin(kind) is Literal else [_type(kind)]


def _either(parts: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def shown(value: Any) -> str:
    """A value in a table; long ones are cut."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, frozenset):
        return ", ".join(sorted(value)) or "none"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 2] + " …"

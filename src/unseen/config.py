"""Strict, frozen configurations and the ids made from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from unseen.errors import UsageError, format_value, nearest

LONGEST_TEXT = 1_000
"""The most characters of a text option."""


class Config(BaseModel):
    """A frozen set of options; unknown keys and invalid values raise errors with advice.

    `version` increases when a default or a number changes; a new option must default to the old behaviour.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)

    name: str
    version: ClassVar[int] = 1

    def __eq__(self, other: object) -> bool:
        """Whether all options are equal. Cached properties, which may hold arrays, do not count."""
        if type(self) is not type(other):
            return False
        return all(getattr(self, name) == getattr(other, name) for name in type(self).model_fields)

    def __getstate__(self) -> dict[Any, Any]:
        """The options alone, for another process or a copy: cached properties may be large, and would be wrong in a
        copy with other options."""
        state = super().__getstate__()
        names = type(self).model_fields
        return {**state, "__dict__": {name: value for name, value in state["__dict__"].items() if name in names}}

    def __copy__(self) -> Self:
        copied = super().__copy__()
        copied.__setstate__(self.__getstate__())
        return copied

    @property
    def as_json(self) -> str:
        """All options as JSON; cached, because thousands of trials share few configurations."""
        return self._as_json

    @cached_property
    def _as_json(self) -> str:  # private, so that code that iterates over the public properties does not find it
        return self.model_dump_json()

    @classmethod
    def parse(cls, options: Mapping[str, Any]) -> Self:
        """Validate options that come from users; every problem is a `UsageError`."""
        # Before pydantic, which accepts true as the number 1, and texts that could be neither stored nor hashed.
        for name, value in options.items():
            fault = find_fault(value)
            field = cls.model_fields.get(name)
            if fault is None and field is not None and _holds_bool(value) and not _allows_bool(field.annotation):
                fault = "expected a number or a word, not true or false"
            if fault is not None:
                raise UsageError(f"{format_title(cls, options)}: {name} = {format_value(value)}: {fault}")
        try:
            return cls.model_validate(dict(options))
        except ValidationError as error:
            raise UsageError(_explain(cls, error, options)) from None
        except (OverflowError, RecursionError) as error:
            raise UsageError(f"{format_title(cls, options)}: an option is too large or nested too deeply") from error

    def options(self) -> dict[str, Any]:
        """The options that differ from their defaults, as plain JSON values; the name always stays.

        >>> class Recipe(Config):
        ...     name: str = "recipe"
        ...     steps: int = 10
        >>> Recipe(steps=20).options()
        {'name': 'recipe', 'steps': 20}
        """
        changed = {}
        for name, value in self.model_dump(mode="json").items():
            # The options of a user's own model are extra values without a field: they have no default here.
            field = type(self).model_fields.get(name)
            is_default = False
            if field is not None and not field.is_required():
                # Compared as Python values, because JSON does not distinguish tuples from lists.
                is_default = getattr(self, name) == field.get_default(call_default_factory=True)
            if name == "name" or not is_default:
                changed[name] = value
        return changed

    def identity(self) -> dict[str, Any]:
        """The contribution of this configuration to an id: name, version, and the options that differ from the defaults."""
        return {"version": self.version, **self.options()}


def canonical(value: Any) -> str:
    """JSON with sorted keys, no spaces and shortest floats, so that equal values have equal text.

    >>> canonical({"b": 1e-3, "a": [1, None]})
    '{"a":[1,null],"b":0.001}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """The id of a JSON value: the first 16 hex digits of the SHA-256 of its canonical text."""
    # 64 bits: among a million ids the chance that two are equal is below one in ten million.
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:16]


def find_fault(value: Any, longest: int = LONGEST_TEXT, depth: int = 0) -> str | None:
    """The fault of a value that no option accepts: a text that is not Unicode or too long, or a number beyond 64 bits."""
    if isinstance(value, str):
        if len(value) > longest:
            return f"a text of {len(value):,} characters is too long"
        try:
            value.encode()
        except UnicodeEncodeError:
            return "it holds half of a character (a lone surrogate)"
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            return "a whole number must fit 64 bits"
    elif isinstance(value, Mapping | list | tuple):
        if depth > _DEEPEST:
            return f"it is nested more than {_DEEPEST} deep"
        items = [*value, *value.values()] if isinstance(value, Mapping) else value
        for item in items:
            fault = find_fault(item, longest, depth + 1)
            if fault is not None:
                return fault
    return None


_DEEPEST = 50


def _holds_bool(value: Any) -> bool:
    """Whether a value is true or false, or a list of such."""
    return isinstance(value, bool) or (isinstance(value, list | tuple) and any(isinstance(v, bool) for v in value))


def _allows_bool(annotation: Any) -> bool:
    """Whether a type has room for true and false; types other than numbers and words are left to pydantic."""
    if annotation in (int, float, str, type(None)):
        return False
    arguments = get_args(annotation)
    if get_origin(annotation) is Literal:
        return any(isinstance(argument, bool) for argument in arguments)
    if get_origin(annotation) is Annotated:
        arguments = arguments[:1]
    arguments = tuple(argument for argument in arguments if argument is not Ellipsis)
    return any(map(_allows_bool, arguments)) if arguments else True


def format_title(cls: type[Config], options: Mapping[str, Any]) -> str:
    """The beginning of an error about options: the name among them, or that of the class."""
    name = options.get("name", cls.__name__)
    return name if isinstance(name, str) else cls.__name__


def _explain(cls: type[Config], error: ValidationError, options: Mapping[str, Any]) -> str:
    lines = []
    for item in error.errors():
        name = ".".join(map(str, item["loc"]))
        if item["type"] == "extra_forbidden":
            hint = nearest(name, [option for option in cls.model_fields if option != "name"])
            lines.append(f"unknown option '{name}'. {hint}")
        elif item["type"] == "missing" and len(item["loc"]) > 1:
            # A tuple of fixed length, like the columns and rows of a grid, or a mapping inside an option.
            option, *_, missing = item["loc"]
            subject = f"value {missing + 1}" if isinstance(missing, int) else f"'{missing}'"
            lines.append(f"{option} = {format_value(options.get(str(option)))}: {subject} is missing")
        elif item["type"] == "missing":
            lines.append(f"option '{name}' is missing")
        else:
            message = item["msg"].removeprefix("Value error, ")  # pydantic's prefix of errors from validators
            lines.append(f"{name} = {format_value(item['input'])}: {message}" if name else message)
    return f"{format_title(cls, options)}: " + "; ".join(lines)

"""Strict, frozen configurations and the ids made from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from unseen.errors import UsageError, nearest


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
        try:
            return cls.model_validate(dict(options))
        except ValidationError as error:
            raise UsageError(_explain(cls, error, options)) from None

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
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:16]


def _explain(cls: type[Config], error: ValidationError, options: Mapping[str, Any]) -> str:
    lines = []
    for item in error.errors():
        name = ".".join(map(str, item["loc"]))
        if item["type"] == "extra_forbidden":
            hint = nearest(name, [option for option in cls.model_fields if option != "name"])
            lines.append(f"unknown option '{name}'. {hint}")
        elif item["type"] == "missing":
            lines.append(f"option '{name}' is missing")
        else:
            message = item["msg"].removeprefix("Value error, ")  # pydantic's prefix of errors from validators
            lines.append(f"{name} = {item['input']!r}: {message}" if name else message)
    title = options.get("name", cls.__name__)
    return f"{title}: " + "; ".join(lines)

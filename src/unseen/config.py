"""Strict, frozen configs and the ids made from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from unseen.errors import UsageError, nearest


class Config(BaseModel):
    """A frozen set of options: unknown keys and wrong values are errors that say what to do.

    `version` is raised when a default or a number changes; a new option must default to the old behaviour.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)

    name: str
    version: ClassVar[int] = 1

    def __eq__(self, other: object) -> bool:
        """Whether all options are the same. What was worked out from them and kept (arrays, too) does not count."""
        return type(self) is type(other) and all(getattr(self, k) == getattr(other, k) for k in type(self).model_fields)

    def __getstate__(self) -> dict[Any, Any]:
        """What another process, or a copy, gets: the options. What was worked out from them may be large, and is not
        that of a copy with other options."""
        state = super().__getstate__()
        return {**state, "__dict__": {k: v for k, v in state["__dict__"].items() if k in type(self).model_fields}}

    def __copy__(self) -> Self:
        copied = super().__copy__()
        copied.__setstate__(self.__getstate__())
        return copied

    @property
    def as_json(self) -> str:
        """All options as text, written once: thousands of cells ask few configs for theirs."""
        return self._as_json

    @cached_property
    def _as_json(self) -> str:  # with an underscore, so that it is not met by who goes through a config's options
        return self.model_dump_json()

    @classmethod
    def parse(cls, options: Mapping[str, Any]) -> Self:
        """Validate options that came from outside; every complaint is a `UsageError`."""
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
        values = self.model_dump(mode="json")
        defaults = {
            k: f.get_default(call_default_factory=True)
            for k, f in type(self).model_fields.items()
            if not f.is_required()
        }
        live = {k: getattr(self, k) for k in values}
        return {k: v for k, v in values.items() if k == "name" or k not in defaults or live[k] != defaults[k]}

    def identity(self) -> dict[str, Any]:
        """What this config contributes to an id: name, version, and what differs from the defaults."""
        return {"version": self.version, **self.options()}


def canonical(value: Any) -> str:
    """JSON with sorted keys, no spaces and shortest floats: equal values give equal text.

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
        place = ".".join(str(part) for part in item["loc"])
        if item["type"] == "extra_forbidden":
            hint = nearest(place, [k for k in cls.model_fields if k != "name"])
            lines.append(f"unknown option '{place}'. {hint}")
        elif item["type"] == "missing":
            lines.append(f"option '{place}' is missing")
        else:
            what = item["msg"].removeprefix("Value error, ")
            lines.append(f"{place} = {item['input']!r}: {what}" if place else what)
    title = options.get("name", cls.__name__)
    return f"{title}: " + "; ".join(lines)

"""One typed registry: names, where their implementation lives, and plug-ins by entry point.

Nothing is imported before it is asked for, so listing names needs neither torch nor NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar, cast

from unseen.errors import UsageError, nearest

T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """A registered name: `target` is `module:attribute`, imported on demand."""

    name: str
    target: str
    summary: str

    def load(self) -> Any:
        module, _, attribute = self.target.partition(":")
        try:
            found = import_module(module)
            for part in attribute.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError) as error:
            raise UsageError(f"'{self.name}' could not be loaded from {self.target}: {error}") from error
        return found


class Registry(Generic[T]):
    """Names of one kind. The built-in ones are a literal table; plug-ins come from an entry-point group.

    An alias is another name of an entry, which keeps its own: it is found, but not listed.

    >>> shapes = Registry("shape", "unseen.shapes", {"round": ("math:pi", "a circle")})
    >>> shapes.load("round")
    3.141592653589793
    """

    def __init__(
        self, kind: str, group: str, table: Mapping[str, tuple[str, str]], aliases: Mapping[str, str] | None = None
    ) -> None:
        self.kind, self.group, self._aliases = kind, group, aliases or {}
        self._entries: dict[str, Entry] = {}
        self._plugins_read = False
        for name, (target, summary) in table.items():
            self.add(name, target, summary)

    def add(self, name: str, target: str, summary: str = "") -> None:
        """Register a name; a name taken is an error."""
        if name in self._entries:
            raise UsageError(f"{self.kind} '{name}' is registered twice: {self._entries[name].target} and {target}")
        self._entries[name] = Entry(name, target, summary)

    def entry(self, name: str) -> Entry:
        """The entry of a name; an unknown one is answered with the nearest."""
        self._read_plugins()
        name = self._own(name)
        if name not in self._entries:
            raise UsageError(f"unknown {self.kind} '{name}'. {nearest(name, [*self._entries, *self._aliases])}")
        return self._entries[name]

    def load(self, name: str) -> T:
        """Import and return what the name stands for."""
        return cast(T, self.entry(name).load())

    def __iter__(self) -> Iterator[Entry]:
        self._read_plugins()
        return iter(self._entries.values())

    def __contains__(self, name: str) -> bool:
        self._read_plugins()
        return self._own(name) in self._entries

    def _own(self, name: str) -> str:
        """The name of an alias's entry, any other name as it is."""
        return name if name in self._entries else self._aliases.get(name, name)

    def _read_plugins(self) -> None:
        if self._plugins_read:
            return
        built_in = dict(self._entries)
        try:
            for point in entry_points(group=self.group):
                self.add(point.name, point.value, f"plug-in of {point.dist.name}" if point.dist else "plug-in")
        except UsageError:
            self._entries = built_in  # so that the next look meets the same error, not half of the plug-ins
            raise
        self._plugins_read = True

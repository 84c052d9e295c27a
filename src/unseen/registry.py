"""What is imported, and when: a typed registry of names, plug-ins by entry point, and packages that load on first use.

Implementations are imported on demand, so that listing names needs neither torch nor NumPy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar, cast

from unseen.errors import UnknownName, UsageError, nearest, shorten

T = TypeVar("T")


def plugin_entry_points(group: str) -> list[EntryPoint]:
    """The entry points of installed packages in a group.

    Packages in the current directory are left out. The directory is on the path for `module:Class`, but a package that
    lies there is not installed: in a folder of results from somebody else, listing the results would run its code.
    """
    return [point for point in entry_points(group=group) if not (point.dist and _lies_here(point.dist))]


def _lies_here(package: Distribution) -> bool:
    try:
        return Path(str(package.locate_file(""))).samefile(Path.cwd())
    except OSError:  # one of them is gone
        return False


def search_current_directory() -> None:
    """Look for modules in the current directory, too, from now on: code of the user's own is about to be loaded.

    Not earlier: beside results that somebody handed on may lie a `numexpr.py`, which pandas would import. The directory
    comes last, so that it can't hide an installed module; and it may have been deleted meanwhile.
    """
    with suppress(OSError):
        directory = str(Path.cwd())
        if directory not in sys.path:
            sys.path.append(directory)


@dataclass(frozen=True)
class RegistryEntry:
    """A registered name: `target` is `module:attribute`, imported on demand."""

    name: str
    target: str
    summary: str

    def load(self) -> Any:
        """Import the module and return the attribute."""
        module, _, attributes = self.target.partition(":")
        try:
            target: Any = import_module(module)
            for attribute in attributes.split("."):
                target = getattr(target, attribute)
        except (ImportError, AttributeError) as error:
            raise UsageError(f"'{self.name}' could not be loaded from {self.target}: {error}") from error
        return target


class Registry(Generic[T]):
    """Names of one kind of object. Built-in names come from a literal table, plug-ins from an entry-point group.

    An alias is another name for an entry: it can be looked up, but is not listed.

    >>> shapes = Registry("shape", "unseen.shapes", {"round": ("math:pi", "a circle")})
    >>> shapes.load("round")
    3.141592653589793
    """

    def __init__(
        self, kind: str, group: str, table: Mapping[str, tuple[str, str]], aliases: Mapping[str, str] | None = None
    ) -> None:
        self.kind = kind
        self.group = group
        self._aliases = aliases or {}
        self._entries: dict[str, RegistryEntry] = {}
        self._plugins_read = False
        for name, (target, summary) in table.items():
            self.add(name, target, summary)

    def add(self, name: str, target: str, summary: str = "") -> None:
        """Register a name; a name that is already registered is an error."""
        if name in self._entries:
            raise UsageError(f"{self.kind} '{name}' is registered twice: {self._entries[name].target} and {target}")
        self._entries[name] = RegistryEntry(name, target, summary)

    def entry(self, name: str) -> RegistryEntry:
        """The entry of a name or alias; the error for an unknown name suggests the nearest."""
        self._read_plugins()
        name = self._resolve_alias(name)
        if name not in self._entries:
            raise UnknownName(
                f"unknown {self.kind} '{shorten(name)}'. {nearest(name, [*self._entries, *self._aliases])}"
            )
        return self._entries[name]

    def load(self, name: str) -> T:
        """Import and return the object of a name."""
        return cast(T, self.entry(name).load())

    def __iter__(self) -> Iterator[RegistryEntry]:
        self._read_plugins()
        return iter(self._entries.values())

    def __contains__(self, name: str) -> bool:
        self._read_plugins()
        return self._resolve_alias(name) in self._entries

    def _resolve_alias(self, name: str) -> str:
        """The name of an alias's entry; any other name is returned unchanged."""
        return name if name in self._entries else self._aliases.get(name, name)

    def _read_plugins(self) -> None:
        if self._plugins_read:
            return
        built_in = dict(self._entries)
        try:
            for point in plugin_entry_points(self.group):
                self.add(point.name, point.value, f"plug-in of {point.dist.name}" if point.dist else "plug-in")
        except UsageError:
            # The next access raises the same error, instead of listing half of the plug-ins.
            self._entries = built_in
            raise
        self._plugins_read = True


# -- packages -----------------------------------------------------------------------------------------------------------


def make_callable(package: str, target: str) -> None:
    """Let a package be called like the function `module:name`, which is imported at the first call.

    Importing a submodule sets the package as an attribute of `unseen`, where it would hide a function of the same name.
    """
    module_name, _, function_name = target.partition(":")

    class CallablePackage(ModuleType):
        def __call__(self, *arguments: Any, **options: Any) -> Any:
            return getattr(import_module(module_name), function_name)(*arguments, **options)

    # Python looks for `__call__` in the class of an object, not among a module's own names.
    sys.modules[package].__class__ = CallablePackage


def import_on_use(package: str, modules: Sequence[str], names: Collection[str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package: its public names are looked for in its modules when they are first used, so that a
    user of one of them does not load the libraries that the others need."""

    def find(name: str) -> Any:
        if name in names:
            for module in modules:
                loaded = import_module(f"{package}.{module}")
                if hasattr(loaded, name):
                    return getattr(loaded, name)
        raise AttributeError(f"module '{package}' has no attribute '{name}'")

    return find

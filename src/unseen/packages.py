"""Features of our packages beyond Python's: names that are imported when first used, packages that can be called, and
where the code of users is looked for.

`unseen.report` is a package and, for users, the function that writes a report.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any


def make_callable(package: str, target: str) -> None:
    """Let a package be called like the function `module:name`, which is imported at the first call.

    Importing a submodule sets the package as an attribute of `unseen`, where it would hide a function of the same name.
    """
    module_name, _, function_name = target.partition(":")

    class CallablePackage(ModuleType):
        def __call__(self, *arguments: Any, **options: Any) -> Any:
            return getattr(import_module(module_name), function_name)(*arguments, **options)

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


def search_current_directory() -> None:
    """Look for modules in the current directory, too, from now on: code of the user's own is about to be loaded.

    Not earlier: beside results that somebody handed on may lie a `numexpr.py`, which pandas would import. The directory
    comes last, so that it can't hide an installed module; and it may have been deleted meanwhile.
    """
    with suppress(OSError):
        directory = str(Path.cwd())
        if directory not in sys.path:
            sys.path.append(directory)

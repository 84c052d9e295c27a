"""Packages that can be called: `unseen.report` is a package and, for users, the function that writes a report."""

from __future__ import annotations

import sys
from importlib import import_module
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

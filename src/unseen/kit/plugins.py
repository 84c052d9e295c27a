"""The plug-ins that are installed, and which of them is meant by a name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Literal

from unseen.errors import UsageError, nearest
from unseen.models import MODELS
from unseen.registry import Registry
from unseen.studies.catalog import STUDIES
from unseen.tasks import TASKS

Kind = Literal["task", "model", "study"]


REGISTRIES: Mapping[Kind, Registry[Any]] = {"task": TASKS, "model": MODELS, "study": STUDIES}


@dataclass(frozen=True)
class Plugin:
    """One entry of a registry, and the package it comes from."""

    kind: Kind
    name: str
    package: str


def installed() -> list[Plugin]:
    """Everything that comes from an entry point of another package."""
    found = []
    for kind, registry in REGISTRIES.items():
        packages = {point.name: point.dist.name if point.dist else "" for point in entry_points(group=registry.group)}
        # By the registry, so that a name that is taken twice is an error here, too.
        found += [Plugin(kind, entry.name, packages[entry.name]) for entry in registry if entry.name in packages]
    return found


def find(asked: Sequence[str]) -> list[Plugin]:
    """The plug-ins of these packages or names, each once; nothing asked for: all there are.

    A name may be one of Unseen's own, too, and a model may be given as `module:Class`.
    """
    there = installed()
    if not asked and not there:
        raise UsageError(
            "no plug-ins are installed here; `unseen new model NAME` writes one, `pip install -e DIR` installs it"
        )
    found = [plugin for name in asked for plugin in _named(name, there)] if asked else there
    return list(dict.fromkeys(found))


def _named(name: str, there: Sequence[Plugin]) -> list[Plugin]:
    if ":" in name:
        return [Plugin("model", name, "")]
    found = [plugin for plugin in there if name == plugin.name or _folded(name) == _folded(plugin.package)]
    found = found or [Plugin(kind, name, "unseen") for kind, registry in REGISTRIES.items() if name in registry]
    if not found:
        known = {entry.name for registry in REGISTRIES.values() for entry in registry}
        raise UsageError(
            f"no task, model, study or installed package is called '{name}'. "
            f"{nearest(name, known | {plugin.package for plugin in there})}"
        )
    return found


def _folded(package: str) -> str:
    """A package's name as installers compare it: `unseen_parity` is `unseen-parity`."""
    return re.sub(r"[-_.]+", "-", package).lower()

"""The installed plug-ins, and how to find one by its name or package."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from unseen.errors import UsageError, nearest
from unseen.models import MODELS
from unseen.registry import Registry, plugin_entry_points
from unseen.studies.catalog import STUDIES
from unseen.tasks import TASKS

PluginKind = Literal["task", "model", "study"]
REGISTRIES: Mapping[PluginKind, Registry[Any]] = {"task": TASKS, "model": MODELS, "study": STUDIES}


@dataclass(frozen=True)
class Plugin:
    """An entry of a registry, and the package that it comes from."""

    kind: PluginKind
    name: str
    package: str


def installed_plugins() -> list[Plugin]:
    """Everything that other packages register by entry points."""
    plugins = []
    for plugin_kind, registry in REGISTRIES.items():
        packages = {point.name: point.dist.name if point.dist else "" for point in plugin_entry_points(registry.group)}
        # Iterating the registry raises an error if two packages register the same name.
        for entry in registry:
            if entry.name in packages:
                plugins.append(Plugin(plugin_kind, entry.name, packages[entry.name]))
    return plugins


def find_plugins(names: Sequence[str]) -> list[Plugin]:
    """The plug-ins of these packages or names, each once; without names, all installed ones.

    A name may also be one of Unseen's own, and a model may be given as `module:Class`.
    """
    installed = installed_plugins()
    if not names:
        if not installed:
            raise UsageError(
                "no plug-ins are installed; `unseen new model NAME` writes one, `pip install -e DIR` installs it"
            )
        return installed
    plugins: dict[Plugin, None] = {}
    for name in names:
        plugins |= dict.fromkeys(_find_by_name(name, installed))
    return list(plugins)


def _find_by_name(name: str, installed: Sequence[Plugin]) -> list[Plugin]:
    if ":" in name:
        return [Plugin("model", name, "")]
    matches = []
    for plugin in installed:
        if name == plugin.name or _normalize(name) == _normalize(plugin.package):
            matches.append(plugin)
    if not matches:
        for plugin_kind, registry in REGISTRIES.items():
            if name in registry:
                matches.append(Plugin(plugin_kind, name, "unseen"))
    if not matches:
        names = {plugin.package for plugin in installed}
        for registry in REGISTRIES.values():
            names.update(entry.name for entry in registry)
        raise UsageError(f"no task, model, study or installed package is called '{name}'. {nearest(name, names)}")
    return matches


def _normalize(package: str) -> str:
    """A package's name as installers compare it: `unseen_parity` is `unseen-parity`."""
    return re.sub(r"[-_.]+", "-", package).lower()

"""`new`: write a small plug-in package that works, completely or not at all."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import cast

from unseen.errors import CheckFailed, UsageError, nearest
from unseen.export.folder import new_folder
from unseen.kit.plugins import REGISTRIES, PluginKind
from unseen.names import family_of

TEMPLATE_SUFFIX = ".template"
_MODULE_FOLDER = "module"
"""The folder of the templates that becomes the package's module."""
_OBJECTS: dict[PluginKind, str] = {"task": "task:$cls", "model": "model:$cls", "study": "study:STUDY"}
_FIRST_COMMANDS: dict[PluginKind, str] = {
    "task": "unseen show $name -n 3",
    "model": "unseen train retrieval/T1 $name --set length=5 --steps 500 --seeds 2 --out runs/first",
    "study": "unseen run $name --scale smoke --out runs/first",
}
_PRINT_GOLDEN = (
    "import json\nfrom unseen.kit.check import golden_fingerprints\nfrom {module}.task import {cls}\n"
    "print(json.dumps(golden_fingerprints({cls}())))"
)
_WORD = r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*"
_PATTERNS: dict[PluginKind, str] = {"task": rf"{_WORD}(?:/{_WORD})?", "model": _WORD, "study": _WORD}
_FIRST_TASK = "plain"
"""The name of the first task of a new family, unless it is given."""


@dataclass(frozen=True)
class PluginNames:
    """All names of a plug-in. For the task `sums`: the registered name `sums/plain`, the package `unseen-sums`, its
    module `unseen_sums`, and the class `SumsTask`.

    The class's name ends in the kind, so that it is neither a Python keyword nor a name that the module imports.
    """

    kind: PluginKind
    name: str
    package: str
    module: str
    cls: str


def new(kind: str, name: str, out: Path | None = None) -> tuple[PluginNames, Path]:
    """Write the plug-in `name` into a new or empty folder (default: a folder with the package's name, here)."""
    names = choose_names(kind, name)
    folder = Path(names.package) if out is None else out
    with new_folder(folder) as temporary:
        _write_files(temporary, names, {})
        if names.kind == "task":
            # Its fingerprints depend on its name, so they are known only now that it can be imported.
            _write_files(temporary, names, _compute_golden(temporary, names))
    return names, folder


def first_command(names: PluginNames) -> str:
    """A command to try a new plug-in with."""
    return Template(_FIRST_COMMANDS[names.kind]).substitute(vars(names))


def choose_names(kind: str, name: str) -> PluginNames:
    """The names of a new plug-in; a name that is invalid or taken is refused with a suggestion.

    >>> choose_names("task", "sums").name, choose_names("model", "slow-reader").cls
    ('sums/plain', 'SlowReaderModel')
    """
    if kind not in REGISTRIES:
        raise UsageError(f"unknown kind of plug-in '{kind}'. {nearest(kind, REGISTRIES)}")
    plugin_kind = cast("PluginKind", kind)
    if not re.fullmatch(_PATTERNS[plugin_kind], name):
        family = ", with its family before a slash" if plugin_kind == "task" else ""
        tidy = _suggest_name(plugin_kind, name)
        suggestion = f". Did you mean '{tidy}'?" if tidy else ""
        raise UsageError(f"{plugin_kind} '{name}': use lower-case letters, digits and -{family}{suggestion}")
    segments = re.split("[-_/]", name)
    names = PluginNames(
        kind=plugin_kind,
        name=f"{name}/{_FIRST_TASK}" if plugin_kind == "task" and "/" not in name else name,
        package="-".join(["unseen", *segments]),
        module="_".join(["unseen", *segments]),
        cls="".join(segment.capitalize() for segment in [*segments, plugin_kind]),
    )
    _check_free(names, suggestion=f"my-{name}")
    return names


def _check_free(names: PluginNames, suggestion: str) -> None:
    registry = REGISTRIES[names.kind]
    if names.name in registry:
        raise UsageError(
            f"{names.kind} '{names.name}' is taken by {registry.entry(names.name).target}; "
            f"choose another name, like {suggestion}"
        )
    family = family_of(names.name)
    if names.kind == "task" and any(family_of(entry.name) == family for entry in registry):
        raise UsageError(f"the family '{family}' is taken; choose another name, like {suggestion}")
    try:
        distribution(names.package)
    except PackageNotFoundError:
        return
    raise UsageError(f"a package {names.package} is installed already; choose another name, like {suggestion}")


def _suggest_name(kind: PluginKind, name: str) -> str:
    """The valid name nearest to an invalid one, `my-task` for `My Task`; empty if there is none."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
    segments = []
    for segment in spaced.split("/")[:2]:
        segments.append(re.sub(r"[^a-z0-9]+", "-", segment).strip("-"))
    separator = "/" if kind == "task" else "-"
    tidy = separator.join(filter(None, segments)).lstrip("0123456789-")
    return tidy if re.fullmatch(_PATTERNS[kind], tidy) else ""


def _write_files(folder: Path, names: PluginNames, golden: dict[str, str]) -> None:
    values = {
        **vars(names),
        "group": REGISTRIES[names.kind].group,
        "object": f"{names.module}.{Template(_OBJECTS[names.kind]).substitute(vars(names))}",
        "command": first_command(names),
        "golden": "\n".join(f'        "{split}": "{fingerprint}",' for split, fingerprint in golden.items()),
    }
    for path, text in read_templates(names):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(Template(text).substitute(values), encoding="utf-8")


def read_templates(names: PluginNames) -> Iterator[tuple[Path, str]]:
    """The path and text of every file of a package: the files that all kinds share first."""
    root = files("unseen.kit") / "templates"
    for folder in ("shared", names.kind):
        for path, text in _walk(root / folder):
            yield Path(*(names.module if step == _MODULE_FOLDER else step for step in path)), text


def _walk(folder: Traversable, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_dir():
            yield from _walk(item, (*path, item.name))
        elif item.name.endswith(TEMPLATE_SUFFIX):
            yield (*path, item.name.removesuffix(TEMPLATE_SUFFIX)), item.read_text(encoding="utf-8")


def _compute_golden(folder: Path, names: PluginNames) -> dict[str, str]:
    """The fingerprints of a task that has just been written. It is imported in a process of its own, because this one
    could not forget it."""
    search_path = [str(folder / "src"), *filter(None, sys.path)]
    process = subprocess.run(
        [sys.executable, "-B", "-c", _PRINT_GOLDEN.format(module=names.module, cls=names.cls)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(search_path)},
    )
    if process.returncode:
        last_line = (process.stderr.strip().splitlines() or ["?"])[-1]
        raise CheckFailed(f"the new task can't generate examples: {last_line}")
    fingerprints: dict[str, str] = json.loads(process.stdout)
    return fingerprints

"""`new`: a small plug-in package that works, written whole or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

from unseen.errors import CheckFailed
from unseen.export.folder import new_folder
from unseen.kit.names import Names, names
from unseen.kit.plugins import REGISTRIES, Kind

SUFFIX = ".template"
_MODULE = "module"
"""The folder of the templates that becomes the package's module."""
_OBJECTS: dict[Kind, str] = {"task": "task:$cls", "model": "model:$cls", "study": "study:STUDY"}
_TRY: dict[Kind, str] = {
    "task": "unseen show $name -n 3",
    "model": "unseen train retrieval/T1 $name --set length=5 --steps 500 --seeds 2 --out runs/first",
    "study": "unseen run $name --scale smoke --out runs/first",
}
_GOLDEN = (
    "import json\nfrom unseen.kit.golden import golden\nfrom {module}.task import {cls}\n"
    "print(json.dumps(golden({cls}())))"
)


def new(kind: str, name: str, out: Path | None = None) -> tuple[Names, Path]:
    """Write the plug-in `name` into a new or empty folder (default: one with the package's name, here)."""
    chosen = names(kind, name)
    folder = Path(chosen.package) if out is None else out
    with new_folder(folder) as place:
        _write(place, chosen, {})
        if chosen.kind == "task":  # its numbers follow from its name: known only now that it can be imported
            _write(place, chosen, _golden(place, chosen))
    return chosen, folder


def first_command(chosen: Names) -> str:
    """What to try first with a new plug-in."""
    return Template(_TRY[chosen.kind]).substitute(vars(chosen))


def _write(place: Path, chosen: Names, golden: dict[str, str]) -> None:
    words = {
        **vars(chosen),
        "group": REGISTRIES[chosen.kind].group,
        "object": f"{chosen.module}.{Template(_OBJECTS[chosen.kind]).substitute(vars(chosen))}",
        "command": first_command(chosen),
        "golden": "\n".join(f'        "{condition}": "{found}",' for condition, found in golden.items()),
    }
    for path, text in _templates(chosen):
        target = place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(Template(text).substitute(words), encoding="utf-8")


def _templates(chosen: Names) -> Iterator[tuple[Path, str]]:
    """The files of a package, what all kinds share first: where each goes, and its text."""
    root = files("unseen.kit") / "templates"
    for part in ("shared", chosen.kind):
        for path, text in _walk(root / part):
            yield Path(*(chosen.module if step == _MODULE else step for step in path)), text


def _walk(folder: Traversable, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    for one in sorted(folder.iterdir(), key=lambda found: found.name):
        if one.is_dir():
            yield from _walk(one, (*path, one.name))
        elif one.name.endswith(SUFFIX):
            yield (*path, one.name.removesuffix(SUFFIX)), one.read_text(encoding="utf-8")


def _golden(place: Path, chosen: Names) -> dict[str, str]:
    """The fingerprints of a task that has just been written, from a process that can forget it."""
    paths = [str(place / "src"), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, "-B", "-c", _GOLDEN.format(module=chosen.module, cls=chosen.cls)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    if done.returncode:
        raise CheckFailed(f"the new task can't be drawn from: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    found: dict[str, str] = json.loads(done.stdout)
    return found

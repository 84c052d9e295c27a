"""The page of one task."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from docstrings import fence_examples
from option_tables import option_table, preset_table
from task_examples import gallery, path_of, test_split
from task_facts import artefacts, chance, given, really_unseen, shortcuts, splits
from writing import fenced, link, sections

from unseen.errors import UsageError
from unseen.export.families import paper
from unseen.models import BACKBONES, MODELS, options
from unseen.models.build import build
from unseen.spec import Spec
from unseen.studies.grid import Grid
from unseen.studies.study import STUDIES, study
from unseen.tasks.base import Task

DOCS = Path(__file__).parents[1]


def write(task: Task, summary: str, drawn: bool) -> str:
    """All that the package knows about a task, as Markdown; `drawn`: whether it has pictures."""
    path = path_of(task.name)
    about = f"More about this family: {link(task.family, f'{task.family}.md', path)}."
    body = sections(
        {
            "What it asks": "\n\n".join([*_told(task), *([about] if (DOCS / f"{task.family}.md").exists() else [])]),
            "Examples": gallery(task, drawn),
            "What is given": given(task),
            "Splits": splits(task),
            "What is really unseen": really_unseen(task, path),
            "Chance and shortcuts": "\n\n".join(filter(None, [chance(task), shortcuts(task), artefacts(task)])),
            "Options": f"In Python as keywords, on the command line as `--set`.\n\n{option_table(type(task))}",
            "Presets": _presets(task),
            "Commands": _commands(task),
            "Where it comes from": _origin(task, path),
            "Models and studies": _users(task, path),
        }
    )
    return f"# {task.name}\n\n{summary[:1].upper()}{summary[1:]}\n\n{body}\n"


def family_line(task: Task) -> str:
    """What the tasks of its family have in common, in a line."""
    return " ".join(_told(task)[0].partition("\n\n")[0].split()) if _told(task) else ""


def _told(task: Task) -> list[str]:
    """What its classes say, the general one first."""
    kinds = [kind for kind in type(task).__mro__ if issubclass(kind, Task) and kind is not Task]
    return [fence_examples(inspect.cleandoc(kind.__doc__)) for kind in reversed(kinds) if kind.__doc__]


def _presets(task: Task) -> str:
    """The table `PRESETS` of the family, from the module that its task is defined in or gets it from."""
    if "preset" not in type(task).model_fields:
        return ""
    modules = [sys.modules[kind.__module__] for kind in type(task).__mro__ if issubclass(kind, Task)]
    presets = next((module.PRESETS for module in modules if hasattr(module, "PRESETS")), None)
    return f"How the presets of this family differ:\n\n{preset_table(presets)}" if presets else ""


def _commands(task: Task) -> str:
    model = next(iter([*_made_for(task.family, task.spec), "lstm"]))
    name = task.name.replace("/", "-")
    shell = [
        f"unseen show {task.name} --split {test_split(task).name}",
        f"unseen verify {task.name} -n 2000",
        f"unseen train {task.name} {model} --seeds 3 --steps 500 --out runs/{name}",
    ]
    python = [
        "import unseen",
        "",
        f'task = unseen.task("{task.name}")',
        f'examples = task.sample("{test_split(task).name}", 5)',
        "print(task.describe(examples, 0))",
    ]
    return f"{fenced('sh', chr(10).join(shell))}\n\n{fenced('python', chr(10).join(python))}"


def _origin(task: Task, path: str) -> str:
    source = paper(task)
    if not source:
        return ""
    register = link("where paper, code and data differ", f"differences/{task.family}.md", path)
    return f"{source}. The generator was written anew. The register says {register}, and what is done here."


def _users(task: Task, path: str) -> str:
    return "\n\n".join(
        filter(
            None,
            [
                _list("Made for it", _made_for(task.family, task.spec), "models", path),
                _list("Models that read any task", BACKBONES, "models", path),
                _list(
                    "Studies of the catalogue that use it",
                    [name for name, used in _studies().items() if task.name in used],
                    "studies",
                    path,
                ),
            ],
        )
    )


def _list(what: str, names: Sequence[str], folder: str, path: str) -> str:
    return f"{what}: {', '.join(link(name, f'{folder}/{name}.md', path) for name in names)}." if names else ""


@cache
def _made_for(family: str, spec: Spec) -> tuple[str, ...]:
    """The models of the family that can be built for a spec."""
    found = []
    for entry in MODELS:
        if entry.name.startswith(f"{family}-"):
            try:
                build(options(entry.name), spec)
            except UsageError:
                continue
            found.append(entry.name)
    return tuple(found)


@cache
def _studies() -> dict[str, set[str]]:
    """The tasks of every study, at any scale."""
    found = {}
    for entry in STUDIES:
        one = study(entry.name)
        grids = [grid for scale in one.scales for grid in one.grids(scale)]
        found[entry.name] = {name for grid in grids for name in _task_names(grid)}
    return found


def _task_names(grid: Grid) -> set[str]:
    """The tasks of a grid, without making its trials: later axes win."""
    names = set()
    for configuration in grid.combinations():
        settings = [grid.base, *(grid.axes[axis][level] for axis, level in configuration.items())]
        names.update([one["task"]["name"] for one in settings if "name" in one.get("task", {})][-1:])
    return names

"""The gallery: a page for every registered task, and one that shows them all."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from posixpath import relpath

import task_page
from task_examples import path_of, picture_path, pictures
from writing import link

from page import Page
from unseen.registry import RegistryEntry
from unseen.tasks import TASKS, task
from unseen.tasks.base import Task

INDEX = "tasks/index.md"
HEAD = """# Tasks

Every task with examples that its generator made when this page was built; a second solver, which shares no code with
it, answers them the same. `unseen show TASK` prints more of them, `unseen verify TASK` proves as many as you like.

<style>
.md-typeset .grid.gallery { grid-template-columns: repeat(auto-fill, minmax(10rem, 1fr)); }
.gallery img { display: block; width: 100%; height: 9rem; object-fit: contain; box-sizing: border-box; padding: 4px;
  background: #fff; border-radius: 4px; }
</style>
"""


def pages() -> Iterator[Page]:
    """The index, then for each task its pictures and its page."""
    made = {entry: task(entry.name) for entry in TASKS}
    drawn = {entry: list(pictures(found)) for entry, found in made.items()}
    yield Page(INDEX, _index(made, {entry for entry, found in drawn.items() if found}))
    for entry, found in made.items():
        yield from drawn[entry]
        yield Page(path_of(entry.name), task_page.write(found, entry.summary, bool(drawn[entry])))


def _index(made: dict[RegistryEntry, Task], drawn: set[RegistryEntry]) -> str:
    """Families one after the other, a card for each task."""
    parts = [HEAD]
    for family, entries in groupby(made, lambda entry: made[entry].family):
        members = list(entries)
        parts += [
            f"## {family}",
            task_page.family_line(made[members[0]]),
            '<div class="grid cards gallery" markdown>',
            "\n\n".join(_card(entry, entry in drawn) for entry in members),
            "</div>",
        ]
    return "\n\n".join(parts) + "\n"


def _card(entry: RegistryEntry, drawn: bool) -> str:
    path = path_of(entry.name)
    picture = relpath(picture_path(entry.name, "train"), "tasks")
    seen = link(f"![An example of {entry.name}]({picture}){{ loading=lazy }}", path, INDEX)
    return "\n\n    ".join(
        [
            f"-   {seen}" if drawn else f"-   {entry.name}",
            f"**{link(entry.name, path, INDEX)}**",
            f"{entry.summary[:1].upper()}{entry.summary[1:]}",
        ]
    )

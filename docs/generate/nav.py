"""Folders in the navigation of mkdocs.yml, written `tasks/`, stand for the pages in them."""

from __future__ import annotations

from typing import Any

from mkdocs.structure.files import Files

INDEX = "index.md"


def expand(item: Any, files: Files) -> list[Any]:
    """An item of the navigation with its folders opened; an empty folder is nothing."""
    if isinstance(item, list):
        return [found for part in item for found in expand(part, files)]
    if isinstance(item, dict):
        return [{title: inside} for title, part in item.items() if (inside := _one(expand(part, files), part))]
    return _folder(item, files) if item.endswith("/") else [item]


def _one(found: list[Any], item: Any) -> Any:
    """A single page stays one, so that its title is the one that mkdocs.yml gives it."""
    return found[0] if isinstance(item, str) and not item.endswith("/") else found


def _folder(folder: str, files: Files) -> list[Any]:
    """Its index, its pages as they were added, then a section for each folder in it.

    A page beside the folder that is called like the inner one introduces that section: `ctl.md` that of `tasks/ctl/`.
    """
    inside = [f.src_uri for f in files.documentation_pages() if f.src_uri.startswith(folder)]
    direct = [path for path in inside if "/" not in path.removeprefix(folder)]
    inner = dict.fromkeys(path.removeprefix(folder).split("/")[0] for path in inside if path not in direct)
    direct.sort(key=lambda path: path != folder + INDEX)  # stable: nothing else moves
    sections = [{name: [*_introduction(name, files), *_folder(f"{folder}{name}/", files)]} for name in inner]
    return [*direct, *sections]


def _introduction(name: str, files: Files) -> list[Any]:
    return [{"About": f"{name}.md"}] if files.get_file_from_path(f"{name}.md") else []

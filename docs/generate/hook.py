"""Adds the pages that the package writes itself to those that are written by hand; called by MkDocs (mkdocs.yml)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import command_pages
import difference_pages
import leaderboard_page
import model_pages
import nav
import notebook_pages
import study_pages
import task_pages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from page import Page

GENERATORS: tuple[Callable[[], Iterator[Page]], ...] = (
    task_pages.pages,
    model_pages.pages,
    study_pages.pages,
    difference_pages.pages,
    command_pages.pages,
    leaderboard_page.pages,
    notebook_pages.pages,
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """MkDocs asks for it once per build, before it makes the navigation."""
    for pages in GENERATORS:
        for page in pages():
            files.append(File.generated(config, page.path, content=page.content))
    config.nav = nav.expand(config.nav, files)
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """MkDocs asks for it once per page. A page's title is its heading only if nothing is before it, not even a comment."""
    return re.sub(r"\A(\s*<!--((?!-->).)*-->)+\s*(?=# )", "", markdown, flags=re.DOTALL)

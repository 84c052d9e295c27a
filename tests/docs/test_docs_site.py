"""The site is built as `make docs` does it: no warning, no dead link, nothing from elsewhere, every promised page."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import unseen
from support.blocks import ROOT
from unseen import analysis, stats
from unseen.models import MODELS
from unseen.studies.catalog import STUDIES
from unseen.tasks import TASKS

FAMILIES = ("rules", "ctl", "gcog", "retrieval")
REFERENCE = ("index", "python", "commands", "tasks", "models", "metrics", "studies", "plugins")
PROMISED = [
    "index",
    "tutorial",
    "your-model",
    "plugins",
    "export",
    "metrics",
    "statistics",
    "studies",
    "claims",
    "exam",
    "leaderboard",
    "reports",
    "tuning",
    "tracking",
    "clusters",
    "glossary",
    "stability",
    "cite",
    "development",
    "benchmarks",
    "tasks/index",
    *(f"tasks/{entry.name}" for entry in TASKS if entry.target.startswith("unseen.")),
    "models/index",
    *(f"models/{entry.name}" for entry in MODELS if entry.target.startswith("unseen.")),
    "studies/index",
    *(f"studies/{entry.name}" for entry in STUDIES),
    "differences/index",
    *(f"differences/{family}" for family in FAMILIES),
    "notebooks/index",
    "notebooks/first-look",
    "notebooks/your-model",
    *(f"reference/{name}" for name in REFERENCE),
]
LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "object": "data",
    "image": "href",
    "use": "href",
    "link": "href",
}
"""What a browser fetches when it opens a page: tag and attribute."""

INSIDE = re.compile(r"(?:url\(['\"]?|@import ['\"]|xlink:href=['\"])((?:https?:)?//[^)'\"]+)")
"""The same in styles and pictures."""


@dataclass
class Found(HTMLParser):
    """What one page has and points to."""

    path: Path
    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if given.get(LOADED.get(tag, "")):
            self.loads.append(given[LOADED[tag]])
        self.loads += re.findall(r"url\(['\"]?([^)'\"]+)", given.get("style", ""))


@pytest.mark.slow
def test_the_site_is_whole(tmp_path: Path) -> None:
    build(tmp_path)
    found = {path: Found(path) for path in tmp_path.rglob("*.html")}
    assert [name for name in PROMISED if tmp_path / f"{name}.html" not in found] == []
    assert list(dead_links(tmp_path, found)) == []
    assert list(foreign(tmp_path, found)) == []
    commands = found[tmp_path / "reference" / "commands.html"].ids
    assert {command for command in commands_of_the_program() if command not in commands} == set()
    documented = set().union(*(page.ids for path, page in found.items() if path.parent.name == "reference"))
    # Three names are packages that can be called: the function behind them is documented.
    assert {name for name in unseen.__all__ if f"unseen.{name}" not in documented} <= {"claims", "export", "report"}
    assert {"unseen.api.claims", "unseen.export.write.write_export", "unseen.report.page.write_page"} <= documented
    last = {name.rpartition(".")[2] for name in documented}
    for room in (analysis, stats):
        assert {name for name in room.__all__ if name not in last and own(getattr(room, name))} == set()


def own(thing: object) -> bool:
    """A function or a class, not another name for a type or a constant."""
    return inspect.isfunction(thing) or inspect.isclass(thing)


def build(folder: Path) -> None:
    """`make docs`, elsewhere."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-6000:]
    assert [line for line in said.splitlines() if re.search(r"WARN|ERROR|Traceback", line)] == []


def dead_links(site: Path, found: dict[Path, Found]) -> Iterator[str]:
    """Links to files and anchors that are not there; `404.html` is written for a server's root."""
    for path, page in found.items():
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                yield f"{path.relative_to(site)}: {link}"
            elif parts.fragment and target in found and unquote(parts.fragment) not in found[target].ids:
                yield f"{path.relative_to(site)}: {link}, no such anchor"


def foreign(site: Path, found: dict[Path, Found]) -> Iterator[str]:
    """Whatever would be fetched from another host when a page is opened."""
    for path, page in found.items():
        yield from (f"{path.relative_to(site)}: {load}" for load in page.loads if re.match(r"(https?:)?//", load))
    for path in [*site.rglob("*.css"), *site.rglob("*.svg"), *found]:
        yield from (f"{path.relative_to(site)}: {there}" for there in INSIDE.findall(path.read_text()))


def commands_of_the_program() -> list[str]:
    import typer.main

    from unseen.cli.main import app

    return list(typer.main.get_group(app).commands)

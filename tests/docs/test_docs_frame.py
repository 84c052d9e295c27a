"""What the site is held together by: folders in the navigation, docstrings as Markdown, the reference of commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import command_pages
import docstrings
import griffe
import hook
import nav
import study_pages

from unseen.studies.study import study


@dataclass(frozen=True)
class Page:
    src_uri: str


@dataclass(frozen=True)
class Pages:
    """As much of MkDocs' files as the navigation asks for."""

    paths: tuple[str, ...]

    def documentation_pages(self) -> list[Page]:
        return [Page(path) for path in self.paths]

    def get_file_from_path(self, path: str) -> Page | None:
        return Page(path) if path in self.paths else None


def expand(item: Any, *paths: str) -> Any:
    return nav.expand(item, Pages(paths))  # type: ignore[arg-type]


def test_a_folder_stands_for_its_pages() -> None:
    found = expand(
        [{"Tasks": "tasks/"}, "cite.md"],
        "tasks/b.md",
        "tasks/ctl/A.md",
        "tasks/index.md",
        "tasks/a.md",
        "ctl.md",
        "tasks/rules/mlp.md",
        "cite.md",
        "other.md",
    )
    assert found == [
        {
            "Tasks": [
                "tasks/index.md",
                "tasks/b.md",
                "tasks/a.md",
                {"ctl": [{"About": "ctl.md"}, "tasks/ctl/A.md"]},
                {"rules": ["tasks/rules/mlp.md"]},
            ]
        },
        "cite.md",
    ]


def test_titles_and_sections_stay_and_empty_folders_vanish() -> None:
    given = ["index.md", {"How": "how.md"}, {"Both": ["a.md", {"Rest": "rest/"}]}, {"None": "none/"}]
    assert expand(given, "rest/x.md") == ["index.md", {"How": "how.md"}, {"Both": ["a.md", {"Rest": ["rest/x.md"]}]}]


def test_a_page_begins_with_its_heading() -> None:
    """MkDocs makes a title of the file's name ("Ctl table1 mini") where a comment is before the heading."""
    assert hook.on_page_markdown("<!-- made from\nx.zip -->\n<!-- b -->\n# x, mini\n<!-- c -->\n", page=None) == (
        "# x, mini\n<!-- c -->\n"
    )
    for text in ("# a\n\ntext <!-- b -->\n\n# c\n", "<!-- a -->\n<p>no heading</p>\n<!-- b -->\n# c\n"):
        assert hook.on_page_markdown(text) == text


def test_levels_in_another_order_are_the_same_levels() -> None:
    """`medium` of rules-main is a random sample, which meets the levels in another order."""
    text = study_pages._axes(study("rules-main"))
    assert "| `architecture` | mlp, mha, rnn | all |" in text
    assert "| `rules` | 2, 4, 8, 16, 32 | small, medium, full |" in text


def test_examples_and_indented_code_are_blocks() -> None:
    text = "What it does.\n\n    run(1)\n\n    run(2)\n\nMore.\n\n>>> one\n1\n>>> two\n2\n\nThe end."
    assert docstrings.fenced(text) == (
        "What it does.\n\n```python\nrun(1)\n\nrun(2)\n```\n\nMore.\n\n"
        "```pycon\n>>> one\n1\n>>> two\n2\n```\n\nThe end."
    )


def test_options_show_their_default_and_what_they_are_for() -> None:
    with griffe.temporary_visited_package(
        "some",
        {
            "__init__.py": (
                "class Options:\n    clip: float | None = Field(0.5, gt=0, description='largest norm, '\n"
                "                              'of one member')\n    steps: int = 3\n"
            )
        },
        extensions=griffe.load_extensions(docstrings.Docstrings),
    ) as package:
        clip, steps = package["Options.clip"], package["Options.steps"]
        assert (str(clip.value), clip.docstring.value) == ("0.5", "largest norm, of one member")
        assert (str(steps.value), steps.docstring) == ("3", None)


def test_every_command_and_option_is_in_the_reference() -> None:
    (page,) = command_pages.pages()
    assert page.path == "reference/commands.md"
    for found in ("## show\n", "## doctor\n", "`--track <list[str]>`", "unseen train [OPTIONS]", "May be repeated."):
        assert found in page.content, found
    assert "\b" not in page.content

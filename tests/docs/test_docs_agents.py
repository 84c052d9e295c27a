"""The agent guide and llms.txt name only commands, options, functions and pages that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer.main

import unseen
from support.blocks import ROOT, blocks, check_shell
from unseen.cli.main import app

DOCS = ROOT / "docs"
GUIDES = [DOCS / "agents.md", DOCS / "llms.txt", DOCS / "your-claims.md"]
GENERATED = ("tasks/index", "models/index", "differences/index", "reference/commands")


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.name)
def test_every_command_named_exists(guide: Path) -> None:
    commands = typer.main.get_group(app).commands
    options = {option for command in commands.values() for parameter in command.params for option in parameter.opts}
    text = guide.read_text("utf-8")
    names = set(re.findall(r"(?:`|^)unseen ([a-z]+)", text, re.MULTILINE))
    assert names and names <= set(commands)
    mentioned = set(re.findall(r"`(--[a-z-]+)", text))
    assert mentioned <= options
    for block in blocks(guide):
        if block.language == "sh":
            check_shell(block.text)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.name)
def test_every_function_named_exists(guide: Path) -> None:
    names = set(re.findall(r"\bunseen\.([A-Za-z_]+)", guide.read_text("utf-8")))
    assert names and names <= set(unseen.__all__)


def test_every_page_of_the_map_exists() -> None:
    pages = re.findall(r"\]\(([^)]+)\.html\)", (DOCS / "llms.txt").read_text("utf-8"))
    assert len(pages) == len(set(pages)) > 15
    assert [page for page in pages if page not in GENERATED and not (DOCS / f"{page}.md").is_file()] == []


def test_the_map_has_the_form_that_assistants_expect() -> None:
    """A title, a summary as a quotation, and lists of links under headings (llmstxt.org)."""
    lines = (DOCS / "llms.txt").read_text("utf-8").splitlines()
    assert lines[0] == "# Unseen" and lines[2].startswith("> ")
    listed = [line for line in lines if line.startswith("- ")]
    assert all(re.fullmatch(r"- \[[^]]+\]\([\w/-]+\.html\): .+", line) for line in listed)

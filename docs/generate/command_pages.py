"""The reference of the command line, from the program itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer.main

from page import Page
from unseen.cli.main import app

HEAD = """# Commands

Every command with its arguments and options, as `unseen COMMAND --help` prints them. Wrong use ends with exit code 2, a
failed check with 1; `unseen --debug COMMAND` shows the traceback of an error.
"""


COMMANDS = re.compile(r"^unseen .*(?:\n+unseen .*)*", re.MULTILINE)


def pages() -> Iterator[Page]:
    """One page with a section for each command."""
    group = typer.main.get_group(app)
    context = typer.Context(group, info_name="unseen")
    sections = []
    for command in group.commands.values():
        sections.append(section(command, context))
        inner = typer.Context(command, info_name=command.name, parent=context)
        for subcommand in getattr(command, "commands", {}).values():
            sections.append("#" + section(subcommand, inner, f"{command.name} {subcommand.name}"))
    yield Page("reference/commands.md", "\n".join([HEAD, *sections]))


def section(command: Any, parent: typer.Context, title: str = "") -> str:
    """Usage, what it does, and a table of parameters."""
    context = typer.Context(command, info_name=command.name, parent=parent)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    records = [parameter.get_help_record(context) for parameter in command.params]
    rows = [f"| `{one_line(names)}` | {one_line(words(text))} |" for names, text in filter(None, records)]
    return "\n".join(
        [
            f"## {title or command.name}",
            "",
            "```text",
            usage,
            "```",
            "",
            words(command.help or ""),
            "",
            *(["| given | what it is |", "|---|---|", *rows] if rows else []),
            "",
        ]
    )


def words(text: str) -> str:
    """Help as Markdown: paragraphs kept, commands as blocks, and what looks like a tag is none."""
    said = re.sub(r"<(?=\w)", "&lt;", text.replace("\b", "").strip())
    return COMMANDS.sub(lambda m: "```text\n" + re.sub(r"\n+", "\n", m[0]) + "\n```", said)


def one_line(text: str) -> str:
    """Text for one cell of a table."""
    return re.sub(r"\s+", " ", text)

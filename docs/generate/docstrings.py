"""Our docstrings as Markdown: worked examples and indented code become blocks, options say what they are for.

A Griffe extension (mkdocs.yml, handler `python`): docstrings here are plain prose, without sections.
"""

from __future__ import annotations

import ast
import re
from textwrap import dedent
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*(?:\n+>>> .*(?:\n(?!\s*$).*)*)*", re.MULTILINE)
INDENTED = re.compile(r"(?:(?<=\n\n)|\A)(?:    .*(?:\n|\Z)(?:\s*\n(?=    ))*)+")


class Docstrings(griffe.Extension):
    """Called for every object that is shown."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Prepare the words of an object."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)
        if isinstance(obj, griffe.Attribute) and isinstance(obj.value, griffe.ExprCall):
            describe(obj, obj.value)


def fenced(text: str) -> str:
    """Code as blocks of code, not as the quotations that Markdown would make of `>>>`."""
    text = INDENTED.sub(lambda m: block("python", dedent(m[0]).rstrip("\n")) + "\n", text)
    return fence_examples(text)


def fence_examples(text: str) -> str:
    """Worked examples as blocks of code.

    >>> fence_examples(">>> 1 + 1\\n2").splitlines()
    ['```pycon', '>>> 1 + 1', '2', '```']
    """
    return EXAMPLE.sub(lambda m: block("pycon", m[0]), text)


def block(language: str, code: str) -> str:
    """A fenced block."""
    return f"```{language}\n{code}\n```"


def describe(option: griffe.Attribute, field: griffe.ExprCall) -> None:
    """An option `x: T = Field(default, description="…")` as `x: T = default` with its description below."""
    if str(field.function) not in ("Field", "Option"):  # one function; tasks have a `Field` of their own
        return
    for argument in field.arguments:
        if not isinstance(argument, griffe.ExprKeyword):
            option.value = argument
        elif argument.name == "description" and not option.docstring:
            option.docstring = griffe.Docstring(ast.literal_eval(str(argument.value)), parent=option)

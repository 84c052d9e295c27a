"""The words of docs/glossary.md are used: no identifier, column, option or file name has an old word in its old sense."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import typer.main

from unseen.cli.main import app
from unseen.store import schema

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "unseen"
OLD_WORDS = {
    "condition": "split",
    "cell": "trial",
    "slice": "chunk",
    "tape": "context",
    "trace": "activations",
    "purity": "determinism",
    "seal": "checksum",
    "blob": "file",
    "crowd": "parallel probe",
    "sink": "tracking",
    "kept": "cache, captured or selected",
    "learning": "converged (as in still_learning)",
    "feed": "batches",
    "wrinkle": "irregularity",
}
# Where an old word is right, because it is not used in its old sense: a regular expression for "file: name", and why.
ALLOWED = {
    r"(tasks/(gcog|svg)|claims/papers/gcog|report/figures/gcog).*: .*(?i:cell).*": "a cell of gcog's grid",
    r"models/layers/positions\.py: cells": "the cells of the grid that tokens with two coordinates lie on",
    r"models/.*: (cell|d_cell|tanh_cell|.*cells|CELLS|Cell|CellName|\w+Cell)": "a recurrent cell (LSTM, GRU, Elman), or its state",
    r"report/figures/\w+\.py: .*(?i:cell).*": "a cell of a heat map",
    r"export/card\.py: cells?": "a cell of a Markdown table",
    r"store/migrate\.py: cells?": "a row of the table `cells` of schema 4, which is what is migrated",
    r"report/charts\.py: condition": "Vega-Lite's word for a value that depends on a test",
    r"report/exam_scores\.py: _learning_level": "the score from which a run counts as having learned the task",
    r"models/gcog/blocks\.py: _feed_forward": "the feed-forward layers of a Transformer block",
    r".*: learning_rate.*|.*: .*_learning_rate": "the learning rate",
    r".*: slice": "Python's slice objects",
    r".*: trace(back)?": "a traceback",
}


def _words(name: str) -> set[str]:
    """The words of an identifier, in the singular.

    >>> sorted(_words("StillLearning_cells"))
    ['cell', 'learning', 'still']
    """
    pieces = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    return {piece.lower().removesuffix("s") for piece in pieces}


def _identifiers(path: Path) -> set[str]:
    """All names that a module binds: functions, classes, parameters, variables, attributes, keywords of its own classes."""
    names = {path.stem}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return names


def _old(names: dict[str, set[str]]) -> list[str]:
    """`file: name` of every name with an old word that is not allowed there."""
    found = []
    for where, identifiers in names.items():
        for name in sorted(identifiers):
            entry = f"{where}: {name}"
            if _words(name) & set(OLD_WORDS) and not any(re.fullmatch(pattern, entry) for pattern in ALLOWED):
                found.append(entry)
    return found


def test_no_identifier_or_file_name_uses_an_old_word() -> None:
    names = {}
    for path in sorted(SOURCE.rglob("*.py")):
        names[str(path.relative_to(SOURCE))] = _identifiers(path)
    assert _old(names) == []


def test_no_option_of_the_command_line_uses_an_old_word() -> None:
    names = {}
    group = typer.main.get_command(app)
    for command in group.commands.values():  # type: ignore[attr-defined]
        names[f"unseen {command.name}"] = {
            option.lstrip("-") for parameter in command.params for option in parameter.opts
        }
    assert len(names) > 15
    assert _old(names) == []


def test_no_table_or_column_of_a_store_uses_an_old_word() -> None:
    text = (Path(schema.__file__)).read_text(encoding="utf-8")
    tables = re.findall(r"CREATE TABLE (\w+) \((.*?)\)(?: WITHOUT ROWID)?;", text, re.DOTALL)
    names = {
        f"table {table}": {table, *re.findall(r"(\w+) (?:INTEGER|TEXT|REAL)", columns)} for table, columns in tables
    }
    assert len(names) > 5
    assert _old(names) == []


def test_the_test_can_fail() -> None:
    assert _old({"store/store.py": {"cells", "condition_of", "split"}}) == [
        "store/store.py: cells",
        "store/store.py: condition_of",
    ]

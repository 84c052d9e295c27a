"""The plain solver is a stranger to the generator, and right on cases worked out by hand."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from unseen.tasks.retrieval import solver
from unseen.tasks.retrieval.solver import solve


def test_the_solver_imports_nothing_of_ours() -> None:
    tree = ast.parse(Path(solver.__file__).read_text())
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(f"{'.' * node.level}{node.module or ''}")
    assert imported == {"__future__", "collections.abc", "typing", "numpy", "numpy.typing"}


# Sequences are written as one string per token, a letter per feature; the pairs behind query 0 are (a, b), (c, d).
CASES = [
    ("T1", "a|-", True), ("T1", "b|-", False),
    ("T2", "ab|-", True), ("T2", "b|a", True), ("T2", "a|a", False),
    ("T3", "-|b", True), ("T3", "a|-", True), ("T3", "c|d", False),
    ("T4", "b|a", True), ("T4", "a|c", False),
    ("T5", "b|a", True), ("T5", "d|ca", True), ("T5", "a|d", False), ("T5", "ac|-", False),
    ("T6", "a|b", True), ("T6", "b|a", False), ("T6", "ab|-", False), ("T6", "b|a|b", True), ("T6", "ab|ab", True),
    ("T7", "c|d", True), ("T7", "d|c", False), ("T7", "b|a|c|d", True), ("T7", "a|d", False), ("T7", "cd|ba", False),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "answer"), CASES)
def test_cases_by_hand(kind: str, text: str, answer: bool) -> None:
    sequence = [{"abcd".index(letter) for letter in token if letter != "-"} for token in text.split("|")]
    query = {"T1": [0], "T2": [0, 1]}.get(kind, [0])
    pairs = [(0, 1), (2, 3)] if kind in ("T5", "T7") else [(0, 1)]
    assert solve(kind, sequence, query, [pairs]) is answer


def test_an_unknown_task_is_an_error() -> None:
    with pytest.raises(ValueError, match="T9"):
        solve("T9", [{0}], [0], [[(0, 1)]])

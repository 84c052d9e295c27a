"""Foreign examples against the plain solver."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unseen.tasks.base import Judgement, Mismatch
from unseen.tasks.retrieval.files import read_examples
from unseen.tasks.retrieval.mapping import Table
from unseen.tasks.retrieval.solver import solve_all

_WORDS = ("no", "yes")


def judge_file(path: str | Path, kind: str, table: Table, features: int = 36) -> Judgement:
    """Read a file of examples and compare every answer with the plain solver's."""
    examples = read_examples(path, kind, features)
    expected = solve_all(kind, examples.inputs["sequence"], examples.inputs["query"], table)
    given, line = examples.targets[:, 0], examples.factors["line"]
    wrong = np.flatnonzero(given != expected)
    return Judgement(len(examples), tuple(Mismatch(int(line[i]), _WORDS[given[i]], _WORDS[expected[i]]) for i in wrong))

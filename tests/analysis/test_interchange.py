from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from unseen.analysis.interchange import Pairs, make_pairs, score_pairs
from unseen.errors import UsageError
from unseen.randomness import stream
from unseen.tasks import task
from unseen.tasks.base import Examples

MATCHED = [
    ("ctl/A", "symbol[1]"),
    ("ctl/A", "function[1]"),
    ("retrieval/T6", "first_position[0]"),
    ("retrieval/T4", "second_present[0]"),
    ("rules/mlp", "rule"),
    ("rules/mha", "rule[3]"),
]
UNMATCHED = [("rules/mha", "first_token[3]"), ("gcog/distractor", "target_place")]


@pytest.mark.parametrize(("name", "variable"), [*MATCHED, *UNMATCHED])
def test_pairs_differ_in_the_variable_and_the_answer(name: str, variable: str) -> None:
    chosen = task(name, **({"features": 12} if name.startswith("retrieval") else {}))
    examples = chosen.sample("train", 3000 if (name, variable) in MATCHED else 400)
    pairs = make_pairs(chosen, examples, variable, 100, stream("test", name).block())
    base, source = chosen.variables(pairs.bases)[variable], chosen.variables(pairs.sources)[variable]
    assert 5 < len(pairs) <= 100
    assert (base.values != source.values).all() and (source.values >= 0).all()
    assert (pairs.expected != pairs.bases.targets).reshape(len(pairs), -1).any(1).all()
    assert pairs.matched == ((name, variable) in MATCHED)
    if pairs.matched:  # nothing else differs: the expected answer is the source's, as its own solver says
        np.testing.assert_array_equal(pairs.expected, pairs.sources.targets)
        np.testing.assert_array_equal(chosen.solve(pairs.sources), pairs.sources.targets)
        if base.context is not None:
            np.testing.assert_array_equal(base.context, source.context)


def answered(targets: np.ndarray) -> Examples:
    return Examples({}, targets, {})


def test_scores() -> None:
    pairs = Pairs(answered(np.array([0, 1, 2])), answered(np.zeros(3)), np.array([1, 2, 0]), matched=True)
    prediction = np.eye(3)[[1, 1, 1]]
    score = score_pairs(prediction, pairs, "category")
    assert (score.accuracy, score.unchanged, score.n) == (1 / 3, 1 / 3, 3)
    binary = Pairs(
        answered(np.array([[1, 0], [0, 0]])), answered(np.zeros(2)), np.array([[0, 0], [1, 1]]), matched=False
    )
    score = score_pairs(np.array([[-1.0, 9.0], [1.0, -1.0]]), binary, "binary")
    assert (score.accuracy, score.unchanged) == (0.75, 0.25)  # the answer that stays the same does not count
    real = Pairs(answered(np.zeros((2, 1))), answered(np.zeros(2)), np.array([[4.0], [4.0]]), matched=False)
    assert score_pairs(np.array([[3.0], [1.0]]), real, "real").accuracy == 0.5


def test_answers_that_move_are_the_models_own() -> None:
    pairs = Pairs(answered(np.array([0, 1, 2, 0])), answered(np.zeros(4)), np.array([1, 2, 0, 1]), matched=True)
    base, source = np.eye(3)[[0, 0, 1, 2]], np.eye(3)[[1, 2, 1, 0]]
    # The first is right before and after, the second wrong and as the source, the third was the same anyway, the fourth stays.
    score = score_pairs(np.eye(3)[[1, 2, 1, 2]], pairs, "category", (base, source))
    assert (score.accuracy, score.moved) == (0.5, 0.5)
    everything = score_pairs(source, pairs, "category", (base, source))
    assert everything.moved == 0.75  # the most that there can be: the third pair has one answer
    assert score_pairs(base, pairs, "category", (base, source)).moved == 0
    real = Pairs(answered(np.zeros((2, 1))), answered(np.zeros(2)), np.array([[4.0], [4.0]]), matched=True)
    own = np.array([[1.0], [5.0]]), np.array([[2.0], [5.0]])
    assert score_pairs(np.array([[1.8], [5.0]]), real, "real", own).moved == 0.5
    assert math.isnan(score_pairs(source, replace(pairs, matched=False), "category", (base, source)).moved)
    assert math.isnan(score_pairs(source, pairs, "category").moved)


def test_wrong_variables() -> None:
    chosen = task("ctl/A")
    examples = chosen.sample("train", 100)
    with pytest.raises(UsageError, match="probe it instead"):
        make_pairs(chosen, examples, "group[1]", 10, stream("test").block())
    with pytest.raises(UsageError, match="no variable 'symbl'"):
        make_pairs(chosen, examples, "symbl", 10, stream("test").block())
    with pytest.raises(UsageError, match="no two of 1 examples"):
        make_pairs(chosen, examples[:1], "function[1]", 10, stream("test").block())

"""The vectorised predicates against the plain solver, and the invariances of the tasks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen.randomness import stream
from unseen.tasks.retrieval.formulas import FORMULAS, And, Before, Occurs, evaluate
from unseen.tasks.retrieval.solver import solve

SLOTS = {"T1": 1, "T2": 2, "T3": 2, "T4": 2, "T5": 4, "T6": 2, "T7": 4}
KINDS = list(SLOTS)


def random_case(kind: str, length: int, density: float, seed: int, count: int = 200):
    """Random sequences over 8 features and random bindings; the two pairs may share features."""
    draws = stream("test", kind, length, seed).block()
    sequence = draws.bernoulli(density, (count, length, 8)).astype(np.uint8)
    return sequence, draws.permutations(count, 8)[:, : SLOTS[kind]]


def plain(kind: str, sequence: np.ndarray, binding: np.ndarray) -> list[bool]:
    """The plain solver, with a table made for each example."""
    answers = []
    for tokens, features in zip(sequence, binding.tolist(), strict=True):
        sets = [set(np.flatnonzero(token).tolist()) for token in tokens]
        table = [[(features[i], features[i + 1]) for i in range(0, len(features) - 1, 2)]]
        answers.append(solve(kind, sets, features if kind in ("T1", "T2") else [0], table))
    return answers


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.sampled_from(KINDS), st.integers(1, 7), st.sampled_from([0.1, 0.2, 0.5]), st.integers(0, 5))
def test_formulas_agree_with_the_plain_solver(kind: str, length: int, density: float, seed: int) -> None:
    sequence, binding = random_case(kind, length, density, seed)
    assert evaluate(FORMULAS[kind], sequence, binding).tolist() == plain(kind, sequence, binding)


@pytest.mark.parametrize("kind", ["T1", "T2", "T3", "T4", "T5"])
def test_order_does_not_matter_to_unordered_tasks(kind: str) -> None:
    sequence, binding = random_case(kind, 6, 0.2, 0)
    shuffled = sequence[:, stream("test").block().permutation(6)]
    formula = FORMULAS[kind]
    assert np.array_equal(evaluate(formula, sequence, binding), evaluate(formula, shuffled, binding))


def test_reversing_the_sequence_reverses_the_pair() -> None:
    sequence, binding = random_case("T6", 6, 0.2, 0)
    there = evaluate(FORMULAS["T6"], sequence, binding)
    back = evaluate(FORMULAS["T6"], sequence[:, ::-1], binding[:, ::-1])
    assert np.array_equal(there, back) and 0 < there.mean() < 1
    assert not np.array_equal(there, evaluate(FORMULAS["T6"], sequence[:, ::-1], binding))


@pytest.mark.parametrize("kind", KINDS)
def test_renaming_features_changes_nothing(kind: str) -> None:
    sequence, binding = random_case(kind, 6, 0.2, 0)
    names = stream("test", "names").block().permutation(8)
    renamed = np.zeros_like(sequence)
    renamed[:, :, names] = sequence
    formula = FORMULAS[kind]
    assert np.array_equal(evaluate(formula, sequence, binding), evaluate(formula, renamed, names[binding]))


def test_before_is_existential_and_strict() -> None:
    binding = np.array([[0, 1]])

    def before(*tokens: tuple[int, ...]) -> bool:
        bits = np.array([[[f in token for f in range(2)] for token in tokens]])
        return bool(evaluate(Before(0, 1), bits, binding)[0])

    assert before((0,), (), (1,))
    assert not before(
        (0, 1),
    )
    assert not before((), (0, 1))
    assert not before((1,), (0,))
    assert before((1,), (0,), (1,))  # neither the first b nor the last decides alone
    assert before((0, 1), (0, 1))
    assert before((0,), (1,), (0,))
    assert not before((0,))


def test_phrases_and_evidence() -> None:
    names = ["7", "22"]
    assert Before(0, 1).phrase(names) == "7 before 22"
    assert Before(0, 1).explain(names, [[1], [4]]) == (True, "7 at token 1, 22 at token 4, and 1 < 4")
    assert Before(0, 1).explain(names, [[4], [1]]) == (False, "7 at token 4, 22 at token 1, and 4 ≥ 1")
    assert Before(0, 1).explain(names, [[], [1]]) == (False, "7 nowhere")
    assert And((Occurs(0), Occurs(1))).explain(names, [[0, 2], []]) == (False, "22 nowhere")
    assert FORMULAS["T3"].explain(names, [[0, 2], []]) == (True, "7 at tokens 0 and 2")
    assert FORMULAS["T3"].explain(names, [[], []]) == (False, "7 nowhere; 22 nowhere")


@pytest.mark.parametrize("kind", KINDS)
def test_the_evidence_has_the_value_of_the_formula(kind: str) -> None:
    sequence, binding = random_case(kind, 5, 0.2, 1)
    values = evaluate(FORMULAS[kind], sequence, binding)
    for tokens, features, value in zip(sequence, binding, values, strict=True):
        where = [np.flatnonzero(tokens[:, f]).tolist() for f in features]
        assert FORMULAS[kind].explain([str(f) for f in features], where)[0] == value

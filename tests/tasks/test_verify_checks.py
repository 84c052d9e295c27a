"""Spec conformance, case by case."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support.standins import SPEC, conforming_examples
from unseen.tasks.verify import find_spec_violations


def test_examples_of_the_right_form_fit() -> None:
    assert find_spec_violations(SPEC, conforming_examples()) == []
    assert find_spec_violations(SPEC, conforming_examples()[:0]) == []


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        (
            "bits",
            np.ones((8, 4, 3), np.float32),
            "input 'bits' is float32; bits needs a NumPy dtype of kind b or i or u",
        ),
        ("bits", np.full((8, 4, 3), 2), "input 'bits' has values outside 0 … 1"),
        ("bits", np.ones((8, 4, 2), np.uint8), "input 'bits' has shape (8, 4, 2), expected (8, 4, 3)"),
        ("kind", np.full((8, 3), 3), "input 'kind' has shape (8, 3), expected (8, 4)"),
        ("kind", np.full((8, 4, 1), 3), "input 'kind' has shape (8, 4, 1), expected (8, 4)"),
        ("kind", np.full((8, 4), -1), "input 'kind' has values outside 0 … 3"),
        ("kind", np.full((8, 4), 4), "input 'kind' has values outside 0 … 3"),
        ("kind", np.full((8, 4), True), "input 'kind' is bool; category needs a NumPy dtype of kind i or u"),
        ("real", np.ones((8, 4), np.uint8), "input 'real' is uint8; mask needs a NumPy dtype of kind b"),
        ("x", np.zeros((8, 2, 2), np.int64), "input 'x' is int64; real needs a NumPy dtype of kind f"),
        ("x", np.full((8, 2, 2), np.nan), "input 'x' has values that are not finite"),
        ("q", np.zeros(7, np.int64), "input 'q' has shape (7,), expected (8,)"),
        ("q", [0] * 8, "input 'q' is of type list; category needs a NumPy dtype of kind i or u"),
    ],
)
def test_one_wrong_input_is_named(name: str, values: np.ndarray, words: str) -> None:
    examples = conforming_examples()
    assert find_spec_violations(SPEC, replace(examples, inputs={**examples.inputs, name: values})) == [words]


def test_wrong_targets_and_factors_are_named() -> None:
    examples = conforming_examples()
    assert find_spec_violations(SPEC, replace(examples, targets=np.full((8, 3), 6))) == [
        "the target has shape (8, 3), expected (8, 4)"
    ]
    assert find_spec_violations(SPEC, replace(examples, targets=np.full((8, 4), 7))) == [
        "the target has values outside 0 … 6"
    ]
    assert find_spec_violations(SPEC, replace(examples, factors={"rule": np.zeros(3)})) == [
        "factor 'rule' has shape (3,), expected 8 along the first axis"
    ]
    assert find_spec_violations(SPEC, replace(examples, factors={"rule": ["a"] * 8})) == [
        "factor 'rule' is not an array of numbers, booleans or text"
    ]

"""Spec conformance and fingerprints, case by case."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import standins

from unseen.errors import CheckFailed, UsageError
from unseen.spec import Field, Spec, Stream, Target
from unseen.tasks.base import Examples
from unseen.tasks.verify import fingerprint, misfits
from unseen.tasks.verify.purity import elsewhere, impurities, reach

SPEC = Spec(
    (Stream("tokens", 5), Stream("others", 2)),
    (
        Field("bits", "bits", 3, "tokens"),
        Field("kind", "category", 4, "tokens"),
        Field("real", "mask", 1, "tokens"),
        Field("x", "real", 2, "others"),
        Field("q", "category", 6),
    ),
    Target("category", 7, "tokens"),
)


def fitting() -> Examples:
    inputs = {
        "bits": np.ones((8, 4, 3), np.uint8),  # four tokens, not the nominal five: a condition may differ
        "kind": np.full((8, 4), 3),
        "real": np.ones((8, 4), np.bool_),
        "x": np.zeros((8, 2, 2), np.float32),
        "q": np.full(8, 5),
    }
    return Examples(inputs, np.full((8, 4), 6), {"rule": np.array(["a"] * 8), "pair": np.zeros((8, 2), np.int8)})


def test_examples_of_the_right_form_fit() -> None:
    assert misfits(SPEC, fitting()) == []
    assert misfits(SPEC, fitting()[:0]) == []


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
    examples = fitting()
    assert misfits(SPEC, replace(examples, inputs={**examples.inputs, name: values})) == [words]


def test_wrong_targets_and_factors_are_named() -> None:
    examples = fitting()
    assert misfits(SPEC, replace(examples, targets=np.full((8, 3), 6))) == [
        "the target has shape (8, 3), expected (8, 4)"
    ]
    assert misfits(SPEC, replace(examples, targets=np.full((8, 4), 7))) == ["the target has values outside 0 … 6"]
    assert misfits(SPEC, replace(examples, factors={"rule": np.zeros(3)})) == [
        "factor 'rule' has shape (3,), expected 8 along the first axis"
    ]
    assert misfits(SPEC, replace(examples, factors={"rule": ["a"] * 8})) == [
        "factor 'rule' is no array of numbers, booleans or text"
    ]


def test_fingerprint_is_fixed_and_sees_every_change() -> None:
    examples = fitting()
    first = fingerprint(examples)
    assert first == "4cf1897aa8000383d79ad22aaa703b7c"
    changed = [
        replace(examples, inputs={**examples.inputs, "q": np.full(8, 4)}),
        replace(examples, inputs={**examples.inputs, "q": np.full(8, 5, np.int32)}),
        replace(examples, inputs={"r" if k == "q" else k: v for k, v in examples.inputs.items()}),
        replace(examples, inputs={**examples.inputs, "x": np.zeros((8, 4, 1), np.float32)}),
        replace(examples, targets=np.zeros((8, 4), np.int64)),
        replace(examples, factors={**examples.factors, "rule": np.array(["b"] * 8)}),
        replace(examples, factors={}),
    ]
    prints = {first, *map(fingerprint, changed)}
    assert len(prints) == 1 + len(changed)


def test_fingerprint_sees_neither_order_of_names_nor_memory_layout_nor_width_of_text() -> None:
    examples = fitting()
    same = Examples(
        {name: np.asfortranarray(values) for name, values in reversed(examples.inputs.items())},
        examples.targets.astype(">i8"),
        {**examples.factors, "rule": np.array(["a"] * 8, "<U9")},
    )
    assert fingerprint(same) == fingerprint(examples)
    with pytest.raises(UsageError, match="no fingerprint"):
        fingerprint(replace(examples, factors={"rule": np.array([None] * 8)}))


def test_reach_stays_inside_a_small_set_and_goes_past_two_blocks_otherwise() -> None:
    task = standins.Clean(evaluation_size=40)
    assert (reach(task, "iid"), reach(task, "train")) == (40, 2 * 1024 + 300)
    assert impurities(task, "iid") == impurities(task, "train") == []


def test_another_process_draws_the_same_and_reports_its_errors() -> None:
    task = standins.Crashing(part="generate iid", evaluation_size=7)
    there = elsewhere(task, {"train": 50, "iid": 7})
    assert there == {
        "train": fingerprint(task.sample("train", 50)),
        "iid": "ZeroDivisionError: planted in generate iid",
    }


def test_process_that_cannot_rebuild_the_task_is_an_error() -> None:
    class Hidden(standins.Clean):
        pass

    Hidden.__qualname__ = "Hidden"
    with pytest.raises(CheckFailed, match="another process failed: AttributeError"):
        elsewhere(Hidden(), {"train": 1})

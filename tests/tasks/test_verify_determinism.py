"""Fingerprints, and examples that depend on nothing but their name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support import standins
from support.standins import conforming_examples
from unseen.errors import CheckFailed, UsageError
from unseen.tasks.base import Examples
from unseen.tasks.verify import fingerprint
from unseen.tasks.verify.determinism import count_compared, find_batch_dependence, fingerprint_in_new_process


def test_fingerprint_is_fixed_and_sees_every_change() -> None:
    examples = conforming_examples()
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
    examples = conforming_examples()
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
    assert (count_compared(task, "iid"), count_compared(task, "train")) == (40, 2 * 1024 + 300)
    assert find_batch_dependence(task, "iid") == find_batch_dependence(task, "train") == []


def test_another_process_draws_the_same_and_reports_its_errors() -> None:
    task = standins.Crashing(part="generate iid", evaluation_size=7)
    there = fingerprint_in_new_process(task, {"train": 50, "iid": 7})
    assert there == {
        "train": fingerprint(task.sample("train", 50)),
        "iid": "ZeroDivisionError: planted in generate iid",
    }


def test_process_that_cannot_rebuild_the_task_is_an_error() -> None:
    class Hidden(standins.Clean):
        pass

    Hidden.__qualname__ = "Hidden"
    with pytest.raises(CheckFailed, match="another process failed: AttributeError"):
        fingerprint_in_new_process(Hidden(), {"train": 1})

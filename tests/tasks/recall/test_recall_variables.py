"""The variables of recall examples, against the plain solver."""

from __future__ import annotations

import numpy as np

import unseen
from unseen.analysis.interchange import make_pairs
from unseen.randomness import stream
from unseen.tasks.base import Examples


def test_values_stand_where_they_are_said_to_and_another_changes_one_answer() -> None:
    task = unseen.task("recall/mqar", pairs=4, keys=10, values=10, length=12)
    for split in ("train", "ood/pairs", "ood/more"):
        examples = task.sample(split, 50)
        variables = task.variables(examples)
        rows = np.arange(50)
        for query in range(examples.targets.shape[1]):
            values = variables[f"value[{query}]"].values
            np.testing.assert_array_equal(values, examples.targets[:, query])
            context = examples.inputs["token"]
            stored = context[rows, variables[f"value_position[{query}]"].values]
            np.testing.assert_array_equal(stored, values + task.keys)  # type: ignore[attr-defined]
            asked = context[rows, variables[f"key_position[{query}]"].values]
            np.testing.assert_array_equal(asked, examples.inputs["query"][:, query])


def test_counterparts_have_the_expected_answers_and_belong_to_their_split() -> None:
    task = unseen.task("recall/mqar", pairs=4, keys=10, values=10, length=12)
    for split, held_out in (("iid", False), ("ood/pairs", True)):
        examples = task.sample(split, 300, data_seed="test")
        pairs = make_pairs(task, examples, "value[1]", 200, stream("test", "recall").block())
        assert pairs.matched and len(pairs) > 50
        blank = Examples(pairs.sources.inputs, pairs.sources.targets, {})
        np.testing.assert_array_equal(task.solve(blank), pairs.expected)
        changed = pairs.bases.inputs["token"] != pairs.sources.inputs["token"]
        assert (changed.sum(1) == 1).all()
        keys = pairs.sources.inputs["query"][:, 1]
        multiples = (pairs.expected[:, 1] - keys) % 10 % 5 == 0
        assert (multiples == held_out).all()

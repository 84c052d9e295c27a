"""The benchmark of the gcog models: that plain and ours are of one size, the products it counts, its rows."""

from __future__ import annotations

from typing import Any

import pytest

from unseen.benchmarks import BENCHMARKS
from unseen.benchmarks.gcog import CASES, RULE, SPEC, Case, examples, step
from unseen.benchmarks.step import operations
from unseen.models import options
from unseen.models.build import build, parameter_count


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_plain_and_ours_have_the_same_parameters(case: Case) -> None:
    ours = parameter_count(build(options(case.model, **case.options), SPEC))
    assert parameter_count(case.plain(**case.plain_options)) == ours


def test_counts_the_products_of_a_recurrent_step() -> None:
    """The stimulus once, every rule token, every step but the first, which has no state to look at; the answer."""
    inputs, targets = examples(1, 4)
    counted = operations(options("gcog-rnn"), SPEC, {name: value[0] for name, value in inputs.items()}, targets[0])
    of_inputs = 512 * (303 + RULE * 8)  # a product forward, one for the gradient of the weight
    of_states = 512 * 512 * (RULE - 1) + 512 * 138  # and one for the gradient of the state
    assert counted == 4 * (2 * 2 * of_inputs + 3 * 2 * of_states)


def test_shortcuts_save_what_they_should() -> None:
    """The specification counts 1 002 MFLOP for an example of the single-stream Transformer, all tokens in full."""
    inputs, targets = examples(1, 256)
    counted = operations(options("gcog-single-stream"), SPEC, {k: v[0] for k, v in inputs.items()}, targets[0]) / 256
    assert counted < 1002e6 / 90


@pytest.mark.slow
def test_rows() -> None:
    assert BENCHMARKS.load("gcog-step") is step
    rows: list[dict[str, Any]] = list(step(quick=True))
    assert [row["model"] for row in rows] == [case.name for case in CASES]
    for row in rows:
        assert list(row) == ["model", "batch", "S", "gflop", "machine", "share", "plain_ms", "ours_ms", "ratio"]
        assert row["ratio"] == pytest.approx(row["plain_ms"] / row["ours_ms"], rel=0.1)

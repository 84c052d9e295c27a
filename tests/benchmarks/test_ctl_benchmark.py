"""The benchmark of the ctl models: that it counts the products it should, and what its rows are."""

from __future__ import annotations

from typing import Any

import pytest

from unseen.benchmarks import BENCHMARKS
from unseen.benchmarks.ctl import MODELS, TOKENS, products, step

BATCH = 3


def layers(width: int, tokens: int, queries: int, feedforward: int, others: int, pairs: int) -> int:
    """Multiplications of one layer on one example, where only some tokens are queries. Keys and values are of all."""
    of_queries = 2 * width * width + 2 * width * feedforward + others
    return 2 * tokens * width * width + queries * of_queries + pairs * queries * width


def bilstm() -> int:
    return 2 * (TOKENS - 1) * 4 * 128 * (256 + 128) + 256 * 8


def transformer() -> int:
    position_keys = 2 * TOKENS - 1
    full = layers(128, TOKENS, TOKENS, 256, 0, 2 * TOKENS + position_keys)
    last = layers(128, TOKENS, 1, 256, 0, 2 * TOKENS + TOKENS)
    return 7 * full + last + 128 * 8


def ndr() -> int:
    gate_and_direction = 2 * 256 * 256 + 256 * 8
    full = layers(256, TOKENS, TOKENS, 512, gate_and_direction, 2 * TOKENS)
    return 7 * full + layers(256, TOKENS, 1, 512, gate_and_direction, 2 * TOKENS) + 256 * 8


@pytest.mark.parametrize(("model", "forward", "slack"), [
    ("ctl-bilstm", bilstm(), 0.02),  # the first step has no state to send a gradient to
    ("ctl-transformer", transformer(), 0.1),  # the keys of positions are of the batch, not of an example
    ("ctl-ndr", ndr(), 0.0)])
def test_counts_every_product_forward_and_backward(model: str, forward: int, slack: float) -> None:
    assert products(model, BATCH) == pytest.approx(6 * BATCH * forward, rel=slack)


def test_the_work_of_the_paper_is_what_the_specification_says() -> None:
    """Reading 4.72 functions on average NDR takes 126 GFLOP; reading 5, and only one token at last, 119."""
    assert 512 / 8 * products("ctl-ndr", 8) / 1e9 == pytest.approx(126 * 8 / 7.72 * (1 - 0.091), rel=0.01)


@pytest.mark.slow
def test_rows() -> None:
    assert BENCHMARKS.load("ctl-step") is step
    rows: list[dict[str, Any]] = list(step(quick=True))
    assert [row["model"] for row in rows] == list(MODELS)
    for row in rows:
        assert list(row) == ["model", "S", "gflop", "milliseconds", "machine", "share"]
        assert row["share"] == pytest.approx(row["gflop"] / row["milliseconds"] * 1e3 / row["machine"], rel=0.05)

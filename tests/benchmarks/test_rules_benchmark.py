"""The yardsticks of `rules-stack` are the models they stand for, and its rows say what was compared."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unseen.benchmarks import BENCHMARKS
from unseen.benchmarks.plain_rules import PlainMHA, PlainMLP, PlainRNN
from unseen.benchmarks.rules import rules
from unseen.models.build import parameter_count as built_count
from unseen.models.rules.counts import parameter_count

PLAIN: dict[str, type[nn.Module]] = {"mlp": PlainMLP, "mha": PlainMHA, "rnn": PlainRNN}


@pytest.mark.parametrize("gating", ["none", "joint"])
@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("count", [2, 8])
def test_plain_models_are_as_large_as_ours(kind: str, gating: str, count: int) -> None:
    assert built_count(PLAIN[kind](gating, count, 32)) == parameter_count(kind, gating, count, 32)  # type: ignore[arg-type]


def test_mixing_before_or_after_the_second_layer_is_the_same() -> None:
    naive, rewritten = PlainMLP("joint", 4, 8), PlainMLP("joint", 4, 8, rewritten=True)
    rewritten.load_state_dict(naive.state_dict())
    inputs = {"x": torch.randn(9, 2), "rule": torch.arange(9) % 4}
    torch.testing.assert_close(naive(inputs), rewritten(inputs))


def test_rows() -> None:
    assert BENCHMARKS.load("rules-stack") is rules
    rows = list(rules(quick=True))
    assert [(row["ours"], row["against"]) for row in rows] == [
        ("none", "none plain"), ("joint", "joint naive"), ("joint", "joint rewritten"), ("joint", "none")]
    for row in rows:
        assert list(row)[-1] == "ratio"
        assert row["ratio"] == pytest.approx(row["against_ms"] / row["ours_ms"], rel=0.05)  # type: ignore[operator]

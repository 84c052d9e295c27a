"""The benchmark of metrics: what it measures is what it says, at the sizes it says."""

from __future__ import annotations

import pytest
from benchmarks.alignment import METRICS, _routing, alignment
from benchmarks.rows import Asked

from unseen.analysis import alignment as aligned


def test_the_target_is_measured_at_its_size() -> None:
    assert {metric.size for name, metric in METRICS.items() if name.startswith("alignment")} == {1024}


def test_routing_is_as_decided_as_asked() -> None:
    """A share of each rule is where it belongs, and of the rest what falls there: the more, the better aligned."""
    found = [aligned(_routing(16, share)) for share in (0.0, 0.5, 1.0)]
    assert found[0] > found[1] > found[2] == 0
    assert _routing(16, 0.5).sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("name", sorted({*METRICS} - {"specialization"}))  # which has 100 000 tokens at any size
def test_every_metric_can_be_had_at_a_small_size(name: str) -> None:
    METRICS[name].make(8)()


def test_rows() -> None:
    rows = list(alignment(Asked(quick=True, only="rules=128")))
    assert [row.case for row in rows] == [f"{name} rules=128" for name in METRICS if name.startswith("alignment")]
    assert all(row.unit == "ms" and row.better == "less" and row.rounds == 2 for row in rows)
    assert all(row.low is not None and row.high is not None and row.low <= row.value <= row.high for row in rows)

"""The simulated cluster, with few workers: its figures, and that no trial is lost or done twice."""

from __future__ import annotations

from benchmarks.cluster import CHECKPOINT, CHUNKS, STACK, cluster
from benchmarks.rows import Asked


def test_rows() -> None:
    rows = {row.figure: row.value for row in cluster(Asked(quick=True, only="workers=16 trials=200"))}
    assert rows["trials lost"] == 0 and rows["trials with a chunk missing or done twice"] == 0
    assert rows["outcomes that the runner takes"] > 0 and rows["runner's memory at the end"] > 0
    stacks = 200 // STACK
    assert rows["checkpoints declared"] == stacks * (CHUNKS - 1) * CHECKPOINT / 1e9
    assert 0 <= rows["outcomes waiting at most"] <= 17
    assert list(cluster(Asked(quick=True, only="no such case"))) == []


def test_ray_sends_few_checkpoints_through_the_runner() -> None:
    rows = {row.figure: row.value for row in cluster(Asked(quick=True, only="ray, one actor"))}
    assert rows["segments of chunks"] >= 1
    by_value = rows["checkpoints through the runner per segment, by value"]
    assert rows["checkpoints through the runner per segment"] < by_value / 3

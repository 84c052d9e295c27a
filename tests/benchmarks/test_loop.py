"""The plain loop trains what it is compared with: dropout acts wherever a layer asks the tape for it."""

from __future__ import annotations

import pytest
import torch

from unseen.benchmarks.loop import LoopTape


@pytest.mark.parametrize(
    "left",
    [lambda x: LoopTape().dropout(x, 0.5), lambda x: LoopTape().onto(torch.zeros_like(x), x, 0.5)],
    ids=["dropout", "onto"],
)
def test_half_is_dropped_and_the_rest_scaled_up(left) -> None:
    found = left(torch.ones(10_000))
    assert set(found.tolist()) == {0.0, 2.0}
    assert 0.45 < (found == 0).float().mean() < 0.55

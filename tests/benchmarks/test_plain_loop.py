"""The plain loop trains what it is compared with: dropout acts wherever a layer asks the context for it."""

from __future__ import annotations

import pytest
import torch
from benchmarks.loop import LoopContext


@pytest.mark.parametrize(
    "left",
    [lambda x: LoopContext().dropout(x, 0.5), lambda x: LoopContext().add_dropped(torch.zeros_like(x), x, 0.5)],
    ids=["dropout", "onto"],
)
def test_half_is_dropped_and_the_rest_scaled_up(left) -> None:
    found = left(torch.ones(10_000))
    assert set(found.tolist()) == {0.0, 2.0}
    assert 0.45 < (found == 0).float().mean() < 0.55

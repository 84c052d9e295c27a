"""What docs/your-model.md says a wrong model is told; its code is run by tests/docs/test_docs_blocks.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import unseen

PAGE = (Path(__file__).parents[1] / "docs" / "your-model.md").read_text()


def test_the_error_shown_is_the_one_that_is_raised() -> None:
    class Mine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.answer = nn.Linear(36, 1)

        def forward(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
            return self.answer(inputs["query"])[:, 0]

    with pytest.raises(unseen.UsageError) as caught:
        unseen.train("retrieval/T1", Mine, seeds=1)
    assert f"error: {caught.value}\n" in PAGE

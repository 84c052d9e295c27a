"""Each gcog model can learn a handful of examples by heart."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from support.gcog_models import inputs, spec
from unseen.models import options
from unseen.models.build import build
from unseen.models.context import Context

MODELS: list[tuple[str, dict[str, Any]]] = [
    ("gcog-rnn", {"width": 16}),
    ("gcog-gru", {"width": 16}),
    *(
        (name, {"width": 16, "hidden": 16})
        for name in ("gcog-single-stream", "gcog-dual-stream", "gcog-cross-attention", "gcog-perceiver")
    ),
    ("gcog-perceiver", {"width": 16, "hidden": 16, "latents": "learned"}),
    ("gcog-bert", {"width": 16, "hidden": 16, "layers": 2, "heads": 2}),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_learns_five_examples_by_heart(model: tuple[str, dict[str, Any]]) -> None:
    name, given = model
    of, answers = spec("embedding"), torch.tensor([0, 137, 5, 77, 102])
    module, examples = build(options(name, **given), of, 0), inputs(of)
    optimiser = torch.optim.Adam(module.parameters(), 0.01)
    for _ in range(60):
        optimiser.zero_grad()
        F.cross_entropy(module(examples, Context(torch.zeros(0, dtype=torch.int16))), answers).backward()
        optimiser.step()
    assert torch.equal(module(examples).argmax(-1), answers)

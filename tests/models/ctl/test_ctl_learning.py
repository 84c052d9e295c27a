"""Each ctl model can learn a handful of examples by heart."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from support.ctl_cases import SYMBOLS, inputs, spec
from unseen.models import options
from unseen.models.build import build
from unseen.models.context import Context

MODELS: list[tuple[str, dict[str, Any]]] = [
    ("ctl-bilstm", {"embedding": 16, "width": 16, "dropout": 0.0}),
    ("ctl-transformer", {"width": 16, "feedforward": 32, "layers": 3, "dropout": 0.0, "key_dropout": 0.0}),
    *(
        (
            "ctl-ndr",
            {
                "form": form,
                "width": 16,
                "feedforward": 32,
                "layers": 3,
                "extra_layers": 0,
                "dropout": 0.0,
                "key_dropout": 0.0,
                "gate_dropout": 0.0,
            },
        )
        for form in ("ctl++", "original")
    ),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: " ".join([model[0], str(model[1].get("form", ""))]))
def test_learns_twelve_examples_by_heart(model: tuple[str, dict[str, Any]]) -> None:
    name, given = model
    module, examples = build(options(name, **given), spec(), 0), inputs(12)
    answers = torch.randint(SYMBOLS, (12,), generator=torch.Generator().manual_seed(5))
    optimiser = torch.optim.Adam(module.parameters(), 0.01)
    nothing = torch.zeros(0, dtype=torch.int16)
    for _ in range(150):
        optimiser.zero_grad()
        F.cross_entropy(module(examples, Context(nothing)), answers).backward()
        optimiser.step()
    assert torch.equal(module(examples).argmax(-1), answers)

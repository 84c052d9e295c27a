"""Members of a stack have the bits they have alone: predictions, gradients and training, with every dropout on."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from support.ctl_cases import PAPER
from support.ctl_cases import spec as small
from support.stacks import Members, assert_close_in_double, assert_same_bits, assert_same_training
from unseen.models import options

NDR = {"width": 20, "heads": 4, "feedforward": 22, "layers": 3}
MODELS: list[tuple[str, dict[str, Any]]] = [
    ("ctl-bilstm", {"embedding": 10, "width": 9}),
    ("ctl-transformer", {"width": 20, "heads": 2, "feedforward": 22, "layers": 3}),
    ("ctl-transformer", {"width": 14, "heads": 1, "feedforward": 9, "layers": 2, "read_at": "end"}),
    ("ctl-ndr", NDR),
    ("ctl-ndr", {**NDR, "form": "original"}),
    ("ctl-ndr", {"width": 13, "heads": 1, "feedforward": 11, "layers": 2, "read_at": "end"}),
    ("ctl-ndr", {"width": 64, "feedforward": 128, "layers": 2}),
]
GROUPS = [[m] for m in range(16)] + [[9, 3], [15, 0], [9, 1, 2, 3, 4], [5, 11, 9, 2, 15]]


@pytest.mark.parametrize("batch", [1, 7, 10])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_predictions_and_gradients_of_one_step(model: tuple[str, dict[str, Any]], batch: int) -> None:
    name, given = model
    members = Members(options(name, **given), small(), batch)
    assert members.lanes > 0
    gradients = assert_same_bits(members, GROUPS)
    if batch > 1:  # a single example may be all padding
        assert all(g.flatten(1).any(1).all() for g in gradients)


@pytest.mark.parametrize("name", ["ctl-bilstm", "ctl-transformer", "ctl-ndr"])
def test_at_the_width_of_the_paper(name: str) -> None:
    depth = {} if name == "ctl-bilstm" else {"layers": 2}
    members = Members(options(name, **depth), PAPER, 19, count=5)
    assert_same_bits(members, [[0], [3], [4, 1]])


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_forty_steps_of_training(model: tuple[str, dict[str, Any]]) -> None:
    name, given = model
    members = Members(options(name, **given), small(), 7)
    assert_same_training(members, 40, 11, [[11], [4, 11], [3, 2, 11, 9, 8]])


@pytest.mark.parametrize("model", MODELS[:4], ids=str)
def test_double_precision(model: tuple[str, dict[str, Any]]) -> None:
    name, given = model
    members = Members(options(name, **given), small(), 7, count=5, dtype=torch.float64)
    assert_close_in_double(members, 10, [3])

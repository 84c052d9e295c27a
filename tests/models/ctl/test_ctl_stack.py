"""Members of a stack have the bits they have alone: predictions, gradients and training, with every dropout on."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from ctl_cases import PAPER
from ctl_cases import spec as small
from stacks import Members

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
EVERYONE = list(range(16))
GROUPS = [[m] for m in EVERYONE] + [[9, 3], [15, 0], [9, 1, 2, 3, 4], [5, 11, 9, 2, 15]]


def compare(members: Members, everyone: list[int], groups: list[list[int]]) -> None:
    assert members.lanes > 0
    together, gradients = members.gradients(members.parameters(everyone), everyone, 0)
    assert all(g.isfinite().all() for g in gradients)
    if members.batch > 1:  # a single example may be all padding
        assert all(g.flatten(1).any(1).all() for g in gradients)
    for group in groups:
        own, own_gradients = members.gradients(members.parameters(group), group, 0)
        assert torch.equal(own, together[group]), group
        for parameter, a, b in zip(members.names, own_gradients, gradients, strict=True):
            assert torch.equal(a, b[group]), (group, parameter)


@pytest.mark.parametrize("batch", [1, 7, 10])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_predictions_and_gradients_of_one_step(model: tuple[str, dict[str, Any]], batch: int) -> None:
    name, given = model
    compare(Members(options(name, **given), small(), batch), EVERYONE, GROUPS)


@pytest.mark.parametrize("name", ["ctl-bilstm", "ctl-transformer", "ctl-ndr"])
def test_at_the_width_of_the_paper(name: str) -> None:
    depth = {} if name == "ctl-bilstm" else {"layers": 2}
    members = Members(options(name, **depth), PAPER, 19, count=5)
    compare(members, [0, 1, 2, 3, 4], [[0], [3], [4, 1]])


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_forty_steps_of_training(model: tuple[str, dict[str, Any]]) -> None:
    name, given = model
    members = Members(options(name, **given), small(), 7)
    together = members.train(EVERYONE, 40)
    for group, place in (([11], 0), ([4, 11], 1), ([3, 2, 11, 9, 8], 2)):
        for parameter, a, b in zip(members.names, members.train(group, 40), together, strict=True):
            assert torch.equal(a[place], b[11]), (group, parameter)


@pytest.mark.parametrize("model", MODELS[:4], ids=str)
def test_double_precision(model: tuple[str, dict[str, Any]]) -> None:
    name, given = model
    members = Members(options(name, **given), small(), 7, count=5, dtype=torch.float64)
    together = members.train(range(5), 10)
    for a, b in zip(members.train([3], 10), together, strict=True):
        torch.testing.assert_close(a[0], b[3], rtol=0, atol=1e-9)

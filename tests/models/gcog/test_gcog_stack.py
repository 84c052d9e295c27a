"""Members of a stack have the bits they have alone: predictions, gradients and training."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from gcog_models import spec
from stacks import Members

from unseen.models import options

SMALL = {"width": 20, "hidden": 22}
RELATIVE = {"positions": "relative"}
MODELS: list[tuple[str, dict[str, Any]]] = [
    ("gcog-rnn", {"width": 19}),
    ("gcog-rnn", {"width": 20, "activation": "tanh", "norm_each_step": True}),
    ("gcog-gru", {"width": 19}),
    *(
        (name, {**SMALL, **given})
        for name in ("gcog-single-stream", "gcog-dual-stream", "gcog-cross-attention", "gcog-perceiver")
        for given in ({}, RELATIVE, {"pos_dropout": 0.1})
        if not (name == "gcog-dual-stream" and given)
    ),
    ("gcog-single-stream", {"width": 13, "hidden": 9, "stim_position": "fixed"}),
    ("gcog-perceiver", {**SMALL, **RELATIVE, "latents": "learned", "causal": False}),
    ("gcog-bert", {**SMALL, "layers": 1, "heads": 1}),
    ("gcog-bert", {**SMALL, "layers": 2, "heads": 4}),
    ("gcog-bert", {**SMALL, "layers": 3, "heads": 2, "positions": "absolute", "pos_dropout": 0.1}),
]
EVERYONE = list(range(16))
GROUPS = [[0], [9], [15], [3, 9], [5, 11, 9, 2, 15]]


def compare(members: Members, everyone: list[int], groups: list[list[int]]) -> None:
    together, gradients = members.gradients(members.parameters(everyone), everyone, 0)
    assert all(g.isfinite().all() for g in gradients)
    for group in groups:
        own, own_gradients = members.gradients(members.parameters(group), group, 0)
        assert torch.equal(own, together[group]), group
        for parameter, a, b in zip(members.names, own_gradients, gradients, strict=True):
            assert torch.equal(a, b[group]), (group, parameter)


@pytest.mark.parametrize(("coding", "batch"), [("integer", 1), ("integer", 10), ("embedding", 7)])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_predictions_and_gradients_of_one_step(model: tuple[str, dict[str, Any]], coding: str, batch: int) -> None:
    name, given = model
    compare(Members(options(name, **given), spec(coding), batch), EVERYONE, GROUPS)


LARGE: list[tuple[str, dict[str, Any]]] = [
    *(
        (name, {})
        for name in (
            "gcog-rnn",
            "gcog-gru",
            "gcog-single-stream",
            "gcog-dual-stream",
            "gcog-cross-attention",
            "gcog-perceiver",
        )
    ),
    ("gcog-bert", {"layers": 1, "heads": 4, "positions": "absolute"}),
    ("gcog-bert", {"layers": 2}),
]


@pytest.mark.parametrize("coding", ["integer", "onehot"])
@pytest.mark.parametrize("model", LARGE, ids=str)
def test_at_the_size_of_the_paper(model: tuple[str, dict[str, Any]], coding: str) -> None:
    name, given = model
    members = Members(options(name, **given), spec(coding, cells=100 if coding == "integer" else 12), 9, count=3)
    compare(members, [0, 1, 2], [[1], [2, 0]])


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_ten_steps_of_training(model: tuple[str, dict[str, Any]]) -> None:
    name, given = model
    members = Members(options(name, **given), spec(), 7)
    together = members.train(EVERYONE, 10)
    for group, place in (([11], 0), ([3, 2, 11, 9, 8], 2)):
        for parameter, a, b in zip(members.names, members.train(group, 10), together, strict=True):
            assert torch.equal(a[place], b[11]), (group, parameter)


@pytest.mark.parametrize("model", MODELS[::3], ids=str)
def test_double_precision(model: tuple[str, dict[str, Any]]) -> None:
    name, given = model
    members = Members(options(name, **given), spec(), 7, count=5, dtype=torch.float64)
    together = members.train(range(5), 5)
    for a, b in zip(members.train([3], 5), together, strict=True):
        torch.testing.assert_close(a[0], b[3], rtol=0, atol=1e-9)

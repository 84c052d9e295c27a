"""Members of a stack have the bits they have alone: predictions, gradients and training."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from support.gcog_models import spec
from support.stacks import Members, assert_close_in_double, assert_same_bits, assert_same_training
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
GROUPS = [[0], [9], [15], [3, 9], [5, 11, 9, 2, 15]]


INPUTS = [("integer", 1), ("integer", 10), ("embedding", 7)]
"""A coding and the size of a batch."""


@pytest.mark.parametrize(
    ("model", "coding", "batch"),
    # One example for every model, and one of the others in turn.
    [(model, *INPUTS[k]) for number, model in enumerate(MODELS) for k in (0, 1 + number % 2)],
    ids=str,
)
def test_predictions_and_gradients_of_one_step(model: tuple[str, dict[str, Any]], coding: str, batch: int) -> None:
    name, given = model
    assert_same_bits(Members(options(name, **given), spec(coding), batch), GROUPS)


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
    assert_same_bits(members, [[1], [2, 0]])


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_ten_steps_of_training(model: tuple[str, dict[str, Any]]) -> None:
    name, given = model
    members = Members(options(name, **given), spec(), 7)
    assert_same_training(members, 10, 11, [[11], [3, 2, 11, 9, 8]])


@pytest.mark.parametrize("model", MODELS[::3], ids=str)
def test_double_precision(model: tuple[str, dict[str, Any]]) -> None:
    name, given = model
    members = Members(options(name, **given), spec(), 7, count=5, dtype=torch.float64)
    assert_close_in_double(members, 5, [3])

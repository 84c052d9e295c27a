"""Every backbone, scheme and gating in stacks: the bits of a member alone, forward and backward."""

from __future__ import annotations

import pytest
import torch

from support.backbone_cases import CASES, Case, named
from support.specimens import SPECS
from support.stacks import Members, assert_close_in_double, assert_same_bits, assert_same_training
from unseen.models import options
from unseen.spec import Field, GridShape, Spec, Stream, Target

GCOG = Spec(
    (Stream("rule", 5), Stream("stimulus", 13, GridShape(3, 4))),
    (Field("operator", "category", 6, "rule"), Field("mask", "mask", 1, "rule"), Field("cell", "real", 3, "stimulus")),
    Target("category", 9),
)
NUMBER = Spec((), (Field("x", "real", 1),), Target("real", 1))
FORMS = {"rules/mha": SPECS["rules/mha"], "gcog": GCOG, "retrieval": SPECS["retrieval"]}
PAIRS = [(case, list(FORMS)[number % len(FORMS)]) for number, case in enumerate(CASES)]
"""Every case with one form in turn: all backbones are tried on those of all families in `test_model_contract`."""


@pytest.mark.parametrize(("case", "form"), PAIRS, ids=named)
def test_predictions_and_gradients(case: Case, form: str) -> None:
    members = Members(options(case[0], **case[1]), FORMS[form], 7, count=5)
    assert_same_bits(members, [[4], [3, 0]])


@pytest.mark.parametrize("case", CASES, ids=named)
def test_one_example_and_one_number(case: Case) -> None:
    """Products with a single row or column are where a member alone would round differently."""
    for spec, batch in ((GCOG, 1), (NUMBER, 64)):
        assert_same_bits(Members(options(case[0], **case[1]), spec, batch, count=5), [[4], [3, 0]])


def test_a_convolution_of_several_blocks() -> None:
    """s4d with words that are longer than a block of its convolution."""
    long = Spec((Stream("tokens", 300),), (Field("token", "category", 4, "tokens"),), Target("category", 4, "tokens"))
    members = Members(options("s4d", width=5, layers=1), long, 3, count=5)
    assert_same_bits(members, [[4], [3, 0]])


LEARNING: list[Case] = [
    ("gru", {"width": 33, "layers": 2}),
    ("rnn", {"width": 33}),
    ("universal-transformer", {"width": 36}),
    ("ndr", {"width": 36}),
    ("perceiver", {"width": 36, "latents": 5}),
    ("modular", {"width": 36}),
    ("moe-transformer", {"width": 36, "experts": 3}),
    ("s4d", {"width": 33}),
    ("mamba", {"width": 33}),
    ("gla", {"width": 36}),
    ("deltanet", {"width": 36, "negative_eigenvalues": True}),
]


@pytest.mark.parametrize("case", LEARNING, ids=named)
def test_ten_steps_of_training(case: Case) -> None:
    members = Members(options(case[0], **case[1]), GCOG, 7, count=5)
    assert_same_training(members, 10, 3, [[3], [1, 3]])


@pytest.mark.parametrize("case", LEARNING, ids=named)
def test_double_precision(case: Case) -> None:
    members = Members(options(case[0], **case[1]), GCOG, 7, count=3, dtype=torch.float64)
    assert_close_in_double(members, 5, [2])

"""Every backbone, scheme and gating in stacks: the bits of a member alone, forward and backward."""

from __future__ import annotations

import pytest
import torch
from backbone_cases import CASES, Case, named
from specimens import SPECS
from stacks import Members

from unseen.models import options
from unseen.spec import Field, Grid, Spec, Stream, Target

GCOG = Spec(
    (Stream("rule", 5), Stream("stimulus", 13, Grid(3, 4))),
    (Field("operator", "category", 6, "rule"), Field("mask", "mask", 1, "rule"), Field("cell", "real", 3, "stimulus")),
    Target("category", 9),
)
NUMBER = Spec((), (Field("x", "real", 1),), Target("real", 1))
FORMS = {"rules/mha": SPECS["rules/mha"], "gcog": GCOG, "retrieval": SPECS["retrieval"]}
"""Those of all families are tried with the usual widths in `test_model_contract`."""


def assert_members_are_alone(case: Case, spec: Spec, batch: int) -> None:
    members = Members(options(case[0], **case[1]), spec, batch, count=5)
    together, gradients = members.gradients(members.parameters(range(5)), range(5), 0)
    for group in ([4], [3, 0]):
        own, own_gradients = members.gradients(members.parameters(group), group, 0)
        assert torch.equal(own, together[group]), group
        for parameter, a, b in zip(members.names, own_gradients, gradients, strict=True):
            assert torch.equal(a, b[group]), (group, parameter)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES, ids=named)
def test_predictions_and_gradients(case: Case, form: str) -> None:
    assert_members_are_alone(case, FORMS[form], 7)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_one_example_and_one_number(case: Case) -> None:
    """Products with a single row or column are where a member alone would round differently."""
    assert_members_are_alone(case, GCOG, 1)
    assert_members_are_alone(case, NUMBER, 64)


LEARNING: list[Case] = [
    ("gru", {"width": 33, "layers": 2}),
    ("rnn", {"width": 33}),
    ("universal-transformer", {"width": 36}),
    ("ndr", {"width": 36}),
    ("perceiver", {"width": 36, "latents": 5}),
    ("modular", {"width": 36}),
]


@pytest.mark.parametrize("case", LEARNING, ids=named)
def test_ten_steps_of_training(case: Case) -> None:
    members = Members(options(case[0], **case[1]), GCOG, 7, count=5)
    together = members.train(range(5), 10)
    for group, place in (([3], 0), ([1, 3], 1)):
        for parameter, a, b in zip(members.names, members.train(group, 10), together, strict=True):
            assert torch.equal(a[place], b[3]), (group, parameter)


@pytest.mark.parametrize("case", LEARNING, ids=named)
def test_double_precision(case: Case) -> None:
    members = Members(options(case[0], **case[1]), GCOG, 7, count=3, dtype=torch.float64)
    together = members.train(range(3), 5)
    for a, b in zip(members.train([2], 5), together, strict=True):
        torch.testing.assert_close(a[0], b[2], rtol=0, atol=1e-9)

"""Member s of a stack equals the run of seed s alone, for all twelve models: bit for bit, 1e-9 in double precision."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from rules_cases import ALL, VARIANTS, named, spec
from stacks import Members

from unseen.models import options
from unseen.spec import Spec, Stream

EVERYONE = list(range(16))
GROUPS = [[0], [9], [15], [3, 9], [5, 11, 9, 2, 15]]
Case = tuple[str, dict[str, Any]]


def same_bits(members: Members, everyone: list[int], groups: list[list[int]]) -> None:
    together, gradients = members.gradients(members.parameters(everyone), everyone, 0)
    for group in groups:
        own, own_gradients = members.gradients(members.parameters(group), group, 0)
        assert torch.equal(own, together[group]), group
        for parameter, a, b in zip(members.names, own_gradients, gradients, strict=True):
            assert torch.equal(a, b[group]), (group, parameter)


@pytest.mark.parametrize(("kind", "batch"), [("binary", 10), ("real", 33)])
@pytest.mark.parametrize("case", ALL, ids=named)
def test_one_step(case: Case, kind: str, batch: int) -> None:
    name, given = case
    same_bits(Members(options(name, **given), spec(name, 8, kind), batch), EVERYONE, GROUPS)


SHAPES = ((1, 5, 8), (4, 1, 8), (13, 3, 7), (32, 2, 16))
TRAPS = [(case, 4, 7, 8) for case in VARIANTS] + [(case, *shape) for case in ALL for shape in SHAPES]


@pytest.mark.parametrize(
    ("case", "rules", "batch", "width"), TRAPS, ids=lambda v: named(v) if isinstance(v, tuple) else str(v)
)
def test_odd_shapes(case: Case, rules: int, batch: int, width: int) -> None:
    """One rule, one module, one example, one hidden unit: where a member alone would round differently."""
    name, given = case
    members = Members(options(name, **{"width": width, **given}), spec(name, rules, "real"), batch, count=5)
    same_bits(members, [0, 1, 2, 3, 4], [[0], [4], [3, 1]])


@pytest.mark.parametrize("case", ALL[4:], ids=named)
def test_one_token(case: Case) -> None:
    """Of one example: every product has a single row."""
    name, given = case
    several = spec(name, 4, "real")
    one = Spec((Stream("tokens", 1),), several.inputs, several.target)
    same_bits(Members(options(name, width=8, **given), one, 1, count=5), [0, 1, 2, 3, 4], [[0], [4], [3, 1]])


@pytest.mark.parametrize("case", ALL, ids=named)
def test_fifteen_steps_of_training(case: Case) -> None:
    name, given = case
    members = Members(options(name, **{"width": 8, **given}), spec(name, 4, "binary"), 7)
    together = members.train(EVERYONE, 15)
    for group, place in (([11], 0), ([4, 11], 1), ([3, 2, 11, 9, 8], 2)):
        for parameter, a, b in zip(members.names, members.train(group, 15), together, strict=True):
            assert torch.equal(a[place], b[11]), (group, parameter)


@pytest.mark.parametrize("case", ALL, ids=named)
def test_double_precision(case: Case) -> None:
    name, given = case
    members = Members(options(name, **{"width": 8, **given}), spec(name, 4, "real"), 7, count=5, dtype=torch.float64)
    together = members.train(range(5), 8)
    for member in (0, 3):
        for a, b in zip(members.train([member], 8), together, strict=True):
            torch.testing.assert_close(a[0], b[member], rtol=0, atol=1e-9)

"""Member s of a stack equals the run of seed s alone, for all twelve models: bit for bit, 1e-9 in double precision."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from support.rules_cases import ALL, VARIANTS, named, spec
from support.stacks import Members, assert_close_in_double, assert_same_bits, assert_same_training
from unseen.models import options
from unseen.spec import Spec, Stream

GROUPS = [[0], [9], [15], [3, 9], [5, 11, 9, 2, 15]]
Case = tuple[str, dict[str, Any]]


@pytest.mark.parametrize(("kind", "batch"), [("binary", 10), ("real", 33)])
@pytest.mark.parametrize("case", ALL, ids=named)
def test_one_step(case: Case, kind: str, batch: int) -> None:
    name, given = case
    assert_same_bits(Members(options(name, **given), spec(name, 8, kind), batch), GROUPS)


SHAPES = ((1, 5, 8), (4, 1, 8), (13, 3, 7), (32, 2, 16))
TRAPS = [(case, 4, 7, 8) for case in VARIANTS] + [(case, *shape) for case in ALL for shape in SHAPES]


@pytest.mark.parametrize(
    ("case", "rules", "batch", "width"), TRAPS, ids=lambda v: named(v) if isinstance(v, tuple) else str(v)
)
def test_odd_shapes(case: Case, rules: int, batch: int, width: int) -> None:
    """One rule, one module, one example, one hidden unit: where a member alone would round differently."""
    name, given = case
    members = Members(options(name, **{"width": width, **given}), spec(name, rules, "real"), batch, count=5)
    assert_same_bits(members, [[0], [4], [3, 1]])


@pytest.mark.parametrize("case", ALL[4:], ids=named)
def test_one_token(case: Case) -> None:
    """Of one example: every product has a single row."""
    name, given = case
    several = spec(name, 4, "real")
    single = Spec((Stream("tokens", 1),), several.inputs, several.target)
    assert_same_bits(Members(options(name, width=8, **given), single, 1, count=5), [[0], [4], [3, 1]])


@pytest.mark.parametrize("case", ALL, ids=named)
def test_fifteen_steps_of_training(case: Case) -> None:
    name, given = case
    members = Members(options(name, **{"width": 8, **given}), spec(name, 4, "binary"), 7)
    assert_same_training(members, 15, 11, [[11], [4, 11], [3, 2, 11, 9, 8]])


@pytest.mark.parametrize("case", ALL, ids=named)
def test_double_precision(case: Case) -> None:
    name, given = case
    members = Members(options(name, **{"width": 8, **given}), spec(name, 4, "real"), 7, count=5, dtype=torch.float64)
    assert_close_in_double(members, 8, [0, 3])

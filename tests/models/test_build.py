from __future__ import annotations

import pytest
import torch

import unseen
from support.specimens import RETRIEVAL, SPECS
from unseen.errors import UsageError
from unseen.models import options
from unseen.models.build import build, parameter_count

OPTIONS = options("retrieval-lstm", width=8)


def values(seed: int) -> torch.Tensor:
    return torch.cat([p.flatten() for p in build(OPTIONS, RETRIEVAL, seed).parameters()])


def test_parameters_depend_on_the_seed_alone() -> None:
    first = values(3)
    torch.manual_seed(99)
    torch.rand(5)
    assert torch.equal(values(3), first)
    assert not torch.equal(values(4), first)


def test_the_global_generator_is_left_alone() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    values(0)
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(UsageError):
        build(OPTIONS, SPECS["ctl"], 0)
    assert torch.equal(torch.get_rng_state(), before)


def test_seeds_that_differ_by_one_have_nothing_in_common() -> None:
    a, b = values(0), values(1)
    assert abs(torch.corrcoef(torch.stack([a, b]))[0, 1]) < 0.05
    assert not (a == b).any()


def test_only_what_is_trained_is_counted() -> None:
    module = torch.nn.Linear(3, 2)
    assert parameter_count(module) == 8
    module.bias.requires_grad_(False)
    assert parameter_count(module) == 6


def test_a_task_in_place_of_its_spec_is_answered_with_what_to_give() -> None:
    with pytest.raises(UsageError, match=r"got a Retrieval; give task\.spec"):
        unseen.build(unseen.model("lstm"), unseen.task("retrieval/T1"))  # type: ignore[arg-type]

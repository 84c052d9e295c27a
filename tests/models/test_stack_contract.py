"""Member s of a stack equals the run of seed s alone: bit for bit in float32 on one thread, 1e-9 in float64."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import torch

from support.specimens import RETRIEVAL, SPECS
from support.stacks import Members, assert_close_in_double, assert_same_bits, assert_same_training
from unseen.models import options
from unseen.spec import Field, Spec, Stream, Target

FULL = [
    ("retrieval-transformer", {"positions": p, "self_attention": a})
    for p in ("none", "sinusoidal")
    for a in (False, True)
]
LITERAL = [("retrieval-transformer", {"encoder": "literal", "self_attention": a}) for a in (False, True)]
RECURRENT = [("retrieval-lstm", {"form": f}) for f in ("basic", "attention", "matched")]
GENERIC = [
    ("lstm", {"width": 33, "layers": 2}),
    ("transformer", {"width": 36, "feedforward": 2}),
]
ODD = [
    ("retrieval-transformer", {"width": 34, "heads": 2, "layers": 2}),
    ("retrieval-lstm", {"width": 33, "form": "matched"}),
    ("transformer", {"width": 20, "heads": 2, "positions": "relative", "norm": "post"}),
    ("transformer", {"width": 20, "heads": 2, "positions": "rotary", "causal": True}),
    ("transformer", {"width": 20, "heads": 1, "positions": "learned", "layers": 1}),
]
TRAINED = FULL + LITERAL + RECURRENT + GENERIC
STEPS = 40
GROUPS = [[0], [3], [9], [15], [9, 3], [3, 9], [15, 0], [9, 1, 2, 3, 4], [5, 11, 9, 2, 15], [8, 14, 13, 12, 9]]


def named(model: tuple[str, dict[str, Any]]) -> str:
    return " ".join([model[0], *(f"{k}={v}" for k, v in model[1].items())])


@pytest.mark.parametrize("batch", [7, 10])
@pytest.mark.parametrize("model", TRAINED + ODD, ids=named)
def test_predictions_and_gradients_of_one_step(model: tuple[str, dict[str, Any]], batch: int) -> None:
    name, given = model
    members = Members(options(name, **given), RETRIEVAL, batch)
    gradients = assert_same_bits(members, GROUPS)
    assert all(g.flatten(1).any(1).all() for g in gradients)


LONG = Spec((Stream("sequence", 17),), RETRIEVAL.inputs, RETRIEVAL.target)
NUMBER = Spec((), (Field("x", "real", 1),), Target("real", 1))
TRAPS = {
    "one example, one query": ("retrieval-transformer", {}, LONG, 1),
    "one example, one query, recurrent": ("retrieval-lstm", {}, LONG, 1),
    "one example, several heads": ("transformer", {"heads": 2, "width": 16}, SPECS["gcog embedding"], 1),
    "one number in, one out": ("lstm", {"width": 37}, NUMBER, 64),
    "one offset": (
        "transformer",
        {"heads": 1, "width": 8, "layers": 1, "norm": "post", "positions": "relative"},
        SPECS["rules/mlp real"],
        64,
    ),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_where_a_member_alone_would_round_differently(trap: str) -> None:
    """Products with a single row or column, and reshapes that copy for many members but not for one."""
    name, given, spec, batch = TRAPS[trap]
    members = Members(options(name, **given), spec, batch, count=7)
    assert_same_bits(members, [[0], [3], [6], [5, 2], [4, 0, 2, 6, 1]])


@pytest.mark.parametrize(("model", "batch"), list(zip(TRAINED, [7, 10] * 6, strict=False)), ids=str)
def test_many_steps_of_training(model: tuple[str, dict[str, Any]], batch: int) -> None:
    name, given = model
    members = Members(options(name, **given), RETRIEVAL, batch)
    assert_same_training(members, STEPS, 11, [[11], [4, 11], [3, 2, 11, 9, 8]])


@pytest.mark.parametrize("model", [FULL[3], RECURRENT[2], ODD[2]], ids=named)
def test_double_precision(model: tuple[str, dict[str, Any]]) -> None:
    name, given = model
    members = Members(options(name, **given), RETRIEVAL, 7, count=5, dtype=torch.float64)
    assert_close_in_double(members, 20, [0, 3])


def test_products_are_reproducible_in_a_fresh_process_that_imports_torch_first() -> None:
    """MKL reads its mode at the first product: torch may be imported before unseen, and the user's own choice stays."""
    script = (
        "import os, torch, unseen\n"
        "print(os.environ['MKL_CBWR'])\n"
        "torch.set_num_threads(1)\n"
        "torch.manual_seed(0)\n"
        "left, right = torch.randn(3, 7, 13), torch.randn(3, 13, 9)\n"
        "alone = torch.stack([torch.bmm(a[None], b[None])[0] for a, b in zip(left, right)])\n"
        "print(torch.equal(torch.bmm(left, right), alone))\n"
    )
    for users_mode, mode in ((None, "AUTO,STRICT"), ("AVX2", "AVX2")):
        environment = {name: value for name, value in os.environ.items() if name != "MKL_CBWR"}
        if users_mode is not None:
            environment["MKL_CBWR"] = users_mode
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == [mode, "True"]

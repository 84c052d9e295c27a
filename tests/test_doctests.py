"""Every worked example in every docstring of the package is executed."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import unseen

ROOT = Path(str(unseen.__path__[0]))
MODULES = sorted(
    ".".join(("unseen", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for path in ROOT.rglob("*.py")
)


@pytest.mark.parametrize("name", MODULES)
def test_worked_examples(name: str) -> None:
    assert doctest.testmod(import_module(name)).failed == 0


def test_the_walk_finds_the_shared_ground() -> None:
    assert {
        "unseen.errors",
        "unseen.config",
        "unseen.spec",
        "unseen.randomness",
        "unseen.registry",
        "unseen.tasks.verify.run",
    } <= set(MODULES)

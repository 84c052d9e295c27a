"""Every worked example in a docstring of the package is executed."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import unseen

ROOT = Path(str(unseen.__path__[0]))
MODULES = {
    ".".join(("unseen", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}
WITH_EXAMPLES = [name for name, path in MODULES.items() if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_worked_examples(name: str) -> None:
    result = doctest.testmod(import_module(name))
    assert result.attempted and not result.failed


@pytest.mark.parametrize("package", ["tasks", "models", "training", "analysis", "stats", "studies", "export"])
def test_every_package_of_functions_has_worked_examples(package: str) -> None:
    """The list above is not empty because of a wrong path or pattern."""
    assert any(name.startswith(f"unseen.{package}.") for name in WITH_EXAMPLES)


def test_the_shared_modules_have_worked_examples() -> None:
    assert {"unseen.errors", "unseen.config", "unseen.spec", "unseen.randomness", "unseen.registry"} <= set(
        WITH_EXAMPLES
    )

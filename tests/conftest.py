"""What every test gets: a cache directory of its own session, never the user's; one thread, as workers have; and its tier."""

from __future__ import annotations

import os
import tempfile

import pytest

from support.tiers import TESTS, TIERS

os.environ["OMP_NUM_THREADS"] = "1"
# Without this MKL may round a product of one member and the same product inside a stack differently (seen on AMD CPUs).
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
# Beside pytest-xdist the terminal has 80 columns, alone as many as there are: texts should not depend on it.
os.environ.pop("COLUMNS", None)
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="unseen-tests-")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        path = item.path.relative_to(TESTS) if item.path.is_relative_to(TESTS) else item.path
        for tier, places in TIERS.items():
            if any(path.is_relative_to(place) for place in places):
                item.add_marker(tier)

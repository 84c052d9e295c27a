"""What every test gets: a cache directory of its own session, one thread (as workers have), and its tier."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import tempfile
from pathlib import Path

import hypothesis
import pytest

from support.tiers import TESTS, choose_cases, tiers_of

os.environ["OMP_NUM_THREADS"] = "1"
# Without this MKL may round a product of one member and the same product inside a stack differently (seen on AMD CPUs).
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
# Beside pytest-xdist the terminal has 80 columns, alone as many as there are: texts should not depend on it.
os.environ.pop("COLUMNS", None)
# A store waits for its disk several times in every transaction: 70 ms on a virtual machine's disk, 5 in memory. Programs
# are run from temporary directories, too, and a container may have little memory there.
IN_MEMORY = Path("/dev/shm")
if (
    os.access(IN_MEMORY, os.W_OK)
    and not os.statvfs(IN_MEMORY).f_flag & os.ST_NOEXEC
    and shutil.disk_usage(IN_MEMORY).free > 8e9
):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))
CACHE = tempfile.mkdtemp(prefix="unseen-tests-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir()))
os.environ["XDG_CACHE_HOME"] = CACHE
atexit.register(shutil.rmtree, CACHE, ignore_errors=True)
# The same examples in every run, and none of them is too slow: no test depends on how fast or busy a machine is.
hypothesis.settings.register_profile(
    "unseen", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("unseen")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", type=int, help="run at most so many cases (from 2 on) of every parametrised test")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        path = item.path.relative_to(TESTS) if item.path.is_relative_to(TESTS) else item.path
        for tier in tiers_of(path, item.name.partition("[")[0]):
            item.add_marker(tier)
    count = config.getoption("--cases")
    if count is not None:
        chosen = choose_cases([item.nodeid for item in items], count)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
        items[:] = [item for item in items if item.nodeid in chosen]


def pytest_collection_finish(session: pytest.Session) -> None:
    """All modules and tests stay to the end: the garbage collector need not look at them again and again."""
    gc.collect()
    gc.freeze()

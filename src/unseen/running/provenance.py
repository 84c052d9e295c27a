"""Where a record comes from: versions, machine, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

VARIABLES = (
    "ATEN_CPU_CAPABILITY",
    "DNNL_MAX_CPU_ISA",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "ONEDNN_MAX_CPU_ISA",
    "OPENBLAS_CORETYPE",
)
"""Environment variables that choose between implementations of an operation, which round differently."""


def environment() -> dict[str, str]:
    """Those of these variables that are set."""
    return {name: os.environ[name] for name in VARIABLES if name in os.environ}


@cache  # once per process: what is committed later is not the code that runs
def provenance() -> dict[str, str]:
    """Facts about this process's surroundings, as far as they can be had."""
    facts = {name: version(name) for name in ("unseen", "torch", "numpy")}
    facts |= {"python": platform.python_version(), "system": platform.platform(), "cpu": cpu_name()}
    facts |= environment()
    commit = git_commit(Path.cwd())
    return facts | ({"git_commit": commit} if commit else {})


def cpu_name() -> str:
    """The processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def cores() -> int:
    """The cores this process may use, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def git_commit(directory: Path) -> str:
    """The commit checked out in a directory, or an empty string."""
    try:
        answer = subprocess.run(["git", "rev-parse", "HEAD"], cwd=directory, capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""

"""Settings of a process that trains: one thread, and freed memory is kept for the next step."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""The environment of a process that works on one thread, NumPy's products included: read when NumPy is imported."""
# glibc's names for these two are M_TRIM_THRESHOLD and M_MMAP_MAX.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
_NEVER = 2**31 - 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread: two threads on one small model gain little, and rounding may depend on their number."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@cache
def keep_memory() -> bool:
    """Have the C library keep freed memory instead of returning it to the system; returns whether it does.

    A step frees what the next one allocates again. Large blocks would otherwise be fresh pages every time, which the
    system has to find and to clear: nearly half of the time of four stacked cross-attentions went there. The price is
    that a process stays as large as it once was. Only glibc can be told so; elsewhere nothing changes.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _NEVER) and mallopt(_MMAP_MAX, 0))

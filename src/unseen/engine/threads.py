"""How many threads torch and NumPy work with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""The environment of a process that works on one thread, NumPy's products included: read when NumPy is imported."""


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

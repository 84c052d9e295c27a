"""The process that trains: its device, one thread, and freed memory that is kept for the next step."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from unseen.errors import UsageError, first_line, nearest

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""The environment of a process that works on one thread, NumPy's products included: read when NumPy is imported."""
DEVICES = ("cpu", "cuda", "mps", "xpu")
"""The devices that people train on; torch knows more names, which hold no numbers (meta) or are not for training."""
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


def worker_device(device: str, worker: int) -> str:
    """The device of a worker: with several of a kind and none named, worker i has the i-th, in turn.

    >>> worker_device("cpu", 3), worker_device("cuda:1", 3)
    ('cpu', 'cuda:1')
    """
    if device == "cpu" or ":" in device:
        return device
    count = count_devices(device)
    return f"{device}:{worker % count}" if count > 1 else device


def count_devices(kind: str) -> int:
    """How many devices of a kind, such as `cuda`, this machine has."""
    import torch

    module: Any = getattr(torch, kind, None)
    return int(module.device_count()) if hasattr(module, "device_count") else 1


def device_facts(device: str) -> dict[str, str]:
    """The device for the provenance of a record, with the product's name where there is one.

    >>> device_facts("cpu")
    {'device': 'cpu'}
    """
    import torch

    module: Any = getattr(torch, torch.device(device).type, None)
    if device == "cpu" or not hasattr(module, "get_device_name"):
        return {"device": device}
    return {"device": device, "device_name": str(module.get_device_name(device))}


def device_clock(device: str) -> Callable[[], float]:
    """A clock for work on a device. On a CPU it is this process's time, so that a busy machine disturbs little; other
    devices work on their own, so that the clock waits until they have caught up."""
    if device == "cpu":
        return time.process_time
    import torch

    def wait_and_tell() -> float:
        torch.accelerator.synchronize(torch.device(device))
        return time.perf_counter()

    return wait_and_tell


def check_device_name(device: str) -> str:
    """The device, if there is such a kind, on this machine or elsewhere. An unknown name suggests the nearest."""
    name = str(device).partition(":")[0]
    if name not in DEVICES:
        raise UsageError(f"device '{device}' is not a device to train on. {nearest(name, DEVICES)}")
    return str(device)


def check_device(device: str) -> str:
    """The device, if it can be used here: a name like `cpu` or `cuda:1`."""
    import torch

    check_device_name(device)
    try:
        torch.zeros(1, device=device).add(1).cpu()
    except (RuntimeError, AssertionError, NotImplementedError, OSError) as error:
        # torch goes on for a thousand characters about operators; its first sentence says what is missing.
        reason = first_line(error).partition(". ")[0] or type(error).__name__
        raise UsageError(f"device '{device}' can't be used here: {reason}. The device cpu always can") from error
    return str(device)

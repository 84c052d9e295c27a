"""Memory that was freed is kept for the next step."""

from __future__ import annotations

import ctypes
from functools import cache

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
"""What glibc's `mallopt` calls M_TRIM_THRESHOLD and M_MMAP_MAX."""
_NEVER = 2**31 - 1


@cache
def keep_memory() -> bool:
    """Have the C library keep what is freed, instead of giving it back to the system; says whether it does.

    A step frees what the next one allocates again. Large blocks would otherwise be fresh pages every time, which the
    system has to find and to clear: nearly half of the time of four stacked cross-attentions went there. The
    price is that a process stays as large as it once was. Only glibc can be told so; elsewhere nothing changes.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _NEVER) and mallopt(_MMAP_MAX, 0))

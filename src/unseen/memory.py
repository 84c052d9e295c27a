"""Memory: how much this process may use, and the refusal of work that needs more, before anything is allocated."""

from __future__ import annotations

import os
from pathlib import Path

from unseen.errors import UsageError

_UNITS = ((10**24, "YB"), (10**21, "ZB"), (10**18, "EB"), (10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB"))
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_limit() -> int:
    """The bytes that this process may use: of the machine, its container and its own limit, the smallest."""
    import resource  # POSIX only; --help must work anywhere

    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in _CGROUP_LIMITS:
        try:
            text = Path(file).read_text().strip()
        except OSError:
            continue
        if text.isdecimal():  # "max" means that there is no limit
            limits.append(int(text))
    address_space = resource.getrlimit(resource.RLIMIT_AS)[0]
    if address_space != resource.RLIM_INFINITY:
        limits.append(address_space)
    return min(limits)


def format_bytes(count: float) -> str:
    """A number of bytes for people.

    >>> format_bytes(144e9), format_bytes(2_500_000), format_bytes(12)
    ('144 GB', '2.5 MB', '0.012 kB')
    """
    for size, unit in _UNITS:
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count / 1e3:.3g} kB"


def refuse_beyond(count: float, subject: str, advice: str, limit: int | None = None) -> None:
    """Refuse work that needs more bytes than there are; `limit` is that of the machine unless it is given."""
    available = memory_limit() if limit is None else limit
    if count > available:
        raise UsageError(
            f"{subject} would need about {format_bytes(count)} of memory; there are {format_bytes(available)}. {advice}"
        )

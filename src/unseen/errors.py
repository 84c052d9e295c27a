"""The two errors a user meets, and how a wrong name is answered."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class UsageError(ValueError):
    """Wrong use: what was expected, what arrived, what to do. The command line exits with 2."""


class CheckFailed(Exception):
    """A check said no (`unseen verify`, a damaged file). The command line exits with 1."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence that suggests the known name nearest to a wrong one.

    >>> nearest("lenght", ["length", "preset"])
    "Did you mean 'length'?"
    >>> nearest("zzz", ["length", "preset"])
    'Known: length, preset.'
    """
    names = sorted(known)
    by_folded = {n.casefold(): n for n in names}
    close = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    if close:
        return f"Did you mean '{by_folded[close[0]]}'?"
    return f"Known: {', '.join(names)}." if names else "None are known."

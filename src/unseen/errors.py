"""The errors for users, and the suggestion for an unknown name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class UsageError(ValueError):
    """Wrong use; the message says what was expected, what arrived and what to do. The command line exits with 2."""


class UnknownName(UsageError):
    """A name that is not registered; the message begins with the kind of object that was looked for."""


class LocatedError(UsageError):
    """Wrong use in a file; the message begins with the file and the line."""


class CheckFailed(Exception):
    """A check failed (`unseen verify`, a damaged file). The command line exits with 1."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence that suggests the known name nearest to a wrong one.

    >>> nearest("lenght", ["length", "preset"])
    "Did you mean 'length'?"
    >>> nearest("zzz", ["length", "preset"])
    'Known: length, preset.'
    """
    names = sorted(known)
    by_folded = {known_name.casefold(): known_name for known_name in names}
    close = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    if close:
        return f"Did you mean '{by_folded[close[0]]}'?"
    return f"Known: {', '.join(names)}." if names else "None are known."

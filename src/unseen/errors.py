"""The errors for users, and the suggestion for an unknown name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import islice


class UsageError(ValueError):
    """Wrong use; the message says what was expected, what arrived and what to do. The command line exits with 2."""


class UnknownName(UsageError):
    """A name that is not registered; the message begins with the kind of object that was looked for."""


class LocatedError(UsageError):
    """Wrong use in a file; the message begins with the file and the line."""


class CheckFailed(Exception):
    """A check failed (`unseen verify`, a damaged file). The command line exits with 1."""


_LONGEST_NAME = 200
"""Longer names than this are cut before they are compared with others, which takes quadratic time."""
_ITEMS = 6
"""The most items of a list or mapping that an error message shows,"""
_DEPTH = 3
"""the levels of nesting that it shows,"""
_CHARACTERS = 80
"""and the characters of a text."""


def shorten(name: str) -> str:
    """A name for an error message, cut if it is a whole page.

    >>> shorten("lstm"), len(shorten("x" * 5000))
    ('lstm', 81)
    """
    return name if len(name) <= _CHARACTERS else f"{name[:_CHARACTERS]}…"


def format_value(value: object, depth: int = _DEPTH) -> str:
    """A value for an error message, however large it is: a few items of a few levels, and texts cut.

    >>> format_value({"length": [1, 2, 3]}), format_value(list(range(100)))
    ("{'length': [1, 2, 3]}", '[0, 1, 2, 3, 4, 5, …]')
    """
    if isinstance(value, str | bytes | int) and not isinstance(value, bool):
        if isinstance(value, int) and value.bit_length() > 256:
            return f"a whole number of about {value.bit_length() * 0.30103:.0f} digits"
        text = repr(value if isinstance(value, int) else value[: _CHARACTERS + 1])
        return text if len(text) <= _CHARACTERS + 2 else f"{text[:_CHARACTERS]}…"
    if isinstance(value, Mapping | list | tuple):
        opening, closing = "{}" if isinstance(value, Mapping) else "[]" if isinstance(value, list) else "()"
        if not value:
            return opening + closing
        if not depth:
            return f"{opening}…{closing}"
        items = []
        for item in islice(value, _ITEMS):
            text = format_value(item, depth - 1)
            items.append(f"{text}: {format_value(value[item], depth - 1)}" if isinstance(value, Mapping) else text)
        more = ["…"] if len(value) > _ITEMS else []
        comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
        return opening + ", ".join(items + more) + comma + closing
    text = repr(value)
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}…"


def first_line(error: BaseException) -> str:
    """The first line of an error's message, without the full stop at its end; empty if there is no message."""
    return next(iter(str(error).strip().splitlines()), "").rstrip(".")


def format_error(error: BaseException) -> str:
    """An error in one line.

    >>> format_error(KeyError("x")), format_error(MemoryError())
    ("KeyError: 'x'", 'MemoryError')
    """
    return ": ".join(filter(None, [type(error).__name__, first_line(error)]))


MOST_LISTED = 40
"""Up to this many known names are listed for a wrong one."""
SUGGESTED = 5
"""If there are more, this many are listed: the nearest."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence that suggests the known name nearest to a wrong one.

    >>> nearest("lenght", ["length", "preset"])
    "Did you mean 'length'?"
    >>> nearest("zzz", ["length", "preset"])
    'Known: length, preset.'
    """
    names = sorted(known)
    name = name[:_LONGEST_NAME]
    by_folded = {known_name.casefold(): known_name for known_name in names}
    close = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    if close:
        return f"Did you mean '{by_folded[close[0]]}'?"
    if len(names) > MOST_LISTED:
        some = get_close_matches(name.casefold(), by_folded, n=SUGGESTED, cutoff=0.0)
        return f"The nearest of {len(names)} known names: {', '.join(by_folded[folded] for folded in some)}."
    return f"Known: {', '.join(names)}." if names else "None are known."

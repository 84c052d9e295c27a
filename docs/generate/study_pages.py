"""Pages: to be written."""

from __future__ import annotations

from collections.abc import Iterator

from page import Page


def pages() -> Iterator[Page]:
    """None yet."""
    yield from ()

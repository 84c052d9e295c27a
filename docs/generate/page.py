"""What every generator of pages makes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """A page (Markdown) or a picture of the site, and where it lies there: `tasks/retrieval/T1.md`."""

    path: str
    content: str | bytes

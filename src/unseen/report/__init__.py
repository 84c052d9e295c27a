"""Figures and pages from records; never trains. Called, it writes the page of a directory: `unseen.report(DIR)`."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType


class _Room(ModuleType):
    """A package that can be called: `unseen.report` names both this room and what it is for."""

    def __call__(self, directory: str | Path, out: str | Path | None = None, *, scale: str | None = None) -> Path:
        """Write the report of a directory to a file, by default `report.html` in it."""
        from unseen.report.page import write_page

        return write_page(directory, out, scale)


sys.modules[__name__].__class__ = _Room

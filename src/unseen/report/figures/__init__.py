"""Figures as recipes from records: those of the four papers, by family, and ours, which fit any study."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from unseen.errors import UsageError, nearest
from unseen.report.figure import Figure
from unseen.report.source import Source

MODULES = {"": "ours", "rules": "rules", "ctl": "ctl", "gcog": "gcog", "retrieval": "retrieval", "exam": "exam"}
"""Where the figures of a family are; '' for those of any study. Each module has a tuple `FIGURES`."""


def figures(families: Iterable[str] = tuple(MODULES)) -> list[Figure]:
    """All figures of some families, ours last."""
    wanted = sorted((family for family in set(families) if family in MODULES), key=lambda one: (one == "", one))
    return [one for family in wanted for one in import_module(f"{__name__}.{MODULES[family]}").FIGURES]


def figures_of(source: Source) -> list[Figure]:
    """The figures that may have something to draw in a store. The worlds of an exam are too small for the papers'."""
    if source.name.partition("@")[0] in ("exam", "exam-zoo"):
        return figures({"", "exam"})
    return figures({"", *(name.split("/")[0] for name in source.runs["task"])})


def figure(name: str) -> Figure:
    """A figure by its name."""
    known = {one.name: one for one in figures()}
    if name not in known:
        raise UsageError(f"unknown figure '{name}'. {nearest(name, known)}")
    return known[name]

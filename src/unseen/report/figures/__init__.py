"""Figures as recipes from records: those of the four papers by family, and ours, which fit any study."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from unseen.errors import UsageError, nearest
from unseen.names import family_of
from unseen.report.data import Source
from unseen.report.exam_scores import is_exam
from unseen.report.figure import Figure
from unseen.studies.study import is_catalogued

MODULES = {
    "": "general",
    "rules": "rules",
    "ctl": "ctl",
    "gcog": "gcog",
    "retrieval": "retrieval",
    "groups": "groups",
    "recall": "recall",
    "exam": "exam",
    "inside": "inside",
}
"""The module of the figures of each family; '' for those of any study, `inside` for those of studies that look inside.

Each module has a tuple `FIGURES`.
"""


def figures(families: Iterable[str] = tuple(MODULES)) -> list[Figure]:
    """All figures of some families, ours last."""
    selected = sorted(set(families) & set(MODULES), key=lambda family: (family == "", family))
    result: list[Figure] = []
    for family in selected:
        result += import_module(f"{__name__}.{MODULES[family]}").FIGURES
    return result


def figures_of(source: Source) -> list[Figure]:
    """The figures that may have something to draw from a store."""
    if is_exam(source):  # the worlds of an exam are too small for the figures of the papers
        return figures({"", "exam"})
    applicable = figures({"", "inside", *(family_of(name) for name in source.runs["task"])})
    if is_catalogued(source.name):
        return applicable
    return [figure for figure in applicable if not figure.illustrative]


def figure(name: str) -> Figure:
    """A figure by its name."""
    registered = {figure.name: figure for figure in figures()}
    if name not in registered:
        raise UsageError(f"unknown figure '{name}'. {nearest(name, registered)}")
    return registered[name]

"""A figure: a recipe from records to a chart, its data and what must stand under it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from unseen.report.source import Source


@dataclass(frozen=True)
class Drawing:
    """A chart (Altair; no ink, title or configuration of its own), the table behind it, and what to say under it: what
    is unseen, how many runs a point has where that differs, what is not there yet."""

    chart: Any
    data: pd.DataFrame
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figure:
    """`name` is unique, and the name of its files (`gcog/figure3` → gcog-figure3.svg); `place` is where it stands in a
    paper, or `ours`. `draw` gives None where nothing of it was run, and a partial drawing where some was."""

    name: str
    title: str
    place: str
    caption: str
    draw: Callable[[Source], Drawing | None]

    @property
    def file(self) -> str:
        """The name of its files, without an ending."""
        return self.name.replace("/", "-")

"""Progress of long work: a bar on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Literal, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

Style = Literal["auto", "lines", "none"]


class Progress:
    """Counts steps of all members together, and says how the newest validations look."""

    def __init__(self, title: str, total: int, style: Style = "auto") -> None:
        self._title, self._total, self._done, self._style = title, total, 0, style
        self._began = self._said = time.monotonic()
        self._bar: RichProgress | None = None

    def __enter__(self) -> Self:
        if self._style == "auto" and sys.stderr.isatty():
            console = Console(stderr=True, highlight=False)
            console.print(self._title)
            self._bar = RichProgress(BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
                                     TextColumn("{task.fields[news]}"), console=console)
            self._bar.start()
            self._line = self._bar.add_task("", total=self._total, news="")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def add(self, steps: int, news: str = "") -> None:
        """Some more member steps are done."""
        self._done += steps
        if self._bar is not None:
            self._bar.update(self._line, completed=self._done)
            if news:
                self._bar.update(self._line, news=news)
        elif self._style != "none" and time.monotonic() - self._said > 10:
            self._said = time.monotonic()
            left = (self._said - self._began) * (self._total - self._done) / max(self._done, 1)
            sys.stderr.write(f"{self._title}: {self._done} of {self._total} steps, about {left:.0f} s left {news}\n")

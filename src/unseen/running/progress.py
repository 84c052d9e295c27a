"""Progress of long work: bars on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from rich.console import Console
from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn
from rich.progress import Progress as RichProgress

from unseen.studies.trial import Trial, format_options

if TYPE_CHECKING:  # to say how long something takes is not to load torch
    from unseen.running.chunk import Tick
    from unseen.store.schema import Outcome

Style = Literal["auto", "lines", "none"]
EVERY = 10.0
"""Seconds between two plain lines."""


class Progress:
    """How far all trials are together, each stack under way, the rate, the time left, the failures.

    Work is counted in estimated seconds (`price`, per trial and step), so that cheap trials do not promise too much.
    """

    def __init__(self, title: str, style: Style = "auto") -> None:
        self._title, self._style = title, style
        self.price: Mapping[str, float] = {}
        self._bars: RichProgress | None = None
        self._overall: TaskID | None = None
        self._flying: dict[int, tuple[Sequence[Trial], TaskID | None]] = {}
        self._reached: dict[str, int] = {}
        self._trials: dict[str, Trial] = {}
        self._total = self._done = 0.0
        self._steps, self._ended, self._failed = 0, 0, 0
        self._began = self._last_line = time.monotonic()

    def __enter__(self) -> Self:
        if self._style == "auto" and sys.stderr.isatty():
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TaskProgressColumn(),
                TextColumn("{task.fields[news]}"),
            )
            self._bars = RichProgress(*columns, console=Console(stderr=True, highlight=False), transient=True)
            self._bars.start()
            self._overall = self._bars.add_task(self._title, total=None, news="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def show_status(self, text: str) -> None:
        """Show what is being done before the first step."""
        if self._bars is not None and self._overall is not None:
            self._bars.update(self._overall, news=text)

    def announce(self, text: str) -> None:
        """A line that stays: what the user should know before the work begins."""
        if self._bars is not None:
            self._bars.console.print(text, markup=False)
        elif self._style != "none":
            sys.stderr.write(f"{text}\n")

    def begin(self, trials: Sequence[Trial], reached: Mapping[str, int]) -> None:
        """All the trials to come, and the step of those that were begun before."""
        self._trials = {c.id: c for c in trials}
        self._reached = {c.id: reached.get(c.id, 0) for c in trials}
        self._total = sum(self._price(c.id, c.recipe.steps - self._reached[c.id]) for c in trials)
        self._began = self._last_line = time.monotonic()
        self._show()

    def start(self, ticket: int, trials: Sequence[Trial]) -> None:
        """A chunk of a stack has been handed out."""
        bar = None
        if self._bars is not None:
            first = trials[0]
            name = f"  {format_options(first.task.options())} · {format_options(first.model.options())} × {len(trials)}"
            bar = self._bars.add_task(name, total=first.recipe.steps, news="")
        self._flying[ticket] = trials, bar

    def tick(self, tick: Tick) -> None:
        """A chunk has come some steps further."""
        if tick.ticket not in self._flying:
            return
        trials, bar = self._flying[tick.ticket]
        for trial in trials:
            self._reach(trial.id, tick.step)
        if self._bars is not None and bar is not None:
            best = "" if tick.best is None else f"best validation {tick.best:.3f}"
            self._bars.update(bar, completed=tick.step, news=best)
        self._show()

    def end(self, ticket: int) -> None:
        """A chunk has come to its end."""
        _, bar = self._flying.pop(ticket)
        if self._bars is not None and bar is not None:
            self._bars.remove_task(bar)

    def advance(self, outcome: Outcome) -> None:
        """Count what a chunk has done, now that it is in the store; steps that early stopping saved count as done."""
        for trial, span in (outcome.spans or {}).items():
            self._reach(trial, span.end)
        for trial in {**(outcome.finished or {}), **(outcome.evaluated or {})}:
            self._skip(trial)
            self._ended += 1
        self._show()

    def fail(self, trial: str, cause: str) -> None:
        """A trial has failed."""
        self._skip(trial)
        self._failed += 1
        failed = self._trials[trial]
        name = (
            f"{format_options(failed.task.options())} · {format_options(failed.model.options())} · seed {failed.seed}"
        )
        if self._bars is not None:
            self._bars.console.print(f"failed: {name}: {cause}", markup=False)
        elif self._style != "none":
            sys.stderr.write(f"failed: {name}: {cause}\n")

    def _reach(self, trial: str, step: int) -> None:
        more = max(0, step - self._reached[trial])
        self._done += self._price(trial, more)
        self._steps += more
        self._reached[trial] += more

    def _skip(self, trial: str) -> None:
        """Nothing more will be done for a trial."""
        remaining_steps = self._trials[trial].recipe.steps - self._reached[trial]
        self._done += self._price(trial, remaining_steps)
        self._reached[trial] += remaining_steps

    def _price(self, trial: str, steps: int) -> float:
        return self.price.get(trial, 1.0) * steps

    def _show(self) -> None:
        if self._bars is not None and self._overall is not None:
            self._bars.update(self._overall, total=self._total, completed=self._done, news=self._news())
        elif self._style != "none" and time.monotonic() - self._last_line > EVERY:
            self._last_line = time.monotonic()
            share = 100 * self._done / max(self._total, 1e-9)  # where only evaluations are left, there are no steps
            if self._ended + self._failed < len(self._trials):
                share = min(share, 99)  # rounding would say 100 %, and what is evaluated has not ended
            sys.stderr.write(f"{self._title}: {share:.0f} %, {self._news()}\n")

    def _evaluating(self) -> bool:
        """Whether every step is done, but not every trial has ended: the evaluation, whose length nobody knows."""
        open_trials = len(self._trials) - self._ended - self._failed
        return open_trials > 0 and self._done > (1 - 1e-9) * self._total

    def _news(self) -> str:
        seconds = time.monotonic() - self._began
        phrases = [f"{self._ended} of {len(self._trials)} trials"]
        if self._steps:
            phrases.append(f"{self._steps / seconds:.0f} steps/s")
        if self._evaluating():
            phrases.append("evaluating")
        # Before that share of the work, nobody can tell.
        elif self._ended + self._failed < len(self._trials) and self._done > 0.02 * self._total:
            remaining = seconds * (self._total - self._done) / self._done
            phrases.append(f"about {duration(max(1.0, remaining))} left")  # not 0 s: the evaluation follows
        return ", ".join(phrases + ([f"{self._failed} failed"] if self._failed else []))


def duration(seconds: float) -> str:
    """A time for people.

    >>> duration(42), duration(1500), duration(9000), duration(260000)
    ('42 s', '25 min', '2.5 h', '3.0 days')
    """
    for unit, size, enough in (("days", 86400.0, 2.0), ("h", 3600.0, 2.0)):
        if seconds >= enough * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"

"""What a benchmark says: figures, each with its case, its unit and its spread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal, TypeVar

T = TypeVar("T")

Better = Literal["less", "more", "neither"]
"""Whether a smaller or a larger figure is the better one; a count or a fitted exponent is neither."""


@dataclass(frozen=True)
class Row:
    """One figure: `figure` of `case`, the median of `rounds` repetitions, `low` and `high` their quartiles.

    >>> Row("retrieval-transformer batch=10", "stacked S=16", 1.25, "ms", better="less", low=1.2, high=1.3, rounds=7)
    ...     # doctest: +ELLIPSIS
    Row(case='retrieval-transformer batch=10', figure='stacked S=16', value=1.25, unit='ms', better='less', ...)
    """

    case: str
    figure: str
    value: float
    unit: str
    better: Better = "neither"
    low: float | None = None
    high: float | None = None
    rounds: int = 1
    note: str = ""


@dataclass(frozen=True)
class Asked:
    """How to run a benchmark: `quick` tries the smallest cases in few rounds; `only` keeps cases that have this in
    their name, and `patterns`, if there are any, those that one of them matches (`*` is anything).

    `study` names the catalogue study that a benchmark of studies should run, where one is needed. `say` is told what is
    being measured.
    """

    quick: bool = False
    only: str = ""
    patterns: tuple[str, ...] = ()
    study: str = ""
    say: Callable[[str], None] = field(default=lambda text: None, compare=False, repr=False)

    def wants(self, case: str) -> bool:
        """Whether a case was asked for."""
        matches = not self.patterns or any(fnmatchcase(case, pattern) for pattern in self.patterns)
        return matches and self.only in case

    def among(self, cases: Sequence[T], name: Callable[[T], str] = str) -> Iterator[T]:
        """The cases that were asked for, one by one; each is told with its place among them.

        >>> list(Asked(only="b", say=print).among(["a", "b", "ab"]))
        1 of 2: b
        2 of 2: ab
        ['b', 'ab']
        """
        wanted = [case for case in cases if self.wants(name(case))]
        for place, case in enumerate(wanted, 1):
            self.say(f"{place} of {len(wanted)}: {name(case)}")
            yield case


Benchmark = Callable[[Asked], Iterator[Row]]

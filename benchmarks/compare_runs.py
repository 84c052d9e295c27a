"""What has changed between two runs: beyond noise, or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.rows import Row

SMALL = 0.1
"""A change of less than this share is not told, however quiet both runs were."""

Figures = Mapping[str, Sequence[Row]]
Key = tuple[str, str, str]
"""A benchmark, a case and a figure."""


@dataclass(frozen=True)
class Change:
    """A figure before and now."""

    benchmark: str
    before: Row
    now: Row

    @property
    def ratio(self) -> float:
        """Now as a multiple of before."""
        return self.now.value / self.before.value

    @property
    def beyond_noise(self) -> bool:
        """The middle halves of the rounds do not meet, and the change is not small."""
        apart = _low(self.now) > _high(self.before) or _high(self.now) < _low(self.before)
        return apart and abs(self.ratio - 1) > SMALL

    @property
    def word(self) -> str:
        """`better`, `worse`, or `other` where neither can be said."""
        if self.now.better == "neither":
            return "other"
        return "better" if (self.ratio > 1) == (self.now.better == "more") else "worse"


@dataclass(frozen=True)
class Comparison:
    """The changes beyond noise, the worst first; how many figures are as they were; those in one run only."""

    changed: tuple[Change, ...]
    same: int
    missing: tuple[Key, ...]
    new: tuple[Key, ...]


def compare(now: Figures, before: Figures) -> Comparison:
    """Match figures by benchmark, case and name. Benchmarks that were not run now are not missed."""
    then, here = _keyed({name: rows for name, rows in before.items() if name in now}), _keyed(now)
    both = [Change(key[0], then[key], here[key]) for key in here if key in then and then[key].value]
    changed = [one for one in both if one.beyond_noise]
    order = {"worse": 0, "better": 1, "other": 2}
    changed.sort(key=lambda one: (order[one.word], -max(one.ratio, 1 / one.ratio if one.ratio else 0.0)))
    return Comparison(
        tuple(changed),
        len(both) - len(changed),
        tuple(key for key in then if key not in here),
        tuple(key for key in here if key not in then),
    )


def _keyed(figures: Figures) -> dict[Key, Row]:
    return {(name, row.case, row.figure): row for name, rows in figures.items() for row in rows}


def _low(row: Row) -> float:
    return row.value if row.low is None else row.low


def _high(row: Row) -> float:
    return row.value if row.high is None else row.high

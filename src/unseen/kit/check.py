"""`check`: the contract battery on plug-ins, a row for every check."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from unseen.kit.plugins import Kind, Plugin, find
from unseen.kit.verdict import Status, Verdict


@dataclass(frozen=True)
class Row:
    """One check of a plug-in: `ok`; `known` or `shown`, for the reader to judge; or `FAIL`, with the reason."""

    plugin: Plugin
    check: str
    status: Status
    reason: str


class Rows(list[Row]):
    """All rows, in the order the checks were made."""

    @property
    def failures(self) -> list[str]:
        """What failed, a line each."""
        return [f"{row.plugin.name}, {row.check}: {row.reason}" for row in self if row.status == "FAIL"]


def check(*names: str, n: int = 10_000, on_row: Callable[[Row], None] = lambda row: None) -> Rows:
    """Hold plug-ins to the contract: those of these packages or names; without any, all that are installed.

    `n` is how many examples of every condition of a task are verified; `on_row` hears of every row as it is made.
    """
    rows = Rows()
    for plugin in find(names):
        for named, (status, reason) in _BATTERIES[plugin.kind](plugin, n):
            rows.append(Row(plugin, named, status, reason))
            on_row(rows[-1])
    return rows


def _tasks(plugin: Plugin, n: int) -> Iterator[tuple[str, Verdict]]:
    from unseen.kit.tasks import checks

    return checks(plugin.name, n)


def _models(plugin: Plugin, n: int) -> Iterator[tuple[str, Verdict]]:
    from unseen.kit.models import checks

    return checks(plugin)


def _studies(plugin: Plugin, n: int) -> Iterator[tuple[str, Verdict]]:
    from unseen.kit.studies import checks

    return checks(plugin.name)


# Imported when they are called: to check a task is not to load torch.
_BATTERIES: Mapping[Kind, Callable[[Plugin, int], Iterator[tuple[str, Verdict]]]] = {
    "task": _tasks,
    "model": _models,
    "study": _studies,
}

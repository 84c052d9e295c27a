"""How many runs learn their task, and how many of these handle what they have not seen: rates beside means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import pandas as pd

from unseen.stats.intervals import wilson

CONVERGED = SOLVED = 0.95
"""Accuracies that count as learned, and (more than) as solved."""


def success_table(
    records: pd.DataFrame,
    by: Sequence[str],
    *,
    converged: float = CONVERGED,
    solved: float = SOLVED,
    selection: str = "last",
    inside: str = "iid",
    diverged: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """One row for the runs that agree in the columns `by`, and for each condition beside `inside`.

    A run has converged if its accuracy on `inside` is at least `converged`; it solves a condition if its accuracy there
    is above `solved`. Means over all runs and over converged ones stand side by side, since a selected mean says
    nothing of how often it is reached; rates have Wilson intervals. `diverged` has a row with the columns `by` for each
    run that diverged: it left no record, and counts as one that did not converge. Runs that failed or are still to come
    are not counted.

    >>> rows = [(0, "iid", 1.0), (0, "ood/x", 0.99), (1, "iid", 1.0), (1, "ood/x", 0.5), (2, "iid", 0.4),
    ...         (2, "ood/x", 0.3)]
    >>> records = pd.DataFrame(rows, columns=["cell", "condition", "value"]).assign(
    ...     model="m", selection="last", factor="", metric="accuracy")
    >>> success_table(records, ["model"])[["runs", "converged", "solved", "accuracy_converged"]].iloc[0].tolist()
    [3.0, 2.0, 1.0, 0.745]
    """
    rows = records[(records["metric"] == "accuracy") & (records["factor"] == "") & (records["selection"] == selection)]
    by = list(by)
    wide = rows.pivot_table(index=[*by, "cell"], columns="condition", values="value", sort=False, dropna=False)
    wide = wide.dropna(how="all")
    if inside not in wide:
        return pd.DataFrame(columns=[*by, *_COLUMNS])
    lost = Counter() if diverged is None else Counter(map(_key, diverged[by].itertuples(index=False)))
    found = []
    for place, runs in wide.groupby(level=by, sort=False, dropna=False):
        levels = place if isinstance(place, tuple) else (place,)
        for condition in (name for name in runs if name != inside and runs[name].notna().any()):
            both = runs[[inside, condition]].dropna()
            row = _row(both[inside], both[condition], converged, solved, lost[_key(levels)])
            found.append([*levels, condition, *row])
    return pd.DataFrame(found, columns=[*by, *_COLUMNS])


def _key(levels: Iterable[object]) -> tuple[str, ...]:
    """A place by its levels, missing ones included, which are not equal to themselves."""
    return tuple(str(level) for level in levels)


_COLUMNS = (
    "condition",
    "runs",
    "diverged",
    "inside",
    "inside_spread",
    "converged",
    "converged_low",
    "converged_high",
    "accuracy",
    "accuracy_spread",
    "accuracy_converged",
    "accuracy_converged_spread",
    "solved",
    "solved_low",
    "solved_high",
)


def _row(inside: pd.Series, outside: pd.Series, converged: float, solved: float, diverged: int) -> list[float]:
    learned = outside[inside >= converged]
    wins = int((learned > solved).sum())
    reached = wilson(len(learned), len(outside) + diverged, covers="seeds")
    solves = wilson(wins, len(learned), covers="seeds") if len(learned) else None
    return [
        len(outside) + diverged,
        diverged,
        inside.mean(),
        inside.std(),
        len(learned),
        reached.low,
        reached.high,
        outside.mean(),
        outside.std(),
        learned.mean(),
        learned.std(),
        wins,
        solves.low if solves else float("nan"),
        solves.high if solves else float("nan"),
    ]

"""What runs cost, where their numbers come from, and what became of those that failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from unseen.report.design import level, span, thousands
from unseen.report.source import Source

SHOWN = 10
"""How many runs with one and the same failure are named."""
FACTS = {
    "unseen": "Unseen",
    "python": "Python",
    "torch": "PyTorch",
    "numpy": "NumPy",
    "device": "device",
    "cpu": "processor",
    "system": "system",
    "git_commit": "commit",
}
"""What is told of the provenance, and what people call it."""


@dataclass(frozen=True)
class Cost:
    """Sums over slices, by model, the most expensive first; the last row is of all."""

    rows: Sequence[dict[str, str]]
    cpu: str


def cost(source: Source, spans: pd.DataFrame) -> Cost:
    """What training took, by model."""
    mine = spans.merge(source.runs[["cell", *dict.fromkeys([source.series])]], on="cell")
    if mine.empty:
        return Cost((), "")
    groups = {level(name): rows for name, rows in mine.groupby(source.series, sort=False, dropna=False)}
    ordered = sorted(groups.items(), key=lambda group: -group[1]["cpu_seconds"].sum())
    rows = [_cost(name, rows) for name, rows in ordered] + ([_cost("all", mine)] if len(groups) > 1 else [])
    return Cost(rows, duration(mine["cpu_seconds"].sum()))


def _cost(name: str, rows: pd.DataFrame) -> dict[str, str]:
    steps = float((rows["end"] - rows["begin"]).sum())
    return {
        "model": name,
        "runs": thousands(rows["cell"].nunique()),
        "steps": thousands(steps),
        "slices": f"{len(rows) / rows['cell'].nunique():.1f}",
        "cpu": duration(rows["cpu_seconds"].sum()),
        "wall": duration(rows["seconds"].sum()),
        "rate": f"{1000 * rows['cpu_seconds'].sum() / steps:.2f} s" if steps else "",
    }


def duration(seconds: float) -> str:
    """Seconds for people.

    >>> duration(4), duration(150), duration(5000), duration(200000)
    ('4.0 s', '2.5 min', '1.4 h', '55.6 h')
    """
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def provenance(source: Source, facts: pd.DataFrame) -> list[dict[str, Any]]:
    """Each fact with its values, and how many runs have which where they differ."""
    mine = facts[facts["cell"].isin(source.runs["cell"])]
    rows = []
    for name, title in FACTS.items():
        counted = mine[name].fillna("not known").value_counts() if name in mine else pd.Series(dtype=int)
        values = [str(value) if len(counted) == 1 else f"{value} ({count} runs)" for value, count in counted.items()]
        rows += [{"fact": title, "values": values}] if values else []
    return rows


def failures(source: Source, found: pd.DataFrame) -> list[dict[str, Any]]:
    """What failed: runs with the same cause and traceback are told together.

    `found` may be read later than the runs of a study that goes on: what was not counted as failed is not told.
    """
    runs = source.runs[source.runs["status"] == "failed"].set_index("cell")
    mine = found[found["cell"].isin(runs.index)]
    rows = []
    for (cause, traceback), same in mine.groupby(["cause", "traceback"], sort=False):
        places = [
            _place(source, runs.loc[cell], step)
            for cell, step in zip(same["cell"][:SHOWN], same["step"][:SHOWN], strict=True)
        ]
        rows.append(
            {
                "cause": cause,
                "traceback": traceback,
                "runs": len(same),
                "places": places,
                "more": len(same) - len(places),
            }
        )
    return rows


def ended_early(source: Source) -> list[dict[str, Any]]:
    """Runs that diverged or were stopped, by what their record says about it."""
    early = source.runs[source.runs["status"].isin(("diverged", "stopped"))]
    return [
        {"status": status, "note": note, "runs": len(same), "seeds": span(same["seed"])}
        for (status, note), same in early.groupby(["status", "note"], sort=False)
    ]


def _place(source: Source, run: pd.Series, step: int) -> str:
    names = [f"{axis} {level(run[axis])}" for axis in source.axes if level(run[axis])] or [run["task"], run["model"]]
    return f"{', '.join(names)}, seed {run['seed']}, after step {step}"

"""The cost of runs, their provenance, and the runs that failed or ended early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from unseen.report.data import Source
from unseen.report.sections.design import format_count, format_level, format_range

MAX_FAILURES = 10
"""The number of runs that are named for one failure."""
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
"""The facts of the provenance that are shown, with their titles."""


@dataclass(frozen=True)
class CostTable:
    """Sums over chunks by model, the most expensive first; the last row is the total."""

    rows: Sequence[dict[str, str]]
    cpu: str


def sum_costs(source: Source, spans: pd.DataFrame) -> CostTable:
    """The cost of training by model."""
    chunks = spans.merge(source.runs[["trial", *dict.fromkeys([source.series])]], on="trial")
    if chunks.empty:
        return CostTable((), "")
    groups = []
    for name, rows in chunks.groupby(source.series, sort=False, dropna=False):
        groups.append((format_level(name, source.series), rows))
    groups.sort(key=lambda group: -group[1]["cpu_seconds"].sum())
    if len(groups) > 1:
        groups.append(("all", chunks))
    return CostTable([_cost_row(name, rows) for name, rows in groups], format_duration(chunks["cpu_seconds"].sum()))


def _cost_row(name: str, chunks: pd.DataFrame) -> dict[str, str]:
    steps = float((chunks["end"] - chunks["begin"]).sum())
    trials = chunks["trial"].nunique()
    cpu_seconds = chunks["cpu_seconds"].sum()
    return {
        "model": name,
        "runs": format_count(trials),
        "steps": format_count(steps),
        "chunks": f"{len(chunks) / trials:.1f}",
        "cpu": format_duration(cpu_seconds),
        "wall": format_duration(chunks["seconds"].sum()),
        "rate": f"{1000 * cpu_seconds / steps:.2f} s" if steps else "",
    }


def format_duration(seconds: float) -> str:
    """A duration in seconds, minutes or hours.

    >>> format_duration(4), format_duration(150), format_duration(5000), format_duration(200000)
    ('4.0 s', '2.5 min', '1.4 h', '55.6 h')
    """
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def list_provenance(source: Source, facts: pd.DataFrame) -> list[dict[str, Any]]:
    """Each fact with its values, and the number of runs of each value if there are several."""
    facts = facts[facts["trial"].isin(source.runs["trial"])]
    rows = []
    for name, title in FACTS.items():
        if name not in facts or facts.empty:
            continue
        counts = facts[name].fillna("not known").value_counts()
        values = [str(value) if len(counts) == 1 else f"{value} ({count} runs)" for value, count in counts.items()]
        rows.append({"fact": title, "values": values})
    return rows


def list_failures(source: Source, failures: pd.DataFrame) -> list[dict[str, Any]]:
    """Failures by cause and traceback, each with its runs.

    `failures` may be read later than the runs of a study that is still running, so failures of runs that were not
    counted as failed are left out.
    """
    runs = source.runs[source.runs["status"] == "failed"].set_index("trial")
    failures = failures[failures["trial"].isin(runs.index)]
    rows = []
    for (cause, traceback), group in failures.groupby(["cause", "traceback"], sort=False):
        examples = []
        for trial, step in group[["trial", "step"]].head(MAX_FAILURES).itertuples(index=False):
            run = runs.loc[trial]
            levels = [
                f"{axis} {format_level(run[axis], axis)}" for axis in source.axes if format_level(run[axis], axis)
            ]
            configuration = ", ".join(levels or [run["task"], run["model"]])
            examples.append(f"{configuration}, seed {run['seed']}, after step {step}")
        more = len(group) - len(examples)
        rows.append({"cause": cause, "traceback": traceback, "runs": len(group), "named": examples, "more": more})
    return rows


def list_ended_early(source: Source) -> list[dict[str, Any]]:
    """Runs that diverged or were stopped, by the note in their record."""
    early = source.runs[source.runs["status"].isin(("diverged", "stopped"))]
    rows = []
    for (status, note), group in early.groupby(["status", "note"], sort=False):
        rows.append({"status": status, "note": note, "runs": len(group), "seeds": format_range(group["seed"])})
    return rows

"""What a store says at a glance: scores with intervals, what has not ended, what was still learning."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_TITLES = {"accuracy": "accuracy", "loss": "loss", "relative_loss": "mean absolute error, in units of answering zero"}
MOST_INTERVALS = 200
"""In a longer table nobody reads intervals, and everybody waits for them."""


def summary(directory: Path) -> str:
    """The table of a study, or of a single `train`, as text."""
    from unseen.studies.store import Store

    with Store.read(directory) as store:
        (records, entries), work = store.tables(overall=True), store.work
    return _study(records, entries, work) if "study" in work else _train(records, entries, work)


def _study(records: pd.DataFrame, entries: pd.DataFrame, work: dict[str, Any]) -> str:
    """One block per scale: a line per place, with the best weights' score on every condition."""
    from unseen.studies.store import ENDED
    from unseen.studies.tables import labelled

    if entries.empty:
        return f"{work['study']}: nothing has been entered yet"
    placed, place = labelled(entries)
    axes = [a for a in ("task", "model") if placed[a].nunique() > 1 and not _follows(placed, a, place)]
    axes += [a for a in place if a != "scale"]
    lines = []
    for scale, cells in placed.groupby("scale", sort=False):
        ended = cells.status.isin(ENDED)
        lines += [f"{work['study']} {scale}: {ended.sum()} of {len(cells)} cells have ended", ""]
        lines += _tables(records[records["scale"] == scale], axes) if ended.any() else []
        lines += _notes(cells, axes)
    return "\n".join(lines)


def _follows(placed: pd.DataFrame, part: str, place: list[str]) -> bool:
    """Whether the axes already say which task or model it is."""
    axes = [a for a in place if a != "scale"]
    return bool(axes) and bool((placed.groupby(axes, dropna=False)[part].nunique() == 1).all())


def _tables(records: pd.DataFrame, axes: list[str]) -> list[str]:
    """A table of the accuracies, and one of the losses of the runs that have no accuracy."""
    scored = records.cell[records.metric == "accuracy"].unique()
    right, rest = records[records.metric == "accuracy"], records[~records.cell.isin(scored)]
    off = rest[rest.metric == ("relative_loss" if (rest.metric == "relative_loss").any() else "loss")]
    return [line for rows in (right, off) if len(rows) for line in (*_table(rows, axes), "")][:-1]


def _table(records: pd.DataFrame, axes: list[str]) -> list[str]:
    """A line per place; a column per condition."""
    best, metric = records[records.selection == "best"], records.metric.iloc[0]
    conditions = best.condition.unique().tolist()
    groups: dict[tuple[Any, ...], list[float]] = {}
    for *levels, condition, value in zip(*best[[*axes, "condition", "value"]].to_numpy(object).T, strict=True):
        groups.setdefault((*map(_shown, levels), condition), []).append(value)
    places = list(dict.fromkeys(key[:-1] for key in groups))
    rows = [[*axes, "runs", *conditions]]
    for place in places:
        found = [groups.get((*place, c)) for c in conditions]
        runs = max(len(values) for values in found if values is not None)
        rows.append(
            [
                *place,
                str(runs),
                *("" if values is None else _score(values, len(places) <= MOST_INTERVALS) for values in found),
            ]
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [f"{_TITLES[metric]}:", *lines]


def _shown(level: Any) -> str:
    """A level as text; nothing where a cell has no level on the axis."""
    return "" if level is None or level != level else str(level)


def _score(found: list[float], interval: bool) -> str:
    import numpy as np

    values = np.array(found, float)
    values = values[np.isfinite(values)]
    if not len(values):
        return "none"
    if len(values) < 3 or not interval:
        spread = f" ± {values.std(ddof=1):.3f}" if len(values) > 1 else ""
        return f"{values.mean():.3f}{spread}"
    return f"{values.mean():.3f} {_interval(values)}"


def _interval(values: object) -> str:
    from unseen.randomness import stream
    from unseen.stats import bootstrap

    found = bootstrap(values, generator=stream("interval", "summary").block(), covers="seeds")  # type: ignore[arg-type]
    return f"[{found.low:.3f}, {found.high:.3f}]"


def _notes(cells: pd.DataFrame, axes: list[str]) -> list[str]:
    """What else one must know, a line each."""
    from unseen.stats import FEWEST, INDICATIVE

    ended = cells.status.isin(["finished", "stopped"])
    covers = "initialisation and data" if (cells.seed == cells.data_seed).all() else "initialisation, on one data set"
    sizes = cells[ended].groupby(axes or "scale", dropna=False).size()
    enough = sizes[sizes >= FEWEST]
    marks = [
        ("failed", cells.status == "failed"),
        ("diverged", cells.status == "diverged"),
        ("still learning at the end", ended & (cells.still_learning == 1)),
        ("too few validations to tell whether still learning", ended & cells.still_learning.isna()),
    ]
    notes = [_where(cells[chosen], axes, what) for what, chosen in marks if chosen.any()]
    pending = int((cells.status == "pending").sum())
    notes += [f"{pending} cells have not ended; the same `run` goes on with them"] if pending else []
    if ended.any():
        spread = f"intervals: 95 %, bootstrap over seeds ({covers})" + (
            "; indicative where there are fewer than 10 seeds" if (enough < INDICATIVE).any() else ""
        )
        notes.append("best weights on validation; " + (spread if len(enough) else "± one standard deviation"))
    return ["", *notes]


def _where(cells: pd.DataFrame, axes: list[str], what: str) -> str:
    """`still learning at the end: 3 runs (T6 T+Pos+Att seed 0, 4; …)`."""
    groups = cells.groupby(axes, sort=False, dropna=False) if axes else [((), cells)]
    places = [
        f"{' '.join(filter(None, map(_shown, key)))} seed {', '.join(map(str, rows.seed))}" for key, rows in groups
    ]
    shown = "; ".join(p.strip() for p in places[:6]) + ("; …" if len(places) > 6 else "")
    return f"{what}: {len(cells)} run{'s' if len(cells) > 1 else ''} ({shown})"


def _train(records: pd.DataFrame, entries: pd.DataFrame, work: dict[str, Any]) -> str:
    """Scores of every seed under both selection rules, with the mean and its interval."""
    from unseen.studies.cell import words

    lines = [f"{words(work['task'])} · {words(work['model'])} · recipe {words(work['recipe'])}"] if work else []
    metric = _metric(records)
    whole = records[records.metric == metric]
    for (condition, selection), rows in whole.groupby(["condition", "selection"]):
        lines.append(_line(f"{condition} {metric}, {selection} weights", rows))
    pending = int((entries.status == "pending").sum())
    ended = entries.status.isin(["finished", "stopped"])
    covered = "initialisation and data" if work.get("data_seed") == "own" else "initialisation, on one data set"
    notes = [
        f"{pending} of {len(entries)} runs have not ended" if pending else "",
        _seeds(entries, entries.status == "failed", "failed"),
        _seeds(entries, entries.status == "diverged", "diverged"),
        _seeds(entries, entries.still_learning == 1, "still learning at the end"),
        _seeds(entries, ended & entries.still_learning.isna(), "too few validations to tell whether still learning"),
        f"intervals: 95 %, bootstrap over seeds ({covered})"
        + ("; indicative, fewer than 10 seeds" if ended.sum() < 10 else "")
        if ended.sum() >= 3
        else "",
    ]
    return "\n".join(lines + [note for note in notes if note])


def _metric(records: pd.DataFrame) -> str:
    return "accuracy" if (records.metric == "accuracy").any() else "loss"


def _line(title: str, rows: pd.DataFrame) -> str:
    import numpy as np

    rows = rows.sort_values(["seed", "data_seed"])
    values = rows.value.to_numpy(float)
    whole = values[np.isfinite(values)]
    spread = f" {_interval(whole)}" if len(whole) >= 3 else ""
    each = " ".join(f"{v:.3f}" for v in values)
    mean = f"{whole.mean():.3f}" if len(whole) else "none"
    left_out = f" ({len(values) - len(whole)} not finite, left out)" if len(whole) < len(values) else ""
    return f"{title}: {mean}{spread} over {len(whole)} seeds{left_out}: {each}"


def _seeds(entries: pd.DataFrame, chosen: pd.Series, what: str) -> str:
    seeds = ", ".join(map(str, entries[chosen].seed))
    return f"{what}: seed {seeds}" if seeds else ""

"""The summary that `run`, `train` and `results` print: scores with intervals, and what to know about the runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from unseen.cli.output import align_columns, format_level

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

MOST_INTERVALS = 200
"""Longer tables show standard deviations: so many bootstrap intervals would take too long."""
MOST_CONFIGURATIONS = 6
"""The number of configurations that a note lists by name."""
_TITLES = {
    "accuracy": "accuracy",
    "loss": "loss",
    "relative_loss": "mean absolute error relative to the all-zeros predictor",
}
_NOT_CONVERGED = "not converged at the end"
_UNKNOWN = "too few validations to tell whether converged"


def summarize(directory: Path) -> str:
    """The results of a study, or of a single `train`, as a text."""
    from unseen.store.store import Store

    with Store.read(directory) as store:
        records, entries = store.tables(overall=True)
        work = store.work
    if "study" in work:
        return _summarize_study(records, entries, work)
    return _summarize_train(records, entries, work)


# -- studies ------------------------------------------------------------------------------------------------------


def _summarize_study(records: pd.DataFrame, entries: pd.DataFrame, work: dict[str, Any]) -> str:
    """One block per scale: a line per configuration, with the score of the best weights on every split."""
    from unseen.store.store import ENDED
    from unseen.store.tables import label_entries

    if entries.empty:
        return f"{work['study']}: nothing has been entered yet"
    labelled_entries, columns = label_entries(entries)
    study_axes = [column for column in columns if column != "scale"]
    axes = []
    for column in ("task", "model"):
        names = labelled_entries[column]
        # Task and model are left out where the study's own axes already determine them.
        determined = bool(study_axes) and bool(
            (labelled_entries.groupby(study_axes, dropna=False)[column].nunique() == 1).all()
        )
        if names.nunique() > 1 and not determined:
            axes.append(column)
    axes += study_axes
    lines = []
    for scale, trials in labelled_entries.groupby("scale", sort=False):
        ended = trials.status.isin(ENDED)
        lines += [f"{work['study']} {scale}: {ended.sum()} of {len(trials)} trials have ended", ""]
        if ended.any():
            lines += _score_tables(records[records["scale"] == scale], axes)
        lines += ["", *_study_notes(trials, axes)]
    return "\n".join(lines)


def _score_tables(records: pd.DataFrame, axes: list[str]) -> list[str]:
    """A table of accuracies, and a table of losses for the runs that have no accuracy."""
    accuracies = records[records.metric == "accuracy"]
    others = records[~records.trial.isin(accuracies.trial.unique())]
    loss = "relative_loss" if (others.metric == "relative_loss").any() else "loss"
    lines: list[str] = []
    for rows in (accuracies, others[others.metric == loss]):
        if len(rows):
            lines += [*([""] if lines else []), *_score_table(rows, axes)]
    return lines


def _score_table(records: pd.DataFrame, axes: list[str]) -> list[str]:
    """One line per configuration, one column per split."""
    best = records[records.selection == "best"]
    splits = best.split.unique().tolist()
    # {levels of a configuration: {split: values}}, in the order of the study
    scores: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for *levels, split, value in zip(*best[[*axes, "split", "value"]].to_numpy(object).T, strict=True):
        configuration = tuple(map(format_level, levels))
        scores.setdefault(configuration, {}).setdefault(split, []).append(value)
    rows = [[*axes, "runs", *splits]]
    for configuration, by_split in scores.items():
        row = [*configuration, str(max(map(len, by_split.values())))]
        for split in splits:
            row.append(_format_score(by_split[split], len(scores) <= MOST_INTERVALS) if split in by_split else "")
        rows.append(row)
    return [f"{_TITLES[records.metric.iloc[0]]}:", *align_columns(rows)]


def _format_score(values: list[float], interval: bool) -> str:
    import numpy as np

    from unseen.stats import FEWEST

    finite = np.array(values, float)
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return "none"
    if interval and len(finite) >= FEWEST:
        return _format_estimate(finite)
    spread = f" ± {finite.std(ddof=1):.3f}" if len(finite) > 1 else ""
    return f"{finite.mean():.3f}{spread}"


def _format_estimate(values: np.ndarray[Any, Any]) -> str:
    """The mean of at least three values, with its interval."""
    from unseen.randomness import stream
    from unseen.stats import estimate

    mean = estimate(values, generator=stream("interval", "summary").block(), covers="seeds")
    return f"{mean.value:.3f} [{mean.interval.low:.3f}, {mean.interval.high:.3f}]"


def _study_notes(trials: pd.DataFrame, axes: list[str]) -> list[str]:
    """Which trials failed, diverged or did not converge, how many are pending, and what the intervals cover."""
    from unseen.stats import FEWEST, INDICATIVE

    ended = trials.status.isin(["finished", "stopped"])
    marked = {
        "failed": trials.status == "failed",
        "diverged": trials.status == "diverged",
        _NOT_CONVERGED: ended & (trials.not_converged == 1),
        _UNKNOWN: ended & trials.not_converged.isna(),
    }
    notes = [_list_runs(trials[rows], axes, label) for label, rows in marked.items() if rows.any()]
    pending = int((trials.status == "pending").sum())
    if pending:
        notes.append(f"{pending} trials have not ended; run the same command again to continue them")
    if ended.any():
        sizes = trials[ended].groupby(axes or "scale", dropna=False).size()
        enough = sizes[sizes >= FEWEST]
        if len(enough):
            spread = f"intervals: 95 %, bootstrap over seeds ({_describe_seeds(trials)})"
            if (enough < INDICATIVE).any():
                spread += "; indicative where there are fewer than 10 seeds"
        else:
            spread = "± one standard deviation"
        notes.append(f"best weights on validation; {spread}")
    return notes


def _describe_seeds(trials: pd.DataFrame) -> str:
    """What differs between two seeds."""
    own_data = (trials.seed == trials.data_seed).all()
    return "initialisation and data" if own_data else "initialisation, on one data set"


def _list_runs(trials: pd.DataFrame, axes: list[str], label: str) -> str:
    """A note such as `not converged at the end: 3 runs (T6 T+Pos+Att seed 0, 4; …)`."""
    groups = trials.groupby(axes, sort=False, dropna=False) if axes else [((), trials)]
    texts = []
    for levels, rows in groups:
        configuration = " ".join(filter(None, map(format_level, levels)))
        texts.append(f"{configuration} seed {', '.join(map(str, rows.seed))}".strip())
    listed = "; ".join(texts[:MOST_CONFIGURATIONS]) + ("; …" if len(texts) > MOST_CONFIGURATIONS else "")
    return f"{label}: {len(trials)} run{'s' * (len(trials) > 1)} ({listed})"


# -- single trainings -----------------------------------------------------------------------------------------------


def _summarize_train(records: pd.DataFrame, entries: pd.DataFrame, work: dict[str, Any]) -> str:
    """The scores of every seed for both the best and the last weights, with the mean and its interval."""
    from unseen.studies.trial import format_options

    lines = []
    if work:
        lines.append(
            f"{format_options(work['task'])} · {format_options(work['model'])} · recipe {format_options(work['recipe'])}"
        )
    metric = "accuracy" if (records.metric == "accuracy").any() else "loss"
    for (split, selection), rows in records[records.metric == metric].groupby(["split", "selection"]):
        lines.append(_format_seeds(f"{split} {metric}, {selection} weights", rows))
    pending = int((entries.status == "pending").sum())
    if pending:
        lines.append(f"{pending} of {len(entries)} runs have not ended")
    ended = entries.status.isin(["finished", "stopped"])
    marked = {
        "failed": entries.status == "failed",
        "diverged": entries.status == "diverged",
        _NOT_CONVERGED: entries.not_converged == 1,
        _UNKNOWN: ended & entries.not_converged.isna(),
    }
    for label, applies in marked.items():
        if applies.any():
            lines.append(f"{label}: seed {', '.join(map(str, entries[applies].seed))}")
    if ended.sum() >= 3:
        covered = "initialisation and data" if work.get("data_seed") == "own" else "initialisation, on one data set"
        indicative = "; indicative, fewer than 10 seeds" if ended.sum() < 10 else ""
        lines.append(f"intervals: 95 %, bootstrap over seeds ({covered}){indicative}")
    return "\n".join(lines)


def _format_seeds(title: str, rows: pd.DataFrame) -> str:
    """A line with the mean over seeds, its interval, and the value of every seed."""
    import numpy as np

    from unseen.stats import FEWEST

    values = rows.sort_values(["seed", "data_seed"]).value.to_numpy(float)
    finite = values[np.isfinite(values)]
    mean = f"{finite.mean():.3f}" if len(finite) else "none"
    if len(finite) >= FEWEST:
        mean = _format_estimate(finite)
    omitted = f" ({len(values) - len(finite)} not finite, left out)" if len(finite) < len(values) else ""
    by_seed = " ".join(f"{value:.3f}" for value in values)
    return f"{title}: {mean} over {len(finite)} seeds{omitted}: {by_seed}"

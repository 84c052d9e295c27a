"""The summary that `run`, `train` and `results` print: scores with intervals, and what to know about the runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from unseen.cli.option_text import wrap
from unseen.cli.output import count_of, fit_table
from unseen.names import format_level

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pandas as pd

MOST_CONFIGURATIONS = 6
"""The number of configurations that a note lists by name."""
MOST_QUANTITIES = 16
"""The number of quantities of an analysis that a summary lists."""
_TITLES = {
    "accuracy": "accuracy",
    "loss": "loss",
    "relative_loss": "mean absolute error relative to the all-zeros predictor",
}
WEIGHTS = {"best": "weights best on validation", "last": "last weights"}
"""How the weights that a table shows are called."""
_NOT_CONVERGED = "not converged at the end"
_UNKNOWN = "too few validations to tell whether converged (fewer than 3 in the last third of training)"


def summarize(directory: Path) -> str:
    """The results of a study, or of a single `train`, as a text."""
    from unseen.store.store import Store
    from unseen.studies.description import find_description

    with Store.read(directory) as store:
        records, entries = store.tables(overall=True)
        work = store.work
        description = find_description(work, store.description)
    if entries.empty:
        return f"{work.get('study', directory)}: nothing has been entered yet"
    if "study" in work:
        selection = "best" if description is None else description.selection
        return _summarize_study(records, entries, work, selection)
    return _summarize_train(records, entries, work)


# -- studies ------------------------------------------------------------------------------------------------------


def _summarize_study(records: pd.DataFrame, entries: pd.DataFrame, work: dict[str, Any], selection: str) -> str:
    """One block per scale: a line per configuration, with the score on every split of the weights that the study shows."""
    from unseen.store.store import ENDED
    from unseen.store.tables import identifying_axes, label_entries

    labelled_entries, columns = label_entries(entries)
    axes = identifying_axes(labelled_entries, [column for column in columns if column != "scale"])
    lines = []
    for scale, trials in labelled_entries.groupby("scale", sort=False):
        ended = trials.status.isin(ENDED)
        lines += [f"{work['study']} {scale}: {ended.sum()} of {len(trials)} trials have ended", ""]
        if ended.any():
            rows = records[(records["scale"] == scale) & (records["selection"] == selection)]
            lines += [*(_score_tables(rows, axes) or ["no run has left a score"]), ""]
        for note in _study_notes(trials, axes, selection):
            lines += wrap(note)
    return "\n".join(lines)


def _score_tables(records: pd.DataFrame, axes: list[str]) -> list[str]:
    """A table of accuracies, and a table of losses for the runs that have no accuracy."""
    lines: list[str] = []
    for rows in split_by_metric(records):
        lines += [*([""] if lines else []), *_score_table(rows, axes)]
    return lines


def split_by_metric(records: pd.DataFrame) -> list[pd.DataFrame]:
    """The accuracies, and the losses of the runs that have no accuracy, as far as there are some."""
    accuracies = records[records.metric == "accuracy"]
    others = records[~records.trial.isin(accuracies.trial.unique())]
    loss = "relative_loss" if (others.metric == "relative_loss").any() else "loss"
    return [rows for rows in (accuracies, others[others.metric == loss]) if len(rows)]


def scores_by_configuration(
    records: pd.DataFrame, axes: Sequence[str]
) -> dict[tuple[str, ...], dict[str, list[float]]]:
    """{levels of a configuration: {split: values}}, in the order of the study."""
    scores: dict[tuple[str, ...], dict[str, list[float]]] = {}
    # Column by column: pandas would give rows of several types one type.
    columns: list[list[Any]] = [records[name].tolist() for name in (*axes, "split", "value")]
    for *levels, split, value in zip(*columns, strict=True):
        configuration = tuple(map(format_level, levels))
        scores.setdefault(configuration, {}).setdefault(split, []).append(value)
    return scores


def _score_table(records: pd.DataFrame, axes: list[str]) -> list[str]:
    """One line per configuration, one column per split."""
    splits = records.split.unique().tolist()
    metric = records.metric.iloc[0]
    rows = [[*axes, "runs", *splits]]
    for configuration, by_split in scores_by_configuration(records, axes).items():
        row = [*configuration, str(max(map(len, by_split.values())))]
        for split in splits:
            row.append(_format_score(by_split[split], metric) if split in by_split else "")
        rows.append(row)
    return [f"{_TITLES[metric]}:", *fit_table(rows, len(axes) + 1)]


def _format_score(values: list[float], metric: str) -> str:
    import numpy as np

    from unseen.stats import FEWEST

    finite = np.array(values, float)
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return "none"
    if len(finite) >= FEWEST:
        return _format_estimate(finite, metric)
    spread = f" ± {finite.std(ddof=1):.3f}" if len(finite) > 1 else ""
    return f"{finite.mean():.3f}{spread}"


def _format_estimate(values: np.ndarray[Any, Any], metric: str) -> str:
    """The mean of at least three values, with its interval; that of an accuracy ends at 0 and 1."""
    from unseen.stats import mean_interval

    interval = mean_interval(values, covers="seeds")
    if metric == "accuracy":
        interval = interval.within(0.0, 1.0)
    return f"{values.mean():.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def _study_notes(trials: pd.DataFrame, axes: list[str], selection: str) -> list[str]:
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
    notes += _list_notes(trials)
    pending = int((trials.status == "pending").sum())
    if pending:
        have, them = ("has", "it") if pending == 1 else ("have", "them")
        notes.append(f"{count_of(pending, 'trial')} {have} not ended; run the same command again to continue {them}")
    if ended.any():
        sizes = trials[ended].groupby(axes or "scale", dropna=False).size()
        enough = sizes[sizes >= FEWEST]
        if len(enough):
            spread = f"intervals: 95 %, Student's t over seeds ({_describe_seeds(trials)})"
            if (enough < INDICATIVE).any():
                spread += "; indicative where there are fewer than 10 seeds"
        else:
            spread = "± one standard deviation"
        notes.append(f"{WEIGHTS[selection]}; {spread}")
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
        texts.append(f"{configuration} {_name_seeds(rows.seed)}".strip())
    listed = "; ".join(texts[:MOST_CONFIGURATIONS]) + ("; …" if len(texts) > MOST_CONFIGURATIONS else "")
    return f"{label}: {count_of(len(trials), 'run')} ({listed})"


def _name_seeds(seeds: pd.Series) -> str:
    """`seed 7`, or `seeds 0, 1, 2`."""
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


# -- single trainings -----------------------------------------------------------------------------------------------


def _summarize_train(records: pd.DataFrame, entries: pd.DataFrame, work: dict[str, Any]) -> str:
    """The scores of every seed for both the best and the last weights, with the mean and its interval."""
    from unseen.studies.trial import format_options

    lines = []
    if work:
        lines += wrap(
            f"{format_options(work['task'])} · {format_options(work['model'])} · recipe {format_options(work['recipe'])}"
        )
    metric = "accuracy" if (records.metric == "accuracy").any() else "loss"
    for (split, selection), rows in records[records.metric == metric].groupby(["split", "selection"]):
        lines.append(_format_seeds(f"{split} {metric}, {selection} weights", rows, metric))
    lines += _format_analyses(records)
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
            lines += wrap(f"{label}: {_name_seeds(entries[applies].seed)}")
    for note in _list_notes(entries):
        lines += wrap(note)
    if ended.sum() >= 3:
        covered = "initialisation and data" if work.get("data_seed") == "own" else "initialisation, on one data set"
        indicative = "; indicative, fewer than 10 seeds" if ended.sum() < 10 else ""
        lines += wrap(f"intervals: 95 %, Student's t over seeds ({covered}){indicative}")
    return "\n".join(lines)


def _list_notes(trials: pd.DataFrame) -> list[str]:
    """What the records of ended trials note, such as an analysis that was left out; the most frequent first."""
    from unseen.store.store import ENDED

    ended = trials[trials.status.isin(ENDED)]
    counts = ended.note[ended.note.fillna("") != ""].value_counts()
    lines = []
    for note, count in counts.head(MOST_CONFIGURATIONS).items():
        covered = "" if count == len(ended) else f" ({count} of {len(ended)} runs)"
        lines.append(f"note: {note}{covered}")
    if len(counts) > MOST_CONFIGURATIONS:
        lines.append(f"{len(counts) - MOST_CONFIGURATIONS} further notes: --trials")
    return lines


def _format_analyses(records: pd.DataFrame) -> list[str]:
    """What the analyses measured, whose metrics are named `analysis/quantity`: the mean over seeds of each quantity."""
    measured = records[records.metric.str.contains("/")]
    # Not str.partition: of no rows at all it makes a table without columns.
    analyses = measured.metric.str.split("/").str[0].rename("analysis")
    lines = []
    for (analysis, split, selection), rows in measured.groupby([analyses, "split", "selection"]):
        means = rows.groupby(rows.metric.str.removeprefix(f"{analysis}/")).value.mean()
        quantities = [f"{quantity} {mean:.3f}" for quantity, mean in means.items()]
        more = len(quantities) - MOST_QUANTITIES
        if more > 0:
            quantities[MOST_QUANTITIES:] = [f"and {more} more (--format csv)"]
        lines += wrap(f"{split} {analysis}, {selection} weights, means over seeds: {', '.join(quantities)}")
    return lines


def _format_seeds(title: str, rows: pd.DataFrame, metric: str) -> str:
    """A line with the mean over seeds, its interval, and the value of every seed."""
    import numpy as np

    from unseen.stats import FEWEST

    values = rows.sort_values(["seed", "data_seed"]).value.to_numpy(float)
    finite = values[np.isfinite(values)]
    mean = f"{finite.mean():.3f}" if len(finite) else "none"
    if len(finite) >= FEWEST:
        mean = _format_estimate(finite, metric)
    omitted = f" ({len(values) - len(finite)} not finite, left out)" if len(finite) < len(values) else ""
    by_seed = " ".join(f"{value:.3f}" for value in values)
    return f"{title}: {mean} over {count_of(len(finite), 'seed')}{omitted}: {by_seed}"

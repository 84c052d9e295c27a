"""How a study stands: how many runs have ended, and which models are ahead."""

from __future__ import annotations

import pandas as pd

from unseen.report.answer import Counts, Standing
from unseen.report.means import means
from unseen.report.source import Source
from unseen.report.theme import title_of
from unseen.studies.store import ENDED

SCORES = ("accuracy", "relative_loss", "loss")
"""What a run is judged by: the first that it has."""


def counts(source: Source) -> Counts:
    """How many runs there are and how they stand."""
    runs = source.runs
    ended = runs["status"].isin(ENDED)
    scored = runs["status"].isin(("finished", "stopped"))
    return Counts(
        source.scale,
        len(runs),
        int(ended.sum()),
        failed=int((runs["status"] == "failed").sum()),
        diverged=int((runs["status"] == "diverged").sum()),
        still_learning=int((scored & (runs["still_learning"] == 1)).sum()),
        can_not_tell=int((scored & runs["still_learning"].isna()).sum()),
        of=_of(source),
    )


def scores(source: Source, selection: str) -> pd.DataFrame:
    """One row per run and condition: the score that it is judged by, over all examples of the condition."""
    rows = source.records
    if rows.empty:
        return rows.assign(score="")
    rows = rows[(rows["factor"] == "") & (rows["selection"] == selection) & rows["metric"].isin(SCORES)]
    rank = rows["metric"].map(SCORES.index)
    return rows[rank == rank.groupby(rows["cell"]).transform("min")]


def standings(source: Source) -> list[Standing]:
    """The mean of every model on the most telling condition, the best first; accuracies where there are any."""
    rows = scores(source, source.selection)
    rows = rows[rows["value"].notna()]
    if rows.empty:
        return []
    metric = min(rows["metric"].unique(), key=SCORES.index)
    rows = rows[rows["metric"] == metric]
    condition = telling(rows)
    found = means(rows[rows["condition"] == condition], [source.series])
    found = found.sort_values("mean", ascending=metric != "accuracy", kind="stable")
    return [
        Standing(
            title_of(row[source.series]), condition, metric, row["mean"], row["low"], row["high"], int(row["runs"])
        )
        for row in found.to_dict("records")
    ]


def telling(rows: pd.DataFrame) -> str:
    """Of the conditions out of distribution (of all, if there is none) the one that most runs were measured on."""
    outside = rows[rows["condition"].str.startswith("ood")]
    counted = (outside if len(outside) else rows)["condition"].value_counts(sort=False)
    return str(counted.idxmax())


def _of(source: Source) -> str:
    """`4 variants, 4 tasks, 5 seeds`."""
    runs = source.runs
    if runs.empty:
        return ""
    kinds = [
        (source.series, runs[source.series].nunique()),
        ("task", runs["task"].nunique()),
        ("seed", runs["seed"].nunique()),
    ]
    return ", ".join(f"{count} {kind}{'s' * (count != 1 and not kind.endswith('s'))}" for kind, count in kinds)

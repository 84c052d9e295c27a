"""Votes of the rules study: which gating is best in how many experiments, counted from its records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from unseen.errors import UsageError
from unseen.metrics.activation import Floats
from unseen.stats.voting import significant_votes, votes

EXPERIMENT = ("architecture", "setting", "search", "rules", "width", "task_seed")
"""The columns that tell experiments apart: each has one vote."""
GATINGS = ("truth", "operation", "joint", "none")
CONTESTS: Mapping[str, Sequence[str]] = {"all": GATINGS, "joint against none": ("joint", "none")}
SCORES: Mapping[str, tuple[str, int]] = {"classification": ("accuracy", 1), "regression": ("loss", -1)}
"""What decides in each setting, and whether high (1) or low (−1) is good."""
LONGEST = "ood/length=30,amplitude=2"
CONDITIONS: Mapping[str, Mapping[str, str]] = {
    "id": {"mlp": "iid", "mha": "iid", "rnn": "iid"},
    "ood": {"mlp": "ood/amplitude=2", "mha": LONGEST, "rnn": LONGEST},
}
"""Where votes are taken, for each architecture."""
_DIGITS = 12
"""Means that agree to so many decimals are tied: sums in another order round differently."""


def vote_table(
    records: pd.DataFrame,
    *,
    experiment: Sequence[str] = EXPERIMENT,
    conditions: Mapping[str, Mapping[str, str]] = CONDITIONS,
    selection: str = "last",
    level: float = 0.95,
) -> pd.DataFrame:
    """Votes per gating, in and out of distribution, among all gatings and of `joint` against `none`.

    `records` are those of a study (`Store.records()`) with the columns of `experiment` (those the study has), gating,
    seed, selection, condition, metric, value. In every experiment the gating with the best mean over seeds gets the
    vote: the highest accuracy, or the lowest loss in regression. Only seeds that all contestants have count, and an
    experiment without one is incomplete: it has no vote. (A run that diverged leaves no record.) To count a part of
    the study, hand in that part of the records.

    One row per condition, contest and gating. `votes`: ties share a vote equally, and `ties` counts them; `share` is
    of the experiments. `flipped`: the votes if those of RNN classification went to the lowest accuracy, as in the
    authors' aggregation. `significant`: votes of experiments whose best beats every other beyond the luck of the
    seeds (`stats.significant_votes`); `undecided`: the experiments that have none. Then how many `experiments` voted,
    how many are `incomplete`, and from how many `runs` of this gating, of which some were `still_learning`.

    >>> runs = [("truth", 0, 0.99), ("truth", 1, 0.98), ("none", 0, 0.9), ("none", 1, 0.92)]
    >>> records = pd.DataFrame(runs, columns=["gating", "seed", "value"]).assign(
    ...     architecture="mlp", setting="classification", selection="last", condition="iid", metric="accuracy")
    >>> vote_table(records)[["condition", "contest", "gating", "votes", "experiments", "runs"]].to_numpy().tolist()
    [['id', 'all', 'truth', 1.0, 1, 2], ['id', 'all', 'none', 0.0, 1, 2]]
    """
    rows = _checked(records, selection)
    metric = rows["setting"].map({setting: name for setting, (name, _) in SCORES.items()})
    by = [column for column in experiment if column in rows]
    found: list[dict[str, Any]] = []
    for condition, of in conditions.items():
        decisive = rows[(rows["condition"] == rows["architecture"].map(of)) & (rows["metric"] == metric)]
        if len(decisive):
            ballots = _ballots(decisive, by)
            found += [
                {"condition": condition, **row}
                for name, gatings in CONTESTS.items()
                for row in _contest(ballots, name, gatings, level)
            ]
    columns = [
        "condition",
        "contest",
        "gating",
        "votes",
        "share",
        "flipped",
        "flipped_share",
        "significant",
        "ties",
        "undecided",
        "experiments",
        "incomplete",
        "runs",
        "still_learning",
    ]
    return pd.DataFrame(found, columns=columns)


@dataclass(frozen=True)
class _Ballots:
    """Scores (experiments, gatings, seeds), high is good, NaN where there is no run; which were still learning; and
    the direction of each experiment under the authors' aggregation: −1 where it is the wrong one."""

    gatings: list[str]
    scores: Floats
    still_learning: np.ndarray[Any, np.dtype[np.bool_]]
    direction: Floats


def _checked(records: pd.DataFrame, selection: str) -> pd.DataFrame:
    """The overall records of one selection, each run once even if it stands in several scales."""
    needed = {"architecture", "setting", "gating", "seed", "selection", "condition", "metric", "value"}
    missing = sorted(needed - set(records.columns))
    if missing:
        raise UsageError(
            f"votes are counted from records with the columns {', '.join(sorted(needed))}; missing: "
            f"{', '.join(missing)}"
        )
    rows = records[records["selection"] == selection]
    if "factor" in rows:
        rows = rows[rows["factor"] == ""]
    if "cell" in rows:
        rows = rows.drop_duplicates(["cell", "condition", "metric"])
    for column, known in (("gating", GATINGS), ("setting", SCORES)):
        unknown = sorted(set(rows[column]) - set(known), key=str)
        if unknown:
            raise UsageError(f"votes know the {column}s {', '.join(known)}, got {unknown[0]!r}; leave it out")
    return rows


def _ballots(rows: pd.DataFrame, by: Sequence[str]) -> _Ballots:
    repeated = rows.duplicated([*by, "gating", "seed"])
    if repeated.any():
        first = rows[repeated].iloc[0]
        place = ", ".join(f"{column} {first[column]}" for column in [*by, "gating", "seed"])
        raise UsageError(
            f"more than one run stands at {place}: name the axis that tells them apart in `experiment`, "
            "or hand in the records of one of them"
        )
    gatings = [name for name in GATINGS if (rows["gating"] == name).any()]
    number = rows.groupby(list(by), dropna=False, sort=False).ngroup().to_numpy()
    seeds, seed = np.unique(rows["seed"].to_numpy(), return_inverse=True)
    shape = (number.max() + 1, len(gatings), len(seeds))
    at = (number, rows["gating"].map(gatings.index).to_numpy(), seed)
    sign = rows["setting"].map({name: sign for name, (_, sign) in SCORES.items()}).to_numpy(np.float64)
    scores, learning, direction = np.full(shape, np.nan), np.zeros(shape, np.bool_), np.ones(shape[0])
    scores[at] = sign * rows["value"].to_numpy(np.float64)
    if "still_learning" in rows:
        learning[at] = rows["still_learning"].eq(True).to_numpy(np.bool_)  # None: it is not known
    direction[number[((rows["architecture"] == "rnn") & (rows["setting"] == "classification")).to_numpy()]] = -1
    return _Ballots(gatings, scores, learning, direction)


def _contest(ballots: _Ballots, name: str, wanted: Sequence[str], level: float) -> Iterator[dict[str, Any]]:
    """The rows of one contest; none unless two of its gatings were run."""
    gatings = [gating for gating in wanted if gating in ballots.gatings]
    if len(gatings) < 2:
        return
    columns = [ballots.gatings.index(gating) for gating in gatings]
    scores = ballots.scores[:, columns]
    counted = np.all(np.isfinite(scores), axis=1)
    scores = np.where(counted[:, None], scores, np.nan)
    complete = counted.any(axis=1)
    means = np.nanmean(scores[complete], axis=2).round(_DIGITS)
    plain = votes(means)
    flipped = votes(means * ballots.direction[complete, None])
    significant = significant_votes(scores[complete], level=level)
    runs = int(counted.sum())
    for place, gating in enumerate(gatings):
        yield {
            "contest": name,
            "gating": gating,
            "votes": plain.votes[place],
            "share": plain.shares[place],
            "flipped": flipped.votes[place],
            "flipped_share": flipped.shares[place],
            "significant": int(significant.votes[place]),
            "ties": plain.ties,
            "undecided": significant.undecided,
            "experiments": plain.n,
            "incomplete": int((~complete).sum()),
            "runs": runs,
            "still_learning": int((ballots.still_learning[:, columns[place]] & counted).sum()),
        }

"""Votes of the rules study: in how many experiments each gating is the best one, counted from its records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from unseen.analysis.routing import Floats
from unseen.errors import UsageError
from unseen.stats.voting import significant_votes, votes

EXPERIMENT = ("architecture", "setting", "search", "rules", "width", "task_seed")
"""The columns that identify an experiment; each experiment has one vote."""
GATINGS = ("truth", "operation", "joint", "none")
CONTESTS: Mapping[str, Sequence[str]] = {"all": GATINGS, "joint against none": ("joint", "none")}
SCORES: Mapping[str, tuple[str, int]] = {"classification": ("accuracy", 1), "regression": ("loss", -1)}
"""The decisive metric of each setting, and whether high (1) or low (−1) is good."""
_SCALED = "ood/amplitude="
_LONGEST = "ood/length=30,amplitude="
_CLEAN_AMPLITUDE = 2.0
_PAPER_AMPLITUDE = 2.0**0.5
"""The amplitude out of distribution in the preset `paper`, whose text gives 2 as a variance."""
SPLITS: Mapping[str, Mapping[str, str]] = {
    "id": {"mlp": "iid", "mha": "iid", "rnn": "iid"},
    "ood": {
        "mlp": f"{_SCALED}{_CLEAN_AMPLITUDE:g}",
        "mha": f"{_LONGEST}{_CLEAN_AMPLITUDE:g}",
        "rnn": f"{_LONGEST}{_CLEAN_AMPLITUDE:g}",
    },
}
"""The split on which each architecture is judged, in and out of distribution, in the preset `clean`."""
_CANONICAL = {f"{stem}{_PAPER_AMPLITUDE:g}": f"{stem}{_CLEAN_AMPLITUDE:g}" for stem in (_SCALED, _LONGEST)}
_DIGITS = 12
"""Means that agree to 12 decimals are tied: sums in another order round differently."""


_COLUMNS = [
    "split",
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
    "not_converged",
]


def vote_table(
    records: pd.DataFrame,
    *,
    experiment: Sequence[str] = EXPERIMENT,
    splits: Mapping[str, Mapping[str, str]] = SPLITS,
    selection: str = "last",
    level: float = 0.95,
) -> pd.DataFrame:
    """Votes per gating, in and out of distribution, among all gatings and of `joint` against `none`.

    `records` are those of a study (`Store.records()`) with the columns of `experiment` (those that the study has),
    gating, seed, selection, split, metric, value. In every experiment the gating with the best mean over seeds gets the
    vote: the highest accuracy, or the lowest loss in regression. Only seeds that all contestants have count; an
    experiment without any is incomplete and has no vote. (A run that diverged leaves no record.) To count a subset of
    the study, pass a subset of the records.

    The table has one row per split, contest and gating. `votes`: ties share a vote equally, and `ties` counts them;
    `share` is relative to the number of experiments. `flipped`: the votes if those of RNN classification went to the
    lowest accuracy, as in the authors' aggregation. `significant`: votes of experiments whose best gating beats every
    other significantly over seeds (`stats.significant_votes`); `undecided`: the number of experiments without such a
    winner. Then the number of `experiments` that voted, of `incomplete` ones, of `runs` of this gating that count, and
    of those among them that had `not_converged`.

    >>> runs = [("truth", 0, 0.99), ("truth", 1, 0.98), ("none", 0, 0.9), ("none", 1, 0.92)]
    >>> records = pd.DataFrame(runs, columns=["gating", "seed", "value"]).assign(
    ...     architecture="mlp", setting="classification", selection="last", split="iid", metric="accuracy")
    >>> vote_table(records)[["split", "contest", "gating", "votes", "experiments", "runs"]].to_numpy().tolist()
    [['id', 'all', 'truth', 1.0, 1, 2], ['id', 'all', 'none', 0.0, 1, 2]]
    """
    rows = _select_records(records, selection)
    metric = rows["setting"].map({setting: name for setting, (name, _) in SCORES.items()})
    by = [column for column in experiment if column in rows]
    table: list[dict[str, Any]] = []
    for name, split_of_architecture in splits.items():
        judged_split = rows["architecture"].map(split_of_architecture)
        decisive = rows[(rows["split"].map(canonical_split) == judged_split) & (rows["metric"] == metric)]
        if not len(decisive):
            continue
        ballots = _make_ballots(decisive, by)
        for contest, gatings in CONTESTS.items():
            for row in _count_contest(ballots, contest, gatings, level):
                table.append({"split": name, **row})
    return pd.DataFrame(table, columns=_COLUMNS)


def canonical_split(split: str) -> str:
    """The name that a split has in the preset `clean`: other presets have another amplitude at the same place.

    >>> canonical_split("ood/length=30,amplitude=1.41421"), canonical_split("iid")
    ('ood/length=30,amplitude=2', 'iid')
    """
    return _CANONICAL.get(split, split)


@dataclass(frozen=True)
class _Ballots:
    """Scores (experiments, gatings, seeds), high is good, NaN without a run; which runs had not converged; and the
    direction of each experiment under the authors' aggregation: −1 where it rewards the lowest score."""

    gatings: list[str]
    scores: Floats
    not_converged: np.ndarray[Any, np.dtype[np.bool_]]
    direction: Floats


def _select_records(records: pd.DataFrame, selection: str) -> pd.DataFrame:
    """The overall records of one selection, each run once even if several scales contain it."""
    needed = {"architecture", "setting", "gating", "seed", "selection", "split", "metric", "value"}
    missing = sorted(needed - set(records.columns))
    if missing:
        raise UsageError(
            f"votes are counted from records with the columns {', '.join(sorted(needed))}; missing: "
            f"{', '.join(missing)}"
        )
    rows = records[records["selection"] == selection]
    if "factor" in rows:
        rows = rows[rows["factor"] == ""]
    if "trial" in rows:
        rows = rows.drop_duplicates(["trial", "split", "metric"])
    for column, allowed in (("gating", GATINGS), ("setting", SCORES)):
        unknown = sorted(set(rows[column]) - set(allowed), key=str)
        if unknown:
            raise UsageError(f"votes know the {column}s {', '.join(allowed)}, got {unknown[0]!r}; leave it out")
    return rows


def _make_ballots(rows: pd.DataFrame, by: Sequence[str]) -> _Ballots:
    repeated = rows.duplicated([*by, "gating", "seed"])
    if repeated.any():
        first = rows[repeated].iloc[0]
        run = ", ".join(f"{column} {first[column]}" for column in [*by, "gating", "seed"])
        raise UsageError(
            f"there is more than one run with {run}: name the column that tells them apart in `experiment`, "
            "or pass the records of one of them"
        )
    gatings = [name for name in GATINGS if (rows["gating"] == name).any()]
    number = rows.groupby(list(by), dropna=False, sort=False).ngroup().to_numpy()
    seeds, seed = np.unique(rows["seed"].to_numpy(), return_inverse=True)
    shape = (number.max() + 1, len(gatings), len(seeds))
    index = (number, rows["gating"].map(gatings.index).to_numpy(), seed)
    sign = rows["setting"].map({name: sign for name, (_, sign) in SCORES.items()}).to_numpy(np.float64)
    scores = np.full(shape, np.nan)
    # Losses are negated, so that the highest score is the best in both settings.
    scores[index] = sign * rows["value"].to_numpy(np.float64)
    not_converged = np.zeros(shape, np.bool_)
    if "not_converged" in rows:
        not_converged[index] = rows["not_converged"].eq(True).to_numpy(np.bool_)  # None means unknown
    direction = np.ones(shape[0])
    reversed_rows = (rows["architecture"] == "rnn") & (rows["setting"] == "classification")
    direction[number[reversed_rows.to_numpy()]] = -1
    return _Ballots(gatings, scores, not_converged, direction)


def _count_contest(ballots: _Ballots, name: str, contestants: Sequence[str], level: float) -> Iterator[dict[str, Any]]:
    """The rows of one contest; none unless at least two of its gatings were run."""
    gatings = [gating for gating in contestants if gating in ballots.gatings]
    if len(gatings) < 2:
        return
    columns = [ballots.gatings.index(gating) for gating in gatings]
    scores = ballots.scores[:, columns]
    counted = np.all(np.isfinite(scores), axis=1)
    # A seed that one contestant lacks counts for none of them, so that all are compared on the same seeds.
    scores = np.where(counted[:, None], scores, np.nan)
    complete = counted.any(axis=1)
    means = np.nanmean(scores[complete], axis=2).round(_DIGITS)
    plain = votes(means)
    flipped = votes(means * ballots.direction[complete, None])
    significant = significant_votes(scores[complete], level=level)
    runs = int(counted.sum())
    for i, gating in enumerate(gatings):
        yield {
            "contest": name,
            "gating": gating,
            "votes": plain.votes[i],
            "share": plain.shares[i],
            "flipped": flipped.votes[i],
            "flipped_share": flipped.shares[i],
            "significant": int(significant.votes[i]),
            "ties": plain.ties,
            "undecided": significant.undecided,
            "experiments": plain.n,
            "incomplete": int((~complete).sum()),
            "runs": runs,
            "not_converged": int((ballots.not_converged[:, columns[i]] & counted).sum()),
        }

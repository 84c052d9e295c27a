"""The answer of a report in three steps: how much was run, what the runs say, and what is open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unseen.claims import CLAIMS
from unseen.claims.claim import JudgedClaim
from unseen.claims.render import describe_undecided, short_name
from unseen.report.data import SCORES, Source, means
from unseen.report.figure import count_runs
from unseen.report.layout import join_words
from unseen.report.theme import title_of
from unseen.store.store import ENDED

MAX_NAMES = 3
"""The number of claims that a sentence names before it counts the others."""


@dataclass(frozen=True)
class RunCounts:
    """The number of runs at a scale ('' for a single `train`) by state, and what they consist of."""

    scale: str
    runs: int
    ended: int
    failed: int = 0
    diverged: int = 0
    not_converged: int = 0
    unknown: int = 0
    """Runs with too few validations to tell whether they had converged."""
    composition: str = ""

    @property
    def pending(self) -> int:
        """Runs that have neither ended nor failed."""
        return self.runs - self.ended - self.failed


@dataclass(frozen=True)
class Standing:
    """The mean score of a model's runs on a split; `low` and `high` are NaN if there are too few."""

    model: str
    split: str
    metric: str
    mean: float
    low: float
    high: float
    runs: int

    def __str__(self) -> str:
        if self.runs == 1:
            return f"{self.mean:.3f} in a single run"
        if not math.isfinite(self.low):
            return f"{self.mean:.3f}, too few for an interval"
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def answer(verdicts: Sequence[JudgedClaim], counts: RunCounts, standings: Sequence[Standing] = ()) -> list[str]:
    """Three paragraphs from the verdicts; if no claim is decided, from the means in `standings`, the best first.

    >>> answer([], RunCounts("mini", runs=20, ended=0))[0]
    'No run has ended yet: all 20 runs at scale mini are pending.'
    """
    if not counts.ended:
        return _nothing_ended(counts)
    judged = [claim for claim in verdicts if claim.verdict != "not run"]
    decided = any(claim.verdict != "undecided" for claim in judged)
    return [
        _describe_runs(counts),
        _describe_decided(judged) if decided else _compare_means(standings),
        _describe_open(judged, len(verdicts) - len(judged)) if judged else _nothing_judged(verdicts, counts),
    ]


# -- how much was run -------------------------------------------------------------------------------------------------


def count_states(source: Source) -> RunCounts:
    """Count the runs of a source by state."""
    runs = source.runs
    scored = runs["status"].isin(("finished", "stopped"))
    composition = []
    if len(runs):
        for noun in (source.series, "task", "seed"):
            number = runs[noun].nunique()
            plural = "s" if number != 1 and not noun.endswith("s") else ""
            composition.append(f"{number} {noun}{plural}")
    return RunCounts(
        source.scale,
        len(runs),
        int(runs["status"].isin(ENDED).sum()),
        failed=int((runs["status"] == "failed").sum()),
        diverged=int((runs["status"] == "diverged").sum()),
        not_converged=int((scored & (runs["not_converged"] == 1)).sum()),
        unknown=int((scored & runs["not_converged"].isna()).sum()),
        composition=", ".join(composition),
    )


def _at_scale(counts: RunCounts) -> str:
    return f" at scale {counts.scale}" if counts.scale else ""


def _nothing_ended(counts: RunCounts) -> list[str]:
    scale = _at_scale(counts)
    if not counts.runs:
        return ["This directory holds no runs yet.", "There is no result.", "Run a study into this directory first."]
    if counts.pending == counts.runs:
        state = f"all {counts.runs} runs{scale} are pending" if counts.runs > 1 else f"the only run{scale} is pending"
    else:
        states = [f"{counts.pending} {'is' if counts.pending == 1 else 'are'} pending"] if counts.pending else []
        states.append(f"{counts.failed} failed")
        state = f"of {count_runs(counts.runs)}{scale} {join_words(states)}"
    return [
        f"No run has ended yet: {state}.",
        "So no claim is supported and none is contradicted.",
        "The command that started them resumes them." if counts.pending else "The failures and their causes are below.",
    ]


def _describe_runs(counts: RunCounts) -> str:
    scale = _at_scale(counts)
    if counts.ended < counts.runs:
        text = f"{counts.ended} of {counts.runs} runs{scale} {'has' if counts.ended == 1 else 'have'} ended"
    elif counts.runs > 1:
        text = f"All {counts.runs} runs{scale} have ended"
    else:
        text = f"The only run{scale} has ended"
    if counts.composition:
        text += f": {counts.composition}"
    remarks = []
    if counts.pending:
        remarks.append(f"{counts.pending} {'is' if counts.pending == 1 else 'are'} pending")
    if counts.failed:
        remarks.append(f"{counts.failed} failed")
    if counts.diverged:
        remarks.append(f"{counts.diverged} diverged")
    if counts.not_converged:
        remarks.append(f"{counts.not_converged} had not converged")
    if remarks:
        text += f"; {join_words(remarks)}"
    text += "."
    if counts.unknown:
        pronoun = "it" if counts.unknown == 1 else "they"
        text += (
            f" For {count_runs(counts.unknown)} there are too few validations to tell whether {pronoun} had converged."
        )
    return text


# -- what the runs say ------------------------------------------------------------------------------------------------


def _describe_decided(judged: Sequence[JudgedClaim]) -> str:
    phrases = []
    for verdict in ("supported", "contradicted"):
        claims = [claim for claim in judged if claim.verdict == verdict]
        number = {0: "none is", 1: "one is"}.get(len(claims), f"{len(claims)} are")
        phrases.append(f"{number} {verdict}" + (f" ({_list_claims(claims)})" if claims else ""))
    subject = f"{len(judged)} claims" if len(judged) > 1 else "the only claim"
    return f"Of {subject} that could be judged, {phrases[0]} and {phrases[1]}."


def _list_claims(verdicts: Sequence[JudgedClaim]) -> str:
    """`C3: T3 is solved; …`: the summaries of claims, and whether only a part of their criteria was compared."""
    texts = []
    for verdict in verdicts[:MAX_NAMES]:
        partly = "" if all(finding.compared for finding in verdict.findings) else ", in part"
        texts.append(f"{short_name(verdict.claim)}{partly}: {CLAIMS.entry(verdict.claim.name).summary}")
    if len(verdicts) > MAX_NAMES:
        texts.append(f"and {len(verdicts) - MAX_NAMES} more")
    return "; ".join(texts)


def rank_models(source: Source) -> list[Standing]:
    """The mean of every model on the most informative split, the best first; accuracies if there are any."""
    rows = source.scores(source.selection)
    rows = rows[rows["value"].notna()]
    if rows.empty:
        return []
    metric = min(rows["metric"].unique(), key=SCORES.index)
    rows = rows[rows["metric"] == metric]
    # The split out of distribution (or of all, if there is none) on which most runs were measured.
    outside = rows[rows["split"].str.startswith("ood")]
    split = str((outside if len(outside) else rows)["split"].value_counts(sort=False).idxmax())
    averages = means(rows[rows["split"] == split], [source.series])
    averages = averages.sort_values("mean", ascending=metric != "accuracy", kind="stable")
    standings = []
    for row in averages.to_dict("records"):
        model = title_of(row[source.series])
        standings.append(Standing(model, split, metric, row["mean"], row["low"], row["high"], int(row["runs"])))
    return standings


def _compare_means(standings: Sequence[Standing]) -> str:
    if not standings:
        return "No score was measured that could be compared."
    best = standings[0]
    worst = standings[-1]
    score = f"mean {best.metric.replace('_', ' ')} on {best.split}"
    if best is worst:
        return f"{best.model} has a {score} of {best}, over {count_runs(best.runs)}."
    first, last = ("highest", "lowest") if best.metric == "accuracy" else ("lowest", "highest")
    # False if an interval is missing: comparisons with NaN are false.
    overlap = max(best.low, worst.low) <= min(best.high, worst.high)
    return (
        f"{best.model} has the {first} {score}, {best}, over {count_runs(best.runs)}, and {worst.model} the {last}, "
        f"{worst}{' (their intervals overlap)' if overlap else ''}."
    )


# -- what is open -----------------------------------------------------------------------------------------------------


def _describe_open(judged: Sequence[JudgedClaim], not_run: int) -> str:
    phrases = []
    undecided = [claim for claim in judged if claim.verdict == "undecided"]
    if undecided:
        number = "One claim is" if len(undecided) == 1 else f"{len(undecided)} claims are"
        phrases.append(f"{number} undecided: {describe_undecided(undecided)}")
    else:
        phrases.append("No claim is undecided")
    if not_run:
        phrases.append(f"{not_run} more {'was' if not_run == 1 else 'were'} not run")
    return "; ".join(phrases) + "."


def _nothing_judged(verdicts: Sequence[JudgedClaim], counts: RunCounts) -> str:
    if verdicts:
        text = f"None of {len(verdicts)} claims about such tasks could be judged from these runs"
    else:
        text = "No claim of a paper is about these runs"
    if counts.not_converged:
        text += f"; {count_runs(counts.not_converged)} had not converged, so scores may change with more steps"
    return f"{text}."

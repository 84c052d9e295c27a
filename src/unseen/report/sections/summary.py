"""The answer of a report in three steps: the runs, their scores and verdicts, and the open claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unseen.claims import CLAIMS
from unseen.claims.claim import JudgedClaim
from unseen.claims.render import describe_needs, describe_undecided, join_names, short_name
from unseen.report.data import Source
from unseen.report.exam_scores import ExamResults
from unseen.report.figure import count_runs
from unseen.report.sections.exam_answer import describe_exam
from unseen.report.sections.scores import ScoreTable, describe_scores
from unseen.report.sections.specialization import SpecializationTable, describe_specialization
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


def answer(
    verdicts: Sequence[JudgedClaim],
    counts: RunCounts,
    scores: ScoreTable | None = None,
    exam_results: ExamResults | None = None,
    modules: SpecializationTable | None = None,
) -> list[str]:
    """Three paragraphs or more: how much was run, the scores beside those that need no learning (for an exam its results),
    how modules share out the rules if that was measured, what is decided, and what is open.

    >>> answer([], RunCounts("mini", runs=20, ended=0))[0]
    'No run has ended yet: all 20 runs at scale mini are pending.'
    """
    if not counts.ended:
        return _nothing_ended(counts)
    if exam_results is not None:
        return [_describe_runs(counts), *describe_exam(exam_results), *_describe_unknown(counts)]
    judged = [claim for claim in verdicts if claim.verdict != "not run"]
    decided = any(claim.verdict != "undecided" for claim in judged)
    return [
        _describe_runs(counts),
        *([describe_scores(scores)] if scores is not None or not decided else []),
        *([] if modules is None else [describe_specialization(modules)]),
        *([_describe_decided(judged)] if decided else []),
        _describe_open(judged, len(verdicts) - len(judged)) if judged else _nothing_judged(verdicts, counts),
        *_describe_unknown(counts),
    ]


# -- how much was run -------------------------------------------------------------------------------------------------


def count_states(source: Source) -> RunCounts:
    """Count the runs of a source by state."""
    runs = source.runs
    scored = runs["status"].isin(("finished", "stopped"))
    composition = []
    if len(runs):
        varied = [axis for axis in source.axes if runs[axis].nunique(dropna=False) > 1]
        for noun in dict.fromkeys([source.series, "task", *varied, "seed"]):
            number = runs[noun].nunique()
            # An axis may have any name (`positions`, `length`), so only our own words get an s.
            countable = noun in ("variant", "model", "gating", "task", "seed")
            if number == 1 or countable:
                composition.append(f"{number} {noun}{'s' if number != 1 else ''}")
            else:
                composition.append(f"{number} levels of {noun.replace('_', ' ')}")
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
        state = f"of {count_runs(counts.runs)}{scale} {join_names(states)}"
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
        text = f"{'Both' if counts.runs == 2 else f'All {counts.runs}'} runs{scale} have ended"
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
        text += f"; {join_names(remarks)}"
    return f"{text}."


def _describe_unknown(counts: RunCounts) -> list[str]:
    """Whether it can be told which runs had converged; last, because it is a caveat and no result."""
    if not counts.unknown:
        return []
    everything = counts.unknown == counts.ended and counts.unknown > 1
    subject = "the runs" if everything else count_runs(counts.unknown)
    return [f"Too few validations were made to tell whether {subject} had converged."]


# -- what the runs say ------------------------------------------------------------------------------------------------


def _describe_decided(judged: Sequence[JudgedClaim]) -> str:
    phrases = []
    for verdict in ("supported", "mixed", "contradicted"):
        claims = [claim for claim in judged if claim.verdict == verdict]
        if verdict == "mixed" and not claims:
            continue
        number = {0: "none is", 1: "one is"}.get(len(claims), f"{len(claims)} are")
        phrases.append(f"{number} {verdict}" + (f" ({_list_claims(claims)})" if claims else ""))
    judged = [claim for claim in judged if claim.verdict != "in progress"]
    if not judged:
        return "No claim is judged before the planned runs are complete."
    subject = f"{len(judged)} claims" if len(judged) > 1 else "the only claim"
    return f"Of {subject} that could be judged, {join_names(phrases)}."


def _summarize(judged: JudgedClaim) -> str:
    """A claim in a few words; a user's own in all of its words."""
    claim = judged.claim
    return CLAIMS.entry(claim.name).summary if claim.name in CLAIMS else claim.statement


def _list_claims(verdicts: Sequence[JudgedClaim]) -> str:
    """`C3: T3 is solved; …`: the summaries of claims, and whether only a part of their criteria was compared."""
    texts = []
    for verdict in verdicts[:MAX_NAMES]:
        partly = "" if all(finding.compared for finding in verdict.findings) else ", in part"
        texts.append(f"{short_name(verdict.claim)}{partly}: {_summarize(verdict)}")
    if len(verdicts) > MAX_NAMES:
        texts.append(f"and {len(verdicts) - MAX_NAMES} more")
    return "; ".join(texts)


# -- what is open -----------------------------------------------------------------------------------------------------


def _describe_open(judged: Sequence[JudgedClaim], not_run: int) -> str:
    phrases = []
    undecided = [claim for claim in judged if claim.verdict == "undecided"]
    if undecided:
        number = "One claim is" if len(undecided) == 1 else f"{len(undecided)} claims are"
        phrases.append(f"{number} undecided: {describe_undecided(undecided)}")
    else:
        phrases.append("No claim is undecided")
    waiting = [claim for claim in judged if claim.verdict == "in progress"]
    if waiting:
        number = "one claim is" if len(waiting) == 1 else f"{len(waiting)} claims are"
        phrases.append(f"{number} in progress ({describe_needs(waiting[0])})")
    if not_run:
        phrases.append(f"{not_run} more {'was' if not_run == 1 else 'were'} not run")
    return "; ".join(phrases) + "."


def _nothing_judged(verdicts: Sequence[JudgedClaim], counts: RunCounts) -> str:
    if verdicts:
        text = f"None of the study's {len(verdicts)} claims could be judged from these runs"
    else:
        text = "No claim of a paper could be judged from these runs"
    if counts.not_converged:
        text += f"; {count_runs(counts.not_converged)} had not converged, so scores may change with more steps"
    return f"{text}."

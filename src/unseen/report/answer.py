"""The answer of a page in three sentences: how much was run, what it says, what is open."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unseen.studies.claims import CLAIMS
from unseen.studies.claims.claim import Verdict

NAMED = 3
"""How many claims a sentence names before it counts the rest."""
MANY = 1_000
"""So many seeds or tasks that nobody needs to know how many more."""


@dataclass(frozen=True)
class Counts:
    """How many runs there are at a scale ('' for a single `train`), how they stand, and what they are of."""

    scale: str
    runs: int
    ended: int
    failed: int = 0
    diverged: int = 0
    still_learning: int = 0
    can_not_tell: int = 0
    of: str = ""

    @property
    def pending(self) -> int:
        """Runs that have neither ended nor failed."""
        return self.runs - self.ended - self.failed


@dataclass(frozen=True)
class Standing:
    """The mean score of a model's runs on a condition; `low` and `high` are NaN where there are too few."""

    model: str
    condition: str
    metric: str
    mean: float
    low: float
    high: float
    runs: int

    def __str__(self) -> str:
        span = f" [{self.low:.3f}, {self.high:.3f}]" if math.isfinite(self.low) else ", too few for an interval"
        return f"{self.mean:.3f}{span}" if self.runs > 1 else f"{self.mean:.3f} in a single run"


def answer(verdicts: Sequence[Verdict], counts: Counts, standings: Sequence[Standing] = ()) -> list[str]:
    """Three sentences, made from the verdicts; where none is decided, from the means, `standings`, the best first.

    >>> answer([], Counts("mini", runs=20, ended=0))[0]
    'Nothing has been run to its end yet: all 20 runs at scale mini are pending.'
    """
    if not counts.ended:
        return _nothing(counts)
    judged = [one for one in verdicts if one.word != "not run"]
    decided = any(one.word != "undecided" for one in judged)
    return [
        _ran(counts),
        _said(judged) if decided else _compared(standings),
        _open(judged, len(verdicts) - len(judged)) if judged else _unjudged(verdicts, counts),
    ]


# -- how much was run -------------------------------------------------------------------------------------------------


def _nothing(counts: Counts) -> list[str]:
    at = f" at scale {counts.scale}" if counts.scale else ""
    if not counts.runs:
        return [
            "Nothing has been entered yet: this directory holds no runs.",
            "So there is nothing to be said.",
            "A run into this directory would begin it.",
        ]
    states = _both(
        filter(
            None,
            [
                f"{counts.pending} {_are(counts.pending)} pending" if counts.pending else "",
                f"{counts.failed} failed" if counts.failed else "",
            ],
        )
    )
    everything = f"all {counts.runs} runs{at} are" if counts.runs > 1 else f"the one run{at} is"
    how = f"{everything} pending" if counts.pending == counts.runs else f"of {_runs(counts.runs)}{at} {states}"
    return [
        f"Nothing has been run to its end yet: {how}.",
        "So nothing is supported and nothing is contradicted.",
        "The same command that began it goes on with it." if counts.pending else "What failed, and why, stands below.",
    ]


def _ran(counts: Counts) -> str:
    at = f" at scale {counts.scale}" if counts.scale else ""
    everything = counts.ended == counts.runs
    begun = (
        (f"All {counts.runs} runs{at} have ended" if counts.runs > 1 else f"The one run{at} has ended")
        if everything
        else f"{counts.ended} of {counts.runs} runs{at} {_have(counts.ended)} ended"
    )
    rest = [
        f"{counts.pending} {_are(counts.pending)} pending" if counts.pending else "",
        f"{counts.failed} failed" if counts.failed else "",
        f"{counts.diverged} diverged" if counts.diverged else "",
        f"{counts.still_learning} {_were(counts.still_learning)} still learning" if counts.still_learning else "",
        f"of {counts.can_not_tell} it can't be told whether they were" if counts.can_not_tell else "",
    ]
    told = _both(filter(None, rest))
    return begun + (f": {counts.of}" if counts.of else "") + (f"; {told}" if told else "") + "."


# -- what it says -----------------------------------------------------------------------------------------------------


def _said(judged: Sequence[Verdict]) -> str:
    said = []
    for word in ("supported", "contradicted"):
        found = [one for one in judged if one.word == word]
        count = {0: "none is", 1: "one is"}.get(len(found), f"{len(found)} are")
        said.append(f"{count} {word}" + (f" ({_named(found)})" if found else ""))
    claims = f"{len(judged)} claims" if len(judged) > 1 else "the one claim"
    return f"Of {claims} that could be judged, {said[0]} and {said[1]}."


def _named(found: Sequence[Verdict]) -> str:
    """`C3: T3 is solved; …`: what claims say, in the few words of their registry; and whether not all of it was
    compared."""
    shown = [
        f"{short(one)}{'' if all(part.compared for part in one.findings) else ', in part'}: "
        f"{CLAIMS.entry(one.claim.name).summary}"
        for one in found[:NAMED]
    ]
    return "; ".join(shown) + (f"; and {len(found) - NAMED} more" if len(found) > NAMED else "")


def short(verdict: Verdict) -> str:
    """The name of a claim within its family: a number as it is, a word between quotation marks."""
    name = verdict.claim.name.partition("/")[2]
    return name if re.match(r"[A-Z]\d", name) else f"‘{name}’"


def _compared(standings: Sequence[Standing]) -> str:
    if not standings:
        return "No score was measured that could be compared."
    best, worst = standings[0], standings[-1]
    what = f"mean {best.metric.replace('_', ' ')} on {best.condition}"
    if best is worst:
        return f"{best.model} has a {what} of {best}, over {_runs(best.runs)}."
    way = ("highest", "lowest") if best.metric == "accuracy" else ("lowest", "highest")
    near = " (their intervals overlap)" if _overlap(best, worst) else ""
    return (
        f"{best.model} has the {way[0]} {what}, {best}, over {_runs(best.runs)}, and {worst.model} the {way[1]}, "
        f"{worst}{near}."
    )


def _overlap(one: Standing, other: Standing) -> bool:
    return max(one.low, other.low) <= min(one.high, other.high)


# -- what is open -----------------------------------------------------------------------------------------------------

_WAITS: dict[str, str] = {
    r"^more steps": "more steps",
    r"^about \d+ \w+ would|^more \w+ would|are the least": "more seeds",
    r"^no number of|^it can't be measured": "",
    r"": "parts that were not run",
}
"""What an open part waits for ('': nothing that would help), by what it says about itself; the first that fits."""


def _open(judged: Sequence[Verdict], not_run: int) -> str:
    undecided = [one for one in judged if one.word == "undecided"]
    rest = f"{not_run} more {_were(not_run)} not run" if not_run else ""
    if not undecided:
        return f"No claim is undecided{'; ' + rest if rest else ''}."
    needs: dict[str, list[Verdict]] = {}
    for one in undecided:
        needs.setdefault(re.sub(r"\d+", "{}", waits_for(one)), []).append(one)
    said = [_waiting(what, found) for what, found in needs.items()]
    count = "One claim is undecided" if len(undecided) == 1 else f"{len(undecided)} claims are undecided"
    return "; ".join(filter(None, [f"{count}: {', '.join(said)}", rest])) + "."


def _waiting(what: str, found: Sequence[Verdict]) -> str:
    """`C5 and C7 wait for about 14 to 60 seeds`: all that wait for the same."""
    names = _both(_few([short(one) for one in found]))
    if not what:
        return f"no number of runs settles {names}"
    counts = sorted({int(number) for one in found for number in re.findall(r"\d+", waits_for(one))})
    number = " to ".join(dict.fromkeys(_count(one) for one in (counts[:1] + counts[-1:])))
    wanted = what.format(number).replace("about more", "more")
    return f"{names} {'waits' if len(found) == 1 else 'wait'} for {wanted}"


def _count(number: int) -> str:
    return str(number) if number <= MANY else f"more than {MANY}"


def waits_for(verdict: Verdict) -> str:
    """What would settle an undecided claim: steps before seeds, since seeds of unfinished learning say nothing; with
    the number of seeds where it can be told for all parts."""
    texts = [one.open for one in verdict.findings if one.compared and one.open]
    kinds = {text: next(what for pattern, what in _WAITS.items() if re.search(pattern, text)) for text in texts}
    order = ("more steps", "more seeds", "parts that were not run")
    found = next((what for what in order if what in kinds.values()), "")
    if found != "more seeds":
        return found
    known = [re.match(r"about (\d+) (\w+)", text) for text, what in kinds.items() if what == found]
    counts = [(int(one[1]), one[2]) for one in known if one is not None]
    return "about {} {}".format(*max(counts)) if len(counts) == len(known) else found


def _unjudged(verdicts: Sequence[Verdict], counts: Counts) -> str:
    still = (
        (
            f"; {counts.still_learning} {'run was' if counts.still_learning == 1 else 'runs were'} still learning, "
            "whose scores may change with more steps"
        )
        if counts.still_learning
        else ""
    )
    about = (
        f"None of {len(verdicts)} claims about such tasks could be judged from these runs"
        if verdicts
        else "No claim of a paper is about these runs"
    )
    return f"{about}{still}."


# -- words ------------------------------------------------------------------------------------------------------------


def _few(names: Sequence[str]) -> list[str]:
    return [*names] if len(names) <= NAMED + 1 else [*names[:NAMED], f"{len(names) - NAMED} more"]


def _both(parts: Iterable[str]) -> str:
    """`a, b and c`."""
    *first, last = [*parts] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"

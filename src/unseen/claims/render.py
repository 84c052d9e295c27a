"""Claims and verdicts as text: sentences, the table of the command line, Markdown, and plain data for programs.

Findings say in fields what they rest on and what they wait for. Only this module (and `page`) turns that into words.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from unseen.claims.claim import Claim, JudgedClaim
from unseen.claims.criterion import VERDICTS, Finding, Need, Obstacle, Waiting
from unseen.claims.evidence import Exclusion, Group, LeftOut, Levels, Missing, MissingReason, describe_level
from unseen.stats import FEWEST

WIDTH = 110
"""The longest line of the table."""
MOST_NEEDS = 4
"""How many different needs of a claim are listed; programs get all of them."""
MOST_UNITS = 1000
"""Larger numbers of seeds or tasks are not spelled out: nobody will run them."""
MOST_CONFIGURATIONS = 6
"""How many configurations of left-out runs are named below the table."""
MOST_NAMES = 3
"""How many claims with the same need are named before the others are counted."""
Deviations = Mapping[str, Sequence[str]]
"""How each scale deviates from the paper, one phrase each."""


# -- a missing run, a left-out run, a need ----------------------------------------------------------------------------


def describe_missing(missing: Missing) -> str:
    """Say why a group cannot be measured: `T2 not run`."""
    runs = missing.group.runs_only
    if missing.reason is MissingReason.COLUMN:
        return f"the runs have no {missing.levels[0][0]}"
    if missing.reason is MissingReason.LEVELS:
        return f"{' and '.join(describe_level(column, value) for column, value in missing.levels)} not run"
    if missing.reason is MissingReason.COMBINATION:
        return f"{runs} not run"
    if missing.reason is MissingReason.NOT_ENDED:
        return f"no run of {runs} has ended"
    if missing.reason is MissingReason.METRIC:
        return f"no {missing.group.metric} of {runs} in these runs"
    return " and ".join(f"printed for {column} {value}" for column, value in missing.levels)


def describe_configuration(configuration: Levels) -> str:
    """Name a configuration: `T−Pos+Att on T6`."""
    return str(Group({column: (value,) for column, value in configuration}))


def describe_left_out(entries: Iterable[LeftOut], most: int | None = 0) -> list[str]:
    """Say which runs were left out, one phrase per reason: `3 of 5 runs not converged (T−Pos+Att on T6)`.

    Of several configurations at most `most` are named with their counts (None: all of them), or only their number.
    """
    by_reason: dict[Exclusion, list[LeftOut]] = {}
    for entry in entries:
        by_reason.setdefault(entry.reason, []).append(entry)
    phrases = []
    for reason in Exclusion:
        group = by_reason.get(reason, [])
        names = []
        for entry in group[:most]:
            names.append(f"{describe_configuration(entry.configuration)}: {entry.count} of {entry.total}")
        if len(names) < len(group):
            names.append(f"and {len(group) - len(names)} more configurations")
        where = f"({'; '.join(names)})"
        if len(group) == 1:
            where = f"({describe_configuration(group[0].configuration)})"
        elif most == 0:
            where = f"in {len(group)} configurations"
        if group:
            count = sum(entry.count for entry in group)
            total = sum(entry.total for entry in group)
            phrases.append(f"{count} of {count_of(total, 'run')} {reason.value} {where}")
    return phrases


def describe_waiting(finding: Finding) -> str:
    """Say why a criterion is open and what would settle it; empty if it is decided."""
    waiting = finding.waiting
    if waiting is None:
        return ""
    if waiting.reason is Obstacle.TOO_FEW:
        text = f"needs at least {FEWEST} {waiting.unit}s, has {waiting.usable}"
        if waiting.kind == "steps":
            text = f"more steps would settle it: {text}"
        phrases = describe_left_out(finding.left_out)
        return f"{text}: {'; '.join(phrases)}" if phrases else text
    text = _describe_need(waiting)
    if waiting.kind in ("seeds", "tasks"):
        text += " would settle it"
    if waiting.reason is Obstacle.CHANCE:
        text += f": one of {waiting.criteria} criteria may lie outside by chance"
    return text


def _describe_need(waiting: Waiting) -> str:
    """The need in a few words: `about 14 seeds`."""
    if waiting.missing is not None:
        return describe_missing(waiting.missing)
    if waiting.reason is Obstacle.ON_BOUND:
        return f"no number of {waiting.unit}s settles it: the mean lies on the bound"
    if waiting.reason is Obstacle.CONSTANT:
        return "it cannot be measured: the values do not vary"
    if waiting.reason is Obstacle.TOO_FEW:
        return f"at least {FEWEST} {waiting.unit}s (has {waiting.usable})"
    return f"about {waiting.count} {waiting.kind}" if waiting.count is not None else f"more {waiting.kind}"


# -- what an undecided claim waits for --------------------------------------------------------------------------------


def describe_needs(judged: JudgedClaim) -> str:
    """List what would settle an undecided claim, each need once; empty for a decided one.

    Of numbers of seeds the largest is given, since every criterion must be settled.
    """
    if judged.verdict != "undecided":
        return ""
    unconverged = False
    counts: list[tuple[int, Need]] = []
    others: dict[str, None] = {}  # an ordered set
    for finding in judged.compared:
        waiting = finding.waiting
        if waiting is None:
            continue
        if waiting.kind == "steps":
            unconverged = True
        elif waiting.count is not None:
            counts.append((waiting.count, waiting.kind))
        else:
            others[_describe_need(waiting)] = None
    needs = ["more steps: too many runs had not converged"] if unconverged else []
    if counts:
        count, kind = max(counts)
        many = f"more than {MOST_UNITS} {kind}: close to the bound"
        needs.append(f"about {count} {kind}" if count <= MOST_UNITS else many)
    needs += others
    more = len(needs) - MOST_NEEDS
    return "; ".join([*needs[:MOST_NEEDS], f"and {more} more"] if more > 0 else needs)


def find_main_need(judged: JudgedClaim) -> tuple[Need, int | None]:
    """Return what would settle an undecided claim first, and how many where that is known for all its criteria.

    Steps come before seeds, since more seeds of unfinished training say nothing.
    """
    waiting = [finding.waiting for finding in judged.compared if finding.waiting is not None]
    for kind in ("steps", "seeds", "tasks", "runs"):
        counts = [entry.count for entry in waiting if entry.kind == kind]
        if counts:
            known = [count for count in counts if count is not None]
            return kind, max(known) if len(known) == len(counts) else None
    return "nothing", None


def describe_undecided(undecided: Sequence[JudgedClaim]) -> str:
    """Say what undecided claims wait for: `C5 and C7 wait for about 14 to 60 seeds, C8 waits for more steps`."""
    groups: dict[tuple[Need, bool], list[tuple[str, int]]] = {}
    for judged in undecided:
        kind, count = find_main_need(judged)
        groups.setdefault((kind, count is not None), []).append((short_name(judged.claim), count or 0))
    phrases = []
    for (kind, counted), members in groups.items():
        names = [name for name, _ in members]
        if len(names) > MOST_NAMES + 1:
            names = [*names[:MOST_NAMES], f"{len(names) - MOST_NAMES} more"]
        if kind == "nothing":
            phrases.append(f"no number of runs settles {join_names(names)}")
            continue
        need = "criteria that were not run" if kind == "runs" else f"more {kind}"
        if counted:
            need = f"{_describe_counts([count for _, count in members])} {kind}"
        phrases.append(f"{join_names(names)} {'waits' if len(members) == 1 else 'wait'} for {need}")
    return ", ".join(phrases)


def _describe_counts(counts: Sequence[int]) -> str:
    """`about 14 to 60`, `more than 1000`."""
    lowest, highest = min(counts), max(counts)
    if lowest > MOST_UNITS:
        return f"more than {MOST_UNITS}"
    if highest > MOST_UNITS:
        return f"about {lowest} to more than {MOST_UNITS}"
    return f"about {lowest}" if lowest == highest else f"about {lowest} to {highest}"


def join_names(names: Sequence[str]) -> str:
    """`a, b and c`."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def count_of(number: int, noun: str) -> str:
    """`1 run`, `3 runs`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# -- one claim, one verdict, one criterion ----------------------------------------------------------------------------


def short_name(claim: Claim) -> str:
    """Return the name of a claim within its family; a word is put in quotation marks, a number like C5 is not."""
    name = claim.name.partition("/")[2]
    return name if name[0].isupper() else f"‘{name}’"


def name_paper(claim: Claim) -> str:
    """Name the paper that a claim is of, or about."""
    return f"ours, on {claim.paper}" if claim.ours else claim.paper


def describe_claim(claim: Claim, criteria: bool = False) -> str:
    """Describe a claim; with its criteria, if asked for."""
    lines = [claim.name, *_claim_lines(claim)]
    if criteria:
        lines += [f"- {criterion.key}" for criterion in claim.criteria]
    return "\n".join([lines[0], *(_wrap(line, "  ") for line in lines[1:])])


def _claim_lines(claim: Claim) -> list[str]:
    return [
        f"{name_paper(claim)}, {claim.source}",
        claim.statement,
        f"printed: {claim.printed}",
        f"study: {claim.study}",
    ]


def describe_place(judged: JudgedClaim) -> str:
    """Name the scale and setting that a claim was judged at."""
    return ", ".join(filter(None, (judged.scale, judged.setting)))


def count_findings(judged: JudgedClaim) -> str:
    """Count the verdicts on the criteria: `2 supported, 1 undecided, 4 not compared`."""
    verdicts = [finding.verdict for finding in judged.compared]
    counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS if verdict in verdicts]
    elsewhere = len(judged.findings) - len(verdicts)
    return ", ".join([*counts, f"{elsewhere} not compared"] if elsewhere else counts)


def verdict_on(finding: Finding) -> str:
    """Return the verdict on a criterion, or that it was not compared."""
    return finding.verdict if finding.compared else "not compared"


def describe_finding(finding: Finding) -> str:
    """Describe a criterion, its estimate, and why it is open."""
    text = finding.criterion.key
    if finding.estimate is not None:
        text += f": {finding.estimate}"
    if finding.waiting is not None:
        text += f"; {describe_waiting(finding)}"
    return text


def find_decisive(judged: JudgedClaim) -> Finding | None:
    """Return the finding that the verdict hangs on: of supported criteria the weakest, else the first in the way."""

    def slack(finding: Finding) -> float:
        """How far the interval is from the bounds."""
        if finding.estimate is None:
            return math.inf
        interval, criterion = finding.estimate.interval, finding.criterion
        return min(interval.low - criterion.low, criterion.high - interval.high)

    if judged.verdict == "supported":
        return min(judged.compared, key=slack)
    for verdict in (judged.verdict, "not run"):
        for finding in judged.compared:
            if finding.verdict == verdict:
                return finding
    return None


def explain(judged: JudgedClaim) -> str:
    """Describe the finding that the verdict hangs on."""
    finding = find_decisive(judged)
    return describe_finding(finding) if finding is not None else explain_not_run(judged)


def explain_briefly(
    judged: JudgedClaim, number: Callable[[Finding], str] = lambda finding: str(finding.estimate)
) -> str:
    """Name the criterion that the verdict hangs on, with its number; what would settle it is given beside it."""
    finding = find_decisive(judged)
    if judged.verdict == "not run" or finding is None:
        return explain_not_run(judged)
    # A criterion without a number would read like a finding.
    return f"{finding.criterion.key}: {number(finding) if finding.estimate is not None else 'not measured'}"


def explain_not_run(judged: JudgedClaim) -> str:
    """Return the first reason why a claim was not run."""
    if judged.note or not judged.findings:
        return judged.note
    return describe_waiting(judged.findings[0])


def describe_without(judged: JudgedClaim) -> list[str]:
    """Describe the verdict without the runs that the claim sets apart, if there are any."""
    other, subset = judged.without, judged.claim.set_apart
    if other is None or subset is None:
        return []
    return [f"without {subset.name}: {other.verdict} ({count_findings(other)}); {explain(other)}"]


# -- the verdicts as text and data ------------------------------------------------------------------------------------


def format_table(verdicts: Sequence[JudgedClaim], deviations: Deviations, criteria: bool = False) -> str:
    """List claim, verdict, counts and setting; below each what decided it, or every criterion. Not run comes last."""
    judged = [entry for entry in verdicts if criteria or entry.verdict != "not run"]
    width = max((len(entry.claim.name) for entry in judged), default=0)
    lines = []
    for entry in judged:
        head = f"{entry.claim.name.ljust(width)}  {entry.verdict.ljust(12)}  {describe_place(entry)}  {count_findings(entry)}"
        lines.append(_wrap(head.rstrip(), "", " " * 4))
        texts = [explain(entry)]
        if criteria:
            texts = _claim_lines(entry.claim)
            texts += [f"- {verdict_on(finding)}: {describe_finding(finding)}" for finding in entry.findings]
            texts += [entry.note] if entry.note else []
        lines += [_wrap(text, " " * 4) for text in [*texts, *describe_without(entry)]]
    not_run = {}  # names and the first reason, each once
    for entry in verdicts:
        if entry.verdict == "not run":
            not_run[entry.claim.name] = explain_not_run(entry)
    if len(judged) < len(verdicts):
        names = ", ".join(f"{name} ({reason})" for name, reason in not_run.items())
        lines.append(_wrap(f"not run: {names}", "", " " * 4))
    for title, notes in list_notes(judged, deviations):
        lines += ["", f"{title}:", "", *(_wrap(note, "  ") for note in notes)]
    return "\n".join(lines)


def format_markdown(verdicts: Sequence[JudgedClaim], deviations: Deviations, criteria: bool = False) -> str:
    """One row per claim, or per criterion, for documents."""
    titles = ("claim", "statement", "verdict", "judged at", "criteria", "because", "would settle it")
    lines = [table_row(*titles), f"|{len(titles) * '---|'}"]
    for judged in verdicts:
        claim = judged.claim
        counts, reason = count_findings(judged), explain_briefly(judged)
        head = (claim.name, claim.statement, judged.verdict, describe_place(judged), counts, reason)
        lines.append(table_row(*head, describe_needs(judged)))
        for finding in judged.findings if criteria else ():
            estimate = "" if finding.estimate is None else str(finding.estimate)
            row = ("", finding.criterion.key, verdict_on(finding), "", "", estimate, describe_waiting(finding))
            lines.append(table_row(*row))
        lines += [table_row("", "", "", "", "", text, "") for text in describe_without(judged)]
    for title, notes in list_notes([entry for entry in verdicts if entry.verdict != "not run"], deviations):
        lines += ["", f"{title}:", "", *(f"* {note}" for note in notes)]
    return "\n".join(lines)


def list_notes(verdicts: Sequence[JudgedClaim], deviations: Deviations) -> list[tuple[str, list[str]]]:
    """Return what was left out of the verdicts and how each scale deviates from the paper, each with a title."""
    left_out: dict[LeftOut, None] = {}  # an ordered set
    for judged in verdicts:
        left_out.update(dict.fromkeys(judged.left_out))
    notes = [("Left out of the verdicts", describe_left_out(left_out, MOST_CONFIGURATIONS))]
    notes += [(f"Deviations of scale {scale} from the paper", list(phrases)) for scale, phrases in deviations.items()]
    return [(title, phrases) for title, phrases in notes if phrases]


def list_claims_markdown(claims: Sequence[Claim]) -> str:
    """The claims themselves, one row each."""
    lines = [table_row("claim", "source", "statement", "printed", "study"), "|---|---|---|---|---|"]
    for claim in claims:
        source = f"{name_paper(claim)}, {claim.source}"
        lines.append(table_row(claim.name, source, claim.statement, claim.printed, claim.study))
    return "\n".join(lines)


def table_row(*fields: str) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(field.replace('|', '/') for field in fields)} |"


def claim_data(claim: Claim) -> dict[str, Any]:
    """A claim as plain JSON values."""
    return {
        "claim": claim.name,
        "paper": name_paper(claim),
        "source": claim.source,
        "statement": claim.statement,
        "printed": claim.printed,
        "study": claim.study,
    }


def judged_data(judged: JudgedClaim) -> dict[str, Any]:
    """A judged claim as plain JSON values."""
    without = None
    if judged.without is not None and judged.claim.set_apart is not None:
        without = {"runs": judged.claim.set_apart.name, **_verdict_data(judged.without)}
    return {**claim_data(judged.claim), "scale": judged.scale, **_verdict_data(judged), "without": without}


def _verdict_data(judged: JudgedClaim) -> dict[str, Any]:
    left_out = []
    for entry in judged.left_out:
        configuration = {column: _json_value(value) for column, value in entry.configuration}
        counts = {"reason": entry.reason.value, "count": entry.count, "total": entry.total}
        left_out.append({"configuration": configuration, **counts})
    return {
        "verdict": judged.verdict,
        "setting": judged.setting,
        "note": judged.note,
        "left_out": left_out,
        "criteria": [_finding_data(finding) for finding in judged.findings],
    }


def _finding_data(finding: Finding) -> dict[str, Any]:
    data: dict[str, Any] = {
        "criterion": finding.criterion.key,
        "verdict": finding.verdict,
        "compared": finding.compared,
        "waiting": None,
    }
    waiting = finding.waiting
    if waiting is not None:
        needs = {"for": waiting.kind, "count": waiting.count, "reason": waiting.reason.name.lower()}
        data["waiting"] = {**needs, "text": describe_waiting(finding)}
    if finding.estimate is not None:
        interval = finding.estimate.interval
        for name, number in (("estimate", finding.estimate.value), ("low", interval.low), ("high", interval.high)):
            data[name] = None if math.isnan(number) else number
        data |= {"level": interval.level, "n": interval.n, "covers": interval.covers, "indicative": interval.indicative}
    return data


def _json_value(value: Any) -> Any:
    """NumPy's numbers as Python's; a missing value as None."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return value.item() if hasattr(value, "item") else value


def _wrap(text: str, indent: str, hanging: str | None = None) -> str:
    """Break a line at `WIDTH`; what follows is indented further."""
    following = f"{indent}  " if hanging is None else hanging
    return textwrap.fill(
        text, WIDTH, initial_indent=indent, subsequent_indent=following, break_long_words=False, break_on_hyphens=False
    )

"""Claims and verdicts as text: sentences, the table of the command line, Markdown, and plain data for programs.

Findings hold their estimates and needs in fields. Only this module, `page` and `screen` turn them into words.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from unseen.claims.claim import Claim, JudgedClaim
from unseen.claims.criterion import CriterionDrift, Finding, Need, Obstacle, PrintedNumber, Waiting
from unseen.claims.decide import MOST_UNITS
from unseen.claims.evidence import Exclusion, Group, LeftOut, Levels, Missing, MissingReason, describe_level
from unseen.claims.planned import find_main_need, price_settling, price_study, scale_for
from unseen.claims.registration import read_amendments
from unseen.names import name_in_family
from unseen.stats import FEWEST

WIDTH = 110
"""The longest line of the table."""
MOST_NEEDS = 4
"""How many different needs of a claim are listed; programs get all of them."""
MOST_CONFIGURATIONS = 6
"""How many configurations of left-out runs are named below the table."""
MOST_NAMES = 3
"""How many claims with the same need are named before the others are counted."""
Deviations = Mapping[str, Sequence[str]]
"""How each scale deviates from the paper, one phrase each."""
KINDS = {"registered": True, "exploratory": False}
"""The two kinds of verdicts, with whether their criteria were registered before the runs."""


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
    """Say which runs were left out, one phrase per reason: `3 of 5 runs diverged (T−Pos+Att on T6)`.

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
        phrases = describe_left_out(finding.left_out)
        return f"{text}: {'; '.join(phrases)}" if phrases else text
    if waiting.reason is Obstacle.PLANNED:
        return f"{waiting.usable} of {count_of(waiting.count or 0, waiting.unit)} complete"
    text = _describe_need(waiting)
    if waiting.kind in ("seeds", "tasks"):
        text += " would settle it"
    if waiting.reason is Obstacle.CHANCE:
        text += f": with {waiting.criteria} criteria, one may lie outside by chance"
    if waiting.reason is Obstacle.FAILING:
        text += ": the paper says that some seeds fail"
    if waiting.reason is Obstacle.DRIFT and finding.drift is not None:
        text += f": {describe_drift(finding.drift)}"
    if waiting.reason is Obstacle.NOT_REACHED:
        text += f": {finding.learned:.0%} of the runs of a configuration learned, smaller than the paper's"
    return text


def describe_drift(drift: CriterionDrift) -> str:
    """Say how far a quantity moved at the end of training: `it moved by −0.012 ± 0.003 in the last third of training`."""
    score = "it" if drift.judged else "the validation score"
    sign = "+" if drift.signed else ""
    value = drift.value if drift.signed else abs(drift.value)
    return f"{score} moved by {value:{sign}z.3f} ± {drift.standard_error:.3f} in the last third of training"


def _describe_need(waiting: Waiting) -> str:
    """The need in a few words: `about 14 seeds`."""
    if waiting.missing is not None:
        return describe_missing(waiting.missing)
    if waiting.reason is Obstacle.ON_BOUND:
        return f"no number of {waiting.unit}s settles it: the mean lies on the bound"
    if waiting.reason is Obstacle.CONSTANT:
        return "it cannot be measured: the values do not vary"
    if waiting.reason is Obstacle.LAST_LOOK:
        return "the last planned look is over"
    if waiting.reason is Obstacle.NOT_LEARNED:
        return "more steps: no run of a group left its starting level"
    if waiting.reason is Obstacle.NOT_REACHED:
        return "more steps or a larger scale, so that more runs learn"
    if waiting.reason is Obstacle.TOO_FEW:
        return f"at least {FEWEST} {waiting.unit}s (has {waiting.usable})"
    if waiting.kind == "steps":
        return f"about {waiting.count:,} more steps" if waiting.count is not None else "more steps"
    return f"about {waiting.count} {waiting.kind}" if waiting.count is not None else f"more {waiting.kind}"


# -- the needs of an undecided claim ----------------------------------------------------------------------------------


def describe_needs(judged: JudgedClaim) -> str:
    """List what would settle a claim that is open, each need once; empty for a decided one.

    Of numbers of seeds or steps the largest is given, since every criterion must be settled.
    """
    return "; ".join(_list_needs(judged))


def _list_needs(judged: JudgedClaim) -> list[str]:
    if judged.progress is not None and judged.verdict == "in progress":
        unit = judged.claim.design.unit
        return [f"{judged.progress.complete} of {count_of(judged.progress.planned, unit)} complete"]
    if judged.verdict not in ("undecided", "not reached"):
        return []
    counts: dict[Need, list[int]] = {}
    others: dict[str, None] = {}  # an ordered set
    for finding in judged.compared:
        waiting = finding.waiting
        if waiting is None or (judged.verdict == "not reached" and finding.reached):
            continue  # first comes what keeps the claim from being reached
        if waiting.count is not None and waiting.reason is not Obstacle.TOO_FEW:
            counts.setdefault(waiting.kind, []).append(waiting.count)
        else:
            others[_describe_need(waiting)] = None
    needs = []
    if "steps" in counts:
        needs.append(f"about {max(counts['steps']):,} more steps")
        others.pop("more steps", None)
    for kind in ("seeds", "tasks"):
        if kind in counts:
            count = max(counts[kind])
            text = f"about {count} {kind}"
            needs.append(text if count <= MOST_UNITS else f"more than {MOST_UNITS} {kind}: close to the bound")
    needs += others
    more = len(needs) - MOST_NEEDS
    return [*needs[:MOST_NEEDS], f"and {more} more"] if more > 0 else needs


def describe_price(judged: JudgedClaim) -> str:
    """Say what it would cost to settle an open claim: `about 3.2 core-hours`; empty where that cannot be told."""
    price = price_settling(judged)
    return "" if price is None else f"about {format_hours(price)}"


def format_hours(hours: float) -> str:
    """Core-hours in words.

    >>> format_hours(0.03), format_hours(3.21), format_hours(8_600_000.0)
    ('0.03 core-hours', '3.2 core-hours', '8,600,000 core-hours')
    """
    if hours < 0.1:
        return f"{max(hours, 0.01):.2f} core-hours"
    return f"{hours:.1f} core-hours" if hours < 10 else f"{hours:,.0f} core-hours"


def describe_command(claim: Claim, tried: Collection[str] = ()) -> str:
    """The command that would run what a claim needs, with its price; `tried` are scales that do not have it."""
    scale = scale_for(claim, tried)
    if not scale:
        return "no scale of its study has it"
    return f"`unseen run {claim.study} --scale {scale} --out DIR`, {format_hours(price_study(claim.study, scale))}"


def describe_remedy(judged: JudgedClaim) -> str:
    """What would settle an open claim, with its price: `about 14 seeds (about 3.2 core-hours)`.

    Of several needs, the price is that of the first one, and says so.
    """
    needs = _list_needs(judged)
    price = describe_price(judged) if needs else ""
    if price and len(needs) > 1:
        price += f" for the {find_main_need(judged).kind}"
    return f"{'; '.join(needs)} ({price})" if price else "; ".join(needs)


def describe_undecided(undecided: Sequence[JudgedClaim]) -> str:
    """Say what undecided claims wait for: `C5 and C7 wait for about 14 to 60 seeds, C8 waits for more steps`."""
    groups: dict[tuple[Need, bool], list[tuple[str, int]]] = {}
    for judged in undecided:
        need = find_main_need(judged)
        members = groups.setdefault((need.kind, need.count is not None), [])
        members.append((short_name(judged.claim), need.count or 0))
    phrases = []
    for (kind, counted), members in groups.items():
        names = [name for name, _ in members]
        if len(names) > MOST_NAMES + 1:
            names = [*names[:MOST_NAMES], f"{len(names) - MOST_NAMES} more"]
        if kind == "nothing":
            phrases.append(f"no number of runs settles {join_names(names)}")
            continue
        counts = [count for _, count in members]
        text = "criteria that were not run" if kind == "runs" else f"more {kind}"
        if counted and kind == "steps":
            text = f"about {max(counts):,} more steps"
        elif counted:
            text = f"{_describe_counts(counts)} {kind}"
        phrases.append(f"{join_names(names)} {'waits' if len(members) == 1 else 'wait'} for {text}")
    return ", ".join(phrases)


def _describe_counts(counts: Sequence[int]) -> str:
    """`about 14 to 60`, `more than 1000`."""
    lowest = min(counts)
    highest = max(counts)
    if lowest > MOST_UNITS:
        return f"more than {MOST_UNITS}"
    if highest > MOST_UNITS:
        return f"about {lowest} to more than {MOST_UNITS}"
    return f"about {lowest}" if lowest == highest else f"about {lowest} to {highest}"


def join_names(names: Sequence[str]) -> str:
    """Names as an enumeration.

    >>> join_names(["a", "b", "c"]), join_names(["a"]), join_names([])
    ('a, b and c', 'a', '')
    """
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def count_of(number: int, noun: str) -> str:
    """`1 run`, `3 runs`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# -- one claim, one verdict, one criterion ----------------------------------------------------------------------------


def short_name(claim: Claim) -> str:
    """Return the name of a claim within its family; a word is put in quotation marks, a number like C5 is not."""
    name = name_in_family(claim.name)
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
    # A user's claim may have neither a source nor printed numbers.
    lines = [f"{name_paper(claim)}, {claim.source}"] if claim.source else []
    lines.append(claim.statement)
    if claim.printed:
        lines.append(f"printed: {claim.printed}")
    lines.append(f"study: {claim.study}")
    return [*lines, *describe_amendment(claim)]


def describe_amendment(claim: Claim) -> list[str]:
    """Say what was added to a claim after its registration, and when."""
    amendment = read_amendments().get(claim.name)
    date = "" if amendment is None else f" on {amendment.date}"
    lines = []
    for failing in claim.failing:
        runs = Group(failing.columns)
        lines.append(
            f"amended{date}: by the paper’s own account seeds of {runs} fail ({failing.source}: “{failing.quote}”)"
        )
    return lines


def describe_scale_and_setting(judged: JudgedClaim) -> str:
    """Name the scale and setting that a claim was judged at."""
    return ", ".join(filter(None, (judged.scale, judged.setting)))


def describe_coverage(judged: JudgedClaim) -> str:
    """Say how many criteria were run and hold: `9 of 14 criteria run, 8 hold`; of printed numbers, how many agree."""
    coverage = judged.coverage
    singular, plural, verb = ("criterion", "criteria", "hold")
    if judged.claim.is_agreement:
        singular, plural, verb = ("number", "numbers", "agree")
    noun = singular if coverage.total == 1 else plural
    if 1 in (coverage.total, coverage.hold):
        verb += "s"
    return f"{coverage.run} of {coverage.total} {noun} run, {coverage.hold} {verb}"


def describe_kind(judged: JudgedClaim) -> str:
    """Say whether the criteria were registered before the runs."""
    return "registered" if judged.registered else "exploratory"


def verdict_on(finding: Finding) -> str:
    """Return the outcome of a criterion in the words of its kind, or why it does not count."""
    if not finding.compared:
        return "not compared"
    if not finding.reached and finding.verdict != "not run":
        return "not reached"
    if isinstance(finding.criterion, PrintedNumber):
        return {"holds": "agrees", "contradicted": "differs"}.get(finding.verdict, finding.verdict)
    return finding.verdict


def describe_finding(finding: Finding) -> str:
    """Describe a criterion, its estimate, and why it is open."""
    text = finding.criterion.key
    if finding.estimate is not None:
        text += f": {finding.estimate}"
    if finding.waiting is not None:
        text += f"; {describe_waiting(finding)}"
    return text


def find_decisive(judged: JudgedClaim) -> Finding | None:
    """Return the finding that decides the verdict: if all hold the weakest, else the first that does not."""
    compared = judged.compared

    def weakness(finding: Finding) -> float:
        """The larger, the less certain that the criterion holds."""
        return -1.0 if finding.p_holds is None else finding.p_holds

    def first(*outcomes: str) -> Finding | None:
        for outcome in outcomes:
            for finding in compared:
                if finding.verdict == outcome and (finding.reached or judged.verdict == "not reached"):
                    return finding
        return None

    if judged.verdict == "supported":
        return max((finding for finding in compared if finding.verdict == "holds"), key=weakness, default=None)
    if judged.verdict in ("contradicted", "mixed"):
        return first("contradicted", "open", "not run")
    if judged.verdict == "not reached":
        return next((finding for finding in compared if not finding.reached), None)
    return first("open", "not run")


def explain(judged: JudgedClaim) -> str:
    """Describe the finding that decides the verdict."""
    finding = find_decisive(judged)
    text = describe_finding(finding) if finding is not None else explain_not_run(judged)
    return f"{text}. {judged.caveat}" if judged.caveat else text


def explain_briefly(
    judged: JudgedClaim, number: Callable[[Finding], str] = lambda finding: str(finding.estimate)
) -> str:
    """Name the criterion that decides the verdict, with its number."""
    finding = find_decisive(judged)
    if judged.verdict == "not run" or finding is None:
        return explain_not_run(judged)
    # A criterion without a number would read like a finding.
    text = f"{finding.criterion.key}: {number(finding) if finding.estimate is not None else 'not measured'}"
    return f"{text}. {judged.caveat}" if judged.caveat else text


def explain_not_run(judged: JudgedClaim) -> str:
    """Return the first reason why a claim was not run."""
    if judged.note or not judged.findings:
        return judged.note
    return describe_waiting(judged.findings[0])


def describe_without(judged: JudgedClaim) -> list[str]:
    """Describe the verdict without the runs that the claim sets apart, and without its amendment, where it differs."""
    lines = []
    if judged.unamended not in (None, judged.verdict):
        lines.append(f"without the amendment for seeds that fail: {judged.unamended}")
    without = judged.without
    subset = judged.claim.set_apart
    if without is not None and subset is not None:
        lines.append(f"without {subset.name}: {without.verdict} ({describe_coverage(without)}); {explain(without)}")
    return lines


# -- the verdicts as text and data ------------------------------------------------------------------------------------


def format_table(
    verdicts: Sequence[JudgedClaim], deviations: Deviations, criteria: bool = False, columns: int = WIDTH
) -> str:
    """List claim, verdict, counts and setting; below each what decided it, or every criterion. Not run comes last."""
    if not verdicts:
        return "No claim is about these runs."
    judged = [entry for entry in verdicts if criteria or entry.verdict != "not run"]
    width = max((len(entry.claim.name) for entry in judged), default=0)
    lines = []
    for entry in judged:
        verdict = f"{entry.verdict.ljust(12)}  {describe_kind(entry)}"
        head = f"{entry.claim.name.ljust(width)}  {verdict}  {describe_scale_and_setting(entry)}  {describe_coverage(entry)}"
        lines.append(_wrap(head.rstrip(), "", " " * 4, columns))
        texts = [explain(entry)]
        if criteria:
            texts = _claim_lines(entry.claim)
            texts += [f"- {verdict_on(finding)}: {describe_finding(finding)}" for finding in entry.findings]
            texts += [text for text in (entry.note, entry.caveat) if text]
        if describe_price(entry):  # the need itself is part of the explanation
            texts.append(f"would settle it: {describe_remedy(entry)}")
        lines += [_wrap(text, " " * 4, columns=columns) for text in [*texts, *describe_without(entry)]]
    not_run = {}  # names and the first reason, each once
    for entry in verdicts:
        if entry.verdict == "not run":
            not_run[entry.claim.name] = explain_not_run(entry)
    if len(judged) < len(verdicts):
        names = ", ".join(f"{name} ({reason})" for name, reason in not_run.items())
        lines.append(_wrap(f"not run: {names}", "", " " * 4, columns))
    for title, notes in list_notes(judged, deviations):
        lines += ["", f"{title}:", "", *(_wrap(note, "  ", columns=columns) for note in notes)]
    return "\n".join(lines)


def format_markdown(verdicts: Sequence[JudgedClaim], deviations: Deviations, criteria: bool = False) -> str:
    """One row per claim, or per criterion, for documents."""
    titles = ("claim", "statement", "verdict", "kind", "judged at", "coverage", "because", "would settle it")
    lines = [table_row(*titles), f"|{len(titles) * '---|'}"]
    for judged in verdicts:
        fields = (
            judged.claim.name,
            judged.claim.statement,
            judged.verdict,
            describe_kind(judged),
            describe_scale_and_setting(judged),
            describe_coverage(judged),
            explain_briefly(judged),
            describe_remedy(judged),
        )
        lines.append(table_row(*fields))
        for finding in judged.findings if criteria else ():
            estimate = "" if finding.estimate is None else str(finding.estimate)
            row = ("", finding.criterion.key, verdict_on(finding), "", "", "", estimate, describe_waiting(finding))
            lines.append(table_row(*row))
        lines += [table_row("", "", "", "", "", "", text, "") for text in describe_without(judged)]
    for title, notes in list_notes([entry for entry in verdicts if entry.verdict != "not run"], deviations):
        lines += ["", f"{title}:", "", *(f"* {note}" for note in notes)]
    return "\n".join(lines)


def list_notes(verdicts: Sequence[JudgedClaim], deviations: Deviations) -> list[tuple[str, list[str]]]:
    """List the runs left out of the verdicts, and how each scale deviates from the paper, each list with a title."""
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
        "amendments": describe_amendment(claim),
    }


def judged_data(judged: JudgedClaim) -> dict[str, Any]:
    """A judged claim as plain JSON values."""
    without = None
    if judged.without is not None and judged.claim.set_apart is not None:
        without = {"runs": judged.claim.set_apart.name, **_verdict_data(judged.without)}
    price = {"core_hours": price_settling(judged)}
    return {**claim_data(judged.claim), "scale": judged.scale, **_verdict_data(judged), **price, "without": without}


def _verdict_data(judged: JudgedClaim) -> dict[str, Any]:
    left_out = []
    for entry in judged.left_out:
        configuration = {column: _json_value(value) for column, value in entry.configuration}
        counts = {"reason": entry.reason.value, "count": entry.count, "total": entry.total}
        left_out.append({"configuration": configuration, **counts})
    coverage = judged.coverage
    progress = judged.progress
    return {
        "verdict": judged.verdict,
        "unamended": judged.unamended,
        "registered": judged.registered,
        "coverage": {"run": coverage.run, "hold": coverage.hold, "total": coverage.total},
        "alpha": judged.alpha,
        "look": judged.look,
        "progress": None if progress is None else {"complete": progress.complete, "planned": progress.planned},
        "setting": judged.setting,
        "note": judged.note,
        "caveat": judged.caveat,
        "left_out": left_out,
        "criteria": [_finding_data(finding) for finding in judged.findings],
    }


def _finding_data(finding: Finding) -> dict[str, Any]:
    data: dict[str, Any] = {
        "criterion": finding.criterion.key,
        "role": finding.criterion.role,
        "verdict": finding.verdict,
        "compared": finding.compared,
        "reached": finding.reached,
        "p_holds": finding.p_holds,
        "p_contradicted": finding.p_contradicted,
        "drift": None,
        "waiting": None,
    }
    drift = finding.drift
    if drift is not None:
        score = "judged" if drift.judged else "validation"
        data["drift"] = {"value": drift.value, "standard_error": drift.standard_error, "score": score}
    waiting = finding.waiting
    if waiting is not None:
        needs = {
            "for": waiting.kind,
            "count": waiting.count,
            "further": waiting.further,
            "reason": waiting.reason.name.lower(),
        }
        data["waiting"] = {**needs, "text": describe_waiting(finding)}
    if finding.estimate is not None:
        interval = finding.estimate.interval
        for name, number in (("estimate", finding.estimate.value), ("low", interval.low), ("high", interval.high)):
            data[name] = number if math.isfinite(number) else None
        data |= {"level": interval.level, "n": interval.n, "covers": interval.covers, "indicative": interval.indicative}
    return data


def _json_value(value: Any) -> Any:
    """NumPy's numbers as Python's; a missing value as None."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return value.item() if hasattr(value, "item") else value


def _wrap(text: str, indent: str, hanging: str | None = None, columns: int = WIDTH) -> str:
    """Break a line at `columns`; what follows is indented further."""
    following = f"{indent}  " if hanging is None else hanging
    return textwrap.fill(
        text,
        columns,
        initial_indent=indent,
        subsequent_indent=following,
        break_long_words=False,
        break_on_hyphens=False,
    )

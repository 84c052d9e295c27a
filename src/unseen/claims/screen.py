"""The verdicts on one screen of 40 lines and 100 columns: how many of each kind per paper, and what was decided."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from unseen.claims import CLAIMS
from unseen.claims.claim import JudgedClaim
from unseen.claims.criterion import DECIDED, Verdict
from unseen.claims.judge_studies import JudgedStore
from unseen.claims.page import ORDER, pair_claims
from unseen.claims.render import KINDS, count_of
from unseen.names import family_of

LINES = 40
COLUMNS = 100


def format_screen(stores: Sequence[JudgedStore], columns: int = COLUMNS) -> str:
    """All claims of the papers: a table of counts, and the sentence of each decided claim.

    Where the sentences do not fit line by line they follow one another, and if these are too many, too, some are only
    named. A claim that was judged at several scales counts at each of them. In fewer columns there are more lines.
    """
    columns = min(columns, COLUMNS)
    verdicts = [judged for _, judged in pair_claims(stores)]
    decided = [judged for judged in verdicts if judged.verdict in DECIDED]
    claims = len({judged.claim.name for judged in verdicts})
    names = ", ".join(dict.fromkeys(store.study for store in stores)) or "none yet"
    head = f"{claims} claims of four papers, judged by the records that come with the package ({names})."
    lines = [*textwrap.wrap(head, columns), "", *_count_rows(verdicts, columns), ""]
    hint = "" if decided else "Nothing is decided yet. "
    hint += "With --claim NAME: its criteria and numbers; with --all: every claim; with DIR: your runs."
    room = LINES * COLUMNS // columns - len(lines) - 1
    choices = (_list_decided(decided, columns), _run_on(decided, columns), _run_on(decided, columns, most=room))
    for sentences in choices:
        if len(sentences) <= room:
            break
    return "\n".join([*lines, *sentences[:room], *textwrap.wrap(hint, columns)])


def _count_rows(verdicts: Sequence[JudgedClaim], columns: int) -> list[str]:
    """A row per paper and kind. What was not run is neither registered nor exploratory.

    Where the table would be too wide, every row is a sentence.
    """
    in_progress = any(judged.verdict == "in progress" for judged in verdicts)
    counted = [verdict for verdict in ORDER if verdict != "not run" and (verdict != "in progress" or in_progress)]
    titles = ["paper", "claims", "not run", "judged", *counted]
    rows = [titles]
    for family in dict.fromkeys(family_of(judged.claim.name) for judged in verdicts):
        of_paper = [judged for judged in verdicts if family_of(judged.claim.name) == family]
        total = len({judged.claim.name for judged in of_paper})
        run = [judged for judged in of_paper if judged.verdict != "not run"]
        first = [family, str(total), str(total - len({judged.claim.name for judged in run}))]
        for title, registered in KINDS.items():
            alike = [judged.verdict for judged in run if judged.registered is registered]
            if not alike and (run or not registered):
                continue  # nothing of this kind; a paper of which nothing was run has one row
            rows.append([*first, title, *(str(alike.count(verdict)) for verdict in counted)])
            first = ["", "", ""]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    text_columns = (titles.index("paper"), titles.index("judged"))
    if sum(widths) + 2 * (len(widths) - 1) > columns:
        return _describe_rows(rows, columns)
    lines = []
    for row in rows:
        fields = []
        for column, text in enumerate(row):
            fields.append(text.ljust(widths[column]) if column in text_columns else text.rjust(widths[column]))
        lines.append("  ".join(fields).rstrip())
    return lines


def _describe_rows(rows: Sequence[Sequence[str]], columns: int) -> list[str]:
    """`rules: 23 claims, 20 not run; registered: 1 supported, 0 mixed, …`"""
    titles, *body = rows
    lines = []
    for paper, claims, not_run, title, *counts in body:
        start = f"{paper}: {claims} claims, {not_run} not run; {title}: " if paper else f"  {title}: "
        listed = ", ".join(f"{count} {verdict}" for count, verdict in zip(counts, titles[4:], strict=True))
        lines += textwrap.wrap(start + listed, columns, subsequent_indent="  ")
    return lines


def _sentence(judged: JudgedClaim) -> str:
    return CLAIMS.entry(judged.claim.name).summary


def _mark(judged: JudgedClaim) -> str:
    """A star for what is only exploratory."""
    return "" if judged.registered else "*"


def _coverage(judged: JudgedClaim) -> str:
    """How many of its criteria were run, and how many hold: `6/10 run, 5 hold`."""
    coverage = judged.coverage
    return f"{coverage.run}/{coverage.total} run, {coverage.hold} hold"


def _list_decided(decided: Sequence[JudgedClaim], columns: int) -> list[str]:
    """One line per decided claim: its name, its verdict, its coverage and its sentence."""
    width = max((len(judged.claim.name) + 1 for judged in decided), default=0)
    room = max((len(_coverage(judged)) + 2 for judged in decided), default=0)
    lines = []
    for judged in decided:
        head = f"{judged.claim.name}{_mark(judged)}".ljust(width) + f"  {judged.verdict.ljust(12)}  "
        head += f"{_coverage(judged)}  ".rjust(room)
        indent = " " * min(len(head), columns * 3 // 5)
        lines += textwrap.wrap(head + _sentence(judged), columns, subsequent_indent=indent, break_on_hyphens=False)
    return [*lines, *_explain_mark(decided, columns)]


def _explain_mark(decided: Sequence[JudgedClaim], columns: int) -> list[str]:
    exploratory = any(not judged.registered for judged in decided)
    text = "* exploratory: the criteria were written or changed after the first run"
    return textwrap.wrap(text, columns) if exploratory else []


def _run_on(decided: Sequence[JudgedClaim], columns: int, most: int | None = None) -> list[str]:
    """The sentences of each verdict one after another; with `most` lines, as many as fit, and the others by name."""
    budget = None if most is None else max(most - len(_explain_run_on(decided, columns)), 1)
    lines: list[str] = []
    remaining = len(decided)
    for verdict in DECIDED:
        members = [judged for judged in decided if judged.verdict == verdict]
        if not members:
            continue
        share = None
        if budget is not None:
            # The lines that earlier verdicts have left, in proportion to the claims that remain.
            share = max((budget - len(lines)) * len(members) // remaining, 1)
        remaining -= len(members)
        lines += _fill(verdict, members, columns, share)
    return [*lines, *_explain_run_on(decided, columns)]


def _explain_run_on(decided: Sequence[JudgedClaim], columns: int) -> list[str]:
    """What the numbers behind a name are, and the mark."""
    coverage = "(6/10, 5): 6 of 10 criteria run, 5 hold"
    return textwrap.wrap("; ".join([coverage, *_explain_mark(decided, 10_000)]), columns)


def _fill(verdict: Verdict, members: Sequence[JudgedClaim], columns: int, most: int | None) -> list[str]:
    for full in range(len(members), -1, -1):
        names = []
        for judged in members:
            coverage = judged.coverage
            names.append(f"{judged.claim.name}{_mark(judged)} ({coverage.run}/{coverage.total}, {coverage.hold})")
        texts = [f"{name} {_sentence(judged)}" for name, judged in zip(names[:full], members[:full], strict=True)]
        texts += names[full:]
        text = f"{verdict}: {'; '.join(texts)}"
        lines = textwrap.wrap(text, columns, subsequent_indent="  ", break_on_hyphens=False)
        if most is None or len(lines) <= most:
            return lines
    return [f"{verdict}: {count_of(len(members), 'claim')}"]

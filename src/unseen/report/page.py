"""The report: one HTML file that holds all it needs and opens without a network. Needs the extra `report`."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from unseen.errors import CheckFailed, UsageError
from unseen.report import assets, costs, glossary, theme, verdicts
from unseen.report.answer import answer
from unseen.report.design import design
from unseen.report.exam_scores import is_exam
from unseen.report.figure import Drawing, Figure
from unseen.report.figures import figures_of
from unseen.report.overview import counts, standings
from unseen.report.runs_table import runs_table
from unseen.report.save import FORMATS, written
from unseen.report.source import Source
from unseen.studies import exam
from unseen.studies.database import FILE, said_plainly
from unseen.studies.store import Store

Say = Callable[[str], None]
PAPERS: tuple[theme.Paper, ...] = ("light", "dark")
OURS = "ours"
AT_ONCE, TOLD = 8, 4
"""Figures of a tab, and notes under a figure, that are there at once; of more, the rest is folded away."""
ROWS = 20_000
"""Rows of a figure's data that are kept in the page; the command gives all."""
_ENDLESS = {math.inf: "∞", -math.inf: "−∞"}
"""JSON has no such numbers."""
SECTIONS = {
    "question": "Question",
    "answer": "Answer",
    "design": "Design",
    "claims": "Claims",
    "figures": "Figures",
    "runs": "Every run",
    "deviations": "Deviations",
    "failures": "Failures",
    "cost": "Cost",
    "provenance": "Provenance",
    "glossary": "Glossary",
}


@dataclass(frozen=True)
class Kept:
    """What a page shows of a store beside its records and runs."""

    spans: pd.DataFrame
    failures: pd.DataFrame
    provenance: pd.DataFrame
    models: dict[str, str]
    scales: list[str]

    @classmethod
    def read(cls, directory: Path) -> Kept:
        """All of it, as the store holds it now."""
        with Store.read(directory) as store, said_plainly(directory):
            entries = store.entries()
            return cls(
                store.spans(),
                store.failures(),
                store.provenance(),
                dict(zip(entries["cell"], entries["model"], strict=True)),
                list(entries["scale"].unique()),
            )


def write_page(
    directory: str | Path, out: str | Path | None = None, scale: str | None = None, say: Say = lambda text: None
) -> Path:
    """Write the report of a directory to a file, by default `report.html` in it; a half-written one is never left.

    `say` is told what is being done.
    """
    source = Source.read(directory, scale)
    target = Path(out) if out is not None else source.directory / "report.html"
    if target.is_dir():
        raise UsageError(f"{target} is a directory; give a file for the page, such as {target / 'report.html'}")
    if target.suffix.lower() in FORMATS:
        raise UsageError(f"{target}: the page is HTML: give --out X.html; {', '.join(FORMATS)} are for --figure NAME")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"{target} can't be written: there is no directory {target.parent}")
    text = page(source, say=say)

    def write(file: Path) -> None:
        file.write_text(text, encoding="utf-8", newline="\n")

    return written(target, write)


def page(source: Source, figures: Sequence[Figure] | None = None, say: Say = lambda text: None) -> str:
    """The whole page as text; `figures` are those that may have something to draw, by default all that fit."""
    figures = figures_of(source) if figures is None and len(source.runs) else figures or ()
    theme.load_altair()
    say("judging claims")
    kept, judged, count = Kept.read(source.directory), verdicts.judged(source), counts(source)
    say("drawing figures")
    shown, undrawn = _drawn(source, figures)
    say("writing the page")
    study, ledger = source.study, verdicts.rows(judged.verdicts)
    context = {
        "name": source.name or source.directory.name,
        "question": _question(source),
        "scale": source.scale,
        "sections": SECTIONS,
        "as_of": _last_written(source.directory),
        "directory": shlex.quote(str(source.directory)),
        "answer": answer(judged.verdicts, count, standings(source)),
        "counts": count,
        "other_scales": [one for one in kept.scales if one != source.scale],
        "design": design(source, kept.models, kept.provenance),
        "study": study,
        "ledger": ledger,
        "unjudged": judged.unread,
        "words": verdicts.WORDS,
        "judged": any(row["word"] != "not run" for row in ledger),
        "tally": {word: sum(row["word"] == word for row in ledger) for word in verdicts.WORDS},
        "papers": list(dict.fromkeys(row["paper"] for row in ledger)),
        "tabs": _tabs(shown),
        "at_once": AT_ONCE,
        "told": TOLD,
        "undrawn": undrawn,
        "deviations": _deviations(source),
        "failures": costs.failures(source, kept.failures),
        "early": costs.ended_early(source),
        "cost": costs.cost(source, kept.spans),
        "provenance": costs.provenance(source, kept.provenance),
        "table": runs_table(source),
        "selection": source.selection,
    }
    body = assets.render("body.html", context)
    return assets.render(
        "report.html",
        context
        | {
            "body": assets.raw(body),
            "glossary": glossary.used(re.sub(r"<[^>]*>", " ", body)),
            "style": assets.raw(assets.text("report.css")),
            "scripts": assets.scripts(charts=bool(shown)),
            "policy": assets.policy(charts=bool(shown)),
            "specs": {one["id"]: one["spec"] for one in shown},
            "data": {
                "configs": {paper: chart_config(paper) for paper in PAPERS},
                "table": context["table"],
                "figures": {one["id"]: one["data"] for one in shown},
            },
        },
    )


# -- figures ----------------------------------------------------------------------------------------------------------


def _drawn(source: Source, figures: Sequence[Figure]) -> tuple[list[dict[str, Any]], list[str]]:
    """The figures that have something to draw, and those that can't be drawn because the curves can't be read."""
    from altair.utils.schemapi import debug_mode

    shown, undrawn = [], []
    # That charts are valid is known from the tests; to ask again at every step of making them doubles the time.
    with debug_mode(False):
        for figure in figures:
            try:
                drawing = figure.draw(source)
            except CheckFailed as error:
                undrawn.append(f"{figure.title}: {error}")
                continue
            if drawing is not None:
                shown.append(_shown(source, figure, drawing))
    return shown, undrawn


def _shown(source: Source, figure: Figure, drawing: Drawing) -> dict[str, Any]:
    alt = theme.load_altair()
    with alt.data_transformers.enable("default", max_rows=None):
        spec = drawing.chart.to_dict(validate=False)
    spec.pop("config", None)
    scale = f" --scale {source.scale}" if source.scale else ""
    directory = shlex.quote(str(source.directory))
    command = f"unseen report {directory}{scale} --figure {figure.name} --out {figure.file}.svg"
    return {
        "id": figure.file,
        "figure": figure,
        "notes": drawing.notes,
        "spec": spec,
        "command": command,
        "rows": len(drawing.data),
        "data": _table(drawing.data),
    }


def _table(data: pd.DataFrame) -> dict[str, Any]:
    plain = data.head(ROWS).astype(object)
    return {
        "columns": [str(one) for one in data.columns],
        "rows": plain.where(plain.notna(), None).replace(_ENDLESS).to_numpy().tolist(),
        "all": len(data),
    }


def _tabs(shown: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The figures of each paper, by family, and ours."""
    tabs: dict[str, list[dict[str, Any]]] = {}
    for one in shown:
        family, slash, _ = one["figure"].name.partition("/")
        tabs.setdefault(family if slash else OURS, []).append(one)
    return tabs


def chart_config(paper: theme.Paper) -> dict[str, Any]:
    """The look of charts inside a page, whose own ground shows through; sizes as Altair's, as in saved figures."""
    found = theme.config(paper)
    return found | {
        "background": "transparent",
        "view": {**found["view"], "continuousWidth": 300, "continuousHeight": 300},
    }


# -- words ------------------------------------------------------------------------------------------------------------


def _question(source: Source) -> str:
    if source.study is not None:
        return source.study.question
    if is_exam(source):  # a study for each model: not one of the catalogue
        return exam.QUESTION
    if "study" in source.work:
        return f"{source.name} is not in this release's catalogue, so its question is not known here."
    task, _, model = source.name.partition(" · ")
    return f"How well does {model} solve {task}?" if model else ""


def _deviations(source: Source) -> list[str] | None:
    """How what was run differs from the paper; None where there is no study to compare with."""
    study = source.study
    if study is None or source.scale not in study.scales:
        return None
    said, planned = study.deviations(source.scale), {entry.cell.seed for entry in study.entries(source.scale)}
    held = set(source.runs["seed"])
    return said + (
        [f"{len(held)} seeds here, {len(planned)} in the study as it is at this scale"] if held != planned else []
    )


def _last_written(directory: Path) -> str:
    """When the store was last written: the same store gives the same page. To read it makes an empty -wal."""
    files = [path for name in (FILE, f"{FILE}-wal") if (path := directory / name).exists()]
    stamps = [path.stat().st_mtime for path in files if path.stat().st_size]
    return f"{datetime.fromtimestamp(max(stamps), UTC):%Y-%m-%d %H:%M} UTC"

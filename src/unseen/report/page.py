"""The report: one self-contained HTML file that opens without a network. Needs the extra `report`."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from unseen.errors import CheckFailed, UsageError
from unseen.exam import exam
from unseen.files import check_writable
from unseen.names import family_of, name_in_family
from unseen.report import html_assets, theme, verdicts
from unseen.report.data import Source
from unseen.report.exam_scores import is_exam, read_exam
from unseen.report.export import FORMATS, write_file
from unseen.report.figure import Drawing, Figure
from unseen.report.figures import figures_of
from unseen.report.sections import costs
from unseen.report.sections.design import describe_design
from unseen.report.sections.glossary import select_terms
from unseen.report.sections.inside import describe_source
from unseen.report.sections.runs import tabulate_runs
from unseen.report.sections.scores import tabulate_scores
from unseen.report.sections.specialization import tabulate_specialization
from unseen.report.sections.summary import answer, count_states
from unseen.store.schema import FILE, explain_errors
from unseen.store.store import Store
from unseen.studies.study import is_catalogued

Say = Callable[[str], None]
PAPERS: tuple[theme.Paper, ...] = ("light", "dark")
GENERAL_TAB = "ours"
OPEN_FIGURES = 8
"""Figures of a tab that are visible at once; the others are folded."""
OPEN_NOTES = 4
"""Notes under a figure that are visible at once; the others, and those that stand under a figure above, are folded."""
MAX_ROWS = 20_000
"""Rows of a figure's data that are embedded in the page; the command under the figure writes all."""
SECTIONS = {
    "question": "Question",
    "answer": "Answer",
    "design": "Design",
    "claims": "Claims",
    "inside": "Inside",
    "figures": "Figures",
    "runs": "Every run",
    "deviations": "Deviations",
    "failures": "Failures",
    "cost": "Cost",
    "provenance": "Provenance",
    "glossary": "Glossary",
}


@dataclass(frozen=True)
class StoreTables:
    """The tables of a store that a page shows besides its records and runs."""

    spans: pd.DataFrame
    failures: pd.DataFrame
    provenance: pd.DataFrame
    models: dict[str, str]
    scales: list[str]

    @classmethod
    def read(cls, directory: Path) -> StoreTables:
        """Read the tables from the store in a directory."""
        with Store.read(directory) as store, explain_errors(directory):
            entries = store.entries()
            models = dict(zip(entries["trial"], entries["model"], strict=True))
            scales = list(entries["scale"].unique())
            return cls(store.spans(), store.failures(), store.provenance(), models, scales)


def write_page(
    directory: str | Path, out: str | Path | None = None, scale: str | None = None, say: Say = lambda text: None
) -> Path:
    """Write the report of a directory to a file, by default `report.html` in it; returns the path of the file.

    The file is written under a temporary name and renamed, so it is never incomplete. `say` is called with a message
    at each stage.
    """
    source = Source.read(directory, scale)
    target = Path(out) if out is not None else source.directory / "report.html"
    if target.is_dir():
        raise UsageError(f"{target} is a directory; give a file for the page, such as {target / 'report.html'}")
    if target.suffix.lower() not in ("", ".html", ".htm"):
        raise UsageError(f"{target}: the page is HTML: give --out X.html; {', '.join(FORMATS)} are for --figure NAME")
    check_writable(target)
    return write_file(target, page(source, say=say))


def page(source: Source, figures: Sequence[Figure] | None = None, say: Say = lambda text: None) -> str:
    """The whole page as text; `figures` are those that may have something to draw, by default all that apply."""
    if figures is None:
        figures = figures_of(source) if len(source.runs) else ()
    theme.load_altair()
    say("judging claims")
    tables = StoreTables.read(source.directory)
    judged = verdicts.judge_source(source)
    counts = count_states(source)
    scores = tabulate_scores(source) if len(source.runs) else None
    modules = tabulate_specialization(source)
    inside = describe_source(source)
    exam_results = read_exam(source) if len(source.records) else None
    say("drawing figures")
    drawings, undrawn = _draw_figures(source, figures)
    say("writing the page")
    ledger = verdicts.claim_rows(judged.verdicts)
    verdict_names = [row["verdict"] for row in ledger]
    context = {
        "name": source.name or source.directory.name,
        "question": _find_question(source),
        "scale": source.scale,
        "sections": _order_sections(ledger, has_inside=bool(inside)),
        "as_of": _last_written(source.directory),
        "directory": shlex.quote(str(source.directory)),
        "answer": answer(judged.verdicts, counts, scores, exam_results, modules),
        "inside": inside,
        "scores": scores if exam_results is None else None,
        "modules": modules if exam_results is None else None,
        "silent": judged.silent,
        "counts": counts,
        "other_scales": [scale for scale in tables.scales if scale != source.scale],
        "design": describe_design(source, tables.models, tables.provenance),
        "described": source.description is not None,
        "ledger": ledger,
        "unjudged": judged.unread,
        "meanings": verdicts.MEANINGS,
        "judged": any(name != "not run" for name in verdict_names),
        "tally": {verdict: verdict_names.count(verdict) for verdict in verdicts.MEANINGS},
        "papers": list(dict.fromkeys(row["paper"] for row in ledger)),
        "tabs": _group_tabs(drawings),
        "general_tab": GENERAL_TAB,
        "open_figures": OPEN_FIGURES,
        "undrawn": undrawn,
        "deviations": _list_deviations(source),
        "published": is_catalogued(source.name) or not source.name,
        "failures": costs.list_failures(source, tables.failures),
        "early": costs.list_ended_early(source),
        "cost": costs.sum_costs(source, tables.spans),
        "provenance": costs.list_provenance(source, tables.provenance),
        "table": tabulate_runs(source),
        "selection": source.selection,
    }
    body = html_assets.render("body.html", context)
    has_charts = bool(drawings)
    context |= {
        "body": html_assets.raw(body),
        "glossary": select_terms(
            source,
            has_scores=context["scores"] is not None,
            has_claims=bool(ledger),
            has_activations=exam_results is not None or any(figure["figure"].reads_activations for figure in drawings),
        ),
        "style": html_assets.raw(html_assets.text("report.css")),
        "scripts": html_assets.scripts(has_charts),
        "policy": html_assets.policy(has_charts),
        "specs": {figure["id"]: figure["spec"] for figure in drawings},
        "data": {
            "configs": {paper: chart_config(paper) for paper in PAPERS},
            "table": context["table"],
            "figures": {figure["id"]: figure["data"] for figure in drawings},
        },
    }
    return html_assets.render("report.html", context)


# -- figures ----------------------------------------------------------------------------------------------------------


def _draw_figures(source: Source, figures: Sequence[Figure]) -> tuple[list[dict[str, Any]], list[str]]:
    """The figures that have something to draw, and those that fail because learning curves can't be read."""
    from altair.utils.schemapi import debug_mode

    drawings = []
    undrawn = []
    # The tests prove that charts are valid; validating them again at every step would double the time.
    with debug_mode(False):
        for figure in figures:
            try:
                drawing = figure.draw(source)
            except CheckFailed as error:
                undrawn.append(f"{figure.title}: {error}")
                continue
            if drawing is not None:
                drawings.append(_figure_context(source, figure, drawing))
    return drawings, undrawn


def _figure_context(source: Source, figure: Figure, drawing: Drawing) -> dict[str, Any]:
    """The values that the templates need for a figure."""
    with theme.load_altair().data_transformers.enable("default", max_rows=None):
        spec = drawing.chart.to_dict(validate=False)
    spec.pop("config", None)  # the page has configurations for light and dark
    scale = f" --scale {source.scale}" if source.scale else ""
    directory = shlex.quote(str(source.directory))
    # JSON has no infinite numbers, and pandas writes None as NaN unless the columns are objects.
    data = drawing.data.head(MAX_ROWS).astype(object)
    data = data.where(data.notna(), None).replace({math.inf: "∞", -math.inf: "−∞"})
    return {
        "id": figure.file,
        "figure": figure,
        "notes": drawing.notes,
        "spec": spec,
        "command": f"unseen report {directory}{scale} --figure {figure.name} --out {figure.file}.svg",
        "rows": len(drawing.data),
        "data": {
            "columns": list(map(str, data.columns)),
            "rows": data.to_numpy().tolist(),
            "all": len(drawing.data),
        },
    }


def _group_tabs(drawn: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The figures by the family of their paper, and those for any study."""
    tabs: dict[str, list[dict[str, Any]]] = {}
    for figure in drawn:
        name = figure["figure"].name
        tabs.setdefault(family_of(name) if name_in_family(name) else GENERAL_TAB, []).append(figure)
    for figures in tabs.values():
        said: set[str] = set()
        for figure in figures:
            notes = figure.pop("notes")
            figure["open_notes"] = [note for note in notes if note not in said][:OPEN_NOTES]
            figure["folded_notes"] = [note for note in notes if note not in figure["open_notes"]]
            said.update(figure["open_notes"])
    return tabs


def chart_config(paper: theme.Paper) -> dict[str, Any]:
    """The configuration of charts inside a page, whose background shows through; sizes as in saved figures."""
    config = theme.config(paper)
    view = {**config["view"], "continuousWidth": 300, "continuousHeight": 300}  # Altair's defaults
    return config | {"background": "transparent", "view": view}


def _order_sections(ledger: Sequence[dict[str, Any]], has_inside: bool) -> dict[str, str]:
    """The sections in the order of the page: figures come before claims that nothing is known about."""
    names = [name for name in SECTIONS if has_inside or name != "inside"]
    if all(row["verdict"] == "not run" for row in ledger):
        names.remove("claims")
        names.insert(names.index("figures") + 1, "claims")
    return {name: SECTIONS[name] for name in names}


# -- texts ------------------------------------------------------------------------------------------------------------


def _find_question(source: Source) -> str:
    if source.description is not None and source.description.question:
        return source.description.question
    if is_exam(source):  # an exam of an older release, which did not store its question
        return exam.QUESTION
    if source.description is None and "study" in source.work:
        return f"The store does not say what the study {source.name} asks, and it is not in this release's catalogue."
    if "task" not in source.work or "model" not in source.work:
        return ""
    return f"How well does {source.work['model']['name']} solve {source.work['task']['name']}?"


def _list_deviations(source: Source) -> list[str] | None:
    """The differences between these runs and the paper; None if the store does not say, and no study here is it."""
    scale = None if source.description is None else source.description.scales.get(source.scale)
    if scale is None or scale.deviations is None:
        return None
    deviations = list(scale.deviations)
    seeds = set(source.runs["seed"])
    if source.scale and seeds != set(scale.seeds):
        deviations.append(f"{len(seeds)} seeds here, {len(scale.seeds)} in the study at this scale")
    return deviations


def _last_written(directory: Path) -> str:
    """When the store was last written, so that the same store always gives the same page."""
    stamps = []
    for path in (directory / FILE, directory / f"{FILE}-wal"):
        if path.exists() and path.stat().st_size:  # reading a store creates an empty -wal file
            stamps.append(path.stat().st_mtime)
    return f"{datetime.fromtimestamp(max(stamps), UTC):%Y-%m-%d %H:%M} UTC"

"""The glossary of a page: its meanings are those of docs/glossary.md, and it has the terms that a page may use."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd

from unseen.claims.evidence import Exclusion, exclusion_of
from unseen.report.data import Source
from unseen.report.sections.glossary import ALWAYS, MEANINGS, WITH_CLAIMS, WITH_RUNS, WITH_SCORES, select_terms

DOCS = Path(__file__).parents[3] / "docs"
GLOSSARY = DOCS / "glossary.md"


def read_glossary() -> dict[str, str]:
    """The terms of docs/glossary.md with their meanings, without the marks of Markdown."""
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)
    return {term: re.sub(r"[`*]", "", meaning) for term, meaning in rows if term != "term"}


def make_source() -> Source:
    runs = pd.DataFrame({"trial": ["a"], "seed": [0], "data_seed": [0], "status": ["finished"], "not_converged": [0]})
    records = pd.DataFrame({"trial": ["a"], "metric": ["accuracy"]})
    return Source(Path(), {}, "", records, runs, (), {}, pd.DataFrame)


def select(source: Source, scores: bool = False, claims: bool = False, activations: bool = False) -> set[str]:
    return set(select_terms(source, has_scores=scores, has_claims=claims, has_activations=activations))


def test_meanings_are_those_of_the_documentation() -> None:
    documented = read_glossary()
    assert len(documented) > 50
    assert {term: documented.get(term) for term in MEANINGS} == MEANINGS


def test_convergence_is_no_reason_to_leave_a_run_out_of_claims() -> None:
    assert exclusion_of("finished") is None and exclusion_of("stopped") is None
    assert not any("converged" in reason.value for reason in Exclusion)
    for text in (read_glossary()["usable run"], MEANINGS["not converged"], (DOCS / "reports.md").read_text("utf-8")):
        assert "no claim is judged from" not in text
        assert "ended and converged" not in text


def test_the_page_on_reports_names_files_that_exist() -> None:
    table = (DOCS / "reports.md").read_text("utf-8").partition("| file in `unseen/report/` |")[2].partition("\n\n")[0]
    names = re.findall(r"`([a-z_]+(?:\.py|/))`", table)
    assert len(names) >= 14
    for name in names:
        assert (DOCS.parent / "src/unseen/report" / name).exists(), name


def test_terms_follow_from_the_sections_of_a_page() -> None:
    source = make_source()
    empty = replace(source, runs=source.runs[:0], records=source.records[:0])
    assert select(empty) == set(ALWAYS)
    assert select(source) == {*ALWAYS, *WITH_RUNS}
    assert select(source, scores=True) == {*ALWAYS, *WITH_RUNS, *WITH_SCORES}
    assert select(source, claims=True) == {*ALWAYS, *WITH_RUNS, *WITH_CLAIMS}
    assert select(source, activations=True) == {*ALWAYS, *WITH_RUNS, "activations"}


def test_terms_follow_from_the_runs() -> None:
    source = make_source()
    plain = select(source)
    changes = {
        "data seed": {"data_seed": [1]},
        "diverged": {"status": ["diverged"]},
        "gating": {"gating": ["joint"]},
        "not converged": {"not_converged": [1]},
        "preset": {"task.preset": ["clean"]},
        "task seed": {"task_seed": [0]},
    }
    for term, columns in changes.items():
        assert select(replace(source, runs=source.runs.assign(**columns))) == plain | {term}
    assert select(replace(source, records=source.records.assign(metric="relative_loss"))) == plain | {"relative loss"}


def test_every_term_can_be_selected() -> None:
    conditional = {
        "activations",
        "data seed",
        "diverged",
        "gating",
        "not converged",
        "preset",
        "relative loss",
        "task seed",
    }
    assert set(MEANINGS) == {*ALWAYS, *WITH_RUNS, *WITH_SCORES, *WITH_CLAIMS, *conditional}

"""How to cite: the page, CITATION.cff and the package say the same."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import yaml

from unseen.store import tables

ROOT = Path(__file__).parents[2]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "cite.md").read_text(encoding="utf-8")


def entries() -> list[dict[str, str]]:
    """The BibTeX entries of the page, by field."""
    found = re.findall(r"^@\w+\{\w+,\n(.*?)^\}", PAGE, re.MULTILINE | re.DOTALL)
    plain = [re.findall(r"^  (\w+) *= \{(.*)\},$", body, re.MULTILINE) for body in found]
    return [{key: re.sub(r"[{}]", "", value) for key, value in body} for body in plain]


def test_the_version_is_the_package_s() -> None:
    assert "version" not in CITATION and entries()[0]["version"] == version("unseen")
    assert int(entries()[0]["year"]) == CITATION["date-released"].year
    assert CITATION["license"] == "Apache-2.0"


def test_the_file_has_what_the_format_asks_for() -> None:
    assert CITATION["cff-version"] == "1.2.0" and CITATION["message"] and CITATION["title"]
    assert CITATION["authors"] == [{"name": "The Unseen developers"}]
    for paper in CITATION["references"]:
        assert {"type", "title", "authors", "year"} <= set(paper)


def test_page_and_file_name_the_same_papers() -> None:
    ours, *papers = entries()
    assert (ours["title"], ours["author"]) == (CITATION["title"], CITATION["authors"][0]["name"])
    assert len(papers) == len(CITATION["references"]) == 4
    for entry, paper in zip(papers, CITATION["references"], strict=True):
        authors = " and ".join(f"{one['family-names']}, {one['given-names']}" for one in paper["authors"])
        assert (entry["title"], entry["author"], int(entry["year"])) == (paper["title"], authors, paper["year"])


def test_what_to_report_is_in_the_records() -> None:
    """The columns that the table names are those of a frame of records."""
    named = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"columns? (.*?) \|", PAGE))))
    assert {"task", "task_options", "recipe", "scale", "seed", "data_seed", "selection", "trial"} <= named
    assert named <= {*tables._COMPONENTS, *tables._TRIAL, *tables._RECORD, "scale", "trial"}

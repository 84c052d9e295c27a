"""The page of verdicts judged again follows from the stored tables, and explains every change."""

from __future__ import annotations

import runpy
from typing import Any

import pandas as pd
import pytest
import yaml

from support.blocks import ROOT
from unseen.claims import CLAIMS

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "make_rejudged.py"))


def test_the_page_follows_from_the_tables(script: dict[str, Any]) -> None:
    assert (DOCS / "rejudged.md").read_text("utf-8") == script["format_page"](), "run `python docs/make_rejudged.py`"


def test_all_claims_are_on_it_and_every_change_is_explained(script: dict[str, Any]) -> None:
    table = script["compare_verdicts"]()
    old = pd.read_csv(script["OLD"], keep_default_na=False)["claim"]
    assert table["claim"].tolist() == [entry.name for entry in CLAIMS if entry.name in set(old)] and len(table) == 75
    assert table["old"].value_counts().to_dict() == {"not run": 36, "undecided": 27, "supported": 6, "contradicted": 6}
    changed = table["claim"][table["old"] != table["new"]].tolist()
    reasons = yaml.safe_load((DOCS / "rejudged_reasons.yaml").read_text("utf-8"))
    assert sorted(reasons) == sorted(changed)
    assert all(len(reason.split()) > 8 for reason in reasons.values())
    assert not any(judged.registered for judged in table["judged"]), "the runs came before the registration"


def test_a_table_is_read_as_it_was_stored(script: dict[str, Any]) -> None:
    """Two ways to one number: the mean of five seeds on T4, by hand from the file."""
    records, runs = script["read_study"]("retrieval-table2")
    assert len(runs) == 80 and set(runs["task.length"]) == {5}
    chosen = records[
        (records["task"] == "retrieval/T4")
        & (records["variant"] == "T−Pos−Att")
        & (records["split"] == "ood/single")
        & (records["metric"] == "accuracy")
        & (records["selection"] == "best")
    ]
    assert chosen["value"].mean() == pytest.approx(0.862, abs=5e-4)  # .865 .862 .861 .858 .862 on its page

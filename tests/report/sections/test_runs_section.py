"""The table of runs says where and why each run ended."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from support.store_builder import build
from unseen.report.data import Source
from unseen.report.sections.runs import endings, tabulate_runs
from unseen.store.tables import all_options


def test_every_ending_has_a_reason() -> None:
    runs = pd.DataFrame({"status": ["finished", "stopped", "diverged", "failed", "pending"]})
    assert endings(runs).tolist() == ["all steps", "plateau", "divergence", "failure", ""]


def test_runs_of_old_stores_ended_by_patience() -> None:
    """A recipe of an old store that names `patience` is still read, though it can't be made any more."""
    assert all_options("recipe", {"name": "quick", "version": 1, "patience": 3})["patience"] == 3
    runs = pd.DataFrame({"status": ["stopped", "stopped", "finished"], "recipe.patience": [3, None, 3]})
    assert endings(runs).tolist() == ["patience", "plateau", "all steps"]


def test_the_table_of_runs_has_the_last_step_and_the_reason(tmp_path: Path) -> None:
    status = ["finished", "stopped", "diverged"]
    path = build(tmp_path / "s", seeds=range(3), status=lambda levels, seed: status[seed], steps=700)
    columns = {column["name"]: column for column in tabulate_runs(Source.read(path))["columns"]}
    reasons = columns["ended by"]
    assert [reasons["levels"][code] for code in reasons["codes"]] == ["all steps", "plateau", "divergence"]
    assert columns["last step"]["values"] == [700] * 3

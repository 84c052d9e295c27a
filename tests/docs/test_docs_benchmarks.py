"""The page of benchmarks: every place for a table has one, and it is filled with the figures that benchmarks give."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from benchmarks.results_file import SavedResults
from benchmarks.rows import Row
from benchmarks.scaling_fit import exponents

from benchmarks import BENCHMARKS
from support.blocks import ROOT


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program that fills the tables, of a copy of the page."""
    found = importlib.util.spec_from_file_location("make_benchmarks", ROOT / "docs" / "make_benchmarks.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    copy = tmp_path / "benchmarks.md"
    copy.write_text(module.PAGE.read_text())
    monkeypatch.setattr(module, "PAGE", copy)
    return module


def test_every_place_has_a_table_and_every_benchmark_a_place(made: ModuleType) -> None:
    places = made.MARKER.findall(made.PAGE.read_text())
    assert sorted(places) == sorted(made.TABLES)
    assert {entry.name for entry in BENCHMARKS} <= {"steps" if name in ("times", "limits") else name for name in places}


def test_figures_of_a_run_are_filled_in_and_the_words_stay(made: ModuleType, tmp_path: Path) -> None:
    case, curve = "mlp over batch", {10: 1.5, 20: 3.0, 40: 6.0, 80: 12.0}
    rows = [*(Row(case, f"batch={n}", t, "ms") for n, t in curve.items()), *exponents(case, curve)]
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    first.write_text(SavedResults({}, "today", {}, {"growth": rows}).text())
    second.write_text(
        SavedResults(
            {},
            "before",
            {},
            {"growth": [], "start": [Row("unseen --help", "seconds", 0.125, "s", "less", 0.11, 0.14, 9)]},
        ).text()
    )
    before = made.MARKER.sub("", made.PAGE.read_text())
    made.main([str(first), str(second)])
    page = made.PAGE.read_text()
    assert "| mlp over batch | 10: 1.5 | 80: 12 | 1 | 1 |" in page
    assert "| unseen --help | seconds | 0.125 s | 0.11 to 0.14 |" in page
    assert "| the start of `unseen --help` | ≤ 0.3 | 0.125 s | met | unseen --help, seconds |" in page
    assert made.MARKER.sub("", page) == before


def test_a_run_of_the_designs_cases_fills_the_targets_and_no_other_table(made: ModuleType, tmp_path: Path) -> None:
    """Its file has some cases of a benchmark only: the tables of all cases stay."""
    file = tmp_path / "design.json"
    rows = [Row("unseen --help", "seconds", 0.125, "s", "less", 0.11, 0.14, 9)]
    package = [Row("source", "lines", 41_000.0, "lines", "less")]
    file.write_text(SavedResults({}, "today", {"design": True}, {"start": rows, "package": package}).text())
    made.main([str(file)])
    page = made.PAGE.read_text()
    assert "| the start of `unseen --help` | ≤ 0.3 | 0.125 s | met | unseen --help, seconds |" in page
    assert "| source | lines | 41 000 lines |" in page
    assert "| unseen --help | seconds | 0.125 s |" not in page and "| import torch | seconds |" in page

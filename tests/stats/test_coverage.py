"""A small version of `python -m unseen.stats.coverage`: what docs/statistics.md says about it must stay true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from unseen.stats.coverage import KINDS, SEEDS, TASKS, clusters_covered, covered, improvement_covered, table


@pytest.mark.parametrize(
    ("kind", "seeds", "n", "least", "most"),
    [
        ("mean, percentile", "normal", 20, 0.90, 0.97),
        ("mean, percentile", "normal", 5, 0.78, 0.89),
        ("mean, percentile", "normal", 3, 0.65, 0.83),
        ("mean, percentile", "bimodal, 8 of 10 solve", 5, 0.60, 0.74),
        ("mean, BCa", "bimodal, 8 of 10 solve", 5, 0.60, 0.74),
        ("mean, BCa", "normal", 20, 0.90, 0.97),
        ("mean over 4 strata, percentile", "normal", 5, 0.87, 0.95),
        ("solve rate, Wilson", "bimodal, 8 of 10 solve", 10, 0.93, 1.00),
        ("IQM, percentile", "normal", 10, 0.90, 0.97),
    ],
)
def test_coverage(kind, seeds, n, least, most):
    assert least <= covered(kind, seeds, n, repetitions=500) <= most


def test_students_t_is_exact_for_normal_seeds():
    """The simulation itself is sound: here the truth is 0.95 at every n."""
    kind = next(kind for kind in KINDS if "Student" in kind)
    assert 0.935 <= covered(kind, "normal", 3, repetitions=4_000) <= 0.965


def test_probability_of_improvement():
    assert 0.90 <= improvement_covered(20, repetitions=300) <= 0.98


@pytest.mark.parametrize(("between", "least", "most"), [(0.1, 0.94, 1.0), (0.5, 0.89, 0.97), (0.9, 0.85, 0.94)])
def test_clusters(between, least, most):
    assert least <= clusters_covered(between, 10, repetitions=300) <= most


def test_strata_do_not_cover_the_choice_of_tasks():
    assert clusters_covered(0.5, 10, repetitions=200, cluster=False) < 0.75


def test_the_table_has_a_row_for_every_combination():
    lines = list(table((3,), repetitions=2))
    assert len(lines) == 2 + (len(KINDS) - 1) * len(SEEDS) + 2 + 1 + len(TASKS) + 1
    assert {line.count("|") for line in lines} == {4}


PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"


def test_the_page_has_the_rows_of_the_table():
    def rows(lines):
        return [tuple(line.split(" | ")[:2]) for line in lines if line.startswith("| ") and line.count("|") >= 4]

    printed = [line for line in PAGE.read_text().splitlines() if not line.startswith("| `")]
    assert rows(printed) == rows(table((3,), repetitions=1))


def test_the_example_of_the_page_prints_what_it_says(capsys):
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert code
    exec(code[1], {})
    said = " ".join(line.removeprefix("# ") for line in code[1].splitlines() if line.startswith("# "))
    assert capsys.readouterr().out.strip() == said

"""`unseen studies` as a user meets it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from unseen.cli.studies import _describe_axes, studies
from unseen.errors import UsageError

ROOT = Path(__file__).parents[2]


def run(*arguments: str, columns: int = 120) -> Result:
    app = typer.Typer()
    app.command()(studies)
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(app, list(arguments))


def test_the_list_has_an_entry_for_each_study_with_scales_and_budgets() -> None:
    text = run().stdout
    names = [line.split()[0] for line in text.splitlines() if not line.startswith(" ")]
    assert names == sorted(names)
    assert {"quickstart", "retrieval-table2", "retrieval-lengths", "retrieval-noise"} <= set(names)
    assert "each contribute · smoke 1 min, mini 60 min, small, medium, full" in " ".join(text.split())


@pytest.mark.parametrize("columns", [50, 100])
@pytest.mark.parametrize("arguments", [(), ("rules-main",), ("retrieval-table2",)])
def test_the_text_fits_the_terminal(arguments: tuple[str, ...], columns: int) -> None:
    """The deviations of a study used to be one line of 1 300 characters."""
    lines = run(*arguments, columns=columns).stdout.splitlines()
    assert max(map(len, lines)) <= columns


def test_the_list_needs_nothing_heavy() -> None:
    program = (
        "import sys; from unseen.cli.studies import studies; studies(None)\n"
        "print(sorted(m for m in sys.modules if '.' not in m), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stderr.splitlines()[-1]
    assert "'typer'" in loaded
    assert [m for m in ("torch", "numpy", "pandas", "scipy") if f"'{m}'" in loaded] == []


def test_one_study_shows_its_question_axes_claims_and_deviations() -> None:
    text = run("retrieval-table2").stdout
    words = " ".join(text.split())
    assert text.startswith("retrieval-table2@2\nWhich part of a Transformer")
    for line in (
        "  mini    140 trials, 5 seeds, within 60 min on two cores",
        "  full    140 trials, 5 seeds",
        "  task: retrieval/T1, retrieval/T3   (smoke)",
        "  variant: T−Pos−Att, T+Pos−Att, T−Pos+Att, T+Pos+Att",
        "  full: nothing else",
    ):
        assert line in text.splitlines()
    assert "claims: retrieval/C1, " in text
    assert " mini: task length 5 (full: 10); learning rate 0.001 (paper: 0.0001); " in words


def test_a_study_of_ones_own_is_shown_from_its_file() -> None:
    lines = run(str(ROOT / "examples" / "my_study.yaml")).stdout.splitlines()
    assert lines[0] == "order-and-width@1"
    assert "  smoke   2 trials, 1 seed, within 1 min on two cores" in lines
    assert "  width: 50   (smoke)" in lines
    assert "  width: 50, 100, 200   (full)" in lines


def test_an_unknown_study_is_answered_with_the_nearest() -> None:
    error = run("retrieval-tabel2").exception
    assert isinstance(error, UsageError)
    assert str(error) == "unknown study 'retrieval-tabel2'. Did you mean 'retrieval-table2'?"


def test_levels_in_another_order_share_a_line() -> None:
    """A random sample (`medium` of rules-main) meets the same levels in another order."""
    levels = {"mini": {"rules": [2]}, "medium": {"rules": [8, 2]}, "full": {"rules": [2, 8], "width": [1]}}
    assert _describe_axes(levels) == [
        "  rules: 2   (mini)",
        "  rules: 8, 2   (medium, full)",
        "  width: none   (mini, medium)",
        "  width: 1   (full)",
    ]

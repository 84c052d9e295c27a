"""Stores with little or nothing in them: the commands that look at them answer with a sentence, never with a traceback."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from support.store_builder import Levels, build
from unseen.cli.main import app
from unseen.errors import CheckFailed, UsageError
from unseen.store.store import Store

NAN = float("nan")


def store(path: Path, **options: Any) -> Path:
    return build(path, axes={"model": ("lstm", "retrieval-transformer")}, **options)


def always(status: str) -> Callable[[Levels, int], str]:
    return lambda levels, seed: status


def without_numbers(levels: Levels, seed: int) -> Mapping[Any, float]:
    return {("iid", "accuracy"): NAN, ("ood/single", "accuracy"): NAN}


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_runs_that_ended_without_a_score_are_said_to(tmp_path: Path) -> None:
    """They have ended, so that nothing is awaited."""
    diverged = store(tmp_path / "diverged", status=always("diverged"))
    summary = invoke("results", diverged).stdout
    assert "10 of 10 trials have ended\n\nno run has left a score\n" in summary
    latex = invoke("results", diverged, "--format", "latex").exception
    assert isinstance(latex, CheckFailed) and str(latex).endswith("has no scores: no run has ended with one")
    assert invoke("results", diverged, "--curves").stdout == "no run has left a row for this table yet\n"


def test_scores_that_are_not_numbers_are_left_out_everywhere(tmp_path: Path) -> None:
    lost = store(tmp_path / "nan", metrics=without_numbers)
    whole = store(tmp_path / "whole")
    assert "none" in invoke("results", lost).stdout
    assert invoke("results", lost, "--format", "latex").exit_code == 0
    with Store.read(lost) as records:
        assert records.records()["value"].dtype == float
    compared = invoke("compare", lost, whole).exception
    assert isinstance(compared, UsageError) and str(compared).startswith("nothing to compare yet")


def test_a_store_without_any_work_says_so(tmp_path: Path) -> None:
    Store.write(tmp_path / "new").close()
    assert invoke("results", tmp_path / "new").stdout == f"{tmp_path / 'new'}: nothing has been entered yet\n"


@pytest.mark.parametrize("status", ["pending", "failed", "diverged"])
@pytest.mark.parametrize("command", ["results", "claims", "report"])
def test_no_run_with_a_score_is_no_error(command: str, status: str, tmp_path: Path) -> None:
    directory = store(tmp_path / "runs", seeds=[0], status=always(status))
    done = invoke(command, directory)
    assert done.exception is None, done.exception
    assert done.stdout.strip()


def test_one_run_and_one_configuration_are_in_the_singular(tmp_path: Path) -> None:
    whole = store(tmp_path / "whole")
    one = build(tmp_path / "one", axes={"model": ("lstm",)}, seeds=[0])
    assert "the one run that A and B both hold is identical" in " ".join(invoke("compare", whole, one).stdout.split())
    lost = build(tmp_path / "lost", axes={"model": ("lstm",)}, status=always("diverged"))
    assert "share 1 configuration, but for none" in str(invoke("compare", lost, whole).exception)

"""Tables for papers and spreadsheets: LaTeX that is closed and escaped, CSV that runs no formula."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest

from support.finished_store import fill_store
from support.program import inside
from support.small import STUDY
from support.store_builder import Key, Levels, build
from unseen.cli.latex import escape_latex, format_table
from unseen.cli.output import csv_text


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("latex") / "store"
    fill_store(STUDY.entries("smoke"), path)
    return path


def test_results_have_a_row_per_configuration_with_the_mean_of_its_runs(store: Path) -> None:
    text = inside("results", store, "--format", "latex").stdout
    records = pd.read_csv(io.StringIO(inside("results", store, "--format", "csv").stdout))
    rows = records.query("metric == 'accuracy' and selection == 'best' and factor.isna() and split == 'iid'")
    means = rows.groupby(["task", "variant", "rate"], sort=False).value.agg(["mean", "std"])
    assert len(means) == 8
    for (task, variant, rate), row in means.iterrows():
        assert rf"{task} & {variant} & {rate} & 4 & {row['mean']:.3f} $\pm$ {row['std']:.3f}" in text
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 1


def test_a_table_of_losses_has_only_the_runs_without_an_accuracy(tmp_path: Path) -> None:
    """As the summary in the terminal; a run that has both is in the table of accuracies."""

    def metrics(levels: Levels, seed: int) -> dict[Key, float]:
        loss: dict[Key, float] = {("iid", "loss"): 0.25}
        return loss if levels["setting"] == "regression" else {**loss, ("iid", "accuracy"): 0.5}

    build(tmp_path / "r", axes={"setting": ["classification", "regression"]}, metrics=metrics, seeds=range(3))
    text = inside("results", tmp_path / "r", "--format", "latex").stdout
    accuracies, losses = text.split("\n\n")
    assert "classification & 3" in accuracies and "regression" not in accuracies
    assert "regression & 3" in losses and "classification" not in losses


def test_comparisons_too(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "compared.tex"
    assert inside("compare", store, store, "--format", "latex", "--out", out).returncode == 0
    assert out.read_text().count(r"\toprule") == 1 and r"$\pm$" not in out.read_text()


def test_everything_special_is_escaped() -> None:
    assert escape_latex("a_b & 50 % #1 {x} $ ~ ^ \\") == (
        r"a\_b \& 50 \% \#1 \{x\} \$ \textasciitilde{} \textasciicircum{} \textbackslash{}"
    )
    assert r"{lr}" in format_table(pd.DataFrame({"level": ["a"], "value": [0.5]}))


def test_a_csv_runs_no_formula_and_keeps_whole_numbers() -> None:
    table = pd.DataFrame(
        {"level": ["=1+1", "@x", "-1", "plain"], "best_step": [1.0, None, 3.0, 4.0], "value": [1.0] * 4}
    )
    assert csv_text(table).splitlines() == [
        "level,best_step,value",
        "'=1+1,1,1.0",
        "'@x,,1.0",
        "-1,3,1.0",
        "plain,4,1.0",
    ]

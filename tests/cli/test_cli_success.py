"""`unseen results --success` and `--grid`: how often runs learn and solve, and matrices over two axes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import unseen
from unseen.analysis.accuracy import success_table
from unseen.cli.main import app
from unseen.errors import UsageError
from unseen.studies.grid import Grid
from unseen.studies.study import Study

TASK = {
    "name": "ctl/A",
    "symbols": 4,
    "functions": 8,
    "max_length": 3,
    "train_size": 150,
    "iid_size": 40,
    "ood_size": 60,
}


def small(scale: str) -> list[Grid]:
    return [
        Grid(
            axes={
                "width": {number: {"model": {"width": number}} for number in (4, 8)},
                "order": {name: {"task": {"order": name}} for name in ("backward", "forward")},
            },
            base={
                "task": TASK,
                "model": {"name": "ctl-bilstm", "embedding": 4},
                "recipe": {"steps": 4, "batch": 16, "validate_every": 2, "batches": "lengths"},
                "evaluation": {"splits": ("iid", "ood/transition")},
            },
            seeds=range(3),
        )
    ]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four configurations of three barely trained runs."""
    out = tmp_path_factory.mktemp("success") / "store"
    unseen.run(
        Study("small", 1, "Does the command work?", {"smoke": None}, small, selection="last"),
        out,
        executor="inline",
        progress="none",
    )
    return out


def run(*arguments: object) -> str:
    done = CliRunner(env={"COLUMNS": "300"}).invoke(app, ["results", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_rates_beside_means(store: Path) -> None:
    text = run(store, "--success")
    assert "0 of 3 [0.00, 0.56]" in text
    assert "converged: iid accuracy of at least 0.95; solved: more than 0.95" in text
    assert text.count("ood/transition") == 4
    found = json.loads(run(store, "--success", "--format", "json"))
    expected = success_table(unseen.results(store), ["scale", "width", "order"])
    assert [row["accuracy"] for row in found] == expected["accuracy"].tolist()
    assert [row["runs"] for row in found] == [3] * 4


def test_a_matrix_over_two_axes(store: Path) -> None:
    records = unseen.results(store)
    last = records[(records.selection == "last") & (records.metric == "accuracy") & (records.factor == "")]
    text = run(store, "--grid", "width,order")
    for split in ("iid", "ood/transition"):
        block = text.split(split)[1].splitlines()
        for line, width in zip(block[3:5], (4, 8), strict=True):
            rows = last[(last.split == split) & (last.width == width)].groupby("order").value
            shown = [f"{mean:.3f} ± {spread:.3f}" for mean, spread in zip(rows.mean(), rows.std(), strict=True)]
            assert line.split("  ")[0].strip() == str(width)
            assert all(trial in line for trial in shown)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ("widths,order", "no axis 'widths' here. Did you mean 'width'?"),
        ("width", "name two axes, rows first"),
        ("width,width", "name two axes, rows first"),
    ],
)
def test_wrong_axes_are_named(store: Path, axes: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        run(store, "--grid", axes)
    assert message in str(error.value)


def test_one_table_at_a_time(store: Path) -> None:
    with pytest.raises(UsageError, match="give one of them"):
        run(store, "--grid", "width,order", "--success")
    with pytest.raises(UsageError, match="--grid prints a table"):
        run(store, "--grid", "width,order", "--format", "csv")


def test_the_weights_are_those_that_the_study_shows_and_it_says_which(store: Path, tmp_path: Path) -> None:
    assert "Last weights;" in run(store, "--success")
    assert "\nlast weights;" in run(store, "--grid", "width,order")
    records = unseen.results(store)
    for selection, title in (("last", "last weights"), ("best", "weights best on validation")):
        out = tmp_path / selection
        shown = Study("small", 1, "", {"smoke": None}, small, selection=selection)  # type: ignore[arg-type]
        unseen.run(shown, out, executor="inline", progress="none")
        text = run(out)
        rows = records[(records.selection == selection) & (records.metric == "accuracy") & (records.factor == "")]
        for _, values in rows.groupby(["width", "order", "split"]).value:
            assert f"{values.mean():.3f} [" in text
        assert f"\n{title}; " in text

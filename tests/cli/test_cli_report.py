"""`unseen report`, on small stores with made-up numbers."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from support.program import inside, outside
from unseen.cli.main import app
from unseen.errors import CheckFailed, UsageError
from unseen.models import options
from unseen.store.schema import Finished, Outcome, Span
from unseen.store.store import Store
from unseen.studies.trial import Entry, Trial, evaluation_id
from unseen.tasks import task
from unseen.training.evaluate import Measure
from unseen.training.recipe import Evaluation, recipe


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three runs with scores, as `train` leaves them."""
    parts = task("retrieval/T6", length=5), options("retrieval-transformer"), recipe("quick", steps=50), Evaluation()
    trials = [Trial(*parts, seed, seed) for seed in range(3)]
    with Store.write(tmp_path / "store") as store:
        store.set_work({**trials[0].work, "data_seed": "own"})
        store.add([Entry({}, trial) for trial in trials])
        measures = [
            [Measure(split, "", "", "accuracy", 0.7 + 0.1 * trial.seed, 0.01, 100) for split in ("iid", "ood/single")]
            for trial in trials
        ]
        evaluation = evaluation_id(Evaluation())
        finished = {
            trial.id: Finished("finished", 50, 50, False, "", {evaluation: {"best": found, "last": found}}, {}, {})
            for trial, found in zip(trials, measures, strict=True)
        }
        spans = {trial: Span(0, 50, 1.0, 1.0, "here:1") for trial in finished}
        store.commit("stack", list(finished), Outcome(0, spans=spans, finished=finished))
    return tmp_path / "store"


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["report", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_page_and_where_it_is(store: Path, tmp_path: Path) -> None:
    assert run(store).strip() == str(store / "report.html")
    out = tmp_path / "page.html"
    out.write_text("an old page")
    assert run(store, "--out", out).strip() == str(out)
    assert out.read_text().startswith("<!doctype html>") and out.read_text().rstrip().endswith("</html>")
    assert not list(tmp_path.rglob("*.partial"))


def test_single_figures_in_every_format(store: Path, tmp_path: Path) -> None:
    begins = {"svg": b"<svg", "pdf": b"%PDF", "png": b"\x89PNG", "json": b"{", "csv": b""}
    for suffix, begin in begins.items():
        out = tmp_path / f"figure.{suffix}"
        assert run(store, "--figure", "seeds", "--out", out).strip() == str(out)
        assert out.read_bytes().startswith(begin)
    assert len(pd.read_csv(tmp_path / "figure.csv")) >= 3


def test_several_figures_go_to_a_folder(store: Path, tmp_path: Path) -> None:
    written = run(store, "--figure", "seeds", "--figure", "splits", "--out", tmp_path / "figures").split()
    assert [Path(one).name for one in written] == [
        f"{name}.{suffix}" for name in ("seeds", "splits") for suffix in ("svg", "pdf", "png", "csv")
    ]
    assert all(Path(one).stat().st_size for one in written)
    (tmp_path / "v1.2").mkdir()  # a folder that is there is one, whatever it is called
    assert len(run(store, "--figure", "seeds", "--out", tmp_path / "v1.2").split()) == 4
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(UsageError, match="taken can't be made"):
        run(store, "--figure", "seeds", "--out", tmp_path / "taken")
    everything = run(store, "--figures", tmp_path / "all").split()
    assert {Path(one).name for one in written} <= {Path(one).name for one in everything}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--figure", "seds", "--out", "x.svg"], "unknown figure 'seds'. Did you mean 'seeds'?"),
        (["--figure", "seeds"], "needs --out FILE"),
        (["--figure", "seeds", "--out", "x.sgv"], "Did you mean '.svg'?"),
        (["--figure", "seeds", "--figure", "curves", "--out", "x.svg"], "give --out a folder"),
        (["--figures", "x", "--out", "y"], "without --figure and --out"),
        (["--scale", "mini"], "holds nothing at scale 'mini'"),
        (["--out", "no/such/page.html"], "there is no directory"),
        (["--out", "page.pdf"], "the page is HTML: give --out X.html; .svg, .pdf, .png, .json, .csv are for --figure"),
        (["--figures", "store/store.sqlite"], "store.sqlite is not a folder. Give a folder"),
    ],
)
def test_wrong_use_is_answered(
    store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as error:
        run(store, *arguments)
    assert said in str(error.value)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["store"]


def test_a_directory_without_results(tmp_path: Path) -> None:
    for path, why in ((tmp_path, "there is no store.sqlite in it"), (tmp_path / "x", "there is no such directory")):
        with pytest.raises(UsageError, match=f"holds no results: {why}. Give a directory that"):
            run(path)


def test_a_figure_with_nothing_to_draw(store: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match="'rules/figure4' has nothing to draw"):
        run(store, "--figure", "rules/figure4", "--out", tmp_path / "x.svg")


def test_a_damaged_store_ends_with_1_and_writes_nothing(store: Path, tmp_path: Path) -> None:
    with sqlite3.connect(store / "store.sqlite") as database:
        database.execute("UPDATE records SET value = 0.99")
    out, folder = str(tmp_path / "out.svg"), str(tmp_path / "folder")
    for unseen, arguments in (
        (outside, ["--out", out]),
        (inside, ["--figure", "seeds", "--out", out]),
        (inside, ["--figures", folder]),
    ):
        done = unseen("report", store, *arguments)
        assert done.returncode == 1 and "is damaged" in done.stderr and "Traceback" not in done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["store"]

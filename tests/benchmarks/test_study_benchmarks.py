"""The benchmarks of studies, small: what their figures mean, not how large they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from unseen.benchmarks import BENCHMARKS, studies
from unseen.benchmarks.size import _fill
from unseen.studies.grid import Grid
from unseen.studies.slice import Outcome
from unseen.studies.store import Store

NAMES = ("study-workers", "study-orchestration", "study-size")


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What `unseen bench --quick` writes, with the user's rates beside it."""
    folder = tmp_path_factory.mktemp("bench")
    file = folder / "figures.json"
    done = subprocess.run([sys.executable, "-m", "unseen", "bench", *NAMES, "--quick", "--json", str(file)],
                          env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [f.name for f in folder.iterdir()] == ["figures.json"], "rates measured for a benchmark are not the user's"
    found: dict[str, list[dict[str, Any]]] = json.loads(file.read_text())["figures"]
    return found


@pytest.mark.slow
def test_they_are_registered_and_end_in_the_figure_that_is_compared(figures: dict[str, list[dict[str, Any]]]) -> None:
    assert tuple(figures) == NAMES and all(name in BENCHMARKS for name in NAMES)
    assert [list(rows[0])[-1] for rows in figures.values()] == ["ratio", "share", "seconds"]
    # Whole numbers and texts say which row it is; what is measured is a float.
    same = {name: {k for k, v in rows[0].items() if not isinstance(v, float)} for name, rows in figures.items()}
    assert same == {"study-workers": {"stacks", "S"}, "study-orchestration": {"cells", "workers", "S"},
                    "study-size": {"what", "cells"}}


@pytest.mark.slow
def test_two_workers_are_compared_with_one_on_the_same_stacks(figures: dict[str, list[dict[str, Any]]]) -> None:
    (row,) = figures["study-workers"]
    assert row["stacks"] >= 8
    assert row["ratio"] == pytest.approx(row["one_seconds"] / row["two_seconds"], abs=0.02)
    assert row["steady_ratio"] == pytest.approx(row["one_steady_seconds"] / row["two_steady_seconds"], abs=0.02)
    for count in ("one", "two"):
        assert 0 < row[f"{count}_steady_seconds"] < row[f"{count}_seconds"]


@pytest.mark.slow
def test_orchestration_is_what_is_not_in_slices(figures: dict[str, list[dict[str, Any]]]) -> None:
    (row,) = figures["study-orchestration"]
    assert 0 < row["training_seconds"] < row["slice_seconds"] < row["workers"] * row["seconds"]
    whole = row["workers"] * row["seconds"]
    assert row["share"] == pytest.approx((whole - row["slice_seconds"] + row["runner_cpu_seconds"]) / whole, abs=0.02)
    assert 0 < row["steady_share"] < row["share"] < 1
    assert row["probe_seconds"] > 0 and 0 < row["start_seconds"] < row["seconds"]


@pytest.mark.slow
def test_size_times_every_way_to_look_at_a_large_study(figures: dict[str, list[dict[str, Any]]]) -> None:
    assert [row["what"] for row in figures["study-size"]] == [
        "unseen plan FILE --no-probe", "enter all cells", "unseen results DIR",
        "unseen results DIR --cells --format csv", "unseen.results(DIR)"]
    assert all(row["cells"] == 2_000 and row["seconds"] > 0 for row in figures["study-size"])


def test_the_made_up_store_is_a_finished_one_with_twenty_records_a_cell(tmp_path: Path) -> None:
    entries = Grid(axes={"length": {n: {"task": {"length": n}} for n in (5, 10)}},
                   base={"task": {"name": "retrieval/T1"}, "model": {"name": "lstm"}}, seeds=range(3)).entries()
    _fill(entries, tmp_path / "store")
    with Store.read(tmp_path / "store") as store:
        assert set(store.status().values()) == {"finished"}
        assert store.records().groupby("cell").size().tolist() == [20] * 6


@pytest.mark.parametrize(("arguments", "unwanted"), [
    (["results", "store"], ["torch", "scipy.stats"]),
    (["results", "store", "--cells", "--format", "csv"], ["torch", "scipy.stats"]),
    (["plan", "quickstart", "--no-probe"], ["torch._dynamo", "scipy.stats"]),
])
def test_what_must_be_quick_imports_nothing_that_takes_seconds(arguments: list[str], unwanted: list[str],
                                                               tmp_path: Path) -> None:
    _fill(studies._small(4, range(1)).entries(), tmp_path / "store")
    program = ("import sys; sys.argv = ['unseen', *sys.argv[1:]]\n"
               "from unseen.cli.main import main\n"
               "try: main()\n"
               "except SystemExit: pass\n"
               "print(*sys.modules, file=sys.stderr)")
    done = subprocess.run([sys.executable, "-c", program, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout, done.stderr
    loaded = done.stderr.splitlines()[-1].split()
    assert "pandas" in loaded and not set(unwanted) & set(loaded)


def test_a_study_of_small_cells_has_a_thousand_of_them_in_ten_shapes() -> None:
    from unseen.studies.plan import shape

    cells = [entry.cell for entry in studies._small(140, range(50)).entries()]
    assert len({cell.id for cell in cells}) == 1_000
    assert len({shape(cell) for cell in cells}) == 10


def test_a_watched_store_notes_what_slices_took(tmp_path: Path) -> None:
    entries = studies._small(4, range(1)).entries()
    ids = [entry.cell.id for entry in entries]
    with studies._Watched.write(tmp_path / "store") as store:
        store.add(entries)
        store.commit("one", ids[:1], Outcome(1, seconds=0.25))
        store.commit("two", ids[1:2], Outcome(2, seconds=0.5))
    assert [noted.seconds for noted in store.watched] == [0.25, 0.5]
    first, second = store.watched
    assert first.came < first.written <= second.came < second.written
    assert first.cpu_before <= first.cpu_after <= second.cpu_before


def test_rates_are_its_own_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "mine")
    with studies._rates_of_its_own():
        other = os.environ["XDG_CACHE_HOME"]
        assert other != "mine" and Path(other).is_dir()
    assert os.environ["XDG_CACHE_HOME"] == "mine" and not Path(other).exists()
    monkeypatch.delenv("XDG_CACHE_HOME")
    with pytest.raises(KeyError), studies._rates_of_its_own():
        raise KeyError
    assert "XDG_CACHE_HOME" not in os.environ

"""The benchmarks of studies, small: what their figures mean, not how large they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.rows import Asked, Benchmark
from benchmarks.size import _fill, size
from benchmarks.studies import Run, orchestration, workers

from benchmarks import studies
from unseen.store.schema import Outcome
from unseen.store.store import Store
from unseen.studies.grid import Grid


def figures(benchmark: Benchmark, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """What a benchmark says when it is tried, of its only case; the user's rates are beside it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    rows = list(benchmark(Asked(quick=True)))
    assert list(folder.iterdir()) == [], "rates measured for a benchmark are not the user's"
    assert len({row.case for row in rows}) == 1
    return {row.figure: row.value for row in rows}


@pytest.mark.slow
def test_two_workers_are_compared_with_one_on_the_same_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = figures(workers, tmp_path, monkeypatch)
    for part in ("steady", "whole"):
        assert found[f"ratio, {part}"] == pytest.approx(found[f"workers=1, {part}"] / found[f"workers=2, {part}"])
    for count in (1, 2):
        assert 0 < found[f"workers={count}, steady"] < found[f"workers={count}, whole"]
        assert found[f"workers={count}, trials per hour"] * found[f"workers={count}, whole"] == pytest.approx(8 * 3600)


@pytest.mark.slow
def test_orchestration_is_what_is_not_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = figures(orchestration, tmp_path, monkeypatch)
    whole = found["whole"]
    assert 0 < found["training"] < found["inside chunks"] < whole
    assert found["share"] == pytest.approx((whole - found["inside chunks"] + found["runner's CPU"]) / whole)
    assert 0 < found["steady share"] < found["share"] < 1
    assert found["probes"] > 0 and 0 < found["start"] < whole


def test_shares_count_every_worker() -> None:
    """Two workers for 10 s, 1 s of it before the first chunk; 16 s in chunks, 2 s of the runner; 2 s of probes."""
    spent = studies._spent(
        Run(workers=2, trials=60, wall=10, start=1, steady=9, busy=16, training=12, commits=1, runner_cpu=2), probes=2
    )
    assert spent["share"][0] == pytest.approx((24 - 16 + 2) / 24)
    assert spent["steady share"][0] == pytest.approx((18 - 16 + 2) / 18)
    assert spent["trials per hour"][0] == pytest.approx(60 / 12 * 3600)


def test_passes_become_one_row_with_its_spread() -> None:
    passes: list[dict[str, studies.Figure]] = [{"ratio": (value, "×", "more")} for value in (1.5, 2.0, 1.75)]
    (row,) = studies._rows("case", passes)
    assert (row.value, row.low, row.high, row.rounds, row.better) == (1.75, 1.625, 1.875, 3, "more")


@pytest.mark.slow
def test_size_times_every_way_to_look_at_a_large_study() -> None:
    rows = list(size(Asked(quick=True)))
    assert [row.case for row in rows] == [
        "unseen plan FILE --no-probe",
        "enter all trials",
        "unseen results DIR",
        "unseen results DIR --trials --format csv",
        "unseen.results(DIR)",
    ]
    assert all(row.figure == "trials=2000" and row.value > 0 for row in rows)


def test_the_made_up_store_is_a_finished_one_with_twenty_records_a_trial(tmp_path: Path) -> None:
    entries = Grid(
        axes={"length": {n: {"task": {"length": n}} for n in (5, 10)}},
        base={"task": {"name": "retrieval/T1"}, "model": {"name": "lstm"}},
        seeds=range(3),
    ).entries()
    _fill(entries, tmp_path / "store")
    with Store.read(tmp_path / "store") as store:
        assert set(store.status().values()) == {"finished"}
        assert store.records().groupby("trial").size().tolist() == [20] * 6


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["results", "store"], ["torch", "scipy.stats"]),
        (["results", "store", "--trials", "--format", "csv"], ["torch", "scipy.stats"]),
        # Memory is counted on torch's meta device, whose kernels load torch._dynamo.
        (["plan", "quickstart", "--no-probe"], ["scipy.stats", "pandas"]),
    ],
)
def test_what_must_be_quick_imports_nothing_that_takes_seconds(
    arguments: list[str], unwanted: list[str], tmp_path: Path
) -> None:
    _fill(studies.small(4, range(1)).entries(), tmp_path / "store")
    program = (
        "import sys; sys.argv = ['unseen', *sys.argv[1:]]\n"
        "from unseen.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout, done.stderr
    loaded = done.stderr.splitlines()[-1].split()
    assert "unseen.cli.main" in loaded and not set(unwanted) & set(loaded)


def test_a_study_of_small_trials_has_a_thousand_of_them_in_ten_shapes() -> None:
    from unseen.running.stacks import stack_key

    trials = [entry.trial for entry in studies.small(140, range(50)).entries()]
    assert len({trial.id for trial in trials}) == 1_000
    assert len({stack_key(trial) for trial in trials}) == 10


def test_a_watched_store_notes_what_chunks_took(tmp_path: Path) -> None:
    entries = studies.small(4, range(1)).entries()
    ids = [entry.trial.id for entry in entries]
    with studies.Watched.write(tmp_path / "store") as store:
        store.add(entries)
        store.commit("one", ids[:1], Outcome(1, seconds=0.25))
        store.commit("two", ids[1:2], Outcome(2, seconds=0.5))
    assert [noted.seconds for noted in store.commits] == [0.25, 0.5]
    first, second = store.commits
    assert first.came < first.written <= second.came < second.written
    assert first.cpu_before <= first.cpu_after <= second.cpu_before


def test_rates_are_its_own_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "mine")
    with studies.rates_of_its_own():
        other = os.environ["XDG_CACHE_HOME"]
        assert other != "mine" and Path(other).is_dir()
    assert os.environ["XDG_CACHE_HOME"] == "mine" and not Path(other).exists()
    monkeypatch.delenv("XDG_CACHE_HOME")
    with pytest.raises(KeyError), studies.rates_of_its_own():
        raise KeyError
    assert "XDG_CACHE_HOME" not in os.environ

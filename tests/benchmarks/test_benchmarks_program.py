"""`python -m benchmarks`: what it prints, keeps and compares, with a benchmark that takes no time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from benchmarks.__main__ import app
from benchmarks.package import GATES, _gate, package
from benchmarks.results_file import SavedResults
from benchmarks.rows import Asked, Row
from click.testing import Result
from typer.testing import CliRunner

from benchmarks import BENCHMARKS
from unseen.errors import UsageError

Run = Callable[..., Result]
ROOT = Path(__file__).parents[2]
SPEED = {"now": 10.0}


def steps(asked: Asked) -> Iterator[Row]:
    for case in asked.among(["ctl-ndr batch=512", "other batch=1"]):
        value = SPEED["now"]
        yield Row(case, "best product share", value / 20, "", "more", value / 21, value / 19, 5)
        yield Row(case, "plain loop", value, "ms", "less", value * 0.99, value * 1.01, 5)


def interrupted(asked: Asked) -> Iterator[Row]:
    yield next(steps(asked))
    raise KeyboardInterrupt


def failing(asked: Asked) -> Iterator[Row]:
    yield next(steps(asked))
    raise ZeroDivisionError


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    def made(*words: object, by: Callable[[Asked], Iterator[Row]] = steps) -> Result:
        monkeypatch.setattr(BENCHMARKS, "load", lambda name: by)
        return CliRunner().invoke(app, [*map(str, words)])

    monkeypatch.setitem(SPEED, "now", 10.0)
    return made


def test_of_the_design_only_what_has_a_target_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Asked] = {}

    def load(name: str) -> Callable[[Asked], Iterator[Row]]:
        def benchmark(given: Asked) -> Iterator[Row]:
            asked[name] = given
            yield Row("case", "figure", 1.0, "s")

        return benchmark

    monkeypatch.setattr(BENCHMARKS, "load", load)
    file = tmp_path / "design.json"
    assert CliRunner().invoke(app, ["--design", "--json", str(file)]).exit_code == 0
    assert SavedResults.read(file).asked["design"]
    assert {"package", "generators", "steps", "workers", "orchestration", "trials", "cluster", "start"} <= asked.keys()
    assert not {"machine", "growth", "memory", "report", "estimate"} & asked.keys()
    assert asked["steps"].wants("ctl-ndr batch=512") and not asked["steps"].wants("lstm batch=100")
    assert asked["start"].wants("unseen --help") and not asked["start"].wants("import torch")
    assert asked["trials"].wants("trials=10")


@pytest.mark.slow
def test_the_package_is_measured() -> None:
    rows = {(row.case, row.figure): row.value for row in package(Asked(quick=True))}
    assert 0 < rows["claims of the papers", "decided by the shipped records"] <= 1
    assert rows["source", "lines"] > 10_000 and rows["source", "files that a small train passes through"] > 10
    for gate in GATES:
        assert rows[gate, "tests"] > 0 and rows[gate, "tests failed or skipped"] == 0


def test_a_gate_without_tests_is_not_passed() -> None:
    rows = {row.figure: row.value for row in _gate("gate", "tests/models/test_compile.py", "no_such_test")}
    assert rows == {"tests": 0, "tests failed or skipped": 1}


def test_it_tells_figures_progress_and_targets(run: Run) -> None:
    done = run("steps")
    assert done.exit_code == 0
    assert "steps · ctl-ndr batch=512" in done.stdout and "(9.9 to 10.1)" in done.stdout
    assert "steps (1 of 1), 2 of 2: other batch=1" in done.stderr
    assert "1 met, 0 missed" in done.stdout
    assert "met    NDR, share of the product rate: 0.5 (target ≥ 0.5)" in done.stdout


def test_it_keeps_and_compares(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, html = tmp_path / "figures.json", tmp_path / "page.html"
    assert run("steps", "--json", file, "--html", html).exit_code == 0
    found = json.loads(file.read_text())
    assert found["format"] == 2 and len(found["figures"]["steps"]) == 4 and "interrupted" not in found
    assert {"cpu", "cores", "load"} <= found["machine"].keys() and "NDR" in html.read_text()
    assert "0 figures changed beyond noise, 4 did not" in run("steps", "--against", file).stdout
    monkeypatch.setitem(SPEED, "now", 20.0)
    told = run("steps", "--only", "ndr", "--against", file).stdout
    assert "2 figures changed beyond noise, 0 did not, 2 are missing, 0 are new" in told
    assert "worse  2.00×  steps · ctl-ndr batch=512: plain loop 10 → 20 ms" in told
    assert sorted(one.name for one in tmp_path.iterdir()) == ["figures.json", "page.html"]


def test_an_interrupt_keeps_what_was_measured_and_says_so(run: Run, tmp_path: Path) -> None:
    file, html = tmp_path / "figures.json", tmp_path / "page.html"
    done = run("steps", "--json", file, "--html", html, by=interrupted)
    assert done.exit_code == 130 and "interrupted in steps, after ctl-ndr batch=512" in done.stderr
    found = json.loads(file.read_text())
    assert found["interrupted"].startswith("in steps") and len(found["figures"]["steps"]) == 1
    assert "not whole" in html.read_text()


def test_a_benchmark_that_fails_takes_no_figures_with_it(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    assert isinstance(run("steps", "--json", file, by=failing).exception, ZeroDivisionError)
    assert json.loads(file.read_text())["interrupted"] and len(json.loads(file.read_text())["figures"]["steps"]) == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--only", "nothing"], "no case of steps has 'nothing' in its name"),
        (["--against", "none.json"], "none.json can't be read"),
    ],
)
def test_wrong_use(words: list[str], told: str, run: Run) -> None:
    error = run("steps", *words).exception
    assert isinstance(error, UsageError) and told in str(error)


def test_program_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks", "machine", "--quick", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "GFLOP/s" in done.stdout and json.loads(file.read_text())["figures"]["machine"]
    wrong = subprocess.run([*command[:3], "generatrs"], capture_output=True, text=True, cwd=ROOT)
    assert wrong.returncode == 2 and "Did you mean 'generators'?" in wrong.stderr

"""Commands that only look at a store run nobody's code: nothing that a store names is imported or executed."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from unseen.store.checksums import write_checksums
from unseen.store.store import Store

CODE = """
import unseen
from torch import nn

class Bag(unseen.Adapter):
    def core(self, width):
        return nn.Linear(width, width)
"""
MARKING_CODE = "from pathlib import Path\nPath(__file__).with_name('marker').write_text('ran')\n"
ENTRY_POINTS = """
[unseen.tasks]
theirs/T1 = mine:Task
[unseen.models]
theirs = mine:Bag
[unseen.studies]
theirs = mine:study
[unseen.claims]
retrieval/theirs = mine:claim
[torch.backends]
theirs = mine:backend
"""
LIBRARIES = ("numexpr", "bottleneck", "opt_einsum", "signal", "typer", "numpy", "pandas", "torch", "yaml")
"""Modules that our libraries import if they are there, and some that are installed."""
STUDY = """
study: theirs
seeds: 2
base:
  task: {name: retrieval/T1, length: 3, train_size: 300, evaluation_size: 200}
  recipe: {steps: 4, batch: 10, validate_every: 2, validation_examples: 50}
  evaluation: {examples: 100}
axes:
  variant:
    mine: {model: {name: 'mine:Bag', width: 8}}
    ours: {model: {name: lstm, width: 8}}
"""


def python(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=directory, capture_output=True, text=True)


RUN_LINES = """
import contextlib, io, json, os, runpy, sys
searched, results = [os.getcwd(), *sys.path[1:]], []
for line in json.loads(sys.argv[1]):
    sys.argv, sys.path[:], code, errors = ["unseen", *line.split()], searched, 0, io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.redirect_stderr(errors):
        try:
            runpy.run_module("unseen", run_name="__main__", alter_sys=True)
        except SystemExit as ended:
            code = ended.code or 0
    results.append([code, output.getvalue(), errors.getvalue(), os.path.exists("marker")])
print(json.dumps(results))
"""


@dataclass(frozen=True)
class Result:
    """What one command line did, and whether the mark of foreign code was there after it."""

    returncode: int
    stdout: str
    stderr: str
    marked: bool


def run_lines(directory: Path, lines: Sequence[str]) -> list[Result]:
    """Several command lines of `python -m unseen`, one after another in one process, which imports torch once.

    Code that any of them imports runs in that process as it would in its own.
    """
    done = subprocess.run(
        [sys.executable, "-c", RUN_LINES, json.dumps(lines)], cwd=directory, capture_output=True, text=True, timeout=600
    )
    assert not done.returncode, done.stderr
    return [Result(*result) for result in json.loads(done.stdout)]


def change_database(store: Path, statement: str, *values: str) -> None:
    """Change a store behind the package's back, as anybody could who hands one on."""
    database = sqlite3.connect(store / "store.sqlite")
    with database:
        changed = database.execute(statement, values).rowcount
    database.close()
    assert changed > 0


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with stores of a foreign model, whose module is then replaced by one that leaves a mark on import."""
    directory = tmp_path_factory.mktemp("stores")
    (directory / "mine.py").write_text(CODE)
    (directory / "study.yaml").write_text(STUDY)
    run = python(
        directory, "-m", "unseen", "run", "study.yaml", "--out", "plain", "--executor", "inline", "--weights", "all"
    )
    assert not run.returncode, run.stderr
    claim = python(directory, "-m", "unseen", "new", "claim", "claims", "--study", "study.yaml")
    assert not claim.returncode, claim.stderr
    for name in ("older", "file"):
        shutil.copytree(directory / "plain", directory / name)
    # Older releases did not record the number of parameters.
    change_database(directory / "older", "UPDATE provenance SET facts = json_remove(facts, '$.parameters')")
    # A study may be a file, but not for commands that only look.
    change_database(
        directory / "file", "UPDATE meta SET value = ? WHERE key = 'work'", json.dumps({"study": "mine.py"})
    )
    shutil.rmtree(directory / "__pycache__", ignore_errors=True)
    (directory / "mine.py").write_text(MARKING_CODE)
    # A package that lies beside a store is not installed, though Python finds it in the current directory.
    package = directory / "mine-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(ENTRY_POINTS)
    return directory


@pytest.fixture
def directory(stores: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stores, tmp_path / "copy"))


def test_importing_the_module_leaves_the_mark(directory: Path) -> None:
    python(directory, "-c", "import mine")
    assert (directory / "marker").exists()


COMMANDS = {
    "results": [
        *["results STORE", "results STORE --failures", "results STORE --success", "results STORE --trials"],
        *["results STORE --curves", "results STORE --provenance", "results STORE --grid model,variant"],
        *["results STORE --format csv", "results STORE --format json", "results STORE --format latex"],
        *["results STORE --curves --format csv", "results STORE --trials --format csv"],
    ],
    "claims": [
        *["claims STORE", "claims STORE --claim retrieval/C1", "claims STORE --file claims.yaml"],
        *["claims STORE --format markdown", "claims STORE --format json"],
    ],
    "compare": [
        *["compare STORE plain", "compare plain STORE", "compare STORE plain --split iid --selection last"],
        *[
            "compare STORE plain --format csv",
            "compare STORE plain --format json",
            "compare STORE plain --format latex",
        ],
        *["compare STORE plain --rank", "compare STORE --rank --format markdown"],
    ],
    "merge": ["merge STORE --into both"],
    "report": ["report STORE", "report STORE --out page.html", "report STORE --figures figures"],
    "track": ["track STORE --to tensorboard --out logs"],
    "records": ["records add STORE --partial --out zips", "records list zips", "records check zips"],
}
ONE_EACH = {command: lines[0] for command, lines in COMMANDS.items()} | {"inspect": "inspect STORE"}
Looked = tuple[str, dict[str, Result]]
"""The name of a store, and the results by command line."""
CALLS = {
    "unseen.results": "unseen.results('STORE')",
    "unseen.report": "unseen.report('STORE')",
    "unseen.compare": "unseen.compare('STORE', 'plain')",
    "judge_store": (
        "from pathlib import Path; from unseen.claims.judge_studies import judge_store; judge_store(Path('STORE'))"
    ),
}


@pytest.fixture(scope="module", params=["plain", "older", "file"])
def looked(request: pytest.FixtureRequest, stores: Path, tmp_path_factory: pytest.TempPathFactory) -> Looked:
    """All commands that look at a store, one after another; their results by line."""
    directory = Path(shutil.copytree(stores, tmp_path_factory.mktemp("looked") / "copy"))
    lines = [
        line for command, lines in COMMANDS.items() if command != "track" or find_spec("tensorboard") for line in lines
    ]
    results = run_lines(directory, [line.replace("STORE", request.param) for line in lines])
    return request.param, dict(zip(lines, results, strict=True))


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_that_looks_imports_what_a_store_names(command: str, looked: Looked) -> None:
    if command == "track":
        pytest.importorskip("tensorboard")
    store, results = looked
    for line in COMMANDS[command]:
        result = results[line]
        refused = command == "records" and store == "file"  # a study without a version gives no records file
        assert refused or not result.returncode, result.stderr
        assert "Traceback" not in result.stderr
        assert not result.marked, line


def test_code_of_the_store_that_is_imported_in_any_line_is_noticed(directory: Path) -> None:
    """The tests above would fail: `models mine:Bag` imports the class, in the middle of other lines."""
    (directory / "mine.py").write_text(MARKING_CODE + CODE)
    results = run_lines(directory, ["results plain", "models mine:Bag", "results plain"])
    assert [result.marked for result in results] == [False, True, True]


@pytest.mark.parametrize(
    ("command", "program"),
    [
        *((command, "-m unseen") for command in ONE_EACH),
        ("results", "-P -m unseen"),
    ],  # the last searches as `unseen` does
)
def test_no_command_that_looks_imports_what_lies_beside_a_store(command: str, program: str, directory: Path) -> None:
    if command == "track":
        pytest.importorskip("tensorboard")
    for name in LIBRARIES:
        (directory / f"{name}.py").write_text(MARKING_CODE)
    done = python(directory, *program.split(), *ONE_EACH[command].replace("STORE", "plain").split())
    assert done.returncode == (2 if command == "inspect" else 0), done.stderr  # inspect says how to trust the class
    assert "--trust" in done.stderr or command != "inspect"
    assert not (directory / "marker").exists()


def test_the_program_finds_a_class_in_the_current_directory_after_what_is_installed(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CODE)
    (tmp_path / "numpy.py").write_text(MARKING_CODE)
    for program in ("-m unseen", "-P -m unseen"):
        done = python(tmp_path, *program.split(), "models", "mine:Bag")
        assert not done.returncode, done.stderr
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("store", ["plain", "older", "file"])
def test_no_function_that_looks_imports_what_a_store_names(store: str, directory: Path) -> None:
    # Python itself, and torch when it is imported, search the current directory of somebody's own session for packages.
    (directory / "mine-1.0.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS.partition("[torch.backends]")[0])
    mark = "assert not Path('marker').exists(), {!r}"
    steps = [step for name, call in CALLS.items() for step in (call.replace("STORE", store), mark.format(name))]
    done = python(directory, "-c", "\n".join(["import unseen; from pathlib import Path", *steps]))
    assert not done.returncode, done.stderr
    assert not (directory / "marker").exists()


def test_parameters_are_recorded_and_reported(directory: Path) -> None:
    """A report has the recorded number for a foreign model; of an older store it counts those of our own models only."""
    database = sqlite3.connect(directory / "plain" / "store.sqlite")
    facts = [json.loads(text) for (text,) in database.execute("SELECT facts FROM provenance ORDER BY trial")]
    database.close()
    theirs, _, ours, _ = [run["parameters"] for run in facts]
    assert theirs != ours
    assert [result.returncode for result in run_lines(directory, ["report plain", "report older"])] == [0, 0]
    for store, expected in (("plain", {theirs, ours}), ("older", {ours})):
        page = (directory / store / "report.html").read_text()
        cells = {count: f'<td class="number">{count:,}</td>'.replace(",", "\u202f") for count in (theirs, ours)}
        assert {count for count, cell in cells.items() if cell in page} == expected
    assert not (directory / "marker").exists()


def test_the_number_of_parameters_is_no_difference_between_two_stores(directory: Path) -> None:
    """A run of an older release without the number of parameters is still identical to its repetition."""
    done = python(directory, "-m", "unseen", "compare", "older", "plain")
    assert not done.returncode, done.stderr
    assert "parameters" not in done.stdout


def test_a_file_that_a_store_names_is_not_opened(directory: Path) -> None:
    """A pipe that is opened would never end; a path is no part of a record, which holds what a file said."""
    os.mkfifo(directory / "pipe")
    with Store.write(directory / "plain") as store:
        changed = "UPDATE trials SET identity = json_set(identity, '$.task.mapping', ?)"
        store._db.execute(changed, (str(directory / "pipe"),))
        write_checksums(store._db, ("trials",), range(1, 5))
        store._db.commit()
    for result in run_lines(directory, ["results plain", "claims plain", "report plain"]):
        assert not result.returncode, result.stderr

"""Commands that only look at a store run nobody's code: nothing that a store names is imported or executed."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import unseen
from torch import nn

class Bag(unseen.Adapter):
    def core(self, width):
        return nn.Linear(width, width)
"""
MARKING_CODE = "from pathlib import Path\nPath(__file__).with_name('marker').write_text('ran')\n"
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
    return directory


@pytest.fixture
def directory(stores: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stores, tmp_path / "copy"))


def test_importing_the_module_leaves_the_mark(directory: Path) -> None:
    python(directory, "-c", "import mine")
    assert (directory / "marker").exists()


COMMANDS = {
    "results": ["results STORE", "results STORE --failures", "results STORE --success", "results STORE --trials"],
    "claims": ["claims STORE", "claims STORE --format markdown"],
    "compare": ["compare STORE plain"],
    "merge": ["merge STORE --into both"],
    "report": ["report STORE", "report STORE --figures figures"],
    "track": ["track STORE --to tensorboard --out logs"],
}
CALLS = {
    "unseen.results": "unseen.results('STORE')",
    "unseen.report": "unseen.report('STORE')",
    "unseen.compare": "unseen.compare('STORE', 'plain')",
    "judge_store": (
        "from pathlib import Path; from unseen.claims.judge import judge_store; judge_store(Path('STORE'))"
    ),
}


@pytest.mark.parametrize("store", ["plain", "older", "file"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_that_looks_imports_what_a_store_names(command: str, store: str, directory: Path) -> None:
    if command == "track":
        pytest.importorskip("tensorboard")
    for line in COMMANDS[command]:
        done = python(directory, "-m", "unseen", *line.replace("STORE", store).split())
        assert not done.returncode, done.stderr
        assert not (directory / "marker").exists(), line


@pytest.mark.parametrize("store", ["plain", "older", "file"])
@pytest.mark.parametrize("call", CALLS)
def test_no_function_that_looks_imports_what_a_store_names(call: str, store: str, directory: Path) -> None:
    done = python(directory, "-c", f"import unseen; {CALLS[call].replace('STORE', store)}")
    assert not done.returncode, done.stderr
    assert not (directory / "marker").exists()


def test_parameters_are_recorded_and_reported(directory: Path) -> None:
    """A report has the recorded number for a foreign model; of an older store it counts those of our own models only."""
    database = sqlite3.connect(directory / "plain" / "store.sqlite")
    facts = [json.loads(text) for (text,) in database.execute("SELECT facts FROM provenance ORDER BY trial")]
    database.close()
    theirs, _, ours, _ = [run["parameters"] for run in facts]
    assert theirs != ours
    for store, expected in (("plain", {theirs, ours}), ("older", {ours})):
        assert not python(directory, "-m", "unseen", "report", store).returncode
        page = (directory / store / "report.html").read_text()
        cells = {count: f'<td class="number">{count:,}</td>'.replace(",", "\u202f") for count in (theirs, ours)}
        assert {count for count, cell in cells.items() if cell in page} == expected
    assert not (directory / "marker").exists()


def test_the_number_of_parameters_is_no_difference_between_two_stores(directory: Path) -> None:
    """A run of an older release without the number of parameters is still identical to its repetition."""
    done = python(directory, "-m", "unseen", "compare", "older", "plain")
    assert not done.returncode, done.stderr
    assert "parameters" not in done.stdout

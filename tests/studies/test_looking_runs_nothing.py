"""To look at somebody's store is not to run their code: nothing that a store names is imported or executed."""

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
EVIL = "from pathlib import Path\nPath(__file__).with_name('marker').write_text('ran')\n"
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


def python(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], cwd=place, capture_output=True, text=True)


def named(out: Path, key: str, value: str) -> None:
    """Write another work into a store, as anybody could who hands one on."""
    database = sqlite3.connect(out / "store.sqlite")
    with database:
        database.execute("UPDATE meta SET value = ? WHERE key = 'work'", (json.dumps({key: value}),))
    database.close()


def forget_parameters(out: Path) -> None:
    """A store as an older release has written it."""
    database = sqlite3.connect(out / "store.sqlite")
    with database:
        database.execute("UPDATE provenance SET facts = json_remove(facts, '$.parameters')")
    database.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with stores of a foreign model, whose module then becomes another: its import leaves a mark."""
    place = tmp_path_factory.mktemp("made")
    (place / "mine.py").write_text(CODE)
    (place / "study.yaml").write_text(STUDY)
    done = python(
        place, "-m", "unseen", "run", "study.yaml", "--out", "plain", "--executor", "inline", "--weights", "all"
    )
    assert not done.returncode, done.stderr
    for name in ("older", "file"):
        shutil.copytree(place / "plain", place / name)
    forget_parameters(place / "older")
    named(place / "file", "study", "mine.py")  # a study may be a file, but not to those who only look
    shutil.rmtree(place / "__pycache__", ignore_errors=True)
    (place / "mine.py").write_text(EVIL)
    return place


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "place"))


def test_the_mark_is_left_by_who_imports_it(place: Path) -> None:
    python(place, "-c", "import mine")
    assert (place / "marker").exists()


COMMANDS = {
    "results": ["results STORE", "results STORE --failures", "results STORE --success", "results STORE --cells"],
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
    "judged": "from unseen.studies.claims.judged import judged; judged('STORE')",
}


@pytest.mark.parametrize("store", ["plain", "older", "file"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_that_looks_imports_what_a_store_names(command: str, store: str, place: Path) -> None:
    if command == "track":
        pytest.importorskip("tensorboard")
    for line in COMMANDS[command]:
        done = python(place, "-m", "unseen", *line.replace("STORE", store).split())
        assert not done.returncode, done.stderr
        assert not (place / "marker").exists(), line


@pytest.mark.parametrize("store", ["plain", "older", "file"])
@pytest.mark.parametrize("call", CALLS)
def test_no_function_that_looks_does(call: str, store: str, place: Path) -> None:
    done = python(place, "-c", f"import unseen; {CALLS[call].replace('STORE', store)}")
    assert not done.returncode, done.stderr
    assert not (place / "marker").exists()


def test_parameters_are_recorded_and_told(place: Path) -> None:
    """Of a foreign model those that its runs have recorded; of an older store only those of our own models."""
    database = sqlite3.connect(place / "plain" / "store.sqlite")
    facts = [json.loads(text) for (text,) in database.execute("SELECT facts FROM provenance ORDER BY cell")]
    database.close()
    theirs, _, ours, _ = [one["parameters"] for one in facts]
    assert theirs != ours
    for store, told in (("plain", {theirs, ours}), ("older", {ours})):
        assert not python(place, "-m", "unseen", "report", store).returncode
        page = (place / store / "report.html").read_text()
        assert {n for n in (theirs, ours) if f'<td class="number">{n:,}</td>'.replace(",", "\u202f") in page} == told
    assert not (place / "marker").exists()

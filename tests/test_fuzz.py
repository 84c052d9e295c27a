"""Bounded fuzzers: mutated inputs of every kind are answered by one of our two errors, or accepted; never by another.

They are seeded and short. Longer runs, with other seeds, are for a spare evening: set UNSEEN_FUZZ to a number of rounds.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import torch

from support.finished_store import fill_store
from support.small import STUDY
from unseen.cli.latex import format_results
from unseen.cli.settings import parse_settings
from unseen.cli.summary import summarize
from unseen.errors import CheckFailed, UsageError
from unseen.store.store import Store
from unseen.studies.study import study
from unseen.tasks import TASKS, task
from unseen.training.checkpoint import Checkpoint, pack, split_checkpoint, unpack, unpack_weights
from unseen.training.recipe import Evaluation, Recipe

ROUNDS = int(os.environ.get("UNSEEN_FUZZ", "60"))
VALUES = (
    "true", "null", "-1", "0", "1e999", "-1e-999", "nan", "9" * 30, "9" * 5000, "[" * 3000, "{" * 50, '"\\ud800"', "''",
    "[1, 2, 3]", "{a: {b: c}}", "!!int zzz", "!!float x", "!!binary x", "!!python/object:os.system x", "*a", "&a [*a]",
    "\x00", "é" * 100, "2026-11-18", "0x10", "1_000", "~", "- -", "=1+1", "lstm", "retrieval/T1", "mine:Model",
)  # fmt: skip
STUDY_FILE = """study: fuzz
version: 1
question: Does it hold?
seeds: 2
base:
  task: {name: retrieval/T1, length: 3}
  model: {name: lstm, width: 4}
  recipe: {steps: 5, batch: 4}
  evaluation: {examples: 10}
axes:
  task.length: [3, 4]
  variant:
    plain: {}
    wide: {model: {width: 8}}
without: [{variant: wide, length: 4}]
scales:
  smoke: {seeds: 1, minutes: 1}
  full: {only: {variant: plain}}
"""


def answered(work: Callable[[], object]) -> None:
    """Whatever was given, the work is done or refused in words."""
    try:
        work()
    except (UsageError, CheckFailed) as error:
        assert 0 < len(str(error)) < 2_000, str(error)[:300]


def mutate(text: str, draw: random.Random) -> str:
    """A text with a value replaced, or a piece cut, doubled or spoiled."""
    kind = draw.randrange(5)
    if kind == 0:
        lines = text.splitlines(keepends=True)
        number = draw.randrange(len(lines))
        head, colon, _ = lines[number].rpartition(":")
        lines[number] = f"{head}{colon} {draw.choice(VALUES)}\n"
        return "".join(lines)
    start = draw.randrange(len(text))
    stop = min(len(text), start + draw.randrange(1, 20))
    if kind == 1:
        return text[:start] + text[stop:]
    if kind == 2:
        return text[:stop] + text[start:]
    if kind == 3:
        return text[:start] + draw.choice(VALUES) + text[stop:]
    return text[:start] + "".join(chr(draw.randrange(1, 0x2FF)) for _ in range(stop - start)) + text[stop:]


def test_study_files(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    for number in range(3 * ROUNDS):
        draw = random.Random(number)
        text = STUDY_FILE
        for _ in range(draw.randrange(1, 4)):
            text = mutate(text, draw)
        file.write_text(text, encoding="utf-8", errors="replace")

        def expand() -> None:
            loaded = study(str(file))
            for scale in loaded.scales:
                loaded.entries(scale)

        answered(expand)


@pytest.mark.parametrize("name", ["retrieval/T4", "ctl/A", "gcog/distractor", "rules/rnn"])
def test_settings(name: str) -> None:
    config = TASKS.load(name)
    options = [field for field in config.model_fields if field != "name"]
    for number in range(2 * ROUNDS):
        draw = random.Random(number)
        assignments = [f"{draw.choice(options)}={draw.choice(VALUES)}" for _ in range(draw.randrange(1, 3))]

        def build(assignments: list[str] = assignments) -> None:
            settings = parse_settings(assignments, {"task": config, "recipe": Recipe, "evaluation": Evaluation})
            task(name, **settings["task"]).identity()

        answered(build)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fuzz") / "store"
    fill_store(STUDY.entries("smoke"), path)
    return path


def test_cells_of_a_store(store: Path, tmp_path: Path) -> None:
    """Any value in any column: the tables are read, or the damage is named."""
    odd: list[object] = [None, "text", b"\xff\x00", 1e300, -1, 2**62, "", "{", '{"a": 1}', "=1", "\ud7ff"]
    for number in range(ROUNDS):
        draw = random.Random(number)
        copied = tmp_path / str(number)
        shutil.copytree(store, copied)
        with closing(sqlite3.connect(copied / "store.sqlite")) as database, database:
            tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            table = draw.choice(sorted(tables))
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            column = draw.choice(columns)
            try:
                database.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", (draw.choice(odd),))
            except sqlite3.Error:  # the schema itself refuses it
                continue

        def read(path: Path = copied) -> None:
            with Store.read(path) as opened:
                opened.records()
                opened.curves()
                opened.trials()
                opened.spans()
                opened.failures()
                opened.provenance()
                opened.configurations()
                list(opened.checkpoints())
            summarize(path)
            format_results(path)

        answered(read)
        shutil.rmtree(copied)


def test_headers_of_checkpoints() -> None:
    tensors = {"weights": torch.zeros(2, 3), "moment": torch.ones(2, 3)}
    progress = {"a": {"step": 3}, "b": {"step": 3}}
    whole = pack(Checkpoint(3, progress, tensors))
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    forged: list[bytes] = [b"", whole[:7], whole[:50], b"\xff" * 8 + whole[8:], (2**62).to_bytes(8, "little") + b"{"]
    for value in ("null", "[]", "3", '"x"', "{}", '{"step": null, "progress": {}}', '{"step": -1, "progress": {}}',
                  '{"step": true, "progress": {}}', '{"step": 1e9, "progress": []}', '{"step": 1, "progress": 5}', "[" * 3000):  # fmt: skip
        text = json.dumps({**header, "__metadata__": {"checkpoint": value}}).encode()
        forged.append(len(text).to_bytes(8, "little") + text + whole[8 + length :])
    for number in range(2 * ROUNDS):
        draw = random.Random(number)
        data = bytearray(whole)
        for _ in range(draw.randrange(1, 5)):
            data[draw.randrange(min(len(data), 8 + length + 10))] = draw.randrange(256)
        forged.append(bytes(data))
    for data in forged:
        answered(lambda data=data: unpack("a file", data))  # type: ignore[misc]
        answered(lambda data=data: unpack_weights("a file", data))  # type: ignore[misc]
        answered(lambda data=data: split_checkpoint(["a", "b"], data))  # type: ignore[misc]


FOREIGN = {
    "gcog/distractor": '{"tree": {"op": "Exist", "objects": [{"shape": "v", "color": "blue"}]}, "objects": '
    '[{"shape": "v", "color": "blue", "x": 1, "y": 2}], "target": 0}',
    "retrieval/T1": '{"sequence": [[0, 3], [5], [7]], "query": [3], "answer": true}',
    "ctl/A": '{"functions": ["a", "b"], "symbol": 0, "target": 1, "split": "iid"}',
    "rules/mlp": '{"process": "mlp", "search": 1, "parameters": {"coefficients": [[1, 2]]}, "x": [0.1, 0.2], "c": 0, '
    '"y_regression": 1.0, "y_classification": 1}',
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_example_files(name: str, tmp_path: Path) -> None:
    made = task(name)
    file = tmp_path / "examples.jsonl"
    for number in range(ROUNDS):
        draw = random.Random(number)
        text = FOREIGN[name]
        for _ in range(draw.randrange(0, 3)):
            start = draw.randrange(len(text))
            piece = draw.choice([*VALUES, "[]", "{}", '"', "1e999", "-5", "99999999999999999999", "true"])
            text = text[:start] + piece + text[start + draw.randrange(1, 8) :]
        file.write_text(f"{text}\n{FOREIGN[name]}\n", encoding="utf-8", errors="replace")
        answered(lambda: made.judge(file))


def test_an_unknown_key_of_a_gcog_object_is_named(tmp_path: Path) -> None:
    file = tmp_path / "examples.jsonl"
    file.write_text(FOREIGN["gcog/distractor"].replace('"x": 1', '"x": 1, "colour": "red"') + "\n")
    mismatches = task("gcog/distractor").judge(file).mismatches
    assert any("colour" in mismatch.given and "color" in mismatch.expected for mismatch in mismatches)

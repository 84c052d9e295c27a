"""`unseen compare`, on small real stores: every format, and what a user meets who errs."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
from itertools import groupby
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import unseen
from unseen.cli.compare import _format_number
from unseen.cli.main import app
from unseen.errors import UsageError
from unseen.store.checksums import write_checksums
from unseen.store.store import Store
from unseen.studies.grid import Grid
from unseen.studies.study import Study

HOSTILE = ["<script>alert(1)</script>", "a|b `c` *d* [e](f)", "two\nlines\x1b[31m", "=1+1", "長い名前" * 30, "\\"]
SMALL = {
    "task": {"name": "retrieval/T6", "length": 3, "train_size": 100, "evaluation_size": 100},
    "model": {"name": "retrieval-transformer", "width": 8},
    "evaluation": {"examples": 100},
}


def small(name: str, levels: list[str], **recipe: object) -> Study:
    """A study of runs of a few steps, one level of its axis each."""
    settings = {"steps": 4, "batch": 10, "validate_every": 2, "validation_examples": 50, **recipe}
    # Levels are told apart by a rate.
    axes = {"variant": {level: {"recipe": {"learning_rate": 1e-3 + 1e-4 * i}} for i, level in enumerate(levels)}}
    grid = Grid(axes=axes, base={**SMALL, "recipe": settings}, seeds=range(3))
    return Study(name, 1, "Does the command work?", {"smoke": None}, lambda scale: [grid])


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["compare", *map(str, arguments)], env={"COLUMNS": "120"})


def run(*arguments: object) -> str:
    done = invoke(*arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("compare")
    plans = {
        "a": small("hostile", HOSTILE),
        "b": small("hostile", HOSTILE, batch=20),
        "c": small("other", HOSTILE[1:3]),
    }
    for name, study in plans.items():
        unseen.run(study, place / name, executor="inline", progress="none")
    shutil.copytree(place / "a", place / "same")
    # As if one run had been made on another machine.
    shutil.copytree(place / "a", place / "changed")
    with Store.write(place / "changed") as store:
        (number, *_) = store._numbers(list(store.status())).values()
        with store._transaction():
            store._db.execute("UPDATE records SET value = value + 0.01 WHERE trial = ?", (number,))
            write_checksums(store._db, ("records", "overall"), [number])
    return {path.name: path for path in place.iterdir()}


def test_help_gives_examples() -> None:
    text = run("--help")
    assert "unseen compare runs/before runs/after" in text and "--format csv --out" in text


def test_the_table_fits_a_terminal_and_says_what_it_shows(stores: dict[str, Path]) -> None:
    text = run(stores["a"], stores["b"])
    lines = text.splitlines()
    assert max(map(len, lines)) <= 120 and "\x1b" not in text
    assert lines[0].startswith("A: ") and "B: " in text and "18 of 18 runs ended" in " ".join(text.split())
    for name in HOSTILE[:2]:
        assert sum(line.startswith(name) for line in lines) == 1
    assert r"two\nlines\x1b[31m" in text
    assert text.count("ood/single") == text.count("  iid ") == len(HOSTILE)
    assert "accuracy of the weights that were best on validation" in text and "* indicative" in text
    assert "recipe batch: 10 in A, 20 in B" in " ".join(text.split())
    assert "18 runs of B were too short to tell" in text


def test_a_copy_is_identical(stores: dict[str, Path]) -> None:
    text = run(stores["a"], stores["same"], "--split", "iid")
    assert text.count("identical\n") == len(HOSTILE)
    assert "the 18 runs that A and B both hold are identical" in text and "adj. p" not in text


def test_a_changed_number_is_loud_in_every_format(stores: dict[str, Path], tmp_path: Path) -> None:
    for form in ("table", "markdown", "csv", "json"):
        shown, written = (
            invoke(stores["a"], stores["changed"], "--format", form, *more) for more in ((), ("--out", tmp_path / form))
        )
        assert shown.exit_code == written.exit_code == 0
        assert "SAME TRIAL, OTHER NUMBERS: 1 of the 18 runs" in shown.output
        assert "SAME TRIAL, OTHER NUMBERS" in written.stderr and not written.stdout
        assert (tmp_path / form).read_text().count("\n") == shown.stdout.count("\n")
    assert run(stores["a"], stores["changed"], "--split", "iid").count("CHANGED 1/3") == 1


def test_markdown_stays_text(stores: dict[str, Path]) -> None:
    text = run(stores["a"], stores["b"], stores["c"], "--format", "markdown")
    blocks = [list(lines) for table, lines in groupby(text.splitlines(), lambda line: line.startswith("|")) if table]
    assert len(blocks) == 2
    for lines in blocks:
        assert {line.replace("\\|", "").count("|") for line in lines} == {lines[0].count("|")}
    assert "<script>" not in text and r"\<script\>" in text and r"a\|b \`c\` \*d\* \[e\](f)" in text
    assert "**B − A" in text and "**C − A" in text


def test_csv_and_json_have_every_digit(stores: dict[str, Path], tmp_path: Path) -> None:
    table = unseen.compare(stores["a"], stores["b"], selection="last", metric="loss")
    arguments = (stores["a"], stores["b"], "--selection", "last", "--metric", "loss")
    run(*arguments, "--format", "csv", "--out", tmp_path / "c.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "c.csv").read_text())))
    written = [row["variant"].removeprefix("'") for row in rows]  # a spreadsheet must not take a level for a formula
    assert written == table.variant.tolist() == [level for level in HOSTILE for _ in range(2)]
    run(*arguments, "--format", "json", "--out", tmp_path / "c.json")
    found = json.loads((tmp_path / "c.json").read_text())
    assert set(found) == {"directories", "alarms", "rows", "notes"}
    for name in ("mean_a", "mean_b", "difference", "low", "high", "p", "p_adjusted"):
        assert [float(row[name]) for row in rows] == [row[name] for row in found["rows"]] == table[name].tolist()
    same = json.loads(run(stores["a"], stores["same"], "--format", "json"))
    assert {row["p"] for row in same["rows"]} == {None}


def test_what_train_wrote_with_other_settings(tmp_path: Path) -> None:
    """As in the documentation: the same task and model, another recipe, other seeds."""
    for out, given in (("slow", {}), ("fast", {"learning_rate": 0.01}), ("far", {"seeds": [5, 6, 7]})):
        task = unseen.task("retrieval/T6", length=3, train_size=100, evaluation_size=100)
        unseen.train(
            task,
            "retrieval-transformer",
            out=tmp_path / out,
            progress="none",
            **{"seeds": 3, "steps": 4, "batch": 10, "validate_every": 2, **given},
        )
    text = run(tmp_path / "slow", tmp_path / "fast", tmp_path / "far")
    assert "recipe learning_rate: the default in A, 0.01 in B" in text
    assert "3+3" in text and "unpaired in 2 of 4 rows" in text and "everywhere: task retrieval/T6" in text


def test_wrong_use_is_answered(stores: dict[str, Path], tmp_path: Path) -> None:
    unseen.run(small("else", ["nowhere else"]), tmp_path / "d", executor="inline", progress="none")
    for arguments, said in (
        ([stores["a"]], "two directories or more, got 1"),
        ([stores["a"], tmp_path], "holds no results"),
        ([stores["a"], tmp_path / "d"], "no configuration is in both"),
        ([stores["a"], stores["b"], "--split", "ood/singel"], "Did you mean 'ood/single'"),
        ([stores["a"], stores["b"], "--metric", "acuracy"], "Did you mean 'accuracy'"),
        ([stores["a"], stores["b"], "--out", tmp_path / "no" / "x"], "there is no directory"),
    ):
        done = invoke(*arguments)
        assert isinstance(done.exception, UsageError) and said in str(done.exception)
    assert invoke(stores["a"], stores["b"], "--selection", "frist").exit_code == 2
    assert invoke().exit_code == 2


@pytest.mark.parametrize(
    ("value", "sign", "text"),
    [
        (0.5, "", "0.5000"),
        (-0.00001, "+", "-1e-05"),
        (0.0, "+", "+0.0000"),
        (-0.0, "+", "+0.0000"),
        (12.34567, "+", "+12.3457"),
        (math.inf, "", "inf"),
    ],
)
def test_numbers_for_people(value: float, sign: str, text: str) -> None:
    assert _format_number(value, sign) == text

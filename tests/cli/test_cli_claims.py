"""`unseen claims`, on its own and on small real stores."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import unseen
from unseen.claims import CLAIMS
from unseen.cli.main import app
from unseen.errors import CheckFailed, UsageError
from unseen.store.shipped_records import read_index
from unseen.store.store import Store
from unseen.studies.catalog.retrieval import TRANSFORMERS
from unseen.studies.grid import Grid
from unseen.studies.study import Study

TINY = {
    "task": {"name": "retrieval/T6", "length": 5, "preset": "released", "train_size": 200, "evaluation_size": 200},
    "model": {"width": 8},
    "evaluation": {"splits": ("ood/single",), "analyses": ("R7",)},
    "recipe": {"steps": 40, "batch": 10, "validate_every": 4, "validation_examples": 100},
}


def tiny(name: str, seeds: int, steps: int = 40) -> Study:
    """T6 with four tiny Transformers that learn nothing in so few steps."""
    base = {**TINY, "recipe": {**TINY["recipe"], "steps": steps}}
    grid = Grid(axes={"variant": TRANSFORMERS}, base=base, seeds=range(seeds), data_seed=0)
    return Study(name, 2, "Does the command work?", {"smoke": None}, lambda scale: [grid])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that says it is of the catalogue's study."""
    out = tmp_path_factory.mktemp("claims") / "store"
    records = unseen.run(tiny("retrieval-table2", 3), out, executor="inline", progress="none")
    assert (records.metric == "R7/positive").any()
    return out


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["claims", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_list_says_what_is_claimed_where_and_how_it_is_tested() -> None:
    text = run("--all")
    assert max(map(len, text.splitlines())) <= 110
    one_line = " ".join(text.split())
    for entry in CLAIMS:
        claim = entry.load()
        for shown in (claim.name, claim.source, claim.statement, claim.printed, claim.study):
            assert shown in one_line
    claim = run("--claim", "retrieval/C5")
    assert claim.count("T−Pos+Att on T6 above T+Pos−Att on T6") == claim.count("Baroni 2021, table 2") == 1
    listed = json.loads(run("--format", "json"))
    assert [one["claim"] for one in listed] == [entry.name for entry in CLAIMS]
    assert {"claim", "paper", "source", "statement", "printed", "study", "verdict", "registered"} <= set(listed[0])
    if not list(read_index()):  # a release without records of its own
        assert run("--format", "markdown").count("\n") == len(listed) + 2


def test_verdicts_on_a_store_with_its_deviations(store: Path) -> None:
    text = run(store)
    for name in ("retrieval/C5", "retrieval/C7", "retrieval/C8"):
        line = next(line for line in text.splitlines() if line.startswith(name))
        assert "smoke, length 5 (paper: 10)" in line
    one_line = " ".join(text.split())
    assert "n = 3 (initialisation)" in one_line and "indicative" in one_line
    assert "not run: retrieval/C1 (T1 not run)" in one_line and "retrieval/table2 (printed for length 10)" in one_line
    assert "Deviations of scale smoke from the paper:" in text
    # It says that it is of the catalogue's study, and is not.
    assert "not known: some of these runs are not, or no longer, of retrieval-table2@2 at scale smoke" in one_line


@pytest.mark.parametrize("columns", [50, 200])
def test_verdicts_fit_the_terminal(store: Path, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = run(store).splitlines()
    assert 40 < max(map(len, lines)) <= min(columns, 110)


def test_one_claim_with_its_parts(store: Path) -> None:
    text = run(store, "--claim", "retrieval/C5")
    assert text.count("\n    - ") == len(CLAIMS.load("retrieval/C5").criteria)
    assert "printed for length 10" in text and "T−Pos−Att on T6 below 0.76" in text


def test_verdicts_for_programs_and_documents(store: Path, tmp_path: Path) -> None:
    found = json.loads(run(store, "--format", "json"))
    judged = {one["claim"]: one for one in found["verdicts"]}
    assert set(judged) == {entry.name for entry in CLAIMS if entry.name.startswith("retrieval/")}  # what was run
    part = judged["retrieval/C5"]["criteria"][0]
    assert part["low"] <= part["estimate"] <= part["high"] and part["n"] == 3
    (deviations,) = found["deviations"]
    assert (deviations["scale"], deviations["ran"]) == ("smoke", "retrieval-table2@2")
    assert {(one["directory"], one["scale"]) for one in found["verdicts"]} == {(str(store), "smoke")}
    assert judged["retrieval/C5"]["setting"] == "length 5 (paper: 10)"
    for one in judged.values():
        waiting = [criterion["waiting"] for criterion in one["criteria"] if criterion["waiting"]]
        assert waiting or one["verdict"] != "undecided" or one["note"]
        assert {entry["for"] for entry in waiting} <= {"seeds", "steps", "runs", "nothing"}
    run(store, "--format", "markdown", "--out", tmp_path / "claims.md")
    lines = (tmp_path / "claims.md").read_text().splitlines()
    assert lines[0].startswith("| claim |")
    assert [name for name in judged if sum(line.startswith(f"| {name} |") for line in lines) != 1] == []
    assert any(line.startswith("* ") for line in lines)


def test_short_runs_and_unknown_studies(tmp_path: Path) -> None:
    """After eight steps nothing is decided, and no run is left out for it."""
    unseen.run(tiny("mine", 3, steps=8), tmp_path / "short", executor="inline", progress="none")
    text = run(tmp_path / "short")
    assert "undecided" in text and "supported" not in text and "contradicted" not in text
    assert "Left out of the verdicts" not in text
    assert max(map(len, text.splitlines())) <= 110
    assert "not known: mine@2 is not in the catalogue" in text


def test_records_of_a_single_train_judge_nothing(tmp_path: Path) -> None:
    made = unseen.task("retrieval/T6", length=5, train_size=100, evaluation_size=100)
    unseen.train(
        made,
        "retrieval-transformer",
        seeds=3,
        steps=4,
        batch=10,
        validate_every=2,
        out=tmp_path / "t6",
        progress="none",
    )
    assert "no claim of a paper could be judged from these runs" in run(tmp_path / "t6")
    found = json.loads(run(tmp_path / "t6", "--format", "json"))
    assert {one["verdict"] for one in found["verdicts"]} == {"not run"}


def test_several_directories(store: Path, tmp_path: Path) -> None:
    """Each claim is judged where its study was run; the rest is not run, with the command that would run it."""
    other = tmp_path / "quick"
    unseen.run(tiny("mine", 3), other, executor="inline", progress="none")
    data = json.loads(run(other, store, "--format", "json"))
    assert {(one["directory"], one["ran"]) for one in data["verdicts"] if one["study"] == "retrieval-table2"} == {
        (str(store), "retrieval-table2@2")
    }
    assert [one["directory"] for one in data["deviations"]] == [str(other), str(store)]
    text = run(other, store)
    assert f"== {store} (retrieval-table2@2)" in text and "retrieval/C5 " in text
    page = run(other, store, "--format", "markdown")
    assert all(sum(line.startswith(f"| `{entry.name}`") for line in page.splitlines()) == 1 for entry in CLAIMS)
    assert "| ctl-lengths was not run | `unseen run ctl-lengths --scale mini --out DIR`, 0.3 core-hours |" in page
    assert "| printed for length 10 | `unseen run retrieval-table2 --scale small --out DIR`, 5.0 core-hours |" in page
    one = run(other, store, store, "--claim", "retrieval/C5")
    assert one.count("\n    - ") == len(CLAIMS.load("retrieval/C5").criteria)
    assert str(store) not in page and str(other) not in page


def test_a_store_in_which_nothing_has_ended(tmp_path: Path) -> None:
    study = tiny("mine", 3)
    with Store.write(tmp_path) as begun:
        begun.set_work({"study": "mine@1"})
        begun.add(study.entries("smoke"), "smoke")
    assert "no claim of a paper could be judged from these runs" in run(tmp_path)
    assert "no run of T−Pos+Att on T6 has ended" in " ".join(run(tmp_path, "--claim", "retrieval/C7").split())
    data = json.loads(run(tmp_path, "--format", "json"))
    assert {one["verdict"] for one in data["verdicts"]} == {"not run"}


def test_a_damaged_store_is_refused(store: Path, tmp_path: Path) -> None:
    shutil.copytree(store, tmp_path / "damaged")
    (tmp_path / "damaged" / "store.sqlite").write_bytes(b"no database" * 1000)
    done = CliRunner().invoke(app, ["claims", str(tmp_path / "damaged"), str(store)])
    assert isinstance(done.exception, CheckFailed) and "store.sqlite is damaged" in str(done.exception)


def test_wrong_use_is_answered(store: Path, tmp_path: Path) -> None:
    for arguments, said in (
        ([store, "--claim", "retrieval/C55"], "Did you mean 'retrieval/C5'"),
        (["--claim", "retreival/noise"], "Did you mean 'retrieval/noise'"),
        ([tmp_path], "holds no results"),
    ):
        done = CliRunner().invoke(app, ["claims", *map(str, arguments)])
        assert isinstance(done.exception, UsageError) and said in str(done.exception)

"""The data card: everything on it is generated, and right."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
import yaml

from support.exported import made, run
from unseen.export.card import FEWEST, MOST, measure_split
from unseen.export.splits import SplitTally
from unseen.export.write import write_export
from unseen.tasks import task
from unseen.tasks.verify.checks import SplitCase, check_artefacts, check_baselines, check_shortcuts


def card(name: str, folder: Path, *splits: str, n: int = 40, **options: object) -> str:
    write_export(task(name, **options) if options else made(name), folder / "out", "hf", splits, n)
    return (folder / "out" / "README.md").read_text()


def section(text: str, title: str) -> str:
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return cells[2:]


def test_the_card_of_a_released_set(tmp_path: Path) -> None:
    text = card("retrieval/T7", tmp_path, "train", "ood/single", n=500, preset="released", length=5)
    header = yaml.safe_load(text.split("---")[1])
    assert header["license"] == "apache-2.0" and header["size_categories"] == ["1K<n<10K"]
    assert "A sequence of sets of features, then a query" in section(text, "What it is")
    assert "`preset` = released" in text and "query:" in text and "answer:" in text
    splits = rows(section(text, "Splits, and what is unseen"))
    assert [row[:4] for row in splits] == [
        ["`train`", "`train`", "500", "–"],
        ["`ood_single`", "`ood/single`", "500", "–"],
    ]
    shortcuts = rows(section(text, "How far shortcuts get"))
    assert {row[1] for row in shortcuts} >= {"majority", "bag-of-tokens", "any relevant feature present"}
    known = {(row[0], row[1]): row[5] for row in rows(section(text, "Known artefacts"))}
    assert known["`train`", "A4"] == "known, seen" and known["`ood_single`", "A6"] == "known, seen"
    origin = section(text, "Licence and origin")
    assert "Apache-2.0" in origin and "Sorodoc" in origin
    assert "drawn by Unseen (task seed 0) with the statistics of the published one, which it is not" in origin


def test_what_is_unseen_is_named_by_its_column(tmp_path: Path) -> None:
    text = card("gcog/productive", tmp_path, "train", "ood/depth=5", n=20)
    assert [row[3] for row in rows(section(text, "Splits, and what is unseen"))] == ["–", "`factor_depth`"]
    assert "Objects are letters in ten colours" in text and "boolean 1/2, location 1/100" in text
    assert "| `factor_depth` | factor | int64 | one |" in text


def test_small_sets_are_not_judged(tmp_path: Path) -> None:
    text = card("ctl/A", tmp_path, "iid", "probe/singles", n=20)
    assert "Too few examples to tell: `iid`, `probe_singles`" in text
    assert "drawn by Unseen (task seed 0)" in text and "world.json" in text


def test_the_command_on_the_card_makes_the_same_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = card("rules/rnn", tmp_path, "train", "ood/length=3", n=50)
    command = section(text, "How it was made").partition("```sh\n")[2].partition("\n```")[0]
    assert command.endswith("--out DIR")
    monkeypatch.chdir(tmp_path)
    result = run(command)
    assert result.exit_code == 0, result.output
    one, two = (json.loads((tmp_path / name / "export.json").read_text()) for name in ("out", "DIR"))
    assert one == two
    assert all(part["digest"] in text for part in one["parts"])
    assert shlex.split(one["command"]) == shlex.split(command)


def test_a_table_that_was_given_is_in_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = task("retrieval/T4", length=4, mapping=task("retrieval/T4", task_seed=8).table)
    write_export(given, tmp_path / "out", "hf", ["iid"], 30)
    text = (tmp_path / "out" / "README.md").read_text()
    assert "--set mapping=mapping.txt" in text and "was passed to the generator" in text
    command = json.loads((tmp_path / "out" / "export.json").read_text())["command"].replace("DIR", "../again")
    monkeypatch.chdir(tmp_path / "out")
    assert run(command).exit_code == 0
    assert (tmp_path / "again" / "README.md").read_text() == text


@pytest.mark.parametrize(
    ("name", "split"),
    [("retrieval/T5", "train"), ("gcog/productive", "iid"), ("rules/mlp", "iid"), ("rules/rnn", "ood/length=3")],
)
def test_shortcuts_and_artefacts_are_measured_as_verify_does(name: str, split: str) -> None:
    found = made(name)
    measured = measure_split(found, split, 0)
    examples = found.sample(split, MOST)
    case = SplitCase(found, found.get_split(split), examples, examples)
    checks = [*check_baselines(case), *check_shortcuts(case), *check_artefacts(case)]
    said = {row: detail for row, (_, detail) in checks}
    assert len(said) == len(measured.shortcuts) + len(measured.artefacts) > 2
    chance = 0.0 if found.spec.target.kind == "real" else found.spec.target.chance
    for one in measured.shortcuts:
        detail = said.get(one.name) or said[f"shortcut {one.name}"]
        assert detail.startswith(f"{one.score.accuracy:.1%}")
        if one.name in said:
            assert f"allowed {max(chance, one.ceiling or 0):.1%} +" in detail
        else:
            assert ("ceiling" in detail) == (one.ceiling is not None)
            assert one.ceiling is None or f"ceiling {one.ceiling:.1%}" in detail
    for artefact in measured.artefacts:
        assert f": {artefact.value:.4g}, without it" in said[f"artefact {artefact.artefact.name}"]


def test_too_few_examples_are_not_measured() -> None:
    few = measure_split(task("retrieval/T1", evaluation_size=FEWEST - 1), "iid", 0)
    assert few.examples == FEWEST - 1 and few.shortcuts == few.artefacts == ()


@pytest.mark.parametrize("name", ["retrieval/T5", "gcog/productive", "rules/rnn", "rules/mha"])
def test_the_tally_counts_what_passes_by(name: str) -> None:
    found, tally = made(name), SplitTally(made(name))
    whole = found.sample("train", 2500)
    for start in (0, 1024, 2048):
        tally.add(whole[start : start + 1024])
    once = SplitTally(found)
    once.add(whole)
    assert tally.digest == once.digest and tally.examples == 2500
    targets = whole.targets.astype(np.float64)
    kind = found.spec.target.kind
    if kind == "binary":
        wanted = {"share of yes": targets.mean()}
    elif kind == "real":
        wanted = {"mean": targets.mean(), "standard deviation": targets.std(), "mean size": np.abs(targets).mean()}
    else:
        values, counts = np.unique(whole.targets, return_counts=True)
        wanted = {"classes": len(values), "commonest class": values[counts.argmax()], "its share": counts.max() / 2500}
    assert tally.balance == pytest.approx({key: float(value) for key, value in wanted.items()})

"""`unseen new claim`: a file that `unseen claims --file` accepts, for every study; and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import unseen
from unseen.cli.main import app
from unseen.errors import UsageError
from unseen.kit.new_claim import write_claim
from unseen.studies.catalog import STUDIES

STUDY = """\
study: tiny
seeds: 1
base:
  task: {name: retrieval/T3, length: 3, features: 8}
  model: {name: retrieval-transformer, width: 8}
  recipe: {steps: 10, validate_every: 5}
  evaluation: {splits: [iid], examples: 100}
axes:
  noise: {"no": {recipe: {batch: 8}}, "1e-3": {recipe: {batch: 16}}}
"""


@pytest.mark.parametrize("study", sorted(entry.name for entry in STUDIES))
def test_the_file_speaks_of_levels_that_the_study_has(study: str, tmp_path: Path) -> None:
    """Read with a plain YAML parser, as a second way: the levels are levels of the study's entries."""
    file = write_claim("mine", study, tmp_path / "mine.yaml")
    content = yaml.safe_load(file.read_text())
    (claim,) = content["claims"]
    assert content["study"] == study and claim["claim"] == "mine"
    chosen = STUDIES.load(study)
    entries = chosen.entries(chosen.default_scale)
    for criterion in (*claim["headline"], *claim["details"]):
        for key in {"better", "than", "runs"} & set(criterion):
            for axis, level in criterion[key].items():
                assert level in {entry.levels[axis] for entry in entries if axis in entry.levels}
    trial = entries[0].trial
    assert claim["split"] in (trial.evaluation.splits or trial.task.splits)


def test_the_command_writes_a_file_that_claims_accepts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(STUDY)
    made = CliRunner().invoke(app, ["new", "claim", "mine", "--study", "tiny.yaml"])
    assert made.exit_code == 0, made.output
    assert made.output.splitlines()[-1] == "unseen claims DIR --file mine.yaml"
    unseen.run("tiny.yaml", "runs", executor="inline", progress="none")
    judged = CliRunner().invoke(app, ["claims", "runs", "--file", "mine.yaml"])
    assert judged.exit_code == 0, judged.output
    assert "tiny/mine" in judged.output and "undecided" in judged.output and "exploratory" in judged.output
    text = Path("mine.yaml").read_text()
    assert 'better: {noise: "no"}' in text and 'than: {noise: "1e-3"}' in text, (
        "a text that looks like a number is quoted"
    )


def test_nothing_is_overwritten_or_left_behind(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("precious")
    for name, study, file, message in (
        ("mine", "quickstart", "mine.yaml", "exists; give another --out"),
        ("My claim", "quickstart", "other.yaml", "letters, digits"),
        ("mine", "quickstar", "other.yaml", "Did you mean 'quickstart'"),
        ("mine", "quickstart", "other.txt", "end the file in .yaml"),
        ("mine", "quickstart", "none/other.yaml", "there is no directory"),
    ):
        with pytest.raises(UsageError, match=message):
            write_claim(name, study, tmp_path / file)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]
    assert (tmp_path / "mine.yaml").read_text() == "precious"
    wrong = CliRunner().invoke(app, ["new", "model", "mine", "--study", "quickstart"])
    assert wrong.exit_code != 0 and isinstance(wrong.exception, UsageError | SystemExit)

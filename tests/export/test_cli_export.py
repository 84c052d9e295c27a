"""`unseen export` as a user meets it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from support.program import inside, outside


def test_export_then_the_command_it_prints(tmp_path: Path) -> None:
    done = outside(
        "export",
        "retrieval/T4",
        "--set",
        "length=5",
        "--split",
        "iid",
        "--split",
        "ood/single",
        "-n",
        "300",
        "--format",
        "jsonl",
        "--out",
        "my data",
        "--data-seed",
        "test",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "ood/single: 300 examples in my data/ood_single.jsonl" in done.stdout
    command = done.stdout.partition("to verify them: ")[2].strip()
    program, *arguments = shlex.split(command)
    assert program == "unseen"
    verified = inside(*arguments, cwd=tmp_path)
    assert verified.returncode == 0 and verified.stdout.count("300 of 300 answers agree") == 2, verified.stderr
    assert json.loads((tmp_path / "my data" / "export.json").read_text())["data_seed"] == "test"


WRONG = {
    "unknown task": (["retrieval/T9", "--format", "npz"], "Did you mean"),
    "unknown format": (["rules/mlp", "--format", "csv"], "csv"),
    "no format": (["rules/mlp"], "--format"),
    "endless": (["rules/mlp", "--format", "npz"], "are endless; say how many examples of each with -n"),
    "unknown split": (["rules/mlp", "-n", "5", "--split", "idi", "--format", "npz"], "Did you mean 'iid'?"),
    "tsv of others": (["ctl/A", "--format", "tsv"], "use jsonl, npz, parquet or hf"),
    "a wrong data seed": (["rules/mlp", "-n", "5", "--data-seed", "x", "--format", "npz"], "data seed 'x'"),
    "a negative data seed": (["rules/mlp", "-n", "5", "--data-seed", "-1", "--format", "npz"], "data seed -1"),
    "no examples": (["rules/mlp", "-n", "0", "--format", "npz"], "n = 0"),
    "a typo in a key": (["rules/mlp", "-n", "5", "--set", "rule=3", "--format", "npz"], "Did you mean 'rules'?"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_use_ends_with_2_and_leaves_nothing(case: str, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from unseen.cli.main import app
    from unseen.errors import UsageError

    arguments, said = WRONG[case]
    result = CliRunner().invoke(app, ["export", *arguments, "--out", str(tmp_path / "out")])
    told = str(result.exception) if isinstance(result.exception, UsageError) else result.output
    assert isinstance(result.exception, UsageError) or result.exit_code == 2
    assert said in told
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_empty_ends_with_2(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("keep me")
    done = inside("export", "rules/mlp", "-n", "5", "--format", "npz", "--out", str(tmp_path), cwd=Path.cwd())
    assert done.returncode == 2 and "is not empty (it holds notes.txt)" in done.stderr
    assert "Traceback" not in done.stderr and [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_help_and_exports_do_without_torch(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')")
    (tmp_path / "pandas.py").write_text("raise ImportError('no pandas here')")
    done = outside("export", "gcog/distractor", "-n", "5", "--format", "npz", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "numpy.py").write_text("raise ImportError('no numpy here')")
    told = outside("export", "--help", cwd=tmp_path)
    assert told.returncode == 0 and "unseen export ctl/A" in told.stdout


def test_the_python_face(tmp_path: Path) -> None:
    import unseen.export

    done = unseen.export("rules/mlp", tmp_path / "out", "npz", splits=["iid"], n=4)
    assert [path.name for path in done.files] == ["iid.npz"] and done.verify is None
    with pytest.raises(ValueError, match=r"unknown format 'np'\. Did you mean 'npz'"):
        unseen.export("rules/mlp", tmp_path / "other", "np", n=4)

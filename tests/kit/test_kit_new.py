"""`unseen new`: names, folders, and what is written."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path
from string import Template

import pytest
from typer.testing import CliRunner

from unseen.cli.main import app
from unseen.errors import CheckFailed, UsageError
from unseen.kit import new as writing
from unseen.kit.new import choose_names, new, read_templates

KINDS = {"task": "sums", "model": "slow-reader", "study": "which_first"}
RULES = "E,F,W,I,B,UP,SIM,RUF,C4,PIE,RET,PTH,NPY,T20"


@pytest.mark.parametrize(
    ("kind", "given", "name", "package", "cls"),
    [
        ("task", "sums", "sums/plain", "unseen-sums", "SumsTask"),
        ("task", "sums/far-away", "sums/far-away", "unseen-sums-far-away", "SumsFarAwayTask"),
        ("model", "slow-reader", "slow-reader", "unseen-slow-reader", "SlowReaderModel"),
        ("study", "which_first", "which_first", "unseen-which-first", "WhichFirstStudy"),
    ],
)
def test_names(kind: str, given: str, name: str, package: str, cls: str) -> None:
    found = choose_names(kind, given)
    assert (found.name, found.package, found.module, found.cls) == (name, package, package.replace("-", "_"), cls)


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        ("model", "My Model", "Did you mean 'my-model'?"),
        ("model", "SlowReader", "Did you mean 'slow-reader'?"),
        ("model", "9lives", "Did you mean 'lives'?"),
        ("model", "../escape", "Did you mean 'escape'?"),
        ("model", "fast/reader", "Did you mean 'fast-reader'?"),
        ("task", "Sums/Far Away", "Did you mean 'sums/far-away'?"),
        ("task", "a/b/c", "Did you mean 'a/b'?"),
        ("study", "", "use lower-case letters, digits and -"),
        ("study", "…", "use lower-case letters, digits and -"),
        (
            "model",
            "lstm",
            "model 'lstm' is taken by unseen.models.backbones.recurrent:LSTM; choose another name, like my-lstm",
        ),
        ("study", "quickstart", "like my-quickstart"),
        ("task", "ctl/A", "Did you mean 'ctl/a'?"),
        ("task", "ctl/mine", "the family 'ctl' is taken; choose another name, like my-ctl/mine"),
        ("task", "retrieval", "the family 'retrieval' is taken"),
        ("moddel", "mine", "unknown kind of plug-in 'moddel'. Did you mean 'model'?"),
    ],
)
def test_a_name_that_cannot_be_used_is_answered_with_one_that_can(
    kind: str, given: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        new(kind, given, tmp_path / "out")
    assert said in str(caught.value) and len(str(caught.value).splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("model", "linear"),
        ("model", "none"),
        ("model", "tensor"),
        ("task", "field"),
        ("task", "true"),
    ],
)
def test_no_name_is_in_the_way_of_what_a_module_imports(kind: str, name: str) -> None:
    found = choose_names(kind, name)
    (text,) = [text for path, text in read_templates(found) if path.name == f"{kind}.py"]
    nodes = list(ast.walk(ast.parse(Template(text).substitute({**vars(found), "golden": ""}))))
    imported = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert found.cls in {node.name for node in nodes if isinstance(node, ast.ClassDef)} - imported


@pytest.fixture(scope="module", params=KINDS)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("new") / "package"
    assert new(request.param, KINDS[request.param], place)[1] == place
    return place


def test_what_is_written_is_small_whole_and_of_our_style(written: Path) -> None:
    files = [path for path in written.rglob("*") if path.is_file()]
    assert not any("$" in path.read_text() or "template" in path.name for path in files)
    assert all(path.suffix in (".py", ".md", ".toml") for path in files)
    code = [path for path in files if path.suffix == ".py"]
    assert len(code) <= 5 and sum(len(path.read_text().splitlines()) for path in code) < 170
    for path in code:
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef) and node is not tree:
                assert ast.get_docstring(node), (path, node)
        assert ast.get_docstring(tree), path
    project = tomllib.loads((written / "pyproject.toml").read_text())["project"]
    assert project["dependencies"] == ["unseen"] and len(project["entry-points"]) == 1
    subprocess.run(
        [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--isolated",
            "--line-length",
            "120",
            "--select",
            RULES,
            "--ignore",
            "RUF001,RUF002,RUF003",
            ".",
        ],
        cwd=written,
        check=True,
    )
    assert (written / "README.md").read_text().count(f"unseen check {project['name']}") == 1


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    for wrong, said in ((tmp_path, r"is not empty \(it holds thesis.tex\)"), (tmp_path / "thesis.tex", "is a file")):
        with pytest.raises(UsageError, match=said):
            new("model", "slow-reader", wrong)
    (tmp_path / "empty").mkdir()
    new("model", "slow-reader", tmp_path / "empty")
    assert (tmp_path / "empty" / "pyproject.toml").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "thesis.tex"]


def test_nothing_is_left_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_PRINT_GOLDEN", "raise RuntimeError('no numbers today')")
    with pytest.raises(CheckFailed, match="the new task can't generate examples: RuntimeError: no numbers today"):
        new("task", "sums", tmp_path / "sums")
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_what_to_do_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(app, ["new", "study", "which-first"])
    assert said.exit_code == 0, said.output
    assert said.output.splitlines() == [
        "unseen-which-first: the study which-first, in the package unseen-which-first",
        "",
        "cd unseen-which-first",
        "pip install -e '.[test]'",
        "pytest",
        "unseen check unseen-which-first",
        "unseen run which-first --scale smoke --out runs/first",
    ]
    assert (tmp_path / "unseen-which-first" / "src" / "unseen_which_first" / "study.py").is_file()

"""`unseen tasks NAME`, `unseen models NAME`, completion in the shell, and tables that fit the terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import unseen
from support.store_builder import build
from unseen.cli.main import app
from unseen.cli.option_text import MEANINGS
from unseen.cli.output import fit_table
from unseen.models import BACKBONES, MODELS
from unseen.models.build import parameter_count
from unseen.tasks import TASKS


def run(*arguments: str, columns: int = 100) -> str:
    done = CliRunner(env={"COLUMNS": str(columns)}).invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("name", [entry.name for entry in TASKS if entry.target.startswith("unseen.")])
def test_every_task_describes_itself(name: str) -> None:
    text = run("tasks", name)
    task = unseen.task(name)
    for option in type(task).model_fields:
        assert option == "name" or f"\n  {option} " in text
    for split in task.splits:
        assert f"\n  {split} " in text
    assert "\nchance: " in text and "\nshortcuts: " in text and ">>>" not in text


def test_a_table_of_a_docstring_is_a_table_that_fits() -> None:
    """The Markdown of the retrieval tasks was printed as it is written, in lines of 85 columns."""
    text = run("tasks", "retrieval/T6", columns=60)
    assert "|" not in text
    assert "task  query" in text and "yes if: a occurs in a token" in run("tasks", "retrieval/T6", columns=50)


def test_a_task_tells_its_chance_and_ceilings_at_its_options() -> None:
    text = run("tasks", "retrieval/T6", "--set", "length=5")
    assert text.startswith("retrieval/T6 length=5\n")
    assert "tokens of a sequence; int ≥ 2; default 10" in text
    assert "chance: 0.5 (guessing among 2 answers)" in text
    # The very ceiling that `verify` holds the shortcut to.
    shortcut = next(
        s for s in unseen.task("retrieval/T6", length=5).shortcuts("ood/single") if s.name == "position of a"
    )
    assert shortcut.ceiling is not None and f"position of a: at most {shortcut.ceiling:.3f} on ood/single" in text


def test_a_group_lists_the_numbers_of_its_elements() -> None:
    text = " ".join(run("tasks", "groups/S3").split())
    assert "elements by number, for generators: 0 e, 1 (2 3), 2 (1 2), 3 (1 2 3), 4 (1 3 2), 5 (1 3)" in text
    assert "119 " in run("tasks", "groups/S5") and "generators:" not in run("tasks", "recall/mqar")


@pytest.mark.parametrize("name", list(BACKBONES))
def test_every_option_of_a_backbone_says_what_it_is_for(name: str) -> None:
    config = type(unseen.model(name))
    for option, field in config.model_fields.items():
        assert option == "name" or field.description or option in MEANINGS, option


def test_a_family_lists_its_tasks() -> None:
    names = [line.split()[0] for line in run("tasks", "rules").splitlines() if line and not line.startswith(" ")]
    assert names[:3] == ["rules/mha", "rules/mlp", "rules/rnn"]


def test_options_are_described_by_the_class_and_by_its_bases() -> None:
    text = run("models", "universal-transformer")
    assert "`layers` is how often the layer is applied" in text
    assert "`matched` records how `match` chose the width" in text


@pytest.mark.parametrize("name", [entry.name for entry in MODELS if entry.target.startswith("unseen.")])
def test_every_model_describes_itself_with_its_parameters(name: str) -> None:
    text = run("models", name)
    config = unseen.model(name)
    for option in type(config).model_fields:
        assert option == "name" or f"\n  {option} " in text
    task = next(line.split()[0] for line in text.partition("default options\n")[2].splitlines())
    count = parameter_count(unseen.build(config, unseen.task(task).spec))
    assert f"{task} " in text and f"{count:,}".replace(",", " ") in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tasks", "retrieval/T66"), "Did you mean 'retrieval/T6'?"),
        (("models", "lsmt"), "Did you mean 'lstm'?"),
        (("tasks", "--set", "length=5"), "--set goes with the name of a task"),
        (("models", "--task", "ctl/A"), "--task goes with the name of a model"),
        (("models", "ctl-ndr", "--task", "rules/mlp"), "rules"),
    ],
)
def test_wrong_names_are_answered_with_the_nearest(arguments: tuple[str, ...], message: str) -> None:
    error = CliRunner().invoke(app, arguments).exception
    assert error is not None and (message in str(error) or "input field" in str(error))


@pytest.mark.parametrize("columns", [50, 80, 200])
def test_descriptions_fit_the_terminal(columns: int) -> None:
    for name in ("tasks", "models"):
        assert max(map(len, run(name, columns=columns).splitlines())) <= columns
    assert max(map(len, run("models", "retrieval-transformer", columns=columns).splitlines())) <= columns


# -- completion -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("show ret", ["retrieval/T1", "retrieval/T2"]),
        ("verify rul", ["rules", "rules/mlp"]),
        ("models gcog-p", ["gcog-perceiver"]),
        ("train ctl/A ctl-n", ["ctl-ndr"]),
        ("train ctl/A ctl-ndr --set wid", ["width="]),
        ("train ctl/A ctl-ndr --set learn", ["learning_rate="]),
        ("show retrieval/T1 --set le", ["length="]),
        ("show retrieval/T1 --split oo", ["ood/single"]),
        ("run quick", ["quickstart"]),
        ("run quickstart --scale m", ["mini"]),
        ("results --for", ["--format"]),
        ("sho", ["show"]),
    ],
)
def test_the_shell_completes_names_and_options(line: str, expected: list[str]) -> None:
    words = ["unseen", *line.split()]
    variables = {
        "_UNSEEN_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    done = CliRunner().invoke(app, prog_name="unseen", env=variables)
    completions = done.stdout.split()
    assert set(expected) <= set(completions), done.output
    assert all(word.startswith(words[-1]) for word in completions)


def test_completing_a_name_loads_neither_torch_nor_numpy() -> None:
    code = (
        "import sys; from unseen.cli import complete; "
        "assert complete.complete_task('ret') and complete.complete_model('l') and complete.complete_study('q'); "
        "print(sorted({'torch', 'numpy', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- tables -----------------------------------------------------------------------------------------------------


def test_a_wide_table_is_cut_into_blocks_with_the_same_keys() -> None:
    rows = [["model", "runs", "first", "second"], ["lstm", "3", "0.123456", "0.654321"]]
    assert fit_table(rows, 2, width=100) == ["model  runs  first     second", "lstm   3     0.123456  0.654321"]
    assert fit_table(rows, 2, width=24) == [
        "model  runs  first",
        "lstm   3     0.123456",
        "",
        "model  runs  second",
        "lstm   3     0.654321",
    ]
    assert fit_table(rows, 2, width=15) == ["lstm 3", "  first: 0.123456", "  second: 0.654321"]


@pytest.mark.parametrize("columns", [50, 200])
def test_results_and_compare_fit_the_terminal(columns: int, tmp_path: Path) -> None:
    for name in "ab":
        build(tmp_path / name, axes={"variant": ["plain", "both"], "length": [3, 5]})
    stores = [str(tmp_path / name) for name in "ab"]
    texts = [run("results", stores[0], columns=columns), run("results", stores[0], "--trials", columns=columns)]
    texts.append(run("compare", *stores, columns=columns))
    for text in texts:
        assert max(map(len, map(str.rstrip, text.splitlines()))) <= columns
    assert "plain" in texts[0] and "ood/single" in texts[0]


# -- verify -----------------------------------------------------------------------------------------------------


def test_verify_says_its_verdict_first_and_its_rows_on_request() -> None:
    short = run("verify", "retrieval/T1", "-n", "300").splitlines()
    assert short[0].startswith("retrieval/T1: passed (") and "checks hold" in short[0]
    text = " ".join(" ".join(short).split())
    assert "equivalence: up to" in text and "coverage: training lacks" in text and "regime" in text
    assert len(short) < 18 and short[-1].strip() == "every check: unseen verify retrieval/T1 --all"
    for flag in ("--all", "--verbose"):
        every = run("verify", "retrieval/T1", "-n", "300", flag, columns=200).splitlines()
        held = [line for line in every if line.startswith("  ok ")]
        assert every[0] == short[0] and f"({len(held)} checks hold" in every[0]

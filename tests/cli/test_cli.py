"""The command line as a user meets it: every command, right and wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from support.program import Done, only_the_package, outside
from support.program import inside as unseen

SMALL = [
    "--set",
    "length=5",
    "--set",
    "train_size=500",
    "--set",
    "evaluation_size=300",
    "--set",
    "batch=10",
    "--set",
    "validate_every=10",
    "--set",
    "validation_examples=100",
]


def ok(*arguments: object, run: Callable[..., Done] = unseen) -> str:
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["tasks"],
        ["show", "retrieval/T1"],
        ["show", "retrieval/T9"],
        ["shwo"],
        ["train", "retrieval/T1", "lstm", "--steps", 1, "--seeds", 1, *SMALL],
    ],
)
def test_a_command_in_this_process_is_the_real_one(arguments: list[object], tmp_path: Path) -> None:
    """What the other tests here stand on."""
    folders = [tmp_path / "there", tmp_path / "here"]
    for folder in folders:
        folder.mkdir()
    out = ["--out", "r"] if arguments[0] == "train" else []
    with only_the_package():
        there, here = (
            run(*arguments, *out, cwd=folder) for run, folder in zip((outside, unseen), folders, strict=True)
        )
    assert (here.returncode, here.stdout) == (there.returncode, there.stdout)
    assert _timeless(here.stderr) == _timeless(there.stderr)
    assert [sorted(path.name for path in folder.iterdir()) for folder in folders] == [["r"] if out else []] * 2


def _timeless(said: str) -> str:
    """What is said without figures of speed and time, whatever the program is called."""
    return re.sub(r"[\d.]+|python -m (?=unseen)", "", said)


def test_help_names_every_command_and_gives_examples() -> None:
    text = ok("--help", run=outside)
    for command in ("tasks", "models", "show", "verify", "train", "results", "bench", "doctor"):
        assert command in text
        assert "Usage" in ok(command, "--help")
    assert "unseen show retrieval/T4" in ok("show", "--help")


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--help"], ["torch", "numpy", "pandas", "scipy", "pydantic", "markdown_it", "pygments", "statistics"]),
        (["tasks"], ["torch", "numpy", "pandas"]),
        (["models"], ["torch", "numpy", "pandas"]),
        (["show", "retrieval/T6", "-n", "1"], ["torch", "pandas"]),
    ],
)
def test_light_commands_import_nothing_heavy(arguments: list[str], unwanted: list[str]) -> None:
    program = (
        "import sys; sys.argv = ['unseen', *sys.argv[1:]]\n"
        "from unseen.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted(m for m in sys.modules if '.' not in m), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    loaded = done.stderr.splitlines()[-1]
    assert "'typer'" in loaded
    assert [m for m in unwanted if f"'{m}'" in loaded] == []


def test_show_works_where_torch_cannot_be_imported(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.argv = ['unseen', 'show', 'retrieval/T6']\n"
        "from unseen.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "stands for" in done.stdout


def test_version() -> None:
    from importlib.metadata import version

    assert ok("--version", run=outside) == f"unseen {version('unseen')}\n"


def test_listings() -> None:
    assert "retrieval/T6" in ok("tasks")
    assert "retrieval-transformer" in ok("models")


def test_show_prints_what_is_given_asked_and_answered() -> None:
    text = ok("show", "retrieval/T6", "-n", 2, "--set", "length=4")
    assert text.count("  token 3:") == 2 and "  token 4:" not in text
    assert "query:" in text and "stands for" in text and "before" in text
    assert "answer: yes" in text or "answer: no" in text


def test_show_names_the_page_beside_the_examples_and_never_in_them(tmp_path: Path) -> None:
    page, one = "page: tasks/retrieval/T1 of the documentation", ("show", "retrieval/T1", "-n", 1)
    shown = unseen(*one)
    assert page in shown.stderr and "page:" not in shown.stdout
    written = unseen(*one, "--out", tmp_path / "t1.txt")
    assert "page:" not in written.stderr + (tmp_path / "t1.txt").read_text()
    for format in ("json", "svg"):
        other = unseen(*one, "--format", format)
        assert "page:" not in other.stdout + other.stderr
    assert page in ok(*one, "--format", "html")


def test_show_in_other_formats(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in ok("show", "retrieval/T1", "--format", "json", "-n", 2).splitlines()]
    assert len(rows) == 2 and len(rows[0]["inputs"]["sequence"]) == 10
    assert ok("show", "retrieval/T1", "--format", "svg", "-n", 1).startswith("<svg")
    ok("show", "retrieval/T1", "--format", "png", "-n", 2, "--out", tmp_path / "t1.png")
    assert all((tmp_path / f"t1-{i}.png").read_bytes().startswith(b"\x89PNG") for i in range(2))
    assert "<svg" in ok("show", "retrieval/T1", "--format", "html")


def test_train_leaves_records_and_is_continued(tmp_path: Path) -> None:
    out = tmp_path / "t1"
    command = ["train", "retrieval/T1", "retrieval-transformer", "--steps", 20, *SMALL, "--out", out]
    first = unseen(*command, "--seeds", 2)
    assert first.returncode == 0, first.stderr
    assert "iid accuracy, best weights" in first.stdout and "over 2 seeds" in first.stdout
    assert "differs from the published recipe" in first.stderr and "batch" not in first.stderr
    assert "over 3 seeds" in ok(*command, "--seeds", 3)
    assert "over 3 seeds" in ok("results", out)
    csv = ok("results", out, "--format", "csv")
    assert csv.splitlines()[0].startswith("task,task_options,model,model_options,recipe") and ",scenario," in csv
    assert len(json.loads(ok("results", out, "--format", "json"))) == len(csv.splitlines()) - 1
    ok("results", out, "--format", "parquet", "--out", tmp_path / "r.parquet")
    assert len(pd.read_parquet(tmp_path / "r.parquet")) == len(csv.splitlines()) - 1
    assert "ood/single,accuracy" in ok("results", out, "--curves", "--format", "csv")
    behind = json.loads(ok("results", out, "--provenance", "--format", "json"))
    assert len(behind) == 3 and all(row["torch"] and row["cpu"] and row["seconds"] > 0 for row in behind)
    assert "give one of them" in unseen("results", out, "--provenance", "--trials").stderr
    assert unseen("results", out, "--format", "csv", "--out", tmp_path / "no" / "x.csv").returncode == 2
    ok("results", out, "--out", tmp_path / "table.txt")
    assert "indicative, fewer than 10 seeds" in (tmp_path / "table.txt").read_text()
    own = unseen(*command, "--seeds", 2, "--data-seed", 5)
    assert own.returncode == 2 and "data_seed is own there and 5 here" in own.stderr
    other = unseen(*command, "--seeds", 2, "--set", "learning_rate=0.01")
    assert other.returncode == 2
    assert "holds other work: recipe learning_rate is the default there and 0.01 here" in other.stderr


WRONG = {
    "unknown task": (["show", "retrieval/T9"], "unknown task 'retrieval/T9'. Did you mean"),
    "unknown model": (["train", "retrieval/T1", "transfomer", "--out", "x"], "Did you mean 'transformer'?"),
    "unknown family": (["verify", "retreival"], "Did you mean 'retrieval'?"),
    "a typo in a key": (["show", "retrieval/T1", "--set", "lenght=5"], "option 'lenght'. Did you mean 'length'?"),
    "a typo in a prefixed key": (["train", "retrieval/T1", "lstm", "--set", "task.lenght=5", "--out", "x"], "'length'"),
    "no value": (["show", "retrieval/T1", "--set", "length"], "expected key=value"),
    "a wrong value": (["show", "retrieval/T1", "--set", "preset=realeased"], "preset = 'realeased'"),
    "length 1": (["show", "retrieval/T1", "--set", "length=1"], "length = 1"),
    "a negative data seed": (["show", "retrieval/T1", "--data-seed", "-1"], "data seed -1"),
    "a negative seed": (["train", "retrieval/T1", "lstm", "--seeds", "0,-1", "--out", "x"], "seed -1"),
    "no seeds": (["train", "retrieval/T1", "lstm", "--seeds", "0", "--out", "x"], "positive number of seeds"),
    "seeds in words": (["train", "retrieval/T1", "lstm", "--seeds", "five", "--out", "x"], "--seeds five"),
    "no steps": (["train", "retrieval/T1", "lstm", "--steps", "0", "--out", "x"], "steps = 0"),
    "unknown recipe": (["train", "retrieval/T1", "lstm", "--recipe", "quik", "--out", "x"], "Did you mean 'quick'?"),
    "an ambiguous key": (["train", "retrieval/T1", "lstm", "--set", "name=1", "--out", "x"], "unknown option 'name'"),
    "unknown split": (["show", "retrieval/T1", "--split", "ood/singel"], "Did you mean 'ood/single'?"),
    "no examples": (["show", "retrieval/T1", "-n", "0"], "positive number"),
    "more than there is": (["show", "retrieval/T1", "--start", "100000"], "has 100000 examples"),
    "nothing there": (["results", "nowhere"], "holds no results"),
    "a missing file": (["verify", "retrieval/T1", "--data", "missing.tsv"], "missing.tsv"),
    "mapping alone": (["verify", "retrieval/T4", "--mapping", "q.txt"], "--mapping goes with --data"),
    "unknown model to measure": (["bench", "lsmt"], "Did you mean 'lstm'?"),
    "unknown command": (["shwo"], "shwo"),
    "a prefixed key of no option": (
        ["train", "retrieval/T1", "lstm", "--set", "recipe.seeds=4", "--out", "x"],
        "unknown option 'recipe.seeds'",
    ),
    "an option to vary that is none": (
        ["tune", "rules/mlp", "rules-mlp", "--vary", "gatign=none", "--out", "x"],
        "--vary gatign=none: unknown option 'gatign'. Did you mean 'gating'?",
    ),
    "an option to vary without values": (
        ["tune", "rules/mlp", "rules-mlp", "--vary", "gating", "--out", "x"],
        "--vary gating: expected key=value",
    ),
    "a name as a key": (["show", "retrieval/T1", "--set", "task.name=x"], "unknown option 'task.name'"),
    "steps twice": (["train", "retrieval/T1", "lstm", "--steps", "5", "--set", "steps=7", "--out", "x"], "give one"),
    "no such device": (["train", "retrieval/T1", "lstm", "--device", "banana", "--out", "x"], "device 'banana'"),
    "no such folder": (["bench", "--json", "no/x.json"], "there is no directory"),
    "few examples to verify": (["verify", "retrieval/T1", "-n", "5"], "at least 100"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_use_ends_with_2_and_says_what_to_do(case: str, tmp_path: Path) -> None:
    arguments, said = WRONG[case]
    done = unseen(*arguments, cwd=tmp_path)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_output_directory_with_other_work_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("keep me")
    done = unseen("train", "retrieval/T1", "lstm", "--out", tmp_path)
    assert done.returncode == 2 and "holds other work" in done.stderr
    assert [f.name for f in tmp_path.iterdir()] == ["notes.txt"]


def test_debug_shows_the_traceback() -> None:
    done = unseen("--debug", "show", "retrieval/T9")
    assert "Traceback" in done.stderr and done.returncode == 2


def test_verify_passes_a_sound_task_and_fails_a_planted_artefact() -> None:
    assert "passed" in ok("verify", "retrieval/T1", "-n", 1000, "--set", "length=5", run=outside)
    from unseen.cli.main import app
    from unseen.errors import CheckFailed
    from unseen.tasks.retrieval import task as module

    generate = module.Retrieval.generate

    def planted(self: module.Retrieval, split: str, draws: object) -> object:
        examples = generate(self, split, draws)  # type: ignore[arg-type]
        examples.inputs["sequence"][:, 0, 35] = examples.targets[:, 0]
        return examples

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.Retrieval, "generate", planted)
        result = CliRunner().invoke(app, ["verify", "retrieval/T1", "-n", "1000", "--set", "length=5"])
    assert isinstance(result.exception, CheckFailed)
    failed = {line.split()[2] for line in result.output.splitlines() if line.strip().startswith("FAIL ")}
    assert "single-feature" in failed


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(tmp_path: Path) -> None:
    import signal

    command = [
        sys.executable,
        "-m",
        "unseen",
        "train",
        "retrieval/T1",
        "retrieval-transformer",
        "--seeds",
        "2",
        "--steps",
        "100000",
        *SMALL,
        "--stack",
        "2",
        "--out",
        str(tmp_path / "r"),
    ]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    while "steps/s" not in child.stderr.readline():  # it trains
        assert child.poll() is None
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=600)
    assert child.returncode == 130
    assert "same command again to resume" in said and "Traceback" not in said
    assert len(list((tmp_path / "r" / "checkpoints").glob("*.safetensors"))) == 1
    assert "2 of 2 runs have not ended" in ok("results", tmp_path / "r", run=outside)


@pytest.fixture
def plugin(tmp_path: Path) -> dict[str, str]:
    """An environment in which another package registers two tasks by entry point."""
    info = tmp_path / "plugin" / "toys-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[unseen.tasks]\ntoy/clean = support.standins:Clean\ntoy/line = support.standins:Line\n"
    )
    tests = Path(__file__).parents[1]
    paths = [str(tmp_path / "plugin"), str(tests), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def test_a_plug_in_task_is_listed_verified_and_trained(plugin: dict[str, str], tmp_path: Path) -> None:
    train = ["train", "toy/clean", "lstm", "--steps", "5", "--seeds", "1", "--out", "r", "--set"]
    commands = [
        ["tasks"],
        ["verify", "toy/clean", "-n", "1000"],
        [*train, "width=8"],
        [*train, "model.width=8"],
        ["train", "toy/line", "retrieval-transformer", "--out", "x"],
    ]
    program = (
        "import json; from support.program import inside\n"
        f"done = [inside(*one) for one in {commands}]\n"
        "print(json.dumps([[one.returncode, one.stdout, one.stderr] for one in done]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=plugin, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    tasks, verified, ambiguous, trained, lacking = json.loads(done.stdout)
    assert "toy/clean" in tasks[1]
    assert "passed" in verified[1]
    assert "write task.width or model.width" in ambiguous[2]
    assert trained[0] == 0, trained[2]
    assert lacking[0] == 2 and "the task has no input field 'sequence'" in lacking[2]
    assert not (tmp_path / "x").exists()


def test_doctor_finds_this_installation_sound() -> None:
    text = ok("doctor", run=outside)
    assert "torch" in text and "bit for bit" in text

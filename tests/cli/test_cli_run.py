"""`unseen run` as a user meets it: on its way, interrupted, killed, asked for the wrong thing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import unseen
from support.faulty import processes, study
from support.program import inside
from support.small import tables
from unseen.cli.main import main
from unseen.store.store import Store
from unseen.training.checkpoint import unpack

TESTS = Path(__file__).parents[1]
STEPS = 1_000
"""So many that a run has not ended when it is interrupted, right after its first chunk."""
PATIENCE = 600.0
"""Seconds until a test gives up: a busy machine is no failure."""
STUDY = study(seeds=range(4), steps=STEPS)
ENDLESS = study(seeds=range(4), steps=10**6)
"""For tests that interrupt a run and do not end it: on no machine has it ended before the signal comes."""


def write_study(name: str, folder: Path) -> Path:
    """A study of this module as a user's file."""
    file = folder / "mine.py"
    file.write_text(
        f"import sys\nsys.path[:0] = [{str(Path(__file__).parent)!r}, {str(TESTS)!r}]\n"
        f"from test_cli_run import {name} as study\n"
    )
    return file


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study("STUDY", tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study("ENDLESS", tmp_path_factory.mktemp("endless"))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, ...]]:
    out = tmp_path_factory.mktemp("undisturbed") / "r"
    unseen.run(STUDY, out, executor="inline", progress="none")
    return tables(out)


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """The command line in this process: exit code, output, errors."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["unseen", *map(str, arguments)])
        main()
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


@contextmanager
def started(file: Path, out: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A run in a process group of its own, as a terminal makes one, once it has saved something new."""
    before = steps_done(out)
    child = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "unseen",
            "run",
            str(file),
            "--out",
            str(out),
            "--stack=2",
            "--chunk-seconds=0.1",
            *options,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        soon(lambda: steps_done(out) > before or child.poll() is not None)
        assert child.poll() is None, child.communicate()
        yield child
    finally:
        child.kill()
        child.communicate()


def soon(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def steps_done(out: Path) -> int:
    """Steps that the store has counted, over all trials; every one once."""
    try:
        with Store.read(out) as store:
            spans = store.spans()
    except (unseen.UsageError, unseen.CheckFailed):
        return 0  # it is not there yet
    for _, rows in spans.groupby("trial"):
        assert rows.begin.tolist() == [0, *rows.end[:-1]]
    return int((spans.end - spans.begin).sum())


def test_a_run_can_be_looked_at_guarded_interrupted_and_resumed(
    file: Path, undisturbed: list[tuple[str, ...]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "r"
    with started(file, out, "--workers", "2") as child:
        workers = processes(child.pid)
        assert len(workers) == 2
        os.killpg(child.pid, signal.SIGSTOP)  # so that it does not end while it is looked at, however fast it is
        code, _, said = command(capsys, "run", file, "--out", out, "--executor", "inline")
        assert code == 2 and said.count("\n") == 1
        assert f"is being written by process {child.pid} on {socket.gethostname()}" in said
        code, shown, _ = command(capsys, "results", out)
        assert code == 0 and "of 4 trials have ended" in shown
        assert command(capsys, "results", out, "--trials")[0] == 0
        assert command(capsys, "plan", file, "--out", out, "--no-probe")[0] == 0
        os.killpg(child.pid, signal.SIGINT)  # Ctrl-C: the terminal tells the whole group
        os.killpg(child.pid, signal.SIGCONT)
        shown, said = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130, said
    assert f"everything so far is in {out}" in said and "same command again to resume" in said
    assert "Traceback" not in said and "KeyboardInterrupt" not in said
    soon(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))

    done = steps_done(out)
    with Store.read(out) as store:
        trials = store.trials()
        kept = {trial: unpack("", data).step for _, members, data in store.checkpoints() for trial in members}
    assert 0 < done == trials.step.sum()
    for row in trials[trials.status == "pending"].itertuples():
        assert row.step == kept.get(row.trial, 0), "every step that was done is saved"

    code, shown, said = command(capsys, "run", file, "--out", out, "--executor", "inline")
    assert code == 0 and "4 of 4 trials have ended" in shown and f"unseen results {out}" in said
    assert tables(out) == undisturbed and steps_done(out) == 4 * STEPS


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1], ids=["SIGTERM", "SIGUSR1"])
def test_a_schedulers_signal_saves_the_steps_under_way(number: signal.Signals, endless: Path, tmp_path: Path) -> None:
    """Slurm sends SIGUSR1 before the time limit and SIGTERM at its end, to every process of a job."""
    out = tmp_path / "r"
    with started(endless, out, "--workers", "2") as child:
        workers = processes(child.pid)
        for process in (*workers, child.pid):
            os.kill(process, number)
        _, said = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130, said
    assert f"everything so far is in {out}" in said and "same command again to resume" in said
    assert "Traceback" not in said
    soon(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    with Store.read(out) as store:
        trials = store.trials()
        saved = {trial: unpack("", data).step for _, members, data in store.checkpoints() for trial in members}
        assert len(store.failures()) == 0
    assert 0 < steps_done(out) == trials.step.sum()
    for row in trials[trials.status == "pending"].itertuples():
        assert row.step == saved.get(row.trial, 0), "every step that was done is saved"


def test_a_killed_runner_takes_its_workers_along_and_two_quick_interrupts_lose_nothing(
    file: Path, undisturbed: list[tuple[str, ...]], tmp_path: Path
) -> None:
    out = tmp_path / "r"
    with started(file, out, "--workers", "1") as child:
        workers = processes(child.pid)
        assert len(workers) == 1
        child.kill()
        child.wait()
        soon(lambda: not any(Path(f"/proc/{worker}/exe").exists() for worker in workers))
    before = steps_done(out)
    with started(file, out, "--executor", "inline") as child:
        for _ in range(2):
            os.killpg(child.pid, signal.SIGINT)
            time.sleep(0.05)
        _, said = child.communicate(timeout=PATIENCE)
    # The second may come when all is said and Python is about to end: then the signal itself is the exit code.
    assert child.returncode in (130, -signal.SIGINT), said
    assert steps_done(out) >= before
    with Store.read(out) as store:
        store.check("trials", "entries", "curves", "records")
        assert store.damaged() == {}
    unseen.run(STUDY, out, executor="inline", progress="none")
    assert tables(out) == undisturbed and steps_done(out) == 4 * STEPS


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["quickstrat"], "Did you mean 'quickstart'?"),
        (["quickstart", "--scale", "minni"], "Did you mean 'mini'?"),
        (["quickstart", "--seeds", "few"], "--seeds few: expected a number like 5"),
        (["quickstart", "--workers", "0"], "workers = 0: give a positive number"),
        (["quickstart", "--workers", "1000000"], "workers = 1000000: each is a process, and this machine has"),
        (["quickstart", "--stack", "0"], "stack = 0: give a positive number"),
        (["quickstart", "--chunk-seconds", "0"], "chunk_seconds = 0.0: give a positive number"),
        (["quickstart", "--address", "auto"], "choose the executor ray"),
        (["nowhere.yaml"], "there is no such file"),
    ],
)
def test_wrong_use_is_two_lines_at_most_and_leaves_nothing(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, shown, error = command(capsys, "run", *arguments, "--out", tmp_path / "r")
    assert (code, shown) == (2, "") and said in error and error.count("\n") <= 2
    assert not (tmp_path / "r").exists()


OWN_STUDY = """
study: my-widths
question: Does width matter?
seeds: 2
notes: [a first look]
base:
  task: {name: retrieval/T1, length: 3, train_size: 100, evaluation_size: 50}
  recipe: {steps: 2, batch: 4, validate_every: 1, validation_examples: 10}
axes:
  width: {narrow: {model: {name: lstm, width: 4}}, wide: {model: {name: lstm, width: 8}}}
"""


def test_a_study_of_the_users_own_has_no_paper_to_differ_from(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OWN_STUDY)
    ran = inside("run", "own.yaml", "--out", "own", "--executor", "inline", cwd=tmp_path)
    assert not ran.returncode, ran.stderr
    assert "notes and differences: a first look" in ran.stderr
    assert "page: unseen report own" in ran.stderr
    for arguments in (("studies", "own.yaml"), ("plan", "own.yaml", "--no-probe")):
        shown = inside(*arguments, cwd=tmp_path)
        assert "notes and differences" in shown.stdout and "paper" not in shown.stdout
    judged = inside("claims", "own", cwd=tmp_path)
    assert "no claim of a paper could be judged" in judged.stdout and len(judged.stdout.splitlines()) == 2
    assert not inside("report", "own", cwd=tmp_path).returncode
    page = (tmp_path / "own" / "report.html").read_text()
    assert "Notes and differences" in page and "Deviations from the paper" not in page


def test_an_option_after_a_dot_in_a_level_is_answered_with_how_to_write_it(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OWN_STUDY.replace("model: {name: lstm, width: 4}", "model.width: 4"))
    refused = inside("plan", "own.yaml", cwd=tmp_path)
    assert refused.returncode == 2 and "Write model: {width: …}" in refused.stderr


def test_an_option_that_is_no_axis_is_answered_with_how_to_change_it(tmp_path: Path) -> None:
    refused = inside("run", "ctl-table1", "--scale", "smoke", "--only", "preset=released", "--out", "new", cwd=tmp_path)
    assert refused.returncode == 2 and "--set preset=…" in refused.stderr


def test_a_model_beyond_64_bits_is_refused_with_its_size(tmp_path: Path) -> None:
    refused = inside("train", "retrieval/T1", "lstm", "--set", "width=1e9", "--out", "new", cwd=tmp_path)
    assert refused.returncode == 2 and "more than 9 EB" in refused.stderr and "RuntimeError" not in refused.stderr

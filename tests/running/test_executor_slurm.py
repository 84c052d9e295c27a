"""Chunks through files that pilot jobs claim: messages without pickle, and a study in which everything is killed once.

Slurm's commands are a stand-in here (`support/fake_slurm.py`); docs/clusters.md says what was tried on a real Slurm.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import unseen
from support import fake_slurm
from support.small import STUDY, tables
from unseen.errors import CheckFailed, UsageError
from unseen.files import PARTIAL
from unseen.running.chunk import Chunk, Death, EndedWeights, Tick, Worker
from unseen.running.executors import slurm
from unseen.running.executors.exchange import Pilot, begin_session, claim, current_session
from unseen.running.messages import pack_chunk, pack_outcome, unpack_chunk, unpack_outcome
from unseen.running.runner import Settings, run_entries
from unseen.store.merge import merge_paths
from unseen.store.schema import Outcome
from unseen.store.store import Store

HERE = Path(__file__).parents[1]
TRIALS = tuple(entry.trial for entry in STUDY.entries("smoke", range(2))[:2])


def test_chunks_and_outcomes_survive_as_bytes() -> None:
    """From the first chunk to the last, through bytes and back, a stack ends with the numbers of one that never was."""
    worker = Worker()
    direct = worker.do(Chunk(1, TRIALS, None, 60.0, "all"))
    assert direct.finished is not None and not direct.error
    chunk = Chunk(7, TRIALS, None, 0.0, "all", evaluations=(TRIALS[0].evaluation,))
    for _ in range(200):
        received = unpack_chunk(pack_chunk(chunk))
        assert received.trials == chunk.trials and received.evaluations == chunk.evaluations
        outcome = worker.do(received)
        again = unpack_outcome(pack_outcome(outcome))
        assert again.points == list(outcome.points) and again.spans == outcome.spans
        if again.checkpoint is None:
            break
        chunk = replace(chunk, checkpoint=again.checkpoint, preflight=again.preflight)
    assert again.finished is not None
    for key, ended in direct.finished.items():
        assert repr(again.finished[key].measures) == repr(ended.measures)
        assert again.finished[key].weights == ended.weights
    weights = {key: EndedWeights(f.status, f.step, f.weights) for key, f in direct.finished.items()}
    evaluated = replace(chunk, checkpoint=None, weights=weights, missing=("an id",))
    assert unpack_chunk(pack_chunk(evaluated)).weights == weights
    failed = Outcome(3, error="Traceback …")
    assert unpack_outcome(pack_outcome(failed)).error == failed.error


def test_a_trial_that_is_another_one_on_the_node_is_refused() -> None:
    data = pack_chunk(Chunk(1, TRIALS, None, 1.0))
    assert data.count(TRIALS[0].id.encode()) == 1
    with pytest.raises(CheckFailed, match="another release"):
        unpack_chunk(data.replace(TRIALS[0].id.encode(), b"0" * 16))


def test_no_chunk_is_claimed_twice(tmp_path: Path) -> None:
    session = begin_session(tmp_path)
    assert current_session(tmp_path) == session
    for number in range(200):
        (session / "todo" / str(number)).touch()
    claimed: list[str] = []

    def take() -> None:
        while (taken := claim(session)) is not None:
            claimed.append(taken.name)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claimed, key=int) == [str(number) for number in range(200)]


def test_the_jobs_ask_for_what_the_file_says(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("account: lab\npartition: gpu\ntime: '02:00:00'\ngres: gpu:1\nsetup: [module load python]\n")
    cluster = slurm.read_cluster(str(file))
    options = slurm.job_options(cluster, tmp_path)
    for option in ("account=lab", "partition=gpu", "time=02:00:00", "gres=gpu:1", "signal=B:USR1@120", "requeue"):
        assert f"--{option}" in options
    assert f"--output={tmp_path / '50%% done' / 'logs'}/%A_%a.log" in slurm.job_options(cluster, tmp_path / "50% done")
    script = slurm.job_script(cluster, tmp_path)
    assert script.index("module load python") < script.index("exec ")
    file.write_text("acount: lab\n")
    with pytest.raises(UsageError, match="account"):
        slurm.read_cluster(str(file))


def test_every_line_of_the_file_is_optional_and_plain_values_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    for text, expected in {
        "": {},
        "# account: lab\n": {},
        "account:\ntime:\n": {},
        "time: 240\n": {"time": "240"},
        "memory: 4000\n": {"memory": "4000"},
        "setup: module load python\n": {"setup": ("module load python",)},
        "time: 1-12\n": {"time": "1-12"},
    }.items():
        file.write_text(text)
        assert slurm.read_cluster(str(file)) == slurm.Cluster(**expected), text


def test_a_file_that_no_job_could_follow_is_refused_in_a_line(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    for text, message in {
        "time: soon\n": "expected a limit as for sbatch --time",
        "time: [1, 2]\n": "expected text",
        "setup: {load: python}\n": "a list of lines",
        "setup: [1]\n": "a list of lines",
        "time: 3\n": "leaves no time to work",
        "time: '00:10:00'\nsave_before: 600\n": "leaves no time to work",
    }.items():
        file.write_text(text)
        with pytest.raises(UsageError, match=message) as refused:
            slurm.read_cluster(str(file))
        assert "\n" not in str(refused.value) and "Input should" not in str(refused.value)


class FakeCommands:
    """Slurm's commands, called in this process: every pilot that is submitted ends at once, without a trace."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, state: str = "") -> None:
        self.submissions = 0
        self._state = state
        monkeypatch.setattr(slurm.shutil, "which", lambda name: f"/bin/{name}")
        monkeypatch.setattr(slurm.subprocess, "run", self._run)
        for name in ("POLL_SECONDS", "COLLECT_SECONDS", "HEARTBEAT_SECONDS"):
            monkeypatch.setattr(slurm, name, 0.0)
        self.refusal = ""

    def _run(self, command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        if command[0] == "sbatch" and self.refusal:
            return subprocess.CompletedProcess(command, 1, "", f"sbatch: error: {self.refusal}\n")
        self.submissions += command[0] == "sbatch"
        answer = {"sbatch": "100", "squeue": self._state if "-j" in command else ""}
        return subprocess.CompletedProcess(command, 0, answer.get(command[0], ""), "")


def exchange_of(store: Path) -> Path:
    session = current_session(store / "slurm")
    assert session is not None
    return session


def write_heartbeat(session: Path, ticket: int, step: int) -> None:
    (session / "ticks" / str(ticket)).write_text(f'{{"step": {step}, "best": null, "job": "100", "number": {step}}}')


def test_pilots_that_never_begin_end_the_run_and_preempted_ones_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within one chunk, a pilot may be preempted more often than pilots may fail to start."""
    commands = FakeCommands(monkeypatch)
    executor = slurm.Slurm(tmp_path, None, 1)
    executor.submit(Chunk(1, TRIALS, None, 60.0))
    session = exchange_of(tmp_path)
    assert claim(session) is not None
    for step in range(2 * slurm.MAX_FAILED_SUBMISSIONS):
        write_heartbeat(session, 1, step)
        assert executor.next(0.0) == Tick(1, step, None)
    assert commands.submissions == 2 * slurm.MAX_FAILED_SUBMISSIONS
    with pytest.raises(CheckFailed, match="ended before they began a chunk"):
        for _ in range(slurm.MAX_FAILED_SUBMISSIONS + 1):
            executor.next(0.0)


def test_a_run_that_is_stopping_submits_no_pilots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = FakeCommands(monkeypatch)
    executor = slurm.Slurm(tmp_path, None, 2)
    executor.submit(Chunk(1, TRIALS, None, 60.0))
    executor.submit(Chunk(2, TRIALS, None, 60.0))
    taken = claim(exchange_of(tmp_path))
    assert taken is not None and taken.name == "1"
    assert executor.stop() == 1
    for _ in range(slurm.MAX_FAILED_SUBMISSIONS + 1):
        assert executor.next(0.0) is None
    assert commands.submissions == 0


@pytest.mark.parametrize(("state", "innocent"), [("OUT_OF_MEMORY", False), ("PREEMPTED", True), ("", True)])
def test_a_lost_pilot_is_the_chunks_fault_only_if_slurm_says_so(
    state: str, innocent: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeCommands(monkeypatch, state)
    monkeypatch.setattr(slurm, "HEARTBEAT_TIMEOUT", -1.0)
    executor = slurm.Slurm(tmp_path, None, 1)
    executor.submit(Chunk(1, TRIALS, None, 60.0))
    session = exchange_of(tmp_path)
    assert claim(session) is not None
    write_heartbeat(session, 1, 5)
    assert executor.next(0.0) == Tick(1, 5, None)
    death = executor.next(0.0)
    assert isinstance(death, Death) and death.innocent is innocent and state in death.cause


def test_a_refusal_of_more_pilots_does_not_end_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on submitted jobs may be reached at any time; a refusal of the first pilots says that the file is wrong."""
    commands = FakeCommands(monkeypatch)
    commands.refusal = "Invalid account"
    executor = slurm.Slurm(tmp_path, None, 1)
    executor.submit(Chunk(1, TRIALS, None, 60.0))
    with pytest.raises(CheckFailed, match="sbatch refuses the pilot jobs: sbatch: error: Invalid account"):
        executor.next(0.0)
    commands.refusal = ""
    assert executor.next(0.0) is None and commands.submissions == 1
    commands.refusal = "Job violates accounting/QOS policy"
    for _ in range(2 * slurm.MAX_FAILED_SUBMISSIONS):
        with pytest.warns(UserWarning, match="asked again: sbatch: error: Job violates"):
            assert executor.next(0.0) is None
    commands.refusal = ""
    assert executor.next(0.0) is None and commands.submissions == 2


def test_an_outcome_that_is_listed_late_is_taken_and_a_damaged_one_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network disk may not list a new file for a minute, although it can be opened; a dying node may damage one."""
    FakeCommands(monkeypatch)
    monkeypatch.setattr(slurm, "HEARTBEAT_TIMEOUT", -1.0)
    executor = slurm.Slurm(tmp_path, None, 1)
    session = exchange_of(tmp_path)
    outcome = Outcome(1, None, [], error="Traceback …")
    executor.submit(Chunk(1, TRIALS, None, 60.0))
    assert claim(session) is not None
    (session / "done" / "1").write_bytes(pack_outcome(outcome))
    iterdir = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda path: iter(()) if path.name == "done" else iterdir(path))
    assert executor.next(0.0) == outcome
    monkeypatch.undo()
    FakeCommands(monkeypatch)
    executor.submit(Chunk(2, TRIALS, None, 60.0))
    assert claim(session) is not None
    (session / "done" / "2").write_bytes(pack_outcome(outcome)[:50])
    death = executor.next(0.0)
    assert isinstance(death, Death) and death.ticket == 2 and death.innocent and "is damaged" in death.cause


def test_what_a_killed_pilot_leaves_behind_is_no_work_and_no_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half-written files, a chunk that it had claimed; and a pilot that was only believed dead sends its outcome late."""
    FakeCommands(monkeypatch)
    monkeypatch.setattr(slurm, "HEARTBEAT_TIMEOUT", -1.0)
    executor = slurm.Slurm(tmp_path, None, 1)
    session = exchange_of(tmp_path)
    executor.submit(Chunk(1, TRIALS, None, 60.0))
    taken = claim(session)
    assert taken is not None and claim(session) is None
    packed = pack_outcome(Outcome(1, None, [], error="Traceback …"))
    for folder in ("todo", "ticks", "done"):
        (session / folder / f"1.4711{PARTIAL}").write_bytes(packed[:20])
    assert claim(session) is None
    death = executor.next(0.0)
    assert isinstance(death, Death) and death.ticket == 1 and death.innocent
    executor.submit(Chunk(2, TRIALS, None, 60.0))  # the same work under a new number
    (session / "done" / "1").write_bytes(packed)
    again = claim(session)
    assert again is not None and again.name == "2"
    write_heartbeat(session, 2, 5)
    assert executor.next(0.0) == Tick(2, 5, None)
    assert not (session / "done" / "1").exists()
    executor.close()
    assert [path.name for path in (tmp_path / "slurm").iterdir() if path.is_dir()] == ["logs"]


def test_a_damaged_heartbeat_or_list_of_jobs_ends_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is synced to the disk: a power cut may leave it empty."""
    FakeCommands(monkeypatch)
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm" / "jobs.json").touch()
    executor = slurm.Slurm(tmp_path, None, 1)
    session = exchange_of(tmp_path)
    executor.submit(Chunk(1, TRIALS, None, 60.0))
    assert claim(session) is not None
    (session / "ticks" / "1").write_text('{"step": 3, "be')
    assert executor.next(0.0) is None
    write_heartbeat(session, 1, 5)
    assert executor.next(0.0) == Tick(1, 5, None)
    (session / "ticks" / "1").write_text("")
    monkeypatch.setattr(slurm, "HEARTBEAT_TIMEOUT", -1.0)
    executor.next(0.0)
    death = executor.next(0.0)
    assert isinstance(death, Death) and death.innocent


def test_the_shared_disk_is_asked_seldom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster's disk bears some operations a second of each process: not two for each of a hundred chunks at every look."""
    FakeCommands(monkeypatch)
    for name, seconds in {"POLL_SECONDS": 60.0, "HEARTBEAT_SECONDS": 60.0, "COLLECT_SECONDS": 0.01}.items():
        monkeypatch.setattr(slurm, name, seconds)
    executor = slurm.Slurm(tmp_path, None, 1)
    for ticket in range(10):
        executor.submit(Chunk(ticket, TRIALS, None, 60.0))
    read: list[Path] = []
    read_text = slurm._read_text
    monkeypatch.setattr(slurm, "_read_text", lambda path: (read.append(path), read_text(path))[1])
    assert executor.next(1.0) is None
    assert len(read) == 10


def test_a_pilot_without_work_leaves_although_the_runner_is_there(tmp_path: Path) -> None:
    """The last stack of a study may take hours, in which the other pilots would hold their cores for nothing."""
    session = begin_session(tmp_path)
    pilot = Pilot(tmp_path, patience=0.3)
    thread = threading.Thread(target=pilot.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 600.0
    while thread.is_alive() and time.monotonic() < deadline:
        (session / "alive").touch()  # the sign of life by which a runner of an earlier release kept its pilots
        time.sleep(0.05)
    assert not thread.is_alive()
    pilot.stop()


def test_without_slurm_the_executor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match="needs sbatch"):
        Settings(executor="slurm")


def test_a_wrong_file_about_the_cluster_is_refused_before_a_store_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unseen.running.runner.shutil.which", lambda name: f"/bin/{name}")
    file = tmp_path / "cluster.yaml"
    file.write_text("acount: lab\n")
    with pytest.raises(UsageError, match="account"):
        unseen.run(STUDY, tmp_path / "r", scale="smoke", executor="slurm", address=str(file), progress="none")
    assert not (tmp_path / "r").exists()


RUN = """
import sys
from pathlib import Path
from support.small import STUDY
from unseen.running.executors import exchange, slurm
from unseen.running.runner import Settings, run_entries
from unseen.store.store import Store
slurm.POLL_SECONDS = 0.5
out, executor = Path(sys.argv[1]), sys.argv[2]
with Store.write(out) as store:
    settings = Settings(executor, 2, size=4, chunk_seconds=0.1, keep="all", progress="none")
    run_entries(STUDY.entries("mini", range(2)), store, settings, "", "mini")
"""


def wait_for(happened: Callable[[], object], seconds: float = 600.0) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_jobs_and_the_runner_are_killed_and_the_table_is_the_same(tmp_path: Path) -> None:
    """One job is killed, one is sent back to the queue before its time limit, then the runner is killed and restarted."""
    commands = tmp_path / "commands"
    commands.mkdir()
    path = os.pathsep.join([str(HERE), *sys.path])
    environment = {**os.environ, **fake_slurm.install(commands), "PYTHONPATH": path}
    out = tmp_path / "50% of it"
    command = [sys.executable, "-c", RUN, str(out), "slurm"]
    runner = subprocess.Popen(command, env=environment)

    def taken() -> list[Path]:
        return list((out / "slurm").glob("*/taken/*"))

    def began() -> int:
        with Store.read(out) as store:
            return len(list(store.checkpoints()))

    try:
        wait_for(lambda: len(taken()) == 2 and began())
        killed, requeued = list(fake_slurm.jobs(commands).items())[:2]
        os.kill(killed[1], signal.SIGKILL)
        os.kill(requeued[1], signal.SIGUSR1)
        wait_for(lambda: fake_slurm.jobs(commands).get(requeued[0], requeued[1]) != requeued[1])
        log = (out / "slurm" / "logs" / f"{requeued[0]}.log").read_text()
        assert "back into the queue" in log
        wait_for(lambda: len(fake_slurm.jobs(commands)) == 2)  # the runner has replaced the killed one
        runner.kill()
        runner.wait()
        assert len(fake_slurm.jobs(commands)) == 2  # pilots wait for the next runner
        subprocess.run(command, env=environment, check=True, timeout=3600)
    finally:
        runner.kill()
        runner.wait()
        for process in fake_slurm.jobs(commands).values():
            os.kill(process, signal.SIGKILL)
    assert not list((out / "slurm").glob("*/todo"))
    reference = tmp_path / "reference"
    with Store.write(reference) as store:
        run_entries(STUDY.entries("mini", range(2)), store, Settings(size=4, keep="all", progress="none"), "", "mini")
    assert tables(out) == tables(reference)


def test_shards_are_merged_to_the_whole(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        unseen.run(STUDY, tmp_path / f"shard{number}", scale="smoke", seeds=2, shard=(number, 3), executor="inline")
    merge_paths([tmp_path / f"shard{number}" for number in (1, 2, 3)], tmp_path / "merged")
    unseen.run(STUDY, tmp_path / "whole", scale="smoke", seeds=2, executor="inline")
    assert sorted(tables(tmp_path / "merged")) == sorted(tables(tmp_path / "whole"))
    with pytest.raises(UsageError, match="1 ≤ i ≤ n"):
        unseen.run(STUDY, tmp_path / "none", scale="smoke", shard=(4, 3))

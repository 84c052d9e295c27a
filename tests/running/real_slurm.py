"""A study on a real Slurm of one node, in which everything goes wrong once; the table must be that of a local run.

    apt-get install slurmctld slurmd munge slurm-client
    PYTHONPATH=src:tests python tests/running/real_slurm.py

To be run by hand, as root, for it takes some minutes and starts three daemons (on loopback, with their files in a temporary
directory; they are stopped at the end). Tried with Debian's Slurm 22.05.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from support.small import STUDY, tables
from unseen.running.runner import Settings, run_entries
from unseen.store.store import Store

STEPS = 2_500
PATIENCE = 600.0
CLUSTER = """
time: 4
save_before: 55
patience: 300
setup: echo "a pilot begins"
"""
"""Slurm counts minutes and may send a signal a minute too early: a pilot goes back into the queue 125 to 185 s after it began.
Shorter jobs would get nothing done on a busy machine, where torch alone takes a minute to load."""
CONFIGURATION = """
ClusterName=unseen
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# A job that is requeued waits until its credential has expired: two minutes by default.
AuthInfo=socket={folder}/munge/socket,cred_expire=10
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPort=16817
SlurmdPort=16818
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
KillWait=5
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs=2
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE
"""


@contextmanager
def slurm(folder: Path) -> Iterator[None]:
    """Slurm's three daemons, on this machine."""
    for name in ("state", "spool", "munge"):
        (folder / name).mkdir(mode=0o700)
    key = folder / "munge" / "key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o600)
    configuration = folder / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(folder=folder, host=socket.gethostname()))
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    os.environ["SLURM_CONF"] = str(configuration)
    munge = [f"--{name}-file={folder}/munge/{name}" for name in ("key", "pid", "log", "seed")]
    commands = [
        ["munged", "--force", f"--socket={folder}/munge/socket", *munge],
        ["slurmctld", "-f", str(configuration)],
        ["slurmd", "-f", str(configuration)],
    ]
    try:
        for command in commands:
            subprocess.run(command, check=True)
        wait_for(lambda: "idle" in read("sinfo", "-h", "-o", "%T"), "a node that is idle")
        yield
    finally:
        for file in ("slurmd.pid", "slurmctld.pid", "munge/pid"):
            with suppress(OSError, ValueError):
                os.kill(int((folder / file).read_text()), signal.SIGTERM)


def read(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def running_jobs() -> list[str]:
    return read("squeue", "-h", "-r", "-t", "running", "-o", "%A").split()


def wait_for(happened: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        if time.monotonic() > deadline:
            raise SystemExit(f"waited in vain for {what}")
        time.sleep(0.2)


def tell(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()


def run(out: Path, **settings: object) -> None:
    """The small study with more steps."""
    entries = []
    for entry in STUDY.entries("mini", range(1)):
        recipe = entry.trial.recipe.model_copy(update={"steps": STEPS, "validate_every": 1000})
        entries.append(replace(entry, trial=replace(entry.trial, recipe=recipe)))
    with Store.write(out) as store:
        chosen = Settings(workers=2, size=4, chunk_seconds=5.0, keep="all", progress="none", **settings)
        run_entries(entries, store, chosen, "", "mini")


def start_runner(out: Path, cluster: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, __file__, str(out), str(cluster)])


def main() -> None:
    """Run the study while a job is killed, jobs reach their time limit, and the runner is killed; compare the tables."""
    with tempfile.TemporaryDirectory(prefix="unseen-slurm-", ignore_cleanup_errors=True) as name, slurm(Path(name)):
        folder = Path(name)
        tell(read("slurmctld", "-V").strip() + " runs")
        cluster = folder / "cluster.yaml"
        cluster.write_text(CLUSTER)
        out = folder / "50% of it"
        logs = out / "slurm" / "logs"
        runner = start_runner(out, cluster)
        try:
            wait_for(
                lambda: len(running_jobs()) == 2 and list(out.glob("checkpoints/*")), "two pilots and a checkpoint"
            )
            killed = running_jobs()[0]
            subprocess.run(["scancel", "--batch", "--signal=KILL", killed], check=True)
            tell(f"job {killed} was killed")
            wait_for(lambda: len(running_jobs()) == 2 and killed not in running_jobs(), "a job in its place")
            tell("the runner has submitted another job")

            def requeued() -> bool:
                return any("back into the queue" in log.read_text() for log in logs.glob("*.log"))

            wait_for(requeued, "a job that goes back into the queue")
            tell("a job came near its time limit, saved, and went back into the queue")
            runner.kill()
            runner.wait()
            tell("the runner was killed")
            runner = start_runner(out, cluster)
            if runner.wait() != 0:
                raise SystemExit("the second runner failed")
            restarts = [log.read_text().count("a pilot begins") for log in logs.glob("*.log")]
            tell(f"done; pilots began {restarts} times, by job")
        finally:
            runner.kill()
            subprocess.run(["scancel", "--user=root"], check=False)
            wait_for(lambda: not running_jobs(), "the end of all jobs")
        with Store.read(out) as store:
            spans = store.spans()
            failures = store.failures()
        run(folder / "local", executor="local")
        for _, rows in spans.groupby("trial"):
            contiguous = rows.begin.tolist() == [0, *rows.end[:-1]] and rows.end.iloc[-1] == STEPS
            if not contiguous:
                raise SystemExit("a chunk is missing, or was counted twice")
        if tables(out) != tables(folder / "local") or len(failures):
            raise SystemExit("the table differs from that of a local run")
        tell(
            f"the table of {spans.trial.nunique()} trials ({len(spans)} chunks) equals that of a local run, bit for bit"
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(Path(sys.argv[1]), executor="slurm", address=sys.argv[2])
    else:
        main()

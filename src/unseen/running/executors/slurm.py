"""A Slurm cluster: pilot jobs in an array, each doing one chunk after the other.

Work is exchanged through files beside the store (`exchange`), so nothing listens on any port, and the runner may be
killed and started again while the pilots stay. `sbatch` gets a plain script: submitit would pickle a function.

What the runner knows of a chunk, by its number N in the exchange:

    waiting    todo/N is there. It may wait for hours, as long as Slurm does not start a pilot: nothing is missed.
    under way  a pilot has claimed it, and its heartbeat in ticks/N changes.
    ended      done/N is there: an `Outcome`.
    lost       claimed, and no new heartbeat for `HEARTBEAT_TIMEOUT`: a `Death`. The runner submits it again.

Pilots are counted by asking Slurm. If there are fewer than there is work for, more are submitted; but if pilots end
`MAX_FAILED_SUBMISSIONS` times in a row before any of them has begun a chunk, something is wrong with all of them (a
module that can't be loaded, a wrong Python), and the run ends with an error. So it does if Slurm refuses the first
pilots. A later refusal (a limit on submitted jobs, a controller that restarts) is no reason to stop: the runner goes on
with the pilots that there are, and asks again. Once the runner is told to stop, it only waits for what is under way, and
submits no pilots.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import warnings
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field
from safetensors import SafetensorError

from unseen.config import Config
from unseen.errors import CheckFailed, UsageError, format_value
from unseen.running.chunk import Chunk, Death, Event, Tick
from unseen.running.executors.exchange import HEARTBEAT_SECONDS, begin_session, write_message
from unseen.running.messages import pack_chunk, unpack_outcome
from unseen.store.schema import Outcome
from unseen.training.process import ONE_THREAD

POLL_SECONDS = 10.0
"""Seconds between two questions to Slurm about the pilots."""
COLLECT_SECONDS = 0.2
"""Seconds between two listings of the folder of outcomes."""
HEARTBEAT_TIMEOUT = 60.0
"""Seconds without a heartbeat after which a pilot is considered lost: other nodes may see a file half a minute late."""
MAX_FAILED_SUBMISSIONS = 3
"""How often in a row pilots are submitted that all end before they have begun a chunk."""
SIGNAL_RESOLUTION = 60
"""Slurm may send a signal up to this many seconds earlier than asked for."""
GUILTY_STATES = ("FAILED", "OUT_OF_MEMORY")
"""States of a lost pilot's job that the chunk may be the cause of; nodes fail and jobs are preempted for other reasons."""
ENDED_STATES = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "COMPLETING", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED")


class Cluster(Config):
    """The requests of the pilot jobs: the options of `sbatch`, and lines to run before Python."""

    name: str = "slurm"
    workers: int = Field(8, gt=0)
    time: str = "04:00:00"
    account: str | None = None
    partition: str | None = None
    cpus: int = Field(1, gt=0)
    memory: str | None = None
    gres: str | None = None
    setup: tuple[str, ...] = ()
    save_before: int = Field(120, gt=0)
    """Seconds before the time limit at which a pilot saves its chunk and goes back into the queue."""
    array_limit: int = Field(1000, gt=0)
    patience: float = Field(600.0, gt=0)
    """Seconds for which a pilot waits for a chunk to do."""


def read_cluster(address: str | None) -> Cluster:
    """The cluster that a YAML file describes; without one, or where it leaves something out, the defaults."""
    if address is None:
        return Cluster()
    options = _read_options(Path(address))
    for name in ("time", "memory", "account", "partition", "gres"):
        value = options.get(name)
        if isinstance(value, int) and not isinstance(value, bool):  # `time: 120`, `memory: 4000`, `account: 1234`
            options[name] = str(value)
        elif value is not None and not isinstance(value, str):
            raise UsageError(f"{address}: {name} = {format_value(value)}: expected text, as for sbatch")
    setup = options.get("setup", [])
    lines = setup.splitlines() if isinstance(setup, str) else setup
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise UsageError(f"{address}: setup = {format_value(setup)}: expected a line of shell, or a list of lines")
    options["setup"] = tuple(lines)
    cluster = Cluster.parse(options)
    limit = limit_seconds(cluster.time)
    if cluster.save_before + SIGNAL_RESOLUTION >= limit:
        raise UsageError(
            f"{address}: save_before = {cluster.save_before} s leaves no time to work in jobs of time = {cluster.time} "
            f"({limit:.0f} s): a job would go back into the queue for ever. Give jobs at least "
            f"{cluster.save_before + 2 * SIGNAL_RESOLUTION} s, or save later"
        )
    return cluster


def _read_options(file: Path) -> dict[str, Any]:
    """The keys of a file that have a value. Every line is optional, so the file may be empty, or comments only."""
    from unseen.files import read_at_most
    from unseen.studies.yaml_loader import MOST_BYTES, read_yaml

    lines = read_at_most(file, MOST_BYTES).decode("utf-8", errors="replace").splitlines()
    if all(line.strip() in ("", "---") or line.lstrip().startswith("#") for line in lines):
        return {}
    return {key: value for key, value in read_yaml(file).items() if value is not None}


def limit_seconds(text: str) -> float:
    """A time limit in the forms that `sbatch --time` takes: minutes, minutes:seconds, hours:minutes:seconds,
    days-hours, days-hours:minutes or days-hours:minutes:seconds.

    >>> limit_seconds("120"), limit_seconds("02:00:00"), limit_seconds("1-12"), limit_seconds("UNLIMITED")
    (7200.0, 7200.0, 129600.0, inf)
    """
    if text.upper() in ("UNLIMITED", "INFINITE"):
        return math.inf
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text.strip())
    if match is None:
        raise UsageError(
            f"time = {format_value(text)}: expected a limit as for sbatch --time: minutes, HH:MM:SS or D-HH:MM:SS"
        )
    days, *fields = match.groups()
    numbers = [int(field) for field in fields if field is not None]
    begins_with_minutes = days is None and len(numbers) < 3
    units = (60, 1) if begins_with_minutes else (3600, 60, 1)
    seconds = 86400 * int(days or 0) + sum(n * unit for n, unit in zip(numbers, units, strict=False))
    return float(seconds) or math.inf  # a limit of 0 is none, says Slurm


def job_options(cluster: Cluster, exchange: Path) -> list[str]:
    """The options of `sbatch`. They are arguments, not `#SBATCH` lines, so that a path needs no quoting; in the name of
    the log `%%` is a percent sign."""
    options = {
        "job-name": "unseen",
        "account": cluster.account,
        "partition": cluster.partition,
        "time": cluster.time,
        "cpus-per-task": cluster.cpus,
        "mem": cluster.memory,
        "gres": cluster.gres,
        "signal": f"B:USR1@{cluster.save_before}",
        "output": f"{exchange / 'logs'}/".replace("%", "%%") + "%A_%a.log",
        "open-mode": "append",
        "ntasks": 1,
    }
    return ["--requeue", *(f"--{name}={value}" for name, value in options.items() if value is not None)]


def job_script(cluster: Cluster, exchange: Path) -> str:
    """The script of a pilot. Python replaces the shell, so that Slurm's signals reach it."""
    lines = ["#!/bin/bash"]
    lines += [f"export {name}={value}" for name, value in ONE_THREAD.items()]
    command = [sys.executable, "-P", "-m", "unseen.running.executors.exchange", str(exchange), str(cluster.patience)]
    return "\n".join([*lines, *cluster.setup, f"exec {shlex.join(command)}", ""])


class Slurm:
    """Chunks as files that pilot jobs claim."""

    def __init__(self, store: Path, address: str | None, workers: int | None) -> None:
        """`address` is a YAML file (see `Cluster`); `workers` replaces the number of pilots in it."""
        if shutil.which("sbatch") is None:
            raise UsageError("the executor slurm needs sbatch: run the command where jobs are submitted")
        cluster = read_cluster(address)
        self.workers = workers or cluster.workers
        self._cluster = cluster
        self._exchange = store.resolve() / "slurm"
        self._session = begin_session(self._exchange)
        (self._exchange / "logs").mkdir(exist_ok=True)
        self._jobs_file = self._exchange / "jobs.json"
        self._jobs: list[str] = _read_json(_read_text(self._jobs_file)) or []
        self._events = deque[Event]()
        # Chunks that have not ended: when the last heartbeat of each was seen, and what it said.
        self._last_heartbeat: dict[int, float] = {}
        self._heartbeats: dict[int, str] = {}
        self._has_submitted = False
        self._failed_submissions = 0
        self._last_poll = -math.inf
        self._last_heartbeat_check = -math.inf
        self._stopping = False

    def submit(self, chunk: Chunk) -> None:
        """Have a chunk done as soon as a pilot is free."""
        self._last_heartbeat[chunk.ticket] = time.monotonic()
        write_message(self._session / "todo" / str(chunk.ticket), pack_chunk(chunk.with_checkpoint()))

    def next(self, seconds: float) -> Event | None:
        """The next event; None if there is none within this time."""
        deadline = time.monotonic() + seconds
        while not self._events:
            self._poll()
            self._collect_outcomes()
            self._check_heartbeats()
            if self._events or time.monotonic() >= deadline:
                break
            time.sleep(COLLECT_SECONDS)
        return self._events.popleft() if self._events else None

    def stop(self) -> int:
        """Withdraw chunks that no pilot has claimed and end the others; returns the number of events to come."""
        self._stopping = True
        (self._session / "stop").touch()
        for ticket in list(self._last_heartbeat):
            try:
                (self._session / "todo" / str(ticket)).unlink()
                del self._last_heartbeat[ticket]
            except OSError:  # claimed
                continue
        return len(self._last_heartbeat) + sum(not isinstance(event, Tick) for event in self._events)

    def close(self) -> None:
        """End the pilots, which save nothing any more, and remove what was exchanged, by earlier runners as well."""
        (self._session / "stop").touch()
        if self._jobs:
            subprocess.run(["scancel", *self._jobs], capture_output=True, check=False)
        self._jobs_file.unlink(missing_ok=True)
        for folder in self._exchange.iterdir():
            if folder.is_dir() and folder.name != "logs":
                shutil.rmtree(folder, ignore_errors=True)

    def _collect_outcomes(self) -> None:
        """Take the outcomes that pilots have written; those of chunks that were considered lost are dropped."""
        for path in sorted((self._session / "done").iterdir()):
            if path.name.isdecimal():  # otherwise it is being written
                self._collect(path)

    def _collect(self, path: Path) -> None:
        ticket = int(path.name)
        event: Outcome | Death
        try:
            event = unpack_outcome(path.read_bytes())
        except (SafetensorError, KeyError, ValueError, TypeError, OverflowError):
            event = Death(ticket, f"its outcome {path} is damaged", innocent=True)
        path.unlink()
        self._failed_submissions = 0
        self._heartbeats.pop(ticket, None)
        if self._last_heartbeat.pop(ticket, None) is not None:
            self._events.append(event)

    def _check_heartbeats(self) -> None:
        """Report the steps of chunks under way, and chunks whose pilot is considered lost."""
        now = time.monotonic()
        if now < self._last_heartbeat_check + HEARTBEAT_SECONDS:
            return
        self._last_heartbeat_check = now
        for ticket, last in list(self._last_heartbeat.items()):
            heartbeat = _read_text(self._session / "ticks" / str(ticket))
            if heartbeat != self._heartbeats.get(ticket, ""):
                self._last_heartbeat[ticket] = now
                self._heartbeats[ticket] = heartbeat
                self._failed_submissions = 0  # a pilot works: whatever ends it later, it could begin
                if state := _read_json(heartbeat):
                    self._events.append(Tick(ticket, state["step"], state["best"]))
            elif (self._session / "todo" / str(ticket)).exists():
                self._last_heartbeat[ticket] = now  # nobody has claimed it yet
            elif now > last + HEARTBEAT_TIMEOUT:
                outcome = self._session / "done" / str(ticket)
                if outcome.exists():  # a network disk may list a file a minute after it can be opened by its name
                    self._collect(outcome)
                    continue
                del self._last_heartbeat[ticket]
                self._events.append(self._death(ticket, self._heartbeats.pop(ticket, "")))

    def _death(self, ticket: int, heartbeat: str) -> Death:
        """The end of a chunk whose pilot is lost, and whether Slurm blames the job for it."""
        job = (_read_json(heartbeat) or {}).get("job")
        state = ""
        if job is not None:
            answer = _ask(["squeue", "-h", "-t", "all", "-j", job, "-o", "%T"])
            state = (answer or "").strip()
        cause = f"its pilot job sent no heartbeat for {HEARTBEAT_TIMEOUT:.0f} s"
        if state:
            cause += f"; Slurm says that job {job} is {state}"
        return Death(ticket, cause, innocent=state not in GUILTY_STATES)

    def _poll(self) -> None:
        """From time to time, replace pilots that have ended."""
        now = time.monotonic()
        if now < self._last_poll + POLL_SECONDS:
            return
        self._last_poll = now
        if self._stopping:  # what is under way ends; nothing else is begun, and no pilot is needed for it
            return
        pilots = self._count_pilots()
        missing = min(self.workers, len(self._last_heartbeat)) - pilots
        if missing <= 0:
            return
        if self._failed_submissions >= MAX_FAILED_SUBMISSIONS:
            logs = self._exchange / "logs"
            raise CheckFailed(
                f"pilot jobs were submitted {self._failed_submissions} times and ended before they began a chunk; "
                f"see their logs in {logs}"
            )
        for start in range(0, missing, self._cluster.array_limit):
            refusal = self._submit_pilots(min(self._cluster.array_limit, missing - start))
            if refusal is None:
                self._failed_submissions += start == 0
                self._has_submitted = True
                continue
            if not self._has_submitted and not pilots:
                raise CheckFailed(f"sbatch refuses the pilot jobs: {refusal}. Check the file given with --address")
            # Python shows a warning of the same text once.
            warnings.warn(f"sbatch refuses more pilot jobs for now, and is asked again: {refusal}", stacklevel=2)
            return

    def _count_pilots(self) -> int:
        """How many pilots are in the queue or at work, those of an earlier runner included."""
        if not self._jobs:
            return 0
        answer = _ask(["squeue", "-h", "-r", "-o", "%i %T", "-u", str(os.getuid())])
        if answer is None:  # Slurm's controller is busy or restarts: ask again later
            return self.workers
        jobs = [line.split() for line in answer.splitlines()]
        return sum(job.partition("_")[0] in self._jobs and state not in ENDED_STATES for job, state in jobs)

    def _submit_pilots(self, count: int) -> str | None:
        """Submit an array of pilots; returns why Slurm refuses it, if it does."""
        options = job_options(self._cluster, self._exchange)
        command = ["sbatch", "--parsable", f"--array=0-{count - 1}", *options]
        script = job_script(self._cluster, self._exchange)
        environment: Mapping[str, str] = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        answer = subprocess.run(command, input=script, capture_output=True, text=True, env=environment, check=False)
        if answer.returncode != 0:
            return (answer.stderr.strip().splitlines() or ["no reason given"])[-1]
        self._jobs.append(answer.stdout.strip().partition(";")[0])
        write_message(self._jobs_file, json.dumps(self._jobs).encode())
        return None


def _ask(command: list[str]) -> str | None:
    """The output of a command of Slurm; None if it fails."""
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return answer.stdout if answer.returncode == 0 else None


def _read_json(text: str) -> Any:
    """What a small file says; None if there is none, or if a power cut or a dying node has left it empty or cut off."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _read_text(path: Path) -> str:
    """The text of a file; empty if there is none."""
    try:
        return path.read_text()
    except OSError:
        return ""

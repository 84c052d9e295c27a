"""Chunks on Ray: a real cluster of two nodes, one of which is killed; a Ray started here; what goes wrong."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import unseen
from support.faulty import study
from support.ray_runs import NICENESS, check_every_step_is_counted_once, everything, run, wait_for_actors
from support.small import STUDY, tables
from unseen.errors import UsageError
from unseen.running.chunk import Death, Event
from unseen.running.executors import ray as executor
from unseen.running.executors.ray import Ray, _Actor, _ActorChunk
from unseen.running.timing import Timing
from unseen.store.schema import Outcome
from unseen.store.store import Store

HERE = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stacks are of a given size here: no need to measure which is best."""
    monkeypatch.setattr(Timing, "measure", lambda trials, **given: Timing({}))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head with one CPU, on loopback; nodes can be added. A client may connect to it at `client_port`."""
    with pytest.MonkeyPatch.context() as patch, socket.socket() as free:
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        patch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))  # its `faulty`
        for name, value in NICENESS.items():
            patch.setenv(name, value)
        patch.setenv("GRPC_ENABLE_FORK_SUPPORT", "0")  # with it, now and then, Ray's client server dies when it forks
        ray = executor._imported()
        from ray.cluster_utils import Cluster

        patch.setattr("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        made = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 1, "include_dashboard": False, "ray_client_server_port": port},
        )
        made.client_port = port
        try:
            yield made
        finally:
            ray.shutdown()
            made.shutdown()


def processes_of(node: Any) -> set[int]:
    """The processes that a node's daemon has started."""
    raylet = node.all_processes["raylet"][0].process.pid
    return {int(child) for child in Path(f"/proc/{raylet}/task/{raylet}/children").read_text().split()}


@pytest.mark.slow
def test_a_node_killed_in_mid_study_and_another_added(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The second node dies with a chunk in its hands; the head goes on alone; a third node joins and is used."""
    second = cluster.add_node(num_cpus=1)
    third: Any = None
    begun, killed, joined, deaths = set[int](), set[int](), set[int](), list[str]()
    listen = Ray.next

    def listen_and_kill(self: Ray, seconds: float) -> Event | None:
        nonlocal third
        if not begun and not killed:
            wait_for_actors(self, {second.node_id})
        # In the middle of a chunk, of which some segments have ended: their checkpoints go with the node.
        at_work = [actor for actor in self._actors if actor.node == second.node_id and actor.work is not None]
        if not killed and begun & processes_of(second) and at_work and at_work[0].work.segments:
            killed.update(processes_of(second))
            cluster.remove_node(second, allow_graceful=False)
        event = listen(self, seconds)
        if isinstance(event, Outcome) and event.checkpoint is not None:
            assert event.spans is not None
            begun.update(int(span.worker.rpartition(":")[2]) for span in event.spans.values())
        if isinstance(event, Death):
            deaths.append(event.cause)
            if third is None:
                third = cluster.add_node(num_cpus=1)
                wait_for_actors(self, {third.node_id})
        if third is not None:
            joined.update(processes_of(third))
        return event

    monkeypatch.setattr(Ray, "next", listen_and_kill)
    # Chunks of few steps, so that on the fastest machine, too, the node dies after its first chunk and before its last.
    out = run(tmp_path / "ray", range(4), chunk_seconds=0.005, executor="ray", address=cluster.address)
    assert killed, "the node was never killed: its actor had no second chunk"
    assert deaths == ["the node it ran on died"]
    assert "raylet" not in capfd.readouterr().out, "Ray's own lines are kept away from ours"

    assert everything(out) == everything(run(tmp_path / "local", range(4), executor="local", workers=2))
    assert list((out / "checkpoints").iterdir()) == []
    workers = check_every_step_is_counted_once(out)
    assert workers & killed and workers & joined, "both have done some of the work"


def test_an_actor_killed_in_mid_chunk_loses_the_segment_under_way(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its node still has the checkpoint after the last segment, so the chunk ends there; few checkpoints are fetched."""
    killed: dict[int, int] = {}
    reached: dict[int, int] = {}  # a loaded machine may have ended another segment before the actor was killed
    ends: dict[int, int] = {}
    deaths: list[Death] = []
    executors: list[Ray] = []
    listen, end_lost_chunk = Ray.next, Ray._end_lost_chunk

    def listen_and_kill(self: Ray, seconds: float) -> Event | None:
        executors.append(self)
        for actor in self._actors:
            work = actor.work
            if not killed and work is not None and work.segments == 2 and work.outcome is not None:
                assert work.outcome.spans
                span = next(iter(work.outcome.spans.values()))
                killed[work.chunk.ticket] = span.end
                os.kill(int(span.worker.rpartition(":")[2]), signal.SIGKILL)
        event = listen(self, seconds)
        if isinstance(event, Outcome) and event.spans:
            ends[event.ticket] = next(iter(event.spans.values())).end
        if isinstance(event, Death):
            deaths.append(event)
        return event

    def note_lost_chunk(self: Ray, actor: _Actor, work: _ActorChunk, error: Exception) -> None:
        assert work.outcome is not None and work.outcome.spans
        reached[work.chunk.ticket] = next(iter(work.outcome.spans.values())).end
        end_lost_chunk(self, actor, work, error)

    monkeypatch.setattr(Ray, "next", listen_and_kill)
    monkeypatch.setattr(Ray, "_end_lost_chunk", note_lost_chunk)
    out = run(tmp_path / "ray", range(1), chunk_seconds=0.01, executor="ray", address=cluster.address)
    ((ticket, end),) = killed.items()
    assert ends[ticket] == reached[ticket] >= end and deaths == []
    check_every_step_is_counted_once(out)
    assert everything(out) == everything(run(tmp_path / "inline", range(1)))
    executor_used = executors[0]
    assert 0 < executor_used.checkpoint_bytes < executor_used.checkpoint_bytes_by_value / executor.FETCH_EVERY


HEAD_RESTARTED = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import psutil, ray
from support.ray_runs import run
from unseen.errors import CheckFailed
from unseen.running.executors import ray as module

module.CHECK_SECONDS, module.PATIENCE = 0.5, 1.0
out = Path(sys.argv[2])
listen = module.Ray.next

def listen_and_kill_head(self, seconds):
    # The actors could go on without a head for a while, and end so short a study: wait until its loss is noticed.
    if list(out.glob("checkpoints/*.safetensors")):
        for process in psutil.Process().children(recursive=True):
            if process.name() == "gcs_server":
                process.kill()
        while True:
            self._check_cluster()
            time.sleep(0.1)
    return listen(self, seconds)

module.Ray.next = listen_and_kill_head
try:
    run(out, range(1), chunk_seconds=0.001, executor="ray", workers=1)
except CheckFailed as error:
    print(error)
module.Ray.next = listen
run(out, range(1), executor="ray", workers=1)
"""


@pytest.mark.slow
def test_a_run_goes_on_after_its_head_was_restarted(tmp_path: Path) -> None:
    out = tmp_path / "ray"
    environment = {**os.environ, **NICENESS, "HOME": str(tmp_path)}
    command = [sys.executable, "-c", HEAD_RESTARTED, str(HERE), str(out)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    assert "the connection to the Ray cluster is lost" in done.stdout
    check_every_step_is_counted_once(out)
    assert everything(out) == everything(run(tmp_path / "inline", range(1)))


def test_a_client_outside_the_cluster(cluster: Any, tmp_path: Path) -> None:
    address = f"ray://127.0.0.1:{cluster.client_port}"
    out = run(tmp_path / "ray", range(1), "smoke", executor="ray", address=address)
    assert everything(out) == everything(run(tmp_path / "inline", range(1), "smoke"))


def test_gpus_are_asked_for(cluster: Any) -> None:
    """A node may say that it has GPUs; Ray deals them out without looking."""
    with pytest.raises(UsageError, match="the Ray cluster has no GPU"):
        Ray(cluster.address, None, "cuda")
    node = cluster.add_node(num_cpus=1, num_gpus=2)
    made = Ray(cluster.address, None, "cuda")
    try:
        assert made.workers == 2
        assert made._actor_class._default_options["num_gpus"] == 1
    finally:
        made.close()
        cluster.remove_node(node)


def test_failing_trials_are_recorded_like_on_local(cluster: Any, tmp_path: Path) -> None:
    """One raises, one dies with its worker, one diverges, one is fine."""
    what, causes = study(("raises", "killed", "not_finite"), range(4)), {}
    for name, given in {"ray": {"address": cluster.address}, "local": {"workers": 2}}.items():
        unseen.run(what, tmp_path / name, executor=name, stack=1, progress="none", **given)
        with Store.read(tmp_path / name) as store:
            causes[name] = {row.seed: row.cause for row in store.entries().itertuples() if row.status == "failed"}
    assert tables(tmp_path / "ray") == tables(tmp_path / "local")
    assert causes["ray"] == {**causes["local"], 1: executor.CAUSES["WorkerCrashedError"]}
    assert causes["ray"].keys() == {0, 1} and "can't be drawn" in causes["ray"][0]


STARTED = """
import json, signal, sys, types
from dataclasses import replace
sys.path.insert(0, sys.argv[1])
from support.small import STUDY
from unseen.config import Config
from unseen.errors import CheckFailed, UsageError
from unseen.running.executors import ray as module
from unseen.running.executors.ray import Ray
from unseen.running.chunk import Chunk, Tick
import ray, psutil  # Ray brings its own psutil

def family():
    return [psutil.Process(), *psutil.Process().children(recursive=True)]

def outcomes(executor, count):
    found = []
    while len(found) < count:
        event = executor.next(1.0)
        found += [] if event is None or isinstance(event, Tick) else [event]
    return found

said = {}
endless = [replace(entry.trial, recipe=entry.trial.recipe.model_copy(update={"steps": 10**6}))
           for entry in STUDY.entries("mini")[:3]]
chunks = [Chunk(i, (trial,), None, 0.001) for i, trial in enumerate(endless)]
signal.signal(signal.SIGTERM, print)
executor = Ray(None, 2)
said["SIGTERM is still the runner's"] = signal.getsignal(signal.SIGTERM) is print
for chunk in chunks[:2]:
    executor.submit(chunk)
first = outcomes(executor, 2)
said["listening"] = [[process.name(), found.laddr.ip] for process in family() if process.is_running()
                     for found in process.net_connections("inet") if found.status == "LISTEN"]
try:
    Ray("auto", None)
except UsageError as error:
    said["second address"] = str(error)

for chunk in chunks:  # two begin, one waits
    executor.submit(Chunk(10 + chunk.ticket, chunk.trials, None, 600.0))
ticks = set()
while len(ticks) < 2:
    event = executor.next(0.1)
    assert event is None or isinstance(event, Tick)
    ticks |= set() if event is None or not event.step else {event.ticket}
count = executor.stop()
said["stopped"] = [[event.ticket, [span.end for span in event.spans.values()], event.checkpoint is not None]
                   for event in outcomes(executor, count)]

sys.modules["only_here"] = types.ModuleType("only_here")
sys.modules["only_here"].Options = type("Options", (Config,), {"__module__": "only_here"})
missing = replace(chunks[0].trials[0], model=sys.modules["only_here"].Options(name="mine"))
executor.submit(Chunk(15, (missing,), None, 600.0))
try:
    outcomes(executor, 1)
except CheckFailed as error:
    said["missing"] = str(error)

module.CHECK_SECONDS, module.PATIENCE = 0.5, 1.0
executor.submit(Chunk(20, chunks[0].trials, None, 600.0))
(head,) = [process for process in family() if process.name() == "gcs_server"]
head.kill()
try:
    outcomes(executor, 1)
except CheckFailed as error:
    said["lost"] = str(error)
executor.close()
said["left"] = [process.name() for process in family()[1:] if process.status() != "zombie"]
print(json.dumps(said))
"""


@pytest.mark.slow
def test_a_ray_started_here(tmp_path: Path) -> None:
    """It listens on loopback only, ends chunks early when asked, says what is missing where, or that its head is gone,
    and leaves nothing behind.
    """
    environment = {**os.environ, **NICENESS, "HOME": str(tmp_path)}  # Ray keeps a token there
    done = subprocess.run(
        [sys.executable, "-c", STARTED, str(HERE)], env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)  # and Ray has printed nothing
    assert {name for name, _ in said["listening"]} >= {"gcs_server", "raylet"}
    assert {address for _, address in said["listening"]} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    assert said["SIGTERM is still the runner's"]
    assert "connected to a Ray cluster already" in said["second address"]
    assert {ticket for ticket, _, _ in said["stopped"]} < {10, 11, 12} and len(said["stopped"]) == 2
    assert all(0 < end < 10**6 and kept for _, ends, kept in said["stopped"] for end in ends)
    assert "can't do the work: ModuleNotFoundError: No module named 'only_here'" in said["missing"]
    assert "same command again to resume" in said["lost"]
    assert said["left"] == []


def test_wrong_addresses_are_refused_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "CONNECT", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]
        for address, said in {
            "banana": "expected auto, HOST:PORT",
            "http://127.0.0.1:8265": "expected auto, HOST:PORT",
            "127.0.0.1:1": "Connection refused",
            "ray://127.0.0.1:1": "Connection refused",
            "nowhere.invalid:6379": "no Ray cluster answers at this address",
            f"127.0.0.1:{port}": "no Ray cluster answers within 3 s",
        }.items():
            with pytest.raises(unseen.UsageError, match=said) as caught:
                Ray(address, None)
            assert "\n" not in str(caught.value)


def test_no_cluster_to_find(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    monkeypatch.setattr(executor, "CONNECT", 3.0)
    with pytest.raises(unseen.UsageError, match="address auto: no Ray cluster answers"):
        Ray("auto", None)


def test_the_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(unseen.UsageError, match=r"pip install 'unseen\[ray\]'"):
        unseen.run(STUDY, tmp_path / "r", scale="smoke", executor="ray", progress="none")

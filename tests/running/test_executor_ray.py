"""Chunks on Ray: a real cluster of two nodes, one of which is killed; a Ray started here; what goes wrong."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import unseen
from support.faulty import study
from support.small import STEPS, STUDY, tables
from unseen.running.chunk import Death, Event
from unseen.running.executors import ray as executor
from unseen.running.executors.ray import Ray
from unseen.running.runner import Settings, run_entries
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


def run(out: Path, seeds: range, scale: str = "mini", **given: Any) -> Path:
    """The small study, four trials to a stack, in short chunks, with its weights."""
    with Store.write(out) as store:
        settings = Settings(size=4, chunk_seconds=0.4, keep="all", progress="none", **given)
        run_entries(STUDY.entries(scale, seeds), store, settings, "", scale)
    return out


def everything(out: Path) -> tuple[list[tuple[str, ...]], dict[str, bytes]]:
    """All tables and all weights."""
    return tables(out), {file.name: file.read_bytes() for file in (out / "weights").iterdir()}


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
        # A chunk that goes on has been handed in again: there is one on every node.
        if not killed and begun & processes_of(second):
            killed.update(processes_of(second))
            time.sleep(0.1)
            cluster.remove_node(second, allow_graceful=False)
        event = listen(self, seconds)
        if isinstance(event, Outcome) and event.checkpoint is not None:
            assert event.spans is not None
            begun.update(int(span.worker.rpartition(":")[2]) for span in event.spans.values())
        if isinstance(event, Death):
            deaths.append(event.cause)
            third = third or cluster.add_node(num_cpus=1)
        if third is not None:
            joined.update(processes_of(third))
        return event

    monkeypatch.setattr(Ray, "next", listen_and_kill)
    out = run(tmp_path / "ray", range(5), executor="ray", address=cluster.address)
    assert deaths == ["the node it ran on died"]
    assert "raylet" not in capfd.readouterr().out, "Ray's own lines are kept away from ours"

    assert everything(out) == everything(run(tmp_path / "local", range(5), executor="local", workers=2))
    with Store.read(out) as store:
        spans, failures = store.spans(), store.failures()
    assert len(failures) == 0 and list((out / "checkpoints").iterdir()) == []
    workers = {int(worker.rpartition(":")[2]) for worker in spans.worker}
    assert workers & killed and workers & joined, "both have done some of the work"
    for _, rows in spans.groupby("trial"):  # every step once, none twice
        assert rows.begin.tolist() == [0, *rows.end[:-1]] and rows.end.iloc[-1] == STEPS["mini"]


def test_a_client_outside_the_cluster(cluster: Any, tmp_path: Path) -> None:
    address = f"ray://127.0.0.1:{cluster.client_port}"
    out = run(tmp_path / "ray", range(1), "smoke", executor="ray", address=address)
    assert everything(out) == everything(run(tmp_path / "inline", range(1), "smoke"))


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
import json, sys, types
from dataclasses import replace
sys.path.insert(0, sys.argv[1])
from support.small import STUDY
from unseen.config import Config
from unseen.errors import CheckFailed, UsageError
from unseen.running.executors import ray as module
from unseen.running.executors.ray import Ray
from unseen.running.chunk import Chunk
import ray, psutil  # Ray brings its own psutil

def family():
    return [psutil.Process(), *psutil.Process().children(recursive=True)]

def outcomes(executor, count):
    found = []
    while len(found) < count:
        event = executor.next(1.0)
        found += [] if event is None else [event]
    return found

said = {}
endless = [replace(entry.trial, recipe=entry.trial.recipe.model_copy(update={"steps": 10**6}))
           for entry in STUDY.entries("mini")[:3]]
chunks = [Chunk(i, (trial,), None, 0.001) for i, trial in enumerate(endless)]
executor = Ray(None, 2)
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
while sum(process.name() == "ray::_do" for process in family()) < 2:
    assert executor.next(0.1) is None
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

module.LOOK, module.PATIENCE = 0.5, 1.0
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
    environment = {**os.environ, "HOME": str(tmp_path)}  # Ray keeps a token there
    done = subprocess.run(
        [sys.executable, "-c", STARTED, str(HERE)], env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)  # and Ray has printed nothing
    assert {name for name, _ in said["listening"]} >= {"gcs_server", "raylet"}
    assert {address for _, address in said["listening"]} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    assert "connected to a Ray cluster already" in said["second address"]
    assert {ticket for ticket, _, _ in said["stopped"]} < {10, 11, 12} and len(said["stopped"]) == 2
    assert all(0 < end < 10**6 and kept for _, ends, kept in said["stopped"] for end in ends)
    assert "can't do the work: ModuleNotFoundError: No module named 'only_here'" in said["missing"]
    assert "goes on from there" in said["lost"]
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
            "nowhere.invalid:6379": "nobody answers there",
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

"""A large cluster, simulated: the real runner and store with 2 048 workers that only pretend to train.

The workers live in a few processes. Each answers a chunk at once with an outcome of the real form and size, so what is
measured is how many outcomes the one writer can take. Real workers send one a minute each.
"""

from __future__ import annotations

import multiprocessing
import queue
import resource
import tempfile
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.rows import Asked, Row
from benchmarks.trials import tiny
from unseen.models import options
from unseen.running.chunk import Chunk, Event
from unseen.running.runner import Settings, run_entries
from unseen.store.schema import Finished, Outcome, Span
from unseen.store.store import Store
from unseen.studies.trial import Entry, Trial
from unseen.tasks import task
from unseen.training.checkpoint import Checkpoint, pack
from unseen.training.evaluate import Measure
from unseen.training.recipe import Evaluation, recipe
from unseen.training.trainer import Point

PROCESSES = 3
CHUNKS = 3
"""The chunks of every stack: two end with a checkpoint, the third with the records."""
STACK = 5
REAL = 100
"""One stack in so many has checkpoints of real size; those of the others are only declared."""
CHECKPOINT = 8_000_000
"""Bytes of a real checkpoint: five members of a Transformer of width 128, with Adam's memory and the best weights."""
CHUNK_SECONDS = 60.0


def cluster(asked: Asked) -> Iterator[Row]:
    """Throughput of the runner, its memory, and what waited for it; the bytes that a real Ray sends through it."""
    yield from _simulate(asked)
    yield from _count_ray_bytes(asked)


def _count_ray_bytes(asked: Asked) -> Iterator[Row]:
    """Checkpoints through the runner for each segment of a chunk: as they travel, and if each went there and back."""
    case = "ray, one actor, retrieval-transformer S=5"
    if not asked.wants(case) or find_spec("ray") is None:
        return
    from unseen.running.executors.ray import Ray

    used = recipe(steps=25 if asked.quick else 500, batch=10, validate_every=1_000, validation_examples=100)
    trained = task("retrieval/T1", length=5, train_size=500, evaluation_size=300)
    model = options("retrieval-transformer")
    trials = [Trial(trained, model, used, Evaluation(examples=300), seed, seed) for seed in range(STACK)]
    executor = Ray(None, 1)
    with (
        tempfile.TemporaryDirectory(prefix="unseen-") as folder,
        Store.write(Path(folder, "store")) as store,
        patch("unseen.running.runner._executor", lambda *given: executor),
    ):
        settings = Settings("ray", 1, size=STACK, chunk_seconds=0.001, keep="none", progress="none")
        run_entries([Entry({}, trial) for trial in trials], store, settings, "")
    yield Row(case, "segments of chunks", float(executor.segments), "segments")
    by_value = executor.checkpoint_bytes_by_value / executor.segments / 1e6
    yield Row(case, "checkpoints through the runner per segment, by value", by_value, "MB")
    yield Row(
        case,
        "checkpoints through the runner per segment",
        executor.checkpoint_bytes / executor.segments / 1e6,
        "MB",
        "less",
    )


def _simulate(asked: Asked) -> Iterator[Row]:
    workers, trials = (16, 200) if asked.quick else (2_048, 20_000)
    case = f"workers={workers} trials={trials}"
    if not asked.wants(case):
        return
    with tempfile.TemporaryDirectory(prefix="unseen-") as folder:
        entries = tiny(trials)
        simulated = Simulated(workers)
        with (
            Store.write(Path(folder, "store")) as store,
            patch("unseen.running.runner._executor", lambda *given: simulated),
        ):
            run_entries(entries, store, Settings("local", workers, size=STACK, keep="none", progress="none"), "")
            spans = store.spans()
            status = store.status()
        lost = sum(state != "finished" for state in status.values())
        # Every trial has its chunks once, each where the last one ended: nothing is lost or done twice.
        wrong = 0
        for _, rows in spans.groupby("trial"):
            wrong += rows.begin.tolist() != list(range(CHUNKS)) or rows.end.tolist() != list(range(1, CHUNKS + 1))
    seconds = simulated.last - simulated.first
    rate = simulated.outcomes / seconds
    yield Row(case, "outcomes that the runner takes", rate, "per s", "more", note="with commits, by the clock")
    yield Row(case, "outcomes that so many workers send", workers / CHUNK_SECONDS, "per s")
    yield Row(case, "times the workers it keeps up with", rate * CHUNK_SECONDS / workers, "×", "more")
    yield Row(case, "outcomes waiting at most", float(simulated.longest_queue), "outcomes", "less")
    yield Row(case, "runner's memory after a tenth of the outcomes", simulated.memory[0], "MB", "less")
    yield Row(case, "runner's memory at the end", simulated.memory[-1], "MB", "less")
    yield Row(case, "checkpoints carried", simulated.carried / 1e9, "GB")
    yield Row(case, "checkpoints declared", simulated.declared / 1e9, "GB")
    yield Row(case, "trials lost", float(lost), "trials", "less")
    yield Row(case, "trials with a chunk missing or done twice", float(wrong), "trials", "less")


class Simulated:
    """An executor whose workers pretend; it notes what passes through it."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.outcomes = 0
        self.carried = 0
        self.declared = 0
        self.longest_queue = 0
        self.memory: list[float] = []
        self.first = self.last = 0.0
        self._steps: dict[str, int] = {}
        self._under_way = 0
        context = multiprocessing.get_context("spawn")
        self._sent = context.Value("L")  # the outcomes that workers have made: those not yet read are waiting
        self._connections: list[Connection] = []
        self._processes = []
        for _ in range(PROCESSES):
            ours, theirs = context.Pipe()
            process = context.Process(target=_pretend, args=(theirs, self._sent), daemon=True)
            process.start()
            theirs.close()
            self._connections.append(ours)
            self._processes.append(process)
        self._ready: list[Connection] = []

    def submit(self, chunk: Chunk) -> None:
        """Give a chunk to the process of its worker."""
        ids = [trial.id for trial in chunk.trials]
        number = self._steps.get(ids[0], 0)
        self._steps[ids[0]] = number + 1
        real = int(ids[0], 16) % REAL == 0
        message = (chunk.ticket, ids, number, real, chunk.with_checkpoint().checkpoint if real else None)
        self._under_way += 1
        self._connections[int(ids[0], 16) % PROCESSES].send(message)

    def next(self, seconds: float) -> Event | None:
        """The next outcome."""
        self.longest_queue = max(self.longest_queue, self._sent.value - self.outcomes)
        if not self._ready:
            self._ready = [c for c in wait(self._connections, seconds) if isinstance(c, Connection)]
        if not self._ready:
            return None
        outcome: Outcome = self._ready.pop().recv()
        self.first = self.first or time.perf_counter()
        self.last = time.perf_counter()
        self.outcomes += 1
        self._under_way -= 1
        if outcome.checkpoint is not None:
            self.declared += CHECKPOINT
            self.carried += len(outcome.checkpoint)
        if self.outcomes % 100 == 0:
            self.memory.append(_memory())
        return outcome

    def stop(self) -> int:
        """Nothing is under way for long."""
        return self._under_way

    def close(self) -> None:
        """End the processes."""
        self.last = time.perf_counter()
        self.memory = self.memory[len(self.memory) // 10 :] or [_memory()]
        for connection, process in zip(self._connections, self._processes, strict=True):
            connection.close()
            process.join()


def _pretend(connection: Any, sent: Any) -> None:
    """Answer chunks until the connection closes."""
    padding = bytes(CHECKPOINT)
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def listen() -> None:
        # In a thread of its own: the runner hands out thousands of chunks before it reads the first outcome, and both
        # sides of a full pipe would wait for the other.
        try:
            while True:
                waiting.put(connection.recv())
        except (EOFError, OSError):
            waiting.put(None)

    threading.Thread(target=listen, daemon=True).start()
    while (message := waiting.get()) is not None:
        ticket, ids, number, real, _ = message
        with sent.get_lock():
            sent.value += 1
        points = [Point(key, number + 1, "iid", metric, 0.5) for key in ids for metric in ("loss", "accuracy")]
        spans = {key: Span(number, number + 1, 60.0, 60.0, "simulated:1") for key in ids}
        if number + 1 < CHUNKS:
            checkpoint = pack(Checkpoint(number + 1, {key: {} for key in ids}))
            connection.send(Outcome(ticket, padding if real else checkpoint, points, spans, {}, seconds=60.0))
            continue
        measures = [Measure("iid", "", "", "accuracy", 0.5, 0.01, 1000) for _ in range(1)]
        measures += [Measure("iid", "rule", str(level), "accuracy", 0.5, 0.01, 100) for level in range(20)]
        finished = {}
        for key in ids:
            by_selection = {"best": measures, "last": measures}
            finished[key] = Finished("finished", 1, 1, False, "", {_EVALUATION: by_selection}, {}, {"device": "cpu"})
        connection.send(Outcome(ticket, None, points, spans, finished, seconds=60.0))


def _memory() -> float:
    """The memory of this process now, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def _evaluation_id() -> str:
    from unseen.studies.trial import evaluation_id

    return evaluation_id(tiny(10)[0].trial.evaluation)


_EVALUATION = _evaluation_id()

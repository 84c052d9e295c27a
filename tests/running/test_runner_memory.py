"""What the runner holds in memory, and what it waits for when it stops: with workers that only pretend to train."""

from __future__ import annotations

import tracemalloc
from collections import deque
from pathlib import Path

import pytest
import torch

from support.small import STUDY
from unseen.running import runner
from unseen.running.chunk import Chunk, Event
from unseen.running.runner import Interrupted, Settings, run_entries
from unseen.store.schema import Outcome, Span
from unseen.store.store import Store
from unseen.training.checkpoint import pack, unpack
from unseen.training.trainer import Checkpoint

CHECKPOINT = 1_000_000


class Pretending:
    """As many workers as stacks; each sends a large checkpoint every time, until it is told to stop."""

    workers = 32

    def __init__(self, rounds: int) -> None:
        self.received: list[int | None] = []  # the step of the checkpoint of each chunk
        self.stray: list[Outcome] = []  # outcomes of tickets that the runner has given up, such as a probe's
        self._under_way = deque[tuple[int, list[str]]]()
        self._rounds = rounds
        self._steps: dict[str, int] = {}

    def submit(self, chunk: Chunk) -> None:
        checkpoint = chunk.with_checkpoint().checkpoint
        self.received.append(None if checkpoint is None else unpack("a checkpoint", checkpoint).step)
        self._under_way.append((chunk.ticket, [trial.id for trial in chunk.trials]))

    def next(self, seconds: float) -> Event | None:
        if self.stray:
            return self.stray.pop()
        if not self._under_way:
            pytest.fail("the runner waits for an outcome that nobody will send")
        ticket, ids = self._under_way.popleft()
        step = self._steps.get(ids[0], 0) + 1
        self._steps[ids[0]] = step
        padding = {"padding": torch.zeros(CHECKPOINT, dtype=torch.uint8)}
        checkpoint = pack(Checkpoint(step, {key: {} for key in ids}, padding))
        return Outcome(ticket, checkpoint, [], {key: Span(step - 1, step, 1.0, 1.0, "pretended:1") for key in ids}, {})

    def stopping(self) -> bool:
        return len(self._steps) == self.workers and min(self._steps.values()) >= self._rounds

    def stop(self) -> int:
        return len(self._under_way) + len(self.stray)

    def close(self) -> None:
        """Nothing to end."""


def run(out: Path, executor: Pretending, monkeypatch: pytest.MonkeyPatch) -> None:
    """The small study, every trial a stack of its own, until the executor has had enough."""
    monkeypatch.setattr(runner, "_executor", lambda *given: executor)
    monkeypatch.setattr(runner, "_stop_on_signals", lambda: _Never(executor))
    with Store.write(out) as store, pytest.raises(Interrupted):
        run_entries(STUDY.entries("mini", range(4)), store, Settings(size=1, progress="none"), "", "mini")


class _Never:
    """Instead of signals, the executor says when to stop."""

    def __init__(self, executor: Pretending) -> None:
        self._executor = executor

    def __enter__(self) -> object:
        return self._executor.stopping

    def __exit__(self, *error: object) -> None:
        """Nothing was changed."""


def test_checkpoints_of_stacks_under_way_are_not_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """32 stacks have a checkpoint of a megabyte each; a cluster has thousands of stacks."""
    executor = Pretending(rounds=3)
    run(tmp_path / "warm", Pretending(rounds=1), monkeypatch)  # what is imported and cached on the way
    tracemalloc.start()
    try:
        run(tmp_path / "r", executor, monkeypatch)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * CHECKPOINT
    assert len(list((tmp_path / "r" / "checkpoints").iterdir())) == 32


class Waiting(Pretending):
    """Workers that have not started yet: chunks wait for them."""

    def __init__(self) -> None:
        super().__init__(rounds=0)
        self.chunks: list[Chunk] = []

    def submit(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)

    def next(self, seconds: float) -> Event | None:
        return None

    def stopping(self) -> bool:
        return len(self.chunks) == self.workers

    def stop(self) -> int:
        """Nothing is under way; while the store is open, see what each chunk would have begun from."""
        for chunk in self.chunks:
            assert chunk.checkpoint is None
            checkpoint = chunk.with_checkpoint().checkpoint
            assert checkpoint is not None and chunk.trials[0].id in unpack("a checkpoint", checkpoint).progress
        return 0


def test_checkpoints_of_chunks_that_wait_are_not_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study that is resumed hands out all its chunks at once, and actors or pilots may take minutes to start."""
    run(tmp_path / "r", Pretending(rounds=1), monkeypatch)
    executor = Waiting()
    tracemalloc.start()
    try:
        run(tmp_path / "r", executor, monkeypatch)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * CHECKPOINT and len(executor.chunks) == 32


def test_a_checkpoint_travels_from_outcome_to_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = Pretending(rounds=2)
    run(tmp_path / "r", executor, monkeypatch)
    first, second = executor.received[:32], executor.received[32:]
    assert set(first) == {None}
    assert set(second) <= {1, 2}


def test_an_outcome_that_nobody_waits_for_does_not_keep_the_runner_from_stopping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe that was given up still ends some time; the executor counts it among the outcomes to come."""
    executor = Pretending(rounds=1)
    stop = executor.stop

    def stop_with_stray() -> int:
        executor.stray.append(Outcome(10**9 + 1, error="a probe"))
        return stop()

    monkeypatch.setattr(executor, "stop", stop_with_stray)
    run(tmp_path / "r", executor, monkeypatch)

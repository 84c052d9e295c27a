"""The probe that chooses the size of stacks runs on a worker, not where the work is handed out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from support.small import STUDY, tables
from unseen.running import runner, timing
from unseen.running.chunk import Chunk, Death, Event, Worker
from unseen.running.executors.inline import Inline
from unseen.running.messages import pack_chunk, pack_outcome, unpack_chunk, unpack_outcome
from unseen.running.rates import WorkloadTimes, parse_times
from unseen.running.runner import Settings, run_entries
from unseen.store.schema import Outcome
from unseen.store.store import Store
from unseen.studies.trial import Trial

TIMES = WorkloadTimes({1: 2.0, 5: 1.0}, {1: 0.0, 5: 0.0}, tests=1.0, draw=0.0, build=0.0)


class Elsewhere(Inline):
    """A worker of a cluster, as far as the runner knows; notes what it is given."""

    chunks: list[Chunk] = []  # noqa: RUF012

    def submit(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)
        super().submit(unpack_chunk(pack_chunk(chunk)))


def run(out: Path, device: str, monkeypatch: pytest.MonkeyPatch) -> list[Chunk]:
    """Sixteen trials of each shape, so that the size of stacks depends on times; returns the chunks."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(out.parent / "cache"))
    monkeypatch.setattr(Elsewhere, "chunks", [])
    monkeypatch.setattr(runner, "_executor", lambda *given: Elsewhere(lambda: False, lambda tick: None))
    entries = [entry for entry in STUDY.entries("smoke", range(16)) if "T1" in entry.trial.task.name][:16]
    with Store.write(out) as store:
        run_entries(entries, store, Settings("ray", progress="none", device=device), "")
    return Elsewhere.chunks


def test_stacks_are_as_large_as_pays_on_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_worker: list[bool] = []
    working: list[bool] = []
    do = Worker.do

    def note_work(self: Worker, chunk: Chunk, *rest: object) -> Outcome:
        working.append(True)
        try:
            return do(self, chunk, *rest)  # type: ignore[arg-type]
        finally:
            working.pop()

    def probe(trial: Trial, sizes: Sequence[int], seconds: float, device: str) -> WorkloadTimes:
        on_worker.append(bool(working))
        return TIMES

    monkeypatch.setattr(Worker, "do", note_work)
    monkeypatch.setattr(timing, "probe", probe)
    chunks = run(tmp_path / "r", "cpu", monkeypatch)
    assert on_worker and all(on_worker)
    assert {len(chunk.trials) for chunk in chunks if not chunk.probe_sizes} <= {4, 5}
    assert tables(tmp_path / "r")


def test_times_of_a_cpu_do_not_choose_the_stacks_of_another_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No worker can use the device, so nothing is measured: stacks are of the usual size."""
    chunks = run(tmp_path / "r", "cuda", monkeypatch)
    probes = [chunk for chunk in chunks if chunk.probe_sizes]
    assert probes and all(chunk.device == "cuda" for chunk in probes)
    assert max(len(chunk.trials) for chunk in chunks) == 8  # sixteen trials in stacks of at most ten


def test_a_probe_whose_node_is_lost_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost node costs no chunk of training; the probe before it must not end the run either."""
    lost: list[int] = []

    def next_or_lost(self: Elsewhere, seconds: float) -> Event | None:
        if not lost and self._waiting[-1].probe_sizes:
            lost.append(self._waiting.pop().ticket)
            return Death(lost[0], "the node it ran on died", innocent=True)
        return Inline.next(self, seconds)

    monkeypatch.setattr(timing, "probe", lambda *given: TIMES)
    monkeypatch.setattr(Elsewhere, "next", next_or_lost)
    chunks = run(tmp_path / "r", "cpu", monkeypatch)
    tickets = [chunk.ticket for chunk in chunks if chunk.probe_sizes]
    assert len(lost) == 1 and lost[0] == tickets[0] and len(set(tickets)) == len(tickets) >= 2
    assert tables(tmp_path / "r")


def test_measured_times_survive_as_bytes() -> None:
    trial = STUDY.entries("smoke")[0].trial
    chunk = unpack_chunk(pack_chunk(Chunk(1, (trial,), None, 0.0, probe_sizes=(1, 2))))
    assert chunk.probe_sizes == (1, 2)
    outcome = Worker().do(chunk)
    assert outcome.timing is not None and not outcome.error
    received = unpack_outcome(pack_outcome(outcome))
    assert received.timing is not None and parse_times(received.timing) == parse_times(outcome.timing)
    assert parse_times(received.timing).steps.keys() <= {1, 2}

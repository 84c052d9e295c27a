"""What the tests on real Ray clusters share: a run of the small study, its results, and waiting for actors."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from support.small import STEPS, STUDY, tables
from unseen.running.executors.ray import Ray
from unseen.running.runner import Settings, run_entries
from unseen.store.store import Store

NICENESS = {"RAY_worker_niceness": "0"}
"""Ray's workers run at niceness 15, unless told otherwise: beside other work they get a hundredth of a processor."""


def run(out: Path, seeds: range, scale: str = "mini", chunk_seconds: float = 0.4, **given: Any) -> Path:
    """The small study, four trials to a stack, in short chunks, with its weights."""
    with Store.write(out) as store:
        settings = Settings(size=4, chunk_seconds=chunk_seconds, keep="all", progress="none", **given)
        run_entries(STUDY.entries(scale, seeds), store, settings, "", scale)
    return out


def everything(out: Path) -> tuple[list[tuple[str, ...]], dict[str, bytes]]:
    """All tables and all weights."""
    return tables(out), {file.name: file.read_bytes() for file in (out / "weights").iterdir()}


def wait_for_actors(executor: Ray, nodes: Collection[str] = (), *, count: int = 1) -> None:
    """Give out no chunk before actors have started on these nodes, or on so many: the study is short, and starting
    takes seconds. Without it a test depends on how fast the machine is."""
    end = time.monotonic() + 600
    while True:
        ready = {actor.node for actor in executor._actors if actor.ready}
        if ready.issuperset(nodes) and len(ready) >= count:
            return
        assert time.monotonic() < end, f"actors have started on {ready} only"
        executor._check_cluster()
        executor._request_actors()
        executor._handle_answers(0.5)


def check_every_step_is_counted_once(out: Path) -> set[int]:
    """Nothing has failed, and no step is missing or was done twice; returns the processes that did the steps."""
    with Store.read(out) as store:
        spans, failures = store.spans(), store.failures()
    assert len(failures) == 0
    for _, rows in spans.groupby("trial"):
        assert rows.begin.tolist() == [0, *rows.end[:-1]] and rows.end.iloc[-1] == STEPS["mini"]
    return {int(worker.rpartition(":")[2]) for worker in spans.worker}

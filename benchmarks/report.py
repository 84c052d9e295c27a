"""How large a study may grow before its report does: one page over 20 000 runs that were never trained."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rows import Asked, Row
from unseen.randomness import stream
from unseen.store.schema import Finished, Outcome, Span
from unseen.store.store import Store
from unseen.studies.catalog.retrieval import TRANSFORMERS
from unseen.studies.study import Grid
from unseen.studies.trial import Entry, evaluation_id
from unseen.training.evaluate import Measure
from unseen.training.trainer import Point

SEEDS, STACK, STEPS = 50, 500, 10_000
"""Of every combination of levels; runs that are written in one transaction; steps that each would have trained."""
VALIDATIONS = 10
CHROMIUM = ("--no-sandbox", "--disable-background-networking")


def report(asked: Asked) -> Iterator[Row]:
    """`unseen report DIR` in a process of its own, from its start to its end, and, where Playwright and a Chromium are
    at hand, the page from the click until its table is there.
    """
    with tempfile.TemporaryDirectory(prefix="unseen-") as folder:
        directory, page = Path(folder, "store"), Path(folder, "report.html")
        case = f"runs={fill(directory, range(1 if asked.quick else SEEDS))}"
        if not asked.wants(case):
            return
        before, began = os.times(), time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "unseen", "report", str(directory), "--out", str(page)],
            stdout=subprocess.DEVNULL,
            check=True,
        )
        seconds, after = time.perf_counter() - began, os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        yield Row(case, "size of the page", page.stat().st_size / 1e6, "MB", "less")
        yield Row(case, "written", seconds, "s", "less")
        yield Row(case, "written, CPU time", spent, "s", "less")
        opened = seconds_to_open(page)
        if opened is not None:
            yield Row(case, "opened in Chromium", opened, "s", "less")


def seconds_to_open(page: Path) -> float | None:
    """From the request for a page until its table of runs can be used; None without Playwright or Chromium."""
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if chromium is None:
        return None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=[*CHROMIUM])
        tab = browser.new_page()
        began = time.perf_counter()
        tab.goto(page.as_uri())
        tab.wait_for_selector("#runs-table tbody tr[aria-rowindex]")
        seconds = time.perf_counter() - began
        browser.close()
    return seconds


def fill(directory: Path, seeds: Sequence[int]) -> int:
    """A finished store, as if all had been trained: 400 places with these seeds. Returns how many runs it holds."""
    grid = Grid(
        axes={
            "task": {f"retrieval/T{i}": {"task": {"name": f"retrieval/T{i}"}} for i in (1, 2, 3, 4, 6)},
            "variant": TRANSFORMERS,
            "length": {length: {"task": {"length": length}} for length in (5, 10, 20, 40)},
            "rate": {rate: {"recipe": {"learning_rate": rate}} for rate in (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)},
        },
        base={"recipe": {"steps": STEPS}},
        seeds=seeds,
    )
    entries = grid.entries()
    with Store.write(directory) as store:
        store.set_work({"study": "many-runs@1"})
        store.add(entries, "full")
        for start in range(0, len(entries), STACK):
            _commit(store, start, entries[start : start + STACK])
    return len(entries)


def _commit(store: Store, start: int, entries: Sequence[Entry]) -> None:
    """What training would have left of some runs: scores that grow with the step and differ by place and seed."""
    scores = stream("benchmark", "report", start).block().uniform((len(entries),))
    finished: dict[str, Finished] = {}
    points: list[Point] = []
    for entry, luck in zip(entries, scores.tolist(), strict=True):
        trial, order = entry.trial.id, [*TRANSFORMERS].index(str(entry.levels["variant"]))
        score = float(np.clip(0.5 + 0.1 * order + 0.4 * luck, 0, 1))
        steps = [STEPS * (i + 1) // VALIDATIONS for i in range(VALIDATIONS)]
        points += [
            Point(trial, step, "iid", metric, value * step / STEPS)
            for step in steps
            for metric, value in (("accuracy", score), ("loss", 1 - score))
        ]
        finished[trial] = Finished(
            "finished",
            STEPS,
            steps[-2],
            luck > 0.9,
            "",
            {evaluation_id(entry.trial.evaluation): {selection: _measures(score) for selection in ("best", "last")}},
            {},
            {"seconds": 1.0, "unseen": "0"},
        )
    spans = {trial: Span(0, STEPS, 1.0, 1.0, "host:1") for trial in finished}
    store.commit(f"stack {start}", list(finished), Outcome(0, points=points, spans=spans, finished=finished))


def _measures(score: float) -> list[Measure]:
    rows: list[tuple[str, str, str, Any]] = [("", "", "loss", 1 - score), ("", "", "accuracy", score)]
    rows += [("scenario", level, "accuracy", score) for level in ("none", "first", "both")]
    return [
        Measure(split, factor, level, metric, value * shift, 0.01, 1_000)
        for split, shift in (("iid", 1.0), ("ood/single", 0.9))
        for factor, level, metric, value in rows
    ]

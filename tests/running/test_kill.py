"""Killed at random moments, runner and workers, six times: the table is that of an undisturbed run."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import unseen
from support.killing import kill, steps_done
from support.small import STEPS, STUDY, tables
from unseen.store.store import Store

KILLS = 6
"""Two of the runner, of a worker and of all of them; each costs the start of three interpreters with torch."""
RUN = """
import sys
sys.path.insert(0, sys.argv[2])
import unseen
from support.small import STUDY
unseen.run(STUDY, sys.argv[1], scale="mini", workers=2, chunk_seconds=0.3, stack=4, progress="none")
"""


def start(out: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(out), str(Path(__file__).parents[1])],
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


@pytest.mark.slow
def test_a_study_killed_again_and_again_ends_with_the_same_table(tmp_path: Path) -> None:
    unseen.run(STUDY, tmp_path / "undisturbed", scale="mini", executor="inline", progress="none")
    out, chance = tmp_path / "killed", random.Random(7)
    total = 32 * STEPS["mini"]
    # Each kill comes when so much of the work is done; the first ones before anything is. The second half of the work
    # is left, so that a study does not end before its last kill where this process has to wait for a core.
    moments = [0, 0, *sorted(chance.randrange(total // 2) for _ in range(KILLS - 2))]
    whom = [("runner", "worker", "all")[i % 3] for i in range(KILLS)]
    kills, child, deadline = 0, start(out), time.monotonic() + 3600
    while time.monotonic() < deadline:
        if child.poll() is not None:
            if child.returncode == 0:
                break
            said = child.stderr.read().decode() if child.stderr else ""
            assert child.returncode == -signal.SIGKILL, said
            child = start(out)
        if kills < KILLS and steps_done(out) >= moments[kills]:
            time.sleep(chance.uniform(0, 0.1 if moments[kills] else 3.0))
            if child.poll() is None:
                kills += kill(child.pid, whom[kills], chance)
        time.sleep(0.01)
    assert kills == KILLS and child.returncode == 0
    assert tables(out) == tables(tmp_path / "undisturbed")
    assert list((out / "checkpoints").iterdir()) == []
    with Store.read(out) as store:
        spans, failures = store.spans(), store.failures()
    assert len(failures) == 0
    assert spans.trial.nunique() == 32 and spans.worker.nunique() > 2
    for _, rows in spans.groupby("trial"):  # every step once, none twice
        assert rows.begin.tolist() == [0, *rows.end[:-1]] and rows.end.iloc[-1] == STEPS["mini"]

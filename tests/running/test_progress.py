"""What the progress of a run says while nothing is trained any more."""

from __future__ import annotations

import pytest

from unseen.models import options
from unseen.running.chunk import Tick
from unseen.running.progress import Progress
from unseen.store.schema import Evaluated, Outcome
from unseen.studies.trial import Trial
from unseen.tasks import task
from unseen.training.recipe import Evaluation, recipe


def test_during_the_evaluation_it_is_neither_done_nor_has_it_0_s_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("unseen.running.progress.EVERY", -1.0)  # a line for every event
    trial = Trial(task("retrieval/T1"), options("lstm"), recipe("quick", steps=100), Evaluation(), 0, 0)
    with Progress("study", "lines") as progress:
        progress.begin([trial], {})
        progress.start(1, [trial])
        progress.tick(Tick(1, 50, None))
        progress.tick(Tick(1, 100, None))
        progress.advance(Outcome(1, evaluated={trial.id: Evaluated("", {}, {})}))
    *lines, end = capsys.readouterr().err.splitlines()
    assert end.startswith("study: 100 %, 1 of 1 trials") and "left" not in end
    assert "50 %" in lines[-2] and "left" in lines[-2] and "evaluating" not in lines[-2]
    assert lines[-1].startswith("study: 99 %, 0 of 1 trials") and lines[-1].endswith("evaluating")


def test_the_last_steps_are_not_rounded_to_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It said `100 %, about 0 s left`, and then `99 %, evaluating`."""
    monkeypatch.setattr("unseen.running.progress.EVERY", -1.0)
    trial = Trial(task("retrieval/T1"), options("lstm"), recipe("quick", steps=1000), Evaluation(), 0, 0)
    with Progress("study", "lines") as progress:
        progress.begin([trial], {})
        progress.start(1, [trial])
        progress.tick(Tick(1, 999, None))
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("study: 99 %") and last.endswith("about 1 s left")

"""The probe: what it tries, what it counts, and when it stops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from jobs import job

from unseen.engine import probe
from unseen.engine.probe import best_size, longer_tests, sizes, time_sizes
from unseen.engine.recipe import Evaluation
from unseen.engine.stack import Stack
from unseen.engine.train import Trainer
from unseen.models import options
from unseen.models.build import build
from unseen.tasks import task
from unseen.tasks.base import Examples
from unseen.tasks.retrieval.task import Retrieval


class Machine:
    """A machine on which a step costs so much, and so much more for every member; it counts the steps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, per_step: float, per_member: float, noise: float = 0.0) -> None:
        self.now, self.steps = 0.0, dict[int, int]()

        def advance(trainer: Trainer, steps: int) -> list[object]:
            size = len(trainer.running)
            self.steps[size] = self.steps.get(size, 0) + steps
            disturbed = noise if self.steps[size] <= 3 else 0.0  # the first, which does not count, and two more
            self.now += steps * (per_step + per_member * size + disturbed)
            return []

        monkeypatch.setattr(Trainer, "advance", advance)
        for clock in ("perf_counter", "process_time"):
            monkeypatch.setattr(probe.time, clock, lambda: self.now)


@pytest.mark.parametrize(("per_step", "per_member", "best"), [(10.0, 1.0, 20), (0.0, 1.0, 1), (0.1, 1.0, 5)])
def test_the_size_with_the_least_time_per_member_is_best(
    monkeypatch: pytest.MonkeyPatch, per_step: float, per_member: float, best: int
) -> None:
    Machine(monkeypatch, per_step, per_member)
    times = {size: pace.step for size, pace in time_sizes(job([0]), sizes(30)).items()}
    assert times == pytest.approx({size: per_step / size + per_member for size in (1, 5, 10, 20)})
    assert best_size(times) == best


def test_a_step_that_was_disturbed_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    Machine(monkeypatch, 1.0, 1.0, noise=50.0)
    assert {size: pace.step for size, pace in time_sizes(job([0]), [1, 5]).items()} == pytest.approx({1: 2.0, 5: 1.2})


def test_of_short_steps_more_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 0.0, 0.01)
    time_sizes(job([0]), [1])
    assert machine.steps == {1: 20}  # 0.2 seconds
    quick = Machine(monkeypatch, 0.0, 1e-6)
    time_sizes(job([0]), [1])
    assert quick.steps == {1: 51}


def test_sizes_that_would_not_end_in_time_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 0.0, 1.0)
    assert list(time_sizes(job([0]), sizes(20), seconds=37.0)) == [1, 5]
    assert machine.now <= 37.0


def test_one_timed_step_of_the_smallest_size_is_the_least_a_probe_does(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 0.0, 1_000.0)
    assert {size: pace.step for size, pace in time_sizes(job([0]), sizes(20), seconds=1.0).items()} == {1: 1_000.0}
    assert machine.steps == {1: 2}


def test_a_probe_trains_really_on_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole training set would take longer to draw than the probe."""
    drawn: list[int] = []
    sample = Retrieval.sample

    def counted(self: Retrieval, condition: str, n: int, *rest: object, **more: object) -> object:
        if condition == "train":
            drawn.append(n)
        return sample(self, condition, n, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Retrieval, "sample", counted)
    times = time_sizes(job([0, 1], learning_rate=1e30), [1, 2])
    assert drawn == [10]
    assert times.keys() == {1, 2}
    assert all(pace.step > 1e-5 for pace in times.values())  # nothing diverged, every step was done
    assert all(pace.answer > 0 and pace.build > 0 for pace in times.values())


def test_tests_that_are_longer_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine where every token takes a second."""
    now = 0.0
    answers = probe.predictions

    def predictions(stack: Stack, examples: Examples, *rest: Any) -> Any:
        nonlocal now
        now += examples.inputs["rule"].size
        return answers(stack, examples, *rest)

    monkeypatch.setattr(probe, "predictions", predictions)
    monkeypatch.setattr(probe.time, "process_time", lambda: now)
    made = task("rules/mha", rules=2)
    tested = replace(job([0]), task=made, build=lambda seed: build(options("rules-mha", width=8), made.spec, seed))
    some = Evaluation(conditions=("iid", "ood/length=30"))
    assert longer_tests(replace(tested, evaluation=some)) == pytest.approx(2.0)  # 10 tokens, and 10 and 30
    now = 0.0
    assert longer_tests(job([0])) == 1.0 and now == 0.0  # all are of one length: nothing to find out


@pytest.mark.parametrize(("members", "tried"), [(1, [1]), (3, [1, 3]), (7, [1, 5, 7]), (50, [1, 5, 10, 20])])
def test_sizes_are_bounded_by_the_number_of_members(members: int, tried: list[int]) -> None:
    assert sizes(members) == tried

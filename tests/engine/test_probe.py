"""The probe: what it tries, what it counts, and when it stops."""

from __future__ import annotations

import pytest
from jobs import job

from unseen.engine import probe
from unseen.engine.probe import best_size, sizes, time_sizes
from unseen.engine.train import Trainer
from unseen.tasks.retrieval.task import Retrieval


class Machine:
    """A machine on which a step costs so much, and so much more for every member; it counts the steps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, per_step: float, per_member: float, noise: float = 0.0) -> None:
        self.now, self.steps = 0.0, dict[int, int]()

        def advance(trainer: Trainer, steps: int) -> list[object]:
            size = len(trainer.running)
            self.steps[size] = self.steps.get(size, 0) + steps
            disturbed = noise if self.steps[size] != 3 else 0.0  # one step of each size is left in peace
            self.now += steps * (per_step + per_member * size + disturbed)
            return []

        monkeypatch.setattr(Trainer, "advance", advance)
        for clock in ("perf_counter", "process_time"):
            monkeypatch.setattr(probe.time, clock, lambda: self.now)


@pytest.mark.parametrize(("per_step", "per_member", "best"), [(10.0, 1.0, 20), (0.0, 1.0, 1), (0.1, 1.0, 5)])
def test_the_size_with_the_least_time_per_member_is_best(
        monkeypatch: pytest.MonkeyPatch, per_step: float, per_member: float, best: int) -> None:
    Machine(monkeypatch, per_step, per_member)
    times = time_sizes(job([0]), sizes(30))
    assert times == pytest.approx({size: per_step / size + per_member for size in (1, 5, 10, 20)})
    assert best_size(times) == best


def test_the_undisturbed_step_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    Machine(monkeypatch, 1.0, 1.0, noise=50.0)
    assert time_sizes(job([0]), [1, 5]) == pytest.approx({1: 2.0, 5: 1.2})


def test_sizes_that_would_not_end_in_time_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 0.0, 1.0)
    assert list(time_sizes(job([0]), sizes(20), seconds=31.0)) == [1, 5]
    assert machine.now <= 31.0


def test_one_timed_step_of_the_smallest_size_is_the_least_a_probe_does(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 0.0, 1_000.0)
    assert time_sizes(job([0]), sizes(20), seconds=1.0) == {1: 1_000.0}
    assert machine.steps == {1: 2}


def test_a_probe_trains_really_on_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole training set would take longer to draw than the probe."""
    drawn: list[int] = []
    sample = Retrieval.sample

    def counted(self: Retrieval, condition: str, n: int, *rest: object) -> object:
        drawn.append(n)
        return sample(self, condition, n, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Retrieval, "sample", counted)
    times = time_sizes(job([0, 1], learning_rate=1e30), [1, 2])
    assert drawn == [10]
    assert times.keys() == {1, 2}
    assert all(seconds > 1e-5 for seconds in times.values())  # nothing diverged, every step was done


@pytest.mark.parametrize(("members", "tried"), [(1, [1]), (3, [1, 3]), (7, [1, 5, 7]), (50, [1, 5, 10, 20])])
def test_sizes_are_bounded_by_the_number_of_members(members: int, tried: list[int]) -> None:
    assert sizes(members) == tried

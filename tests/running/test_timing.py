"""Timing: what is measured and what is not, what is remembered, and how the rest is estimated."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from unseen.models import options
from unseen.running import timing as timing_module
from unseen.running.flops import step_cost
from unseen.running.rates import WorkloadTimes
from unseen.running.stacks import divide_into_stacks
from unseen.running.timing import Timing, probe, workload
from unseen.spec import Spec
from unseen.studies.trial import Trial, model_config
from unseen.tasks import task
from unseen.tasks.retrieval.task import Retrieval
from unseen.training.evaluate import predict
from unseen.training.recipe import Evaluation, recipe
from unseen.training.trainer import Trainer

SMALL = task("retrieval/T1", length=5, train_size=700, evaluation_size=400)
GOOD = {"steps": {"1": 1}, "answers": {"1": 0}, "tests": 1, "draw": 0, "build": 0}


def trials(model: str = "lstm", seeds: int = 1, **given: Any) -> list[Trial]:
    made = options(model, **{"width": 4, **given})
    used = recipe(steps=100, batch=10, validate_every=30, validation_examples=50)
    return [Trial(SMALL, made, used, Evaluation(examples=1_000), seed, seed) for seed in range(seeds)]


def many(count: int) -> list[Trial]:
    return [trial for width in range(2, 2 + count) for trial in trials(width=width)]


def times(
    steps: dict[int, float], *, answer: float = 0.0, tests: float = 1.0, draw: float = 0.0, build: float = 0.0
) -> WorkloadTimes:
    return WorkloadTimes(steps, dict.fromkeys(steps, answer), tests, draw, build)


def known(measured: dict[Trial, WorkloadTimes]) -> Timing:
    return Timing(
        {workload(t): value for t, value in measured.items()}, {workload(t): step_cost(t).flops for t in measured}
    )


class Prober:
    """Stands in for the probe: each takes some time of a false clock; every member and step a millisecond."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, each: float = 0.0) -> None:
        self.probed: list[tuple[str, tuple[int, ...]]] = []
        self.seconds: list[float] = []
        self.now = 0.0

        def probing(trial: Trial, sizes: Sequence[int], seconds: float, device: str) -> WorkloadTimes:
            self.probed.append((workload(trial), tuple(sizes)))
            self.seconds.append(seconds)
            self.now += each
            return times(dict.fromkeys(sizes, 0.001))

        monkeypatch.setattr(timing_module, "probe", probing)
        monkeypatch.setattr(timing_module.time, "monotonic", lambda: self.now)


def test_what_is_in_the_cache_is_not_measured_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prober = Prober(monkeypatch)
    cache = tmp_path / "deep" / "timing.json"
    titles: list[str] = []
    first = Timing.measure(trials(seeds=7), cache=cache, on_probe=titles.append)
    assert [sizes for _, sizes in prober.probed] == [(1, 5, 7)]
    assert titles == ["probe 1 of 1: lstm"]
    again = Timing.measure(trials(seeds=3), cache=cache)
    assert len(prober.probed) == 1
    assert again.seconds(trials()[0]) == first.seconds(trials()[0])
    assert [file.name for file in cache.parent.iterdir()] == ["timing.json"]


def test_the_cache_is_for_one_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prober = Prober(monkeypatch)
    for cpu in ("this", "that", "this"):
        monkeypatch.setattr(timing_module, "cpu_name", lambda cpu=cpu: cpu)
        Timing.measure(trials(), cache=tmp_path / "timing.json")
    assert len(prober.probed) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "7",
        '{"a": 1}',
        '{"a": {}}',
        *(
            json.dumps({"a": {**GOOD, **wrong}})
            for wrong in (
                {"steps": {}, "answers": {}},
                {"steps": {"1": -1}},
                {"steps": {"1": math.nan}},
                {"steps": {"1": 1, "2": 1}},
                {"answers": {"1": -1}},
                {"draw": "x"},
                {"draw": -1},
                {"build": math.inf},
                {"tests": None},
            )
        ),
    ],
)
def test_a_damaged_cache_is_ignored_with_a_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    prober = Prober(monkeypatch)
    cache = tmp_path / "timing.json"
    cache.write_text(text)
    with pytest.warns(UserWarning, match="is damaged and is ignored"):
        Timing.measure(trials(), cache=cache)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Timing.measure(trials(), cache=cache)
    assert len(prober.probed) == 1


def test_a_cache_that_cannot_be_written_does_no_harm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prober = Prober(monkeypatch)
    (tmp_path / "file").write_text("in the way")
    assert Timing.measure(trials(), cache=tmp_path / "file" / "timing.json").size(trials()[0]) == 1
    assert len(prober.probed) == 1


def test_the_cache_is_where_the_user_keeps_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert timing_module._default_cache() == tmp_path / "unseen" / "timing.json"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert timing_module._default_cache() == tmp_path / ".cache" / "unseen" / "timing.json"


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    prober = Prober(monkeypatch)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    for _ in range(2):
        Timing.measure(trials())
    assert len(prober.probed) == 2


def test_no_probe_is_begun_after_the_deadline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prober = Prober(monkeypatch, each=6.0)
    Timing.measure(many(10), cache=tmp_path / "timing.json")
    assert prober.seconds == pytest.approx([20 / 10, 14 / 9, 8 / 8, 2 / 7])
    late = Prober(monkeypatch, each=1e6)
    Timing.measure(many(20), cache=tmp_path / "other.json", seconds=-1.0)
    assert len(late.probed) == 1  # without one there would be no time at all


def test_probes_go_to_the_workloads_with_most_flops(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prober = Prober(monkeypatch)
    measured = Timing.measure(many(20), probes=3, cache=tmp_path / "timing.json")
    assert [key for key, _ in prober.probed] == [workload(trials(width=width)[0]) for width in (21, 20, 19)]
    assert measured.measured(many(20)) == (3, 20)
    assert all(measured.seconds(trial) > 0 for trial in many(20))


def test_trials_that_are_only_estimated_get_the_remaining_probes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Prober(monkeypatch)
    large = trials("transformer", width=64)
    both = Timing.measure(many(3), also=[*many(3), *large], probes=4, cache=tmp_path / "a.json")
    assert both.measured(large) == (1, 1)
    few = Timing.measure(many(3), also=large, probes=3, cache=tmp_path / "b.json")
    assert few.measured(large) == (0, 1) and few.measured(many(3)) == (3, 3)


def test_what_was_measured_before_is_known_without_a_probe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prober = Prober(monkeypatch)
    cache = tmp_path / "timing.json"
    assert Timing.measure(many(2), probes=0, cache=cache).measured(many(2)) == (0, 2)
    Timing.measure(many(2), cache=cache)
    assert Timing.measure(many(3), probes=0, cache=cache).measured(many(3)) == (2, 3)
    assert len(prober.probed) == 2


class Broken(nn.Module):
    """A user's module that can't be used."""

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        raise RuntimeError("not today")


def test_a_model_that_cannot_be_tried_stops_nothing(tmp_path: Path) -> None:
    """Its trials will fail one by one, and say why."""
    broken = [replace(trial, model=model_config(Broken)) for trial in trials(seeds=3)]
    measured = Timing.measure(broken, cache=tmp_path / "timing.json")
    assert measured.measured(broken) == (0, 1) and measured.seconds(broken[0]) > 0
    assert sorted(c.id for stack in divide_into_stacks(broken, 2, measured) for c in stack) == sorted(
        c.id for c in broken
    )


def test_a_workload_that_was_not_measured_takes_as_long_per_flop_as_the_nearest() -> None:
    small, middle, large = trials(width=8)[0], trials(width=32)[0], trials(width=40)[0]
    timing = known({small: times({1: 1.0}), large: times({1: 5.0, 5: 3.0}, answer=0.1)})
    share = step_cost(middle).flops / step_cost(large).flops
    assert timing._times(middle).steps == pytest.approx({1: 5.0 * share, 5: 3.0 * share})
    assert timing._times(middle).answer(1) == pytest.approx(0.1 * share)
    assert timing._times(small).steps == {1: 1.0}
    assert (timing.size(middle), timing.size(small)) == (5, 1)


def test_an_estimate_covers_building_drawing_steps_validations_and_evaluations() -> None:
    two = trials(seeds=2)
    made = known({two[0]: times({1: 0.6, 2: 0.3}, answer=0.02, tests=3.0, draw=0.01, build=5.0)})
    validated, tested = 50, 2 * 2 * 400  # 2 selections of 2 splits that have 400 examples
    # Validations: one before the first step, 3 on the way, one at the end.
    each = 3 * 5.0 + 100 * 0.3 + 5 * validated * 0.02 + tested * 3 * 0.02
    assert made.stack_seconds(two) == pytest.approx(2 * each + 0.01 * (2 * 700 + validated + 3 * tested))
    assert made.seconds(two[0]) == pytest.approx(made.stack_seconds(two) / 2)
    shared = [two[0], replace(two[1], data_seed=0)]
    assert made.stack_seconds(two) - made.stack_seconds(shared) == pytest.approx(0.01 * 700)


def test_members_on_instances_of_their_own_are_evaluated_one_by_one() -> None:
    """Each on data of its own, at the pace of a stack of one."""
    two = trials(seeds=2)
    apart = [two[0], replace(two[1], task=SMALL.model_copy(update={"task_seed": 1}))]
    paced = replace(times({1: 0.6, 2: 0.6}, draw=0.01), answers={1: 0.08, 2: 0.02})
    made, tested = known(dict.fromkeys(apart, paced)), 2 * 2 * 400
    assert made.stack_seconds(apart) - made.stack_seconds(two) == pytest.approx(
        2 * tested * 0.06 + 0.01 * (50 + tested)
    )


@pytest.mark.parametrize(("gating", "sampled"), [("joint", 100 * 200), ("operation", 0)])
def test_adaptation_that_is_sampled_shows_every_member_more(gating: str, sampled: int) -> None:
    made = task("rules/mha", rules=2)
    plain = replace(trials()[0], task=made, model=options("rules-mha", width=8, gating=gating))
    analysed = replace(plain, evaluation=Evaluation(examples=1_000, analyses=("specialization",)))
    timing = known({plain: times({1: 1.0}, answer=0.001, draw=0.01)})
    shown = 2 * (10_000 + sampled)
    assert timing.seconds(analysed) - timing.seconds(plain) == pytest.approx(shown * 0.011)


def test_an_endless_task_is_drawn_step_by_step() -> None:
    endless = replace(trials()[0], task=SMALL.model_copy(update={"train_size": None}))
    made = known({endless: times({1: 1.0}, draw=0.01)})
    assert made.seconds(endless) - made.seconds(trials()[0]) == pytest.approx(0.01 * (100 * 10 - 700))


@pytest.mark.parametrize(("members", "step"), [(1, 1.0), (3, 2.0 / 3), (5, 0.6), (6, 3.2 / 6), (10, 0.4), (50, 0.4)])
def test_between_measured_sizes_whole_steps_lie_on_a_line(members: int, step: float) -> None:
    assert times({1: 1.0, 5: 0.6, 10: 0.4}).step(members) == pytest.approx(step)


class Users(nn.Module):
    """A user's module."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.linear = nn.Linear(36, 1)

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        return torch.as_tensor(self.linear(inputs["query"]))


@pytest.mark.parametrize("cls", [None, Users])
def test_a_real_probe(tmp_path: Path, cls: type[nn.Module] | None) -> None:
    """One real measurement from end to end; every number in it depends on the machine, their signs do not."""
    some = [replace(trial, model=trial.model if cls is None else model_config(cls)) for trial in trials(seeds=2)]
    timing = Timing.measure(some, cache=tmp_path / "timing.json")
    measured = timing._times(some[0])
    assert measured.steps.keys() == {1, 2}
    assert min(measured.steps.values()) > 0 and min(measured.answers.values()) > 0
    assert measured.draw > 0 and measured.build > 0
    assert timing.seconds(some[0]) > 100 * min(measured.steps.values())
    assert len(divide_into_stacks(some, 2, timing)) == 2


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
        monkeypatch.setattr(timing_module, "_draw_seconds", lambda task: 0.0)
        for clock in ("perf_counter", "process_time"):
            monkeypatch.setattr(timing_module.time, clock, lambda: self.now)


@pytest.mark.parametrize(("per_step", "per_member", "best"), [(10.0, 1.0, 20), (0.0, 1.0, 1), (0.1, 1.0, 5)])
def test_the_size_with_the_least_time_per_member_is_best(
    monkeypatch: pytest.MonkeyPatch, per_step: float, per_member: float, best: int
) -> None:
    Machine(monkeypatch, per_step, per_member)
    measured = probe(trials()[0], (1, 5, 10, 20), math.inf, "cpu")
    assert measured.steps == pytest.approx({size: per_step / size + per_member for size in (1, 5, 10, 20)})
    assert measured.best_size == best


def test_a_step_that_was_disturbed_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    Machine(monkeypatch, 1.0, 1.0, noise=50.0)
    assert probe(trials()[0], [1, 5], math.inf, "cpu").steps == pytest.approx({1: 2.0, 5: 1.2})


def test_of_short_steps_more_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 0.0, 0.01)
    probe(trials()[0], [1], math.inf, "cpu")
    assert machine.steps == {1: 20}  # 0.2 seconds
    quick = Machine(monkeypatch, 0.0, 1e-6)
    probe(trials()[0], [1], math.inf, "cpu")
    assert quick.steps == {1: 51}


def test_sizes_that_would_not_end_in_time_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 0.0, 1.0)
    assert list(probe(trials()[0], (1, 5, 10, 20), 37.0, "cpu").steps) == [1, 5]
    assert machine.now <= 37.0
    slow = Machine(monkeypatch, 0.0, 1_000.0)
    assert probe(trials()[0], (1, 5), 1.0, "cpu").steps == {1: 1_000.0}
    assert slow.steps == {1: 2}


def test_a_probe_trains_really_on_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole training set would take longer to draw than the probe."""
    drawn: list[int] = []
    sample = Retrieval.sample

    def counted(self: Retrieval, split: str, n: int, *rest: object, **more: object) -> object:
        if split == "train":
            drawn.append(n)
        return sample(self, split, n, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Retrieval, "sample", counted)
    monkeypatch.setattr(timing_module, "_draw_seconds", lambda task: 0.0)
    measured = probe(trials()[0], [1, 2], math.inf, "cpu")
    assert drawn == [10]
    assert all(seconds > 1e-5 for seconds in measured.steps.values())


def test_tests_that_are_longer_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine where every token takes a second."""
    now = 0.0

    def slow_predict(stack: Any, examples: Any, *rest: Any) -> Any:
        nonlocal now
        now += examples.inputs["rule"].size
        return predict(stack, examples, *rest)

    monkeypatch.setattr(timing_module, "predict", slow_predict)
    made = task("rules/mha", rules=2)
    one = replace(trials()[0], task=made, model=options("rules-mha", width=8))
    some = replace(one, evaluation=Evaluation(splits=("iid", "ood/length=30")))
    job = timing_module.make_job([some])
    assert timing_module._longer_tests(some, job, lambda: now) == pytest.approx(2.0)  # 10 tokens, and 10 and 30
    now = 0.0
    same = timing_module._longer_tests(trials()[0], timing_module.make_job(trials()), lambda: now)
    assert same == 1.0 and now == 0.0  # all are of one length: nothing to find out

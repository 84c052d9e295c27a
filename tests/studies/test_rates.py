"""Rates: what is probed and what is not, what is remembered, and how the rest is priced."""

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

from unseen.engine.probe import Pace
from unseen.engine.recipe import Evaluation, recipe
from unseen.models import options
from unseen.spec import Spec
from unseen.studies import rates
from unseen.studies.cell import Cell, model_config
from unseen.studies.kept import SECTIONS, kept_path
from unseen.studies.plan import arrange
from unseen.studies.rates import Kind, Rates, kind_of
from unseen.studies.rates_cache import Rate, RatesCache
from unseen.tasks import task

SMALL = task("retrieval/T1", length=5, train_size=700, evaluation_size=400)


GOOD = {"steps": {"1": 1}, "answers": {"1": 0}, "tests": 1, "draw": 0, "build": 0, "asked": 1, "crowd": 1}


def cells(model: str = "lstm", seeds: int = 1, **given: Any) -> list[Cell]:
    made = options(model, **{"width": 4, **given})
    used = recipe(steps=100, batch=10, validate_every=30, validation_examples=50)
    return [Cell(SMALL, made, used, Evaluation(examples=1_000), seed, seed) for seed in range(seeds)]


def rate(
    steps: dict[int, float],
    *,
    answer: float = 0.0,
    tests: float = 1.0,
    draw: float = 0.0,
    build: float = 0.0,
    crowd: int = 1,
) -> Rate:
    return Rate(steps, dict.fromkeys(steps, answer), tests, draw, build, max(steps), crowd)


class Prober:
    """Stands in for the timer: each probe takes some time of a false clock; every member and step a millisecond."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, each: float = 0.0) -> None:
        self.probed: list[tuple[int, ...]] = []
        self.given: list[float] = []
        self.now = 0.0

        def time_sizes(job: Any, tried: Sequence[int], seconds: float) -> dict[int, Pace]:
            self.probed.append(tuple(tried))
            self.given.append(seconds)
            self.now += each
            return dict.fromkeys(tried, Pace(0.001, 0.0, 0.0))

        monkeypatch.setattr(rates, "time_sizes", time_sizes)
        monkeypatch.setattr(rates.time, "monotonic", lambda: self.now)


def many(count: int) -> list[Cell]:
    return [cell for width in range(2, 2 + count) for cell in cells(width=width)]


def test_what_is_in_the_cache_is_not_measured_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prober, cache, said = Prober(monkeypatch), tmp_path / "deep" / "rates.json", list[str]()
    first = Rates.measure(cells(seeds=7), cache=cache, on_probe=said.append)
    assert prober.probed == [(1, 5, 7)]
    assert said == ["probe 1 of 1: lstm"]
    again = Rates.measure(cells(seeds=3), cache=cache)  # fewer cells want smaller stacks only
    assert len(prober.probed) == 1
    assert again.seconds(cells()[0]) == first.seconds(cells()[0])
    Rates.measure(cells(seeds=8), cache=cache)
    assert prober.probed[1:] == [(1, 5, 8)]
    assert [f.name for f in cache.parent.iterdir()] == ["rates.json"]


def test_the_cache_is_for_one_kind_of_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prober = Prober(monkeypatch)
    for cpu in ("this", "that", "this"):
        monkeypatch.setattr("unseen.studies.rates_cache.cpu_name", lambda cpu=cpu: cpu)
        Rates.measure(cells(), cache=tmp_path / "rates.json")
    assert len(prober.probed) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "7",
        '{"a": 1}',
        '{"a": {"b": {}}}',
        "\x00\x01",
        *(
            json.dumps({"a": {"b": {**GOOD, **wrong}}})
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
                {"crowd": []},
            )
        ),
    ],
)
def test_a_damaged_cache_is_ignored_with_a_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    prober, cache = Prober(monkeypatch), tmp_path / "rates.json"
    cache.write_text(text)
    with pytest.warns(UserWarning, match="is damaged and is ignored"):
        Rates.measure(cells(), cache=cache)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Rates.measure(cells(), cache=cache)
    assert len(prober.probed) == 1
    assert json.loads(cache.read_text())


def test_a_cache_that_cannot_be_written_does_no_harm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prober = Prober(monkeypatch)
    (tmp_path / "file").write_text("in the way")
    assert Rates.measure(cells(), cache=tmp_path / "file" / "rates.json").size(cells()[0]) == 1
    assert len(prober.probed) == 1


def test_two_writers_keep_each_others_rates(tmp_path: Path) -> None:
    path, found = tmp_path / "rates.json", rate({1: 0.5})
    one, other = RatesCache(path), RatesCache(path)
    one.add("a", found)
    other.add("b", found)
    one.save()
    other.save()
    assert RatesCache(path).known == {"a": found, "b": found}


def test_what_was_written_long_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prober = Prober(monkeypatch)
    for cpu in range(SECTIONS + 1):
        monkeypatch.setattr("unseen.studies.rates_cache.cpu_name", lambda cpu=cpu: f"cpu {cpu}")
        Rates.measure(cells(), cache=tmp_path / "rates.json")
    held = json.loads((tmp_path / "rates.json").read_text())
    assert [name.split(",")[0] for name in held] == [f"cpu {cpu}" for cpu in range(1, SECTIONS + 1)]
    assert len(prober.probed) == SECTIONS + 1


def test_the_cache_is_where_the_user_keeps_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kept_path("rates.json") == tmp_path / "unseen" / "rates.json"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert kept_path("rates.json") == tmp_path / ".cache" / "unseen" / "rates.json"


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    prober = Prober(monkeypatch)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    for _ in range(2):
        Rates.measure(cells())
    assert len(prober.probed) == 2


def test_no_probe_is_begun_after_the_deadline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prober = Prober(monkeypatch, each=6.0)
    Rates.measure(many(10), cache=tmp_path / "rates.json")
    assert prober.given == pytest.approx([20 / 10, 14 / 9, 8 / 8, 2 / 7])
    late = Prober(monkeypatch, each=1e6)
    Rates.measure(many(20), cache=tmp_path / "other.json", seconds=-1.0)
    assert len(late.probed) == 1  # without one there would be no rate at all


def test_forty_kinds_need_ten_probes_and_the_same_ones_next_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    prober = Prober(monkeypatch)
    found = [*many(20), *(cell for width in range(8, 88, 4) for cell in cells("transformer", width=width))]
    assert len({kind_of(c) for c in found}) == 40
    made = Rates.measure(found, cache=tmp_path / "rates.json")
    assert len(prober.probed) == 10
    assert {k.model for k in made._known} == {"lstm", "transformer"}
    Rates.measure(found, cache=tmp_path / "rates.json")
    assert len(prober.probed) == 10
    assert all(made.seconds(cell) > 0 for cell in found)


def test_probes_go_where_the_work_is_and_are_spread(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Prober(monkeypatch)
    heavy, near, light = Kind("heavy", "a", 1e9), Kind("near", "a", 0.99e9), Kind("light", "a", 1e7)
    other = Kind("other", "b", 1e9)
    carried = {light: 2e9, near: 9.9e9, heavy: 1e10, other: 3e9}
    assert rates._choose(carried, 3) == [heavy, other, light]
    assert rates._choose(carried, 9, probed=[heavy]) == [other, light, near]
    assert rates._choose(carried, 0) == []


def test_cells_that_are_only_priced_get_the_probes_that_are_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Prober(monkeypatch)
    own, large = many(3), cells("transformer", width=64)
    both = Rates.measure(own, also=[*own, *large], probes=4, cache=tmp_path / "a.json")
    assert kind_of(large[0]) in both._known and len(both._known) == 4
    few = Rates.measure(own, also=large, probes=3, cache=tmp_path / "b.json")
    assert kind_of(large[0]) not in few._known and len(few._known) == 3


def test_sizes_are_tried_for_what_is_only_priced_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prober = Prober(monkeypatch)
    Rates.measure(cells(seeds=2), also=cells(seeds=30), cache=tmp_path / "rates.json")
    assert prober.probed == [(1, 5, 10, 20)]


class Broken(nn.Module):
    """A user's module that can't be used."""

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        raise RuntimeError("not today")


def test_a_model_that_cannot_be_tried_stops_nobody(tmp_path: Path) -> None:
    """Its cells will fail one by one, and say why."""
    broken = [replace(cell, model=model_config(Broken)) for cell in cells(seeds=3)]
    made = Rates.measure(broken, cache=tmp_path / "rates.json")
    assert made._known == {} and made.seconds(broken[0]) > 0
    assert sorted(c.id for stack in arrange(broken, 2, made) for c in stack) == sorted(c.id for c in broken)
    assert not (tmp_path / "rates.json").exists()


def test_a_kind_that_was_not_measured_takes_what_the_nearest_does_and_more_for_more_operations() -> None:
    small, middle, large = cells(width=8)[0], cells(width=32)[0], cells(width=40)[0]
    foreign = cells("transformer", width=32)[0]
    made = Rates(
        {
            kind_of(small): rate({1: 1.0}),
            kind_of(large): rate({1: 5.0, 5: 3.0}, answer=0.1),
            Kind("x", "transformer", 1e12): rate({1: 7.0}),
        }
    )
    fewer = (kind_of(large).flops - kind_of(middle).flops) * 7e-12  # the fastest that was measured
    assert made._rate(kind_of(middle)).steps == pytest.approx({1: 5.0 - fewer, 5: 3.0 - fewer})
    assert made._rate(kind_of(middle)).answer(1) == pytest.approx(0.1 * (5.0 - fewer) / 5.0)
    twice = replace(middle, recipe=recipe(steps=100, batch=20))
    more = (kind_of(twice).flops - kind_of(large).flops) * 7e-12
    assert made._rate(kind_of(twice)).answer(1) == pytest.approx(0.1 * (5.0 + more) / 5.0 / 2)
    assert made._rate(kind_of(foreign)).steps == pytest.approx({1: 7.0 * kind_of(foreign).flops / 1e12})
    tiny = Rates({Kind("t", "lstm", 1e3): rate({1: 0.01}), Kind("u", "other", 1e9): rate({1: 0.1})})
    assert tiny._rate(Kind("v", "lstm", 1e8)).steps == pytest.approx({1: 0.02}, rel=1e-3), "not 1 000 s"
    assert made._rate(kind_of(small)).steps == {1: 1.0}
    assert (made.size(middle), made.size(small)) == (5, 1)


def test_an_estimate_covers_building_drawing_steps_validations_and_evaluations() -> None:
    two = cells(seeds=2)
    made = Rates({kind_of(two[0]): rate({1: 0.6, 2: 0.3}, answer=0.02, tests=3.0, draw=0.01, build=5.0)})
    validated, tested = 50, 2 * 2 * 400  # 2 selections of 2 conditions that have 400 examples
    # Validations: one before the first step, 3 on the way, one at the end.
    each = 3 * 5.0 + 100 * 0.3 + 5 * validated * 0.02 + tested * 3 * 0.02
    assert made.stack_seconds(two) == pytest.approx(2 * each + 0.01 * (2 * 700 + validated + 3 * tested))
    assert made.seconds(two[0]) == pytest.approx(made.stack_seconds(two) / 2)
    shared = [two[0], replace(two[1], data_seed=0)]
    assert made.stack_seconds(two) - made.stack_seconds(shared) == pytest.approx(0.01 * 700)


def test_members_on_instances_of_their_own_are_evaluated_one_by_one() -> None:
    """Each on data of its own, at the pace of a stack of one."""
    two = cells(seeds=2)
    apart = [two[0], replace(two[1], task=SMALL.model_copy(update={"task_seed": 1}))]
    paced = replace(rate({1: 0.6, 2: 0.6}, draw=0.01), answers={1: 0.08, 2: 0.02})
    made, tested = Rates({kind_of(cell): paced for cell in apart}), 2 * 2 * 400
    assert made.stack_seconds(apart) - made.stack_seconds(two) == pytest.approx(
        2 * tested * 0.06 + 0.01 * (50 + tested)
    )


@pytest.mark.parametrize(("gating", "sampled"), [("joint", 100 * 200), ("operation", 0)])
def test_adaptation_that_is_sampled_shows_every_member_more(gating: str, sampled: int) -> None:
    made = task("rules/mha", rules=2)
    plain = replace(cells()[0], task=made, model=options("rules-mha", width=8, gating=gating))
    analysed = replace(plain, evaluation=Evaluation(examples=1_000, analyses=("specialization",)))
    rates = Rates({kind_of(plain): rate({1: 1.0}, answer=0.001, draw=0.01)})
    shown = 2 * (10_000 + sampled)
    assert rates.seconds(analysed) - rates.seconds(plain) == pytest.approx(shown * 0.011)


def test_an_endless_task_is_drawn_step_by_step() -> None:
    endless = replace(cells()[0], task=SMALL.model_copy(update={"train_size": None}))
    made = Rates({kind_of(endless): rate({1: 1.0}, draw=0.01)})
    assert made.seconds(endless) - made.seconds(cells()[0]) == pytest.approx(0.01 * (100 * 10 - 700))


def test_what_was_measured_before_is_known_without_a_probe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prober, cache = Prober(monkeypatch), tmp_path / "rates.json"
    assert Rates.measure(many(2), probes=0, cache=cache).measured(many(2)) == (0, 2)
    Rates.measure(many(2), cache=cache)
    assert Rates.measure(many(3), probes=0, cache=cache).measured(many(3)) == (2, 3)
    assert len(prober.probed) == 2


@pytest.mark.parametrize(("members", "step"), [(1, 1.0), (3, 2.0 / 3), (5, 0.6), (6, 3.2 / 6), (10, 0.4), (50, 0.4)])
def test_between_measured_sizes_whole_steps_lie_on_a_line(members: int, step: float) -> None:
    assert rate({1: 1.0, 5: 0.6, 10: 0.4}).step(members) == pytest.approx(step)


class Users(nn.Module):
    """A user's module."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.linear = nn.Linear(36, 1)

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        return torch.as_tensor(self.linear(inputs["query"]))


@pytest.mark.parametrize("cls", [None, Users])
def test_a_real_probe_gives_a_rate(tmp_path: Path, cls: type[nn.Module] | None) -> None:
    """One real measurement from end to end; every number in it depends on the machine, their signs do not."""
    some = [replace(cell, model=cell.model if cls is None else model_config(cls)) for cell in cells(seeds=2)]
    made = Rates.measure(some, cache=tmp_path / "rates.json")
    (found,) = made._known.values()
    assert found.steps.keys() == {1, 2}
    assert min(found.steps.values()) > 0 and min(found.answers.values()) > 0 and found.draw > 0 and found.build > 0
    assert made.seconds(some[0]) > 100 * min(found.steps.values())
    assert len(arrange(some, 2, made)) == 2

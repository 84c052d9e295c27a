"""The benchmark of growth: its curves can all be drawn, and grow in what they say they grow in."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from benchmarks.growth import ANALYSES, CURVES, DRAWING, TRAINING, Curve, growth
from benchmarks.rows import Asked
from benchmarks.scaling_fit import fitted

from benchmarks import growth as room
from unseen.tasks.base import Examples
from unseen.training.trainer import Trainer


def test_every_family_is_there_over_what_it_has() -> None:
    over = {model: {c.over for c in TRAINING if c.what == model} for model in {c.what for c in TRAINING}}
    assert over == {
        "retrieval-transformer": {"batch", "width", "length", "S"},
        "rules-mlp": {"batch", "width", "rules", "S"},
        "rules-rnn": {"batch", "width", "length", "rules", "S"},
        "ctl-transformer": {"batch", "width", "length", "S"},
        "gcog-single-stream": {"batch", "width", "length", "S"},
    }
    assert {c.what.split("/")[0] for c in DRAWING} == {"retrieval", "rules", "ctl", "gcog"}
    assert len({c.case for c in CURVES}) == len(CURVES)


@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.case)
def test_sizes_grow_and_are_enough_for_an_exponent(curve: Curve) -> None:
    assert len(curve.sizes) >= 4 and list(curve.sizes) == sorted(set(curve.sizes))


@pytest.mark.parametrize("curve", [c for c in DRAWING if c.what != "ctl/A"], ids=lambda curve: curve.case)
def test_a_generator_gives_what_its_curve_says(curve: Curve) -> None:
    drawn = curve.make(curve.sizes[1])()
    assert isinstance(drawn, Examples)
    assert len(drawn) == (curve.sizes[1] if curve.over == "examples" else 4096)


SIZE_OF: dict[str, Callable[[Trainer], int]] = {
    "batch": lambda trainer: trainer.job.recipe.batch,
    "S": lambda trainer: len(trainer.running),
    "width": lambda trainer: trainer.stack.parameters["embed.linear.bias"].shape[1],
    "length": lambda trainer: trainer.job.task.spec.streams[0].length,
}


@pytest.mark.parametrize("over", SIZE_OF)
def test_a_step_is_of_the_size_it_says_and_is_done(over: str) -> None:
    (curve,) = [c for c in TRAINING if c.case == f"retrieval-transformer over {over}"]
    step = curve.make(curve.sizes[1])
    assert isinstance(step, partial)
    trainer: Trainer = step.func.__self__
    for done in (1, 2):
        step()
        assert trainer.step == done and SIZE_OF[over](trainer) == curve.sizes[1]


def test_rows_are_the_points_of_a_curve_and_its_exponent() -> None:
    (curve,) = [c for c in ANALYSES if c.what == "clusters"]
    rows = list(growth(Asked(quick=True, only=curve.case)))
    assert [row.figure for row in rows] == [*(f"functions={n}" for n in curve.sizes[:3]), "exponent"]
    assert {row.case for row in rows} == {"clusters over functions"} and all(row.unit == "ms" for row in rows[:-1])
    found = fitted({n: row.value for n, row in zip(curve.sizes, rows[:-1], strict=False)})
    assert rows[-1].value == pytest.approx(found.exponent)


def test_short_work_is_repeated_and_the_time_is_of_one() -> None:
    calls = {1: 0, 100: 0}

    def make(n: int) -> Callable[[], None]:
        def work() -> None:
            calls[n] += 1
            sum(range(20_000 * n))

        return work

    found = room._timed(Curve("sum", "terms", (1, 100), make), (1, 100), rounds=3, least=0.01)
    assert calls[1] > 5 * calls[100] and found[1].seconds < found[100].seconds


def test_later_settings_win() -> None:
    assert room._merged({"task": {"name": "a", "length": 1}}, {"task": {"length": 2}, "model": {}}) == {
        "task": {"name": "a", "length": 2},
        "model": {},
    }

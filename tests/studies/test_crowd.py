"""Several processes that probe at once: what they find together, and what happens where they can't."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from torch import Tensor, nn

from unseen.engine.recipe import Evaluation, recipe
from unseen.models import options
from unseen.studies.cell import Cell, model_config
from unseen.studies.crowd import Crowd
from unseen.studies.rates import Rates
from unseen.studies.rates_cache import Rate, RatesCache, middle
from unseen.tasks import task

CELL = Cell(
    task("retrieval/T1", length=5, train_size=50, evaluation_size=50),
    options("lstm", width=4),
    recipe(steps=10, batch=5),
    Evaluation(),
    0,
    0,
)


def test_two_find_a_rate_together_and_are_gone_afterwards(tmp_path: Path) -> None:
    with Crowd(2) as crowd:
        first = crowd.probe(CELL, [1, 2], 60.0, "cpu")
        again = crowd.probe(CELL, [1], 60.0, "cpu")
        processes = [process for process, _ in crowd._started]
    assert first is not None and first.steps.keys() == {1, 2} and (first.asked, first.crowd) == (2, 2)
    assert again is not None and again.steps.keys() == {1}
    assert [process.poll() for process in processes] == [-9, -9]


def test_one_needs_no_process() -> None:
    with Crowd(1) as crowd:
        assert crowd.probe(CELL, [1], 60.0, "cpu") is None and not crowd._started


def test_where_one_has_died_they_find_nothing() -> None:
    with Crowd(2) as crowd:
        crowd._started[0][0].kill()
        assert crowd.probe(CELL, [1], 60.0, "cpu") is None


def test_a_class_that_only_this_process_knows_is_tried_here(tmp_path: Path) -> None:
    class Hidden(nn.Module):
        """Nobody can import it."""

        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(36, 1)

        def forward(self, inputs: dict[str, Tensor]) -> Tensor:
            answer: Tensor = self.linear(inputs["query"])
            return answer

    hidden = replace(CELL, model=model_config(Hidden))
    assert Rates.measure([hidden], workers=2, cache=tmp_path / "rates.json").measured([hidden]) == (1, 1)
    ((_, kept),) = RatesCache(tmp_path / "rates.json").known.items()
    assert kept.crowd == 2  # it would be no better next time


def test_a_rate_of_few_processes_does_for_fewer_only(tmp_path: Path) -> None:
    cache = RatesCache(tmp_path / "rates.json")
    cache.add("a", Rate({1: 1.0}, {1: 0.0}, 1.0, 0.0, 0.0, 5, 2))
    assert [cache.covers("a", 5, crowd) for crowd in (1, 2, 3)] == [True, True, False]


def test_the_middle_of_what_they_find_counts() -> None:
    found = [Rate({1: t, 5: t / 2}, {1: t, 5: t}, 1.0, t, 2 * t, 5, 1) for t in (1.0, 9.0, 2.0)]
    short = Rate({1: 3.0}, {1: 3.0}, 1.0, 3.0, 6.0, 5, 1)
    assert middle(found) == Rate({1: 2.0, 5: 1.0}, {1: 2.0, 5: 2.0}, 1.0, 2.0, 4.0, 5, 3)
    assert middle([*found, short]).steps == pytest.approx({1: 2.5})  # what all of them have tried

"""The scores behind an answer: never averaged over an axis that is asked about, beside chance, shortcut and oracle."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.store_builder import build
from unseen.report.data import Source
from unseen.report.sections.scores import MAX_ROWS, ScoreTable, Standing, describe_scores, tabulate_scores
from unseen.tasks import task

LEVELS = {3: 0.558, 4: 0.546, 5: 0.998}


def by_length(levels: Any, seed: int) -> dict[Any, float]:
    accuracy = LEVELS[levels["length"]] + 0.001 * (seed - 1)
    return {("iid", "accuracy"): 0.999, ("ood/single", "accuracy"): accuracy}


def by_length_task(levels: Any) -> Any:
    return task("retrieval/T6", length=levels["length"], train_size=200, evaluation_size=100)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """A user's own study: .701 over levels of .558, .546 and .998 would answer nothing."""
    path = tmp_path_factory.mktemp("scores") / "store"
    build(path, axes={"length": list(LEVELS)}, metrics=by_length, task=by_length_task, seeds=range(3))
    return Source.read(path)


def test_a_row_per_level_of_the_axis(source: Source) -> None:
    table = tabulate_scores(source)
    assert table is not None and list(table.axes) == ["length"] and table.split == "ood/single" and not table.pooled
    assert [row.levels for row in table.rows] == [{"length": str(level)} for level in LEVELS]
    assert [row.mean for row in table.rows] == pytest.approx(list(LEVELS.values()))
    assert [row.inside for row in table.rows] == pytest.approx([0.999] * 3)
    for row in table.rows:
        assert row.low <= row.mean <= row.high and row.runs == 3
        assert row.baselines["chance"] == 0.5 and row.baselines["oracle"] == 1.0
        # An independent count: the best shortcut of the very task of this level, on the same test data.
        made = task("retrieval/T6", length=int(row.levels["length"]), train_size=200, evaluation_size=100)
        examples = made.sample("ood/single", made.size("ood/single") or 100, data_seed="test")
        accuracies = [
            np.mean(shortcut.answer(examples) == examples.targets) for shortcut in made.shortcuts("ood/single")
        ]
        assert row.shortcut is not None and row.shortcut[1] == pytest.approx(max(accuracies))


def test_the_answer_says_each_level_and_which_exceed_the_shortcut(source: Source) -> None:
    text = describe_scores(tabulate_scores(source))
    for level, mean in LEVELS.items():
        assert re.search(rf"{mean:.3f} \[[^]]*\] for length {level}", text)
    assert "0.701" not in text
    assert "Chance is 0.500, the best shortcut" in text and text.endswith(
        "Entirely above chance and every known shortcut: length 5."
    )


def test_many_configurations_are_listed_by_axis_and_say_so(tmp_path: Path) -> None:
    axes = {"variant": list("abcde"), "width": [1, 2, 3, 4, 5, 6]}
    build(tmp_path / "store", axes=axes, seeds=range(2))
    table = tabulate_scores(Source.read(tmp_path / "store"))
    assert table is not None and table.pooled and len(table.rows) == 11 <= MAX_ROWS
    assert {axis for row in table.rows for axis in row.levels} == set(axes)
    assert "(each a mean over the other axes)" in describe_scores(table)


def test_a_store_without_records_has_no_scores(tmp_path: Path) -> None:
    build(tmp_path / "store", status=lambda levels, seed: "pending")
    assert tabulate_scores(Source.read(tmp_path / "store")) is None


def test_only_a_whole_interval_exceeds() -> None:
    baselines = {"chance": 0.5, "one feature": 0.8, "oracle": 1.0}
    row = Standing({}, "iid", "accuracy", 0.82, 0.81, 0.83, 5, baselines)
    assert row.exceeds_shortcut is True
    assert replace(row, low=0.79).exceeds_shortcut is False
    assert replace(row, low=math.nan).exceeds_shortcut is None
    assert "The interval does not lie entirely above" in describe_scores(
        ScoreTable((), [replace(row, low=0.79)], "iid")
    )
    worse = {"chance": 0.5, "majority": 0.45, "oracle": 1.0}
    assert replace(row, baselines=worse).shortcut is None

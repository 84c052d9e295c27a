"""The summary of `unseen results DIR`: a line per configuration, also where axes differ between grids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.finished_store import fill_store
from unseen.cli.summary import MOST_INTERVALS, summarize
from unseen.store.store import Store
from unseen.studies.grid import Grid

BASE = {"task": {"name": "retrieval/T1", "length": 3}, "model": {"name": "lstm"}}


def grid(path: str, levels: list[Any], seeds: int = 3) -> Grid:
    part, _, option = path.partition(".")
    return Grid({option: {level: {part: {option: level}} for level in levels}}, BASE, range(seeds))


def lines(out: Path, *grids: Grid) -> list[str]:
    fill_store([entry for one in grids for entry in one.entries()], out)
    return summarize(out).splitlines()


def test_every_configuration_has_a_line_in_the_order_of_the_study(tmp_path: Path) -> None:
    found = lines(tmp_path / "r", grid("task.length", [10, 5]))
    assert found[0] == "many-trials@1 full: 6 of 6 trials have ended"
    assert found[2] == "accuracy:" and found[3].split() == ["length", "runs", "iid", "ood/single"]
    assert [line.split()[:3] for line in found[4:6]] == [["10", "3", "0.001"], ["5", "3", "0.004"]]
    assert found[4].count("[") == 2


def test_a_configuration_without_a_level_on_some_axis_has_a_line_too(tmp_path: Path) -> None:
    found = lines(tmp_path / "r", grid("model.width", [16, 32]), grid("recipe.optimiser", ["sgd"]))
    assert [line.split()[0] for line in found[4:7]] == ["16", "32", "sgd"]
    assert found[6].startswith(" "), "the column width is empty"


def test_a_long_table_has_no_intervals(tmp_path: Path) -> None:
    found = lines(tmp_path / "r", grid("recipe.steps", list(range(1, MOST_INTERVALS + 2))))
    assert len([line for line in found if " ± " in line]) == MOST_INTERVALS + 1


def test_records_and_entries_are_of_one_moment_and_the_overall_ones_a_part_of_all(tmp_path: Path) -> None:
    fill_store(grid("task.length", [5, 10]).entries(), tmp_path / "r")
    with Store.read(tmp_path / "r") as store:
        (overall, entries), (records, same) = store.tables(overall=True), store.tables()
        assert records.equals(store.records()) and entries.equals(same)
    assert overall.equals(records[records.factor == ""].reset_index(drop=True))
    assert 0 < len(overall) < len(records) and len(entries) == 6

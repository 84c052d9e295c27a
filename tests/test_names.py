"""The parts of registered names and split names, for every registered task."""

from __future__ import annotations

import pytest

from unseen.names import SplitGroup, SplitKind, bare_name, family_of, find_ood, is_ood, name_in_family, parse_split
from unseen.tasks import TASKS, task

NAMES = [entry.name for entry in TASKS]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_tasks_are_a_family_and_a_name(name: str) -> None:
    assert f"{family_of(name)}/{name_in_family(name)}" == name


def test_splits_with_numbers_are_read_as_the_tasks_write_them() -> None:
    distractor = task("gcog/distractor")
    numbers = [parse_split(name).number("distractors") for name in distractor.splits]
    assert numbers == [None, None, 1, 5, 10, 20, 30, 40, None]  # the last is the range 40-50
    group = SplitGroup(("train",), ((SplitKind.OOD, "distractors"),))
    assert [name for name in distractor.splits if name in group] == [
        "train",
        *(f"ood/distractors={number}" for number in (10, 20, 30, 40)),
    ]


def test_splits_that_are_neither_are_not_out_of_distribution() -> None:
    splits = list(task("ctl/graph").splits)
    assert [name for name in splits if not is_ood(name)] == ["train", "iid", "probe/pairs", "probe/singles"]
    assert find_ood(splits) == "ood/transition"
    assert find_ood(["train", "iid", "probe/pairs"]) is None


def test_several_factors() -> None:
    split = parse_split("ood/length=30,amplitude=1.41421")
    assert split.values == (("length", "30"), ("amplitude", "1.41421"))
    assert (split.number("length"), split.number("amplitude"), split.number("rules")) == (30, None, None)
    assert "ood/length=30,amplitude=2" not in SplitGroup(numbered=((SplitKind.OOD, "length"),))


def test_versions() -> None:
    assert bare_name("quickstart@2") == bare_name("quickstart") == "quickstart"

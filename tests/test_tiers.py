"""The tiers of `make test-fast` name files, folders and functions that exist, and it runs some cases of every function."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.tiers import TESTS, TIERS, choose_cases, tiers_of


def exists(place: str) -> bool:
    path, _, function = place.partition("::")
    file = TESTS / path
    return file.exists() and (not function or re.search(rf"^def {function}\(", file.read_text(), re.M) is not None)


@pytest.mark.parametrize("tier", TIERS)
def test_every_place_of_a_tier_exists(tier: str) -> None:
    assert [place for place in TIERS[tier] if not exists(place)] == []


def test_a_place_that_does_not_exist_is_noticed() -> None:
    assert exists("test_tiers.py::test_a_place_that_does_not_exist_is_noticed")
    assert not exists("test_tiers.py::test_that_is_not_here") and not exists("test_that_is_not_here.py")


def test_a_place_is_a_folder_a_file_or_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TIERS, "slow", ("kit", "stats/test_power.py", "test_names.py::test_one"))
    for path, function, tiers in (
        ("kit/test_new.py", "test_it", ["slow"]),
        ("kitchen/test_new.py", "test_it", []),
        ("stats/test_power.py", "test_it", ["slow"]),
        ("test_names.py", "test_one", ["slow"]),
        ("test_names.py", "test_one_more", []),
        ("docs/test_site.py", "test_it", ["docs"]),
    ):
        assert tiers_of(Path(path), function) == tiers


def test_of_every_function_the_first_the_last_and_some_between_are_run() -> None:
    names = [*(f"a.py::test_many[{number}]" for number in range(9)), "a.py::test_one", "b.py::test_many[0]"]
    assert sorted(choose_cases(names, 3)) == [
        "a.py::test_many[0]",
        "a.py::test_many[4]",
        "a.py::test_many[8]",
        "a.py::test_one",
        "b.py::test_many[0]",
    ]
    assert choose_cases(names, 9) == set(names)
    assert len(choose_cases(names, 2)) == 4

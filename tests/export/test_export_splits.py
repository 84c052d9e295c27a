"""Which examples an export has, and what its splits are called."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen.errors import UsageError
from unseen.export.splits import file_names, select_splits
from unseen.tasks import task

SMALL = {"train_size": 700, "evaluation_size": 300}


def sizes(name: str, splits: list[str], n: int | None, **options: object) -> dict[str, int]:
    return {part.split.name: part.examples for part in select_splits(task(name, **options), splits, n, 0)}


def test_nothing_said_means_all_finite_splits_whole() -> None:
    assert sizes("retrieval/T1", [], None, **SMALL) == {"train": 700, "iid": 300, "ood/single": 300}
    assert sizes("retrieval/T1", [], None, train_size=None, evaluation_size=300) == {"iid": 300, "ood/single": 300}


def test_with_n_all_splits_are_exported_and_small_ones_whole() -> None:
    assert sizes("retrieval/T1", [], 500, **SMALL) == {"train": 500, "iid": 300, "ood/single": 300}
    assert set(sizes("rules/mlp", [], 7).values()) == {7}


def test_splits_named_are_taken_at_their_word() -> None:
    assert sizes("retrieval/T1", ["ood/single", "train"], None, **SMALL) == {"ood/single": 300, "train": 700}
    assert sizes("rules/mlp", ["iid"], 12) == {"iid": 12}
    with pytest.raises(UsageError, match="has 300 examples, but 500 were requested"):
        sizes("retrieval/T1", ["iid"], 500, **SMALL)


@pytest.mark.parametrize(
    ("splits", "n", "said"),
    [
        (["iid"], None, "split 'iid' of rules/mlp is endless; say how many examples with -n"),
        ([], None, "all splits of rules/mlp are endless; say how many"),
        (["idi"], 5, "Did you mean 'iid'"),
        (["iid", "train", "iid"], 5, "'iid' is given twice"),
        ([], 0, "n = 0: give a positive number"),
        ([], -3, "n = -3"),
    ],
)
def test_wrong_requests(splits: list[str], n: int | None, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        sizes("rules/mlp", splits, n)


def test_a_wrong_data_seed_is_refused() -> None:
    with pytest.raises(UsageError, match="data seed 'tset'"):
        select_splits(task("rules/mlp"), [], 3, "tset")  # type: ignore[arg-type]


@given(st.lists(st.text(st.sampled_from("abAB01/=,.-–é _"), min_size=1, max_size=6), unique=True, max_size=12))
@settings(derandomize=True, deadline=None)
def test_split_names_are_legal_and_stay_apart(splits: list[str]) -> None:
    found = file_names(splits)
    assert list(found) == splits
    assert all(re.fullmatch(r"[A-Za-z0-9_]+", name) for name in found.values())
    assert len({name.lower() for name in found.values()}) == len(splits)

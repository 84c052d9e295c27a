"""The splits: disjoint where they should be, counted where they are not, and kept by the generators."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from support.gcog_cases import PAPER, THREE_FEATURES
from unseen.errors import UsageError
from unseen.tasks import task
from unseen.tasks.gcog.schema import STANDARD, Schema
from unseen.tasks.gcog.variants import (
    OPERATORS_A,
    OPERATORS_B,
    TREE_GROUPS,
    divide_objects,
    list_instructions,
)


def combinations(sizes: tuple[int, ...], hold_out: str, portion: str) -> set[object]:
    """The pairs of operator and object in training or in test."""
    divided = divide_objects(sizes, hold_out, portion)
    return {(name, values) for name, objects in divided.items() for values in objects}


def both(schema: Schema, hold_out: str) -> tuple[set[object], set[object]]:
    return combinations(schema.sizes, hold_out, "train"), combinations(schema.sizes, hold_out, "test")


def named(schema: Schema, hold_out: str) -> tuple[set[object], set[object]]:
    train, test = both(schema, hold_out)
    return list_instructions(schema, train), list_instructions(schema, test)


@pytest.mark.parametrize("schema", [PAPER, THREE_FEATURES], ids=["paper", "three features"])
@pytest.mark.parametrize("hold_out", ["clean", "released-minus-leak"])
def test_sound_splits_share_nothing(schema: Schema, hold_out: str) -> None:
    for train, test in (both(schema, hold_out), named(schema, hold_out)):
        assert train and test and not train & test


def test_the_released_split_leaks_half_of_its_test() -> None:
    train, test = both(PAPER, "released")
    assert (len(train), len(test), len(train & test)) == (1040, 1040, 520)
    seen, asked = named(PAPER, "released")
    assert (len(asked), len(seen & asked)) == (816, 408)
    kept = combinations(PAPER.sizes, "released-minus-leak", "test")
    assert kept == test - train and len(kept) == 520
    asked = {values for _, values in train | test}
    assert set(product(range(26), range(10))) - asked == set(product(range(13), range(5, 10)))


def test_the_clean_split_is_a_checkerboard_with_complete_margins() -> None:
    train, test = (divide_objects(PAPER.sizes, "clean", side) for side in ("train", "test"))
    for name in STANDARD:
        if PAPER.operators[name].key is not None:
            continue
        assert len(train[name]) == len(test[name]) == 130
        assert set(train[name]) | set(test[name]) == set(product(range(26), range(10)))
        for side in (train, test):
            assert {i for i, _ in side[name]} == set(range(26)) and {j for _, j in side[name]} == set(range(10))
        first = {(i, j) for i in range(26) for j in range(10) if (i // 13 + j // 5) % 2 == 0}
        assert set(train[name]) == (first if name in OPERATORS_A else set(product(range(26), range(10))) - first)
    for side, colors, shapes in ((train, range(5), range(13, 26)), (test, range(5, 10), range(13))):
        assert {j for _, j in side["GetShape"]} == set(colors) and {i for i, _ in side["GetColor"]} == set(shapes)
    assert set(OPERATORS_A) | set(OPERATORS_B) == set(STANDARD)


@pytest.mark.parametrize("preset", ["clean", "released"])
@pytest.mark.parametrize("hold_out", ["clean", "released", "released-minus-leak"])
def test_generated_questions_are_the_instructions_of_their_side(preset: str, hold_out: str) -> None:
    gcog_task = task("gcog/systematic-operators", preset=preset, split=hold_out)
    for split, side in (("train", "train"), ("iid", "train"), ("ood/operators", "test")):
        examples = gcog_task.sample(split, 20_480)
        operators, objects = (examples.factors[name].tolist() for name in ("operator", "object"))
        assert set(zip(operators, map(tuple, objects), strict=True)) == list_instructions(
            PAPER, combinations(PAPER.sizes, hold_out, side)
        )


def test_named_objects_are_uniform_and_answers_are_not_restricted() -> None:
    examples = task("gcog/systematic-operators").sample("train", 40_960)
    operator, named = examples.factors["operator"], examples.factors["object"].astype(np.int64)
    for name in STANDARD:
        counts = np.unique(named[operator == name] @ [1, 100], return_counts=True)[1]
        expected = len(counts) and (operator == name).sum() / len(counts)
        assert abs(counts - expected).max() < 6 * np.sqrt(expected)
    for name, values in (("GetShape", 26), ("GetColor", 10)):
        assert len(set(examples.targets[operator == name].tolist())) == values


def test_ten_shapes_divide_as_in_the_published_demonstrations() -> None:
    gcog_task = task("gcog/systematic-operators", preset="released", task_shapes=10)
    train, test = gcog_task.combinations("train"), gcog_task.combinations("test")
    assert (len(train), len(test), len(train & test)) == (400, 400, 200)
    examples = gcog_task.sample("ood/operators", 4096)
    assert examples.factors["object"][:, 0].max() == 10
    assert set(
        zip(examples.factors["operator"].tolist(), map(tuple, examples.factors["object"].tolist()), strict=True)
    ) == list_instructions(PAPER, test)


def test_trees_train_80_triples_and_test_80_others() -> None:
    triples = {side: {t for group in groups for t in product(*group)} for side, groups in TREE_GROUPS.items()}
    assert {side: len(found) for side, found in triples.items()} == {"train": 80, "test": 80, "mixed-leaves": 160}
    assert [len(list(product(*group))) for side in ("train", "test") for group in TREE_GROUPS[side]] == [48, 32, 48, 32]
    assert not triples["train"] & triples["test"]
    assert not (triples["train"] | triples["test"]) & triples["mixed-leaves"]
    assert len(triples["train"] | triples["test"] | triples["mixed-leaves"]) == 5 * 8 * 8 == 320


@pytest.mark.parametrize("preset", ["clean", "released"])
def test_generated_trees_are_the_triples_of_their_side(preset: str) -> None:
    gcog_task = task("gcog/systematic-trees", preset=preset)
    sides = {"iid/depth=3": "train", "ood/trees": "test", "ood/mixed-leaves": "mixed-leaves"}
    for split, side in sides.items():
        codes = {tuple(PAPER.operators[name].code for name in t) for g in TREE_GROUPS[side] for t in product(*g)}
        assert set(map(tuple, gcog_task.sample(split, 4096).factors["operators"].tolist())) == codes
    train = gcog_task.sample("train", 4096).factors
    deep = train["depth"] == 3
    assert 0.45 < deep.mean() < 0.55
    single = train["operators"][~deep]
    assert set(single[:, 0].tolist()) == set(range(1, 9)) and not single[:, 1:].any()
    codes = {tuple(PAPER.operators[name].code for name in t) for g in TREE_GROUPS["train"] for t in product(*g)}
    assert set(map(tuple, train["operators"][deep].tolist())) == codes


def test_test_sets_are_stratified_by_the_operator_reached() -> None:
    cases = [
        ("gcog/distractor", "iid"),
        ("gcog/systematic-trees", "ood/trees"),
        ("gcog/systematic-trees", "iid"),
        ("gcog/systematic-trees", "ood/mixed-leaves"),
        ("gcog/productive", "ood/depth=5"),
    ]
    for name, split in cases:
        operator = task(name).sample(split, 10_000, data_seed="test").factors["operator"]
        assert np.unique(operator, return_counts=True)[1].tolist() == [1250] * 8
    drawn = task("gcog/distractor").sample("train", 10_000).factors["operator"]
    assert np.unique(drawn, return_counts=True)[1].tolist() != [1250] * 8


def test_coverage_moves_test_combinations_into_training() -> None:
    before = task("gcog/systematic-operators")
    sizes = []
    for coverage in (0.25, 0.5, 0.99):
        chosen = task("gcog/systematic-operators", coverage=coverage)
        trained, tested = chosen.combinations("train"), chosen.combinations("test")
        assert not trained & tested and tested < before.combinations("test")
        assert trained | tested == before.combinations("train") | before.combinations("test")
        schema = chosen.domain
        assert not list_instructions(schema, trained) & list_instructions(schema, tested)  # of GetColor, whole shapes
        assert {operator for operator, _ in tested} == set(STANDARD)
        sizes.append(1 - len(tested) / len(before.combinations("test")))
        examples = chosen.sample("ood/operators", 300, data_seed="test")
        asked = zip(examples.factors["operator"].tolist(), map(tuple, examples.factors["object"].tolist()), strict=True)
        seen = chosen.sample("train", 5000).factors
        known = set(zip(seen["operator"].tolist(), map(tuple, seen["object"].tolist()), strict=True))
        assert not known & set(asked)
    assert sizes[:2] == pytest.approx([0.25, 0.5], abs=0.03) and 0.9 < sizes[2] < 1


def test_coverage_is_for_the_clean_hold_out() -> None:
    for options in ({"preset": "released"}, {"split": "released-minus-leak"}):
        with pytest.raises(UsageError, match="use the hold-out clean"):
            task("gcog/systematic-operators", coverage=0.5, **options)

"""What can be reached without doing the task: the published figures, and the rules that reach them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from support.gcog_cases import EVERY_OPERATOR, PAPER, fair, make_plan
from unseen.tasks import task
from unseen.tasks.gcog.audit import (
    compute_blind_accuracy,
    compute_ceilings,
    compute_count_accuracy,
    compute_leaf_shares,
    compute_operator_chance,
    compute_true_share,
)
from unseen.tasks.gcog.schema import STANDARD
from unseen.tasks.gcog.variants import LEAVES_A, LEAVES_B, TREE_GROUPS
from unseen.tasks.verify.baselines import expect_commonest

EVEN = dict.fromkeys(STANDARD, 1 / 8)


def test_chance_is_33_11_per_cent() -> None:
    assert compute_operator_chance(PAPER, EVEN) == pytest.approx((5 / 2 + 1 / 10 + 1 / 26 + 1 / 100) / 8)
    assert compute_operator_chance(PAPER, EVEN) == pytest.approx(0.331058, abs=1e-6)
    for leaves, expected in ((LEAVES_A, 0.2846), (LEAVES_B, 0.3775)):
        assert compute_operator_chance(PAPER, dict.fromkeys(leaves, 1 / 4)) == pytest.approx(expected, abs=1e-4)
    assert compute_true_share(PAPER, EVEN) == 0.3125


def test_leaves_are_counted_over_groups_and_depths() -> None:
    plans = [make_plan(), make_plan(depth=3, groups=TREE_GROUPS["train"])]
    assert compute_leaf_shares(plans) == pytest.approx(EVEN)


def test_blind_accuracy_at_depth_3_is_31_87_per_cent() -> None:
    """By the table of the specification, and by going through all 64 pairs of leaves."""
    table = 25 / 64 / 2 + 30 / 64 / 4 + (0.1 + 1 / 26 + 0.01) / 64 + 2 / 64 * (1 / 18 + 0.05 + 1 / 52)
    assert compute_blind_accuracy(make_plan(depth=3)) == pytest.approx(table) == pytest.approx(0.3187, abs=5e-5)
    total = 0.0
    for pair in product(STANDARD, repeat=2):
        chances: dict[object, float] = {}
        shapes, colors = 26 - pair.count("GetColor"), 10 - pair.count("GetShape")
        for name in pair:
            answers = {"GetColor": range(colors), "GetShape": range(100, 100 + shapes), "GetLocation": range(200, 300)}
            for answer in answers.get(name, ("True", "False")):
                chances[answer] = chances.get(answer, 0) + 1 / 2 / len(answers.get(name, (0, 1)))
        total += max(chances.values()) / 64
    assert total == pytest.approx(table)


def test_blind_accuracy_at_depth_1_is_chance() -> None:
    assert compute_blind_accuracy(make_plan()) == pytest.approx(compute_operator_chance(PAPER, EVEN))
    assert compute_blind_accuracy(make_plan(EVERY_OPERATOR)) is None


def test_counting() -> None:
    assert compute_count_accuracy((1, 5), False) == 0.6 and compute_count_accuracy((7, 7), False) == 1.0


@pytest.mark.parametrize(("values", "objects"), [(10, 3), (26, 6), (10, 41), (16, 200)])
def test_the_commonest_value(values: int, objects: int) -> None:
    drawn = np.random.default_rng(0).integers(values, size=(20_000, objects))
    most = np.array([np.bincount(row).max() for row in drawn]) / objects
    assert expect_commonest(values, objects) == pytest.approx(most.mean(), abs=5 * most.std() / np.sqrt(len(most)))


@pytest.mark.parametrize("coding", ["integer", "onehot", "embedding"])
@pytest.mark.parametrize(
    ("name", "split", "expected"),
    [
        (
            "gcog/distractor",
            "iid",
            {
                "instruction-blind": 0.3125,
                "constant per operator": 0.331058,
                "stimulus-blind": 0.331058,
                "count-only": 0.331058 + 0.1 / 8,
            },
        ),
        ("gcog/distractor", "ood/distractors=10", {"count-only": 0.331058 + 0.5 / 8}),
        (
            "gcog/productive",
            "iid/depth=3",
            {"instruction-blind": 0.3125, "constant per operator": 0.331058, "stimulus-blind": 0.31870},
        ),
    ],
)
def test_shortcuts_reach_what_was_worked_out_and_no_more(
    name: str, split: str, expected: dict[str, float], coding: str
) -> None:
    gcog_task = task(name, coding=coding)
    count = 20_480 if coding == "integer" else 2048
    examples = gcog_task.sample(split, count)
    shortcuts = {shortcut.name: shortcut for shortcut in gcog_task.shortcuts(split)}
    assert ("count-only" in shortcuts) == (name == "gcog/distractor")
    for rule, share in expected.items():
        assert shortcuts[rule].ceiling == pytest.approx(share, abs=1e-4)
        right = np.asarray(shortcuts[rule].answer(examples)) == examples.targets
        assert fair(int(right.sum()), count, share)


def test_released_constants_reach_39_36_per_cent() -> None:
    examples = task("gcog/distractor", preset="released").sample("train", 20_480)
    rule = next(s for s in task("gcog/distractor").shortcuts("train") if s.name == "constant per operator")
    right = rule.answer(examples) == examples.targets
    expected = (3 * 0.5 + 2 * 0.75 + 0.1 + 1 / 26 + 0.01) / 8
    assert expected == pytest.approx(0.3936, abs=5e-5) and abs(right.mean() - expected) < 0.02


def test_ceilings_of_the_generic_baselines_are_ordered() -> None:
    for released in (False, True):
        found = list(compute_ceilings([make_plan(), make_plan(depth=3)], released).values())
        assert found == sorted(found) and found[0] >= 0.3125

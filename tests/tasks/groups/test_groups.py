"""Groups and their word problems: against textbook facts, the multiplication table and brute force."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from support.golden_tables import GROUPS
from unseen.errors import UsageError
from unseen.tasks import task
from unseen.tasks.base import Examples
from unseen.tasks.groups.group import generate_group, make_named_group, read_group_table
from unseen.tasks.groups.solver import solve
from unseen.tasks.verify import fingerprint, verify

NAMES = ("Z2", "S3", "A5", "S5", "own")
QUATERNIONS = [
    [0, 1, 2, 3, 4, 5, 6, 7],
    [1, 0, 3, 2, 5, 4, 7, 6],
    [2, 3, 1, 0, 6, 7, 5, 4],
    [3, 2, 0, 1, 7, 6, 4, 5],
    [4, 5, 7, 6, 1, 0, 2, 3],
    [5, 4, 6, 7, 0, 1, 3, 2],
    [6, 7, 4, 5, 3, 2, 1, 0],
    [7, 6, 5, 4, 2, 3, 0, 1],
]
"""1, −1, i, −i, j, −j, k, −k."""


@pytest.mark.parametrize("name", NAMES)
def test_golden_blocks(name: str) -> None:
    made = task(f"groups/{name}")
    assert tuple(fingerprint(made.sample(split, 1024)) for split in ("train", "ood/twice")) == GROUPS[name]


@pytest.mark.parametrize(
    ("name", "order", "commutes", "solvable"),
    [
        ("Z2", 2, True, True),
        ("Z5", 5, True, True),
        ("S3", 6, False, True),
        ("S4", 24, False, True),
        ("A4", 12, False, True),
        ("A5", 60, False, False),
        ("S5", 120, False, False),
    ],
)
def test_textbook_facts(name: str, order: int, commutes: bool, solvable: bool) -> None:
    group = make_named_group(name)
    assert group.order == order and group.solvable == solvable
    assert bool((group.table == group.table.T).all()) == commutes
    assert read_group_table(group.table.tolist()).order == order  # the table satisfies the axioms


def test_a_table_is_a_group_of_its_own_permutations() -> None:
    group = read_group_table(QUATERNIONS)
    assert group.table.tolist() == QUATERNIONS and group.solvable
    assert group.table[2, 4] == 6 and group.table[4, 2] == 7  # i j = k, j i = −k
    assert group.generate([2]) == {0, 1, 2, 3} and len(group.generate([2, 4])) == 8


@pytest.mark.parametrize("options", [{}, {"answer": "last"}, {"generators": (1, 2)}], ids=str)
@pytest.mark.parametrize("name", ["S3", "own"])
def test_solver_agrees_with_composed_permutations(name: str, options: dict[str, object]) -> None:
    made = task(f"groups/{name}", length=6, longest=20, **options)
    for split in made.splits:
        examples = made.sample(split, 200)
        assert np.array_equal(made.solve(examples), examples.targets)
        for tokens, target in zip(examples.inputs["token"], examples.targets, strict=True):
            word = made.token_elements[tokens]
            if "mask" in examples.inputs:
                break
            point = 0  # where one point of the permuted set goes
            for element, answer in zip(word, target, strict=True):
                point = made.group.permutations[element][point]
                assert made.group.permutations[answer][0] == point


def test_all_words_of_a_small_group() -> None:
    group = make_named_group("S3")
    for word in product(range(6), repeat=3):
        a, b, c = word
        assert solve(group.table.tolist(), word)[2] == group.table[a, group.table[b, c]]


def test_lengths_factors_and_the_mask() -> None:
    every = task("groups/A5").sample("ood/longest", 3)
    assert every.targets.shape == (3, 256) and set(every.factors["complexity"]) == {"NC1-complete"}
    assert np.unique(every.factors["prefix"]).tolist() == ["001-040", "041-080", "081-256"]
    last = task("groups/Z2", answer="last")
    for split, least, most in (("train", 1, 40), ("ood/twice", 41, 80), ("ood/longest", 81, 256)):
        examples = last.sample(split, 2000)
        lengths = examples.inputs["mask"].sum(1)
        assert (lengths == examples.factors["length"]).all() and lengths.min() == least and lengths.max() == most
        parity = (examples.inputs["token"] * examples.inputs["mask"]).sum(1) % 2
        assert np.array_equal(parity, examples.targets)


@pytest.mark.parametrize("options", [{"answer": "last"}, {"generators": (1, 2)}], ids=str)
def test_other_options_are_proven_too(options: dict[str, object]) -> None:
    assert verify(task("groups/S3", length=12, longest=30, **options), 1000).passed


def test_the_shortcut_of_the_latest_tokens_has_the_accuracy_that_is_declared() -> None:
    made = task("groups/S3", generators=(1, 2))
    examples = made.sample("train", 4000)
    for shortcut in made.shortcuts("train"):
        assert shortcut.ceiling is not None
        assert abs((shortcut.answer(examples) == examples.targets).mean() - shortcut.ceiling) < 0.01


QUOTIENTS = {"S3": 2, "S4": 2, "A4": 3, "A5": 1, "S5": 2, "Z5": 5}
"""Textbook orders of G / [G, G]."""


@pytest.mark.parametrize(("name", "order"), QUOTIENTS.items())
def test_the_abelian_quotient_has_the_order_of_the_textbook_and_its_products_need_no_order(
    name: str, order: int
) -> None:
    group = make_named_group(name)
    cosets = group.abelian_quotient
    assert len(np.unique(cosets)) == order
    # The cosets of a product: the same for a · b, b · a and the product of the cosets' first elements.
    assert np.array_equal(cosets[group.table], cosets[group.table.T])
    assert np.array_equal(cosets[group.table], cosets[group.table[np.ix_(cosets, cosets)]])


def test_the_sign_of_a_permutation_is_a_declared_shortcut_of_s3() -> None:
    made = task("groups/S3")
    examples = made.sample("ood/longest", 500)
    # Independently of the table: the sign is a determinant, and one of three elements of a sign is right by chance.
    odd = np.array([np.linalg.det(np.eye(3)[row]) < 0 for row in made.group.permutations])
    is_odd = odd[examples.inputs["token"]].cumsum(1) % 2 == 1
    by_sign = np.where(is_odd, np.flatnonzero(odd)[0], 0)
    measured = float((by_sign == examples.targets).mean())
    shortcuts = {shortcut.name: shortcut for shortcut in made.shortcuts("ood/longest")}
    quotient = shortcuts["the abelian quotient of the product"]
    assert quotient.ceiling == pytest.approx(1 / 3) == pytest.approx(measured, abs=0.01)
    both = shortcuts["the product of 16 tokens, the abelian quotient of that of more"]
    assert both.ceiling == pytest.approx((16 + 240 / 3) / 256)
    for shortcut in (quotient, both):
        score = float((shortcut.answer(examples) == examples.targets).mean())
        assert score == pytest.approx(shortcut.ceiling, abs=0.01)


@pytest.mark.parametrize("answer", ["every", "last"])
def test_the_quotient_shortcut_is_exact_with_generators_too(answer: str) -> None:
    made = task("groups/S3", generators=(1, 3), length=6, longest=14, answer=answer, evaluation_size=None)
    for split in ("iid", "ood/longest"):
        examples = made.sample(split, 20_000)
        for shortcut in made.shortcuts(split):
            score = (shortcut.answer(examples) == examples.targets).reshape(len(examples), -1).mean(1)
            assert score.mean() == pytest.approx(shortcut.ceiling, abs=4 * score.std() / np.sqrt(len(score)) + 1e-9)


@pytest.mark.parametrize("name", ["Z2", "A5"])
def test_without_a_proper_quotient_there_is_no_such_shortcut(name: str) -> None:
    assert len(task(f"groups/{name}").shortcuts("iid")) == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "groups/S3", "generators": (0, 3)}, r"generators \[0, 3\] generate 3 of the 6 elements"),
        ({"name": "groups/S3", "generators": (1, 6)}, "generators must be different elements, 0 to 5"),
        ({"name": "groups/S3", "generators": (1, 1, 2)}, "generators must be different elements"),
        ({"name": "groups/Z2", "length": 200}, "longest = 256 must be more than twice length = 200"),
        ({"name": "groups/own", "permutations": ((0, 2),)}, "is not a permutation of 0 … 1"),
        ({"name": "groups/own", "permutations": ((0, 1),)}, "the group has one element"),
        ({"name": "groups/own", "permutations": ((1, 2, 3, 4, 5, 6, 0), (1, 0, 2, 3, 4, 5, 6))}, "more than 1000"),
        ({"name": "groups/own", "table": ((0, 1), (1, 1))}, "does not have every element once"),
        (
            {"name": "groups/own", "table": ((1, 0), (0, 1))},
            "element 0 of the multiplication table is not the identity",
        ),
        ({"name": "groups/own", "table": ((0, 1), (1,))}, "as many columns"),
        (
            {"name": "groups/own", "table": ((0, 1), (1, 0)), "permutations": ((1, 2, 0),)},
            "by its table or by permutations",
        ),
    ],
)
def test_wrong_groups_are_refused_in_a_line(options: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said) as refusal:
        task(**options)
    assert len(str(refusal.value).splitlines()) <= 2


def test_a_loop_that_is_not_associative_is_refused() -> None:
    loop = [[0, 1, 2, 3, 4], [1, 0, 3, 4, 2], [2, 4, 0, 1, 3], [3, 2, 4, 0, 1], [4, 3, 1, 2, 0]]
    with pytest.raises(UsageError, match="not associative at element"):
        read_group_table(loop)


def test_a_table_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "quaternions.json"
    path.write_text(json.dumps(QUATERNIONS))
    made = task("groups/own", table=str(path), generators=(2, 4))
    assert made.group.order == 8 and made.spec.field("token").width == 2
    assert made == task("groups/own", table=QUATERNIONS, generators=(2, 4))


@pytest.mark.parametrize("answer", ["every", "last"])
def test_variables_are_the_products_and_another_product_changes_what_follows(answer: str) -> None:
    """Against a token that is replaced so that the product becomes the other one."""
    made = task("groups/S3", length=6, longest=20, answer=answer)
    examples = made.sample("train", 60)
    products = made.variables(examples)
    assert list(products) == [f"product[{number}]" for number in range(1, 7)]
    table = made.group.table
    third, second = products["product[3]"].values, products["product[2]"].values
    other = np.where(third >= 0, (third + 1) % 6, -1)
    assert np.array_equal(made.answer_with(examples, "product[3]", third), examples.targets)
    tokens = examples.inputs["token"].copy()
    for index in np.flatnonzero(other >= 0):
        tokens[index, 2] = int(np.flatnonzero(table[second[index]] == other[index])[0])
    replaced = made.solve(Examples({**examples.inputs, "token": tokens}, examples.targets, {}))
    assert np.array_equal(made.answer_with(examples, "product[3]", other), replaced)
    assert not np.array_equal(replaced, examples.targets)
    with pytest.raises(UsageError, match="does not say what the answers would be"):
        made.answer_with(examples, "word", third)


def test_generated_groups_begin_with_their_generators() -> None:
    group = generate_group([(1, 2, 0), (1, 0, 2)])
    assert group.permutations[:3].tolist() == [[0, 1, 2], [1, 2, 0], [1, 0, 2]] and group.order == 6

"""Equivalence equals brute force, in small worlds of symbols and on small trees."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from unseen.randomness import stream
from unseen.tasks import task
from unseen.tasks.ctl.solver import compose
from unseen.tasks.ctl.solver import solve as solve_chain
from unseen.tasks.gcog.schema import Schema
from unseen.tasks.gcog.solver import solve
from unseen.tasks.gcog.tree import Conditional, GridObject, Query, Tree, find_function
from unseen.tasks.verify.equivalence import describe_familiar, find_familiar, read_functions, summarize_equivalence


@pytest.mark.parametrize("symbols", [3, 4])
def test_ctl_equals_brute_force(symbols: int) -> None:
    """All chains of up to three of five functions: the same function exactly if the solver agrees on every symbol."""
    tables = np.array(list(itertools.permutations(range(symbols))))[[1, 2, 3, 4, 5]]
    chains = [c for length in (1, 2, 3) for c in itertools.product(range(5), repeat=length)]
    padded = np.array([[*chain, *[-1] * (3 - len(chain))] for chain in chains])
    codes = [row.tobytes() for row in compose(tables, padded)]
    answers = [tuple(solve_chain(tables.tolist(), c, s) for s in range(symbols)) for c in chains]
    for (code, answer), (other, its_answer) in itertools.combinations(zip(codes, answers, strict=True), 2):
        assert (code == other) == (answer == its_answer)


@pytest.mark.parametrize(
    ("symbols", "order", "size"), [(3, "backward", 1000), (4, "forward", 1000), (4, "backward", 50)]
)
def test_the_share_of_a_small_world_equals_brute_force(symbols: int, order: str, size: int) -> None:
    chosen = task("ctl/A", symbols=symbols, functions=2 * symbols, order=order, train_size=size, iid_size=10)
    examples = chosen.sample("ood/transition", 150)
    familiar = find_familiar(chosen, examples)
    tables = chosen.actual_world.tables.tolist()

    def table_of(row: list[int]) -> tuple[int, ...]:
        functions = [function for function in row if function >= 0]
        return tuple(solve_chain(tables, functions, symbol) for symbol in range(symbols))

    train = chosen.sample("train", size).factors["functions"].tolist()
    known = {table_of(row) for row in train}
    forms = {tuple(row) for row in train}
    rows = examples.factors["functions"].tolist()
    np.testing.assert_array_equal(familiar.function, [table_of(row) in known for row in rows])
    np.testing.assert_array_equal(familiar.form, [tuple(row) in forms for row in rows])
    assert familiar.complete and familiar.equivalent > 0.5  # few functions over so few symbols
    assert (0 < familiar.new < 0.5) == (size == 50)  # a small training set lacks some
    assert not familiar.form.any()  # each has a transition that training lacks


A, B = (("a", "red"),), (("b", "green"),)
LEAVES = [Query("GetLocation", A), Query("GetLocation", B), Query("SumEven", A), Query("SumOdd", A), Query("Exist", B)]
TESTS = [Query("SumEven", A), Query("SumOdd", A), Query("Exist", B), Query("ProductOdd", B)]


def small_trees() -> list[Tree]:
    trees: list[Tree] = list(LEAVES)
    ones = [Conditional(t, x, y) for t in TESTS for x in LEAVES for y in LEAVES]
    trees += ones
    for test in TESTS[:3]:
        trees += [Conditional(test, x, y) for x in ones[::9] for y in ones[::11]]
    return trees


def scenes(schema: Schema, n: int) -> list[list[GridObject]]:
    draws = stream("test", "scenes").block()
    x, y = draws.integers(10, (n, 2)), draws.integers(10, (n, 2))
    present = draws.integers(2, n)
    made = []
    for i in range(n):
        objects = [GridObject(("a", "red"), int(x[i, 0]), int(y[i, 0]))]
        if present[i]:
            objects.append(GridObject(("b", "green"), int(x[i, 1]), int(y[i, 1])))
        made.append(objects)
    return made


def test_gcog_equals_brute_force_on_small_trees() -> None:
    """The same form exactly if the answers agree on 1 000 scenes (without ones that an absent object would spoil)."""
    schema = Schema()
    only_present = [scene for scene in scenes(schema, 2000) if len(scene) == 2]
    absent = [scene for scene in scenes(schema, 400) if len(scene) == 1]
    trees = [
        tree
        for tree in small_trees()
        if "ProductOdd" not in repr(tree) and "GetLocation', objects=(('b" not in repr(tree)
    ]
    everywhere = [*only_present[:800], *absent[:200]]
    assert len(everywhere) >= 980
    by_form: dict[object, tuple[int, ...]] = {}
    by_answers: dict[tuple[int, ...], object] = {}
    for tree in trees:
        answers = tuple(solve(schema, tree, scene).answer for scene in everywhere)
        form = find_function(schema, tree)
        assert by_form.setdefault(form, answers) == answers
        assert by_answers.setdefault(answers, form) == form
    assert 20 < len(by_form) < len(trees) / 3


def test_gcog_forms_agree_on_sampled_scenes() -> None:
    """With all tests, equal forms still agree, in any order of the tests."""
    schema = Schema()
    only_present = [scene for scene in scenes(schema, 2100) if len(scene) == 2][:1000]
    by_form: dict[object, tuple[int, ...]] = {}
    trees = small_trees()
    for tree in trees[::3]:
        answers = tuple(solve(schema, tree, scene).answer for scene in only_present)
        assert by_form.setdefault(find_function(schema, tree), answers) == answers


def test_the_order_of_two_objects_does_not_count() -> None:
    both, turned = (("a", "red"), ("b", "green")), (("b", "green"), ("a", "red"))
    assert find_function(Schema(), Query("SumEven", both)) == find_function(Schema(), Query("SumEven", turned))
    assert find_function(Schema(), Query("SumEven", both)) != find_function(Schema(), Query("SumOdd", both))


@pytest.mark.parametrize("name", ["retrieval/T6", "rules/mlp", "gcog/distractor"])
def test_by_construction(name: str) -> None:
    chosen = task(name)
    split = next(split for split in chosen.splits if split.startswith("ood"))
    familiar = find_familiar(chosen, chosen.sample(split, 200), training=20_000)
    assert familiar.function.mean() > 0.95  # the question is known; something else is new


def test_in_words() -> None:
    chosen = task("ctl/A")
    examples = chosen.sample("ood/any", 300)
    text = describe_familiar(find_familiar(chosen, examples, training=5000))
    assert "of 300 examples compute what one of the first 5,000 training examples does in another form" in text


def test_the_summary_names_the_largest_shares() -> None:
    chosen = task("ctl/A", train_size=2000)
    functions = read_functions(chosen)
    splits = {split: chosen.sample(split, 200) for split in ("iid", "ood/transition")}
    familiar = {split: functions.compare(chosen.expressions(examples)) for split, examples in splits.items()}
    for split, examples in splits.items():
        np.testing.assert_array_equal(familiar[split].function, find_familiar(chosen, examples).function)
    text = summarize_equivalence(familiar)
    assert f"up to {familiar['ood/transition'].equivalent:.1%} of a split (ood/transition)" in text
    assert "all 2,000 training examples" in text

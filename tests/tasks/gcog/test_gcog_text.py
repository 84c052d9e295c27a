"""Questions in words: the published sentences, and every form read back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.gcog_cases import PAPER, PUBLISHED, SCHEMAS, clean, make_plan, questions, read_published_tree
from unseen.errors import UsageError
from unseen.tasks.gcog.solver import Solution, Step
from unseen.tasks.gcog.text import (
    FORM_NAMES,
    ExampleView,
    describe_example,
    explain_step,
    read_sentence,
    write_sentence,
)
from unseen.tasks.gcog.tree import Conditional, GridObject, Query

WRITTEN = [sample for sample in PUBLISHED if "instruction" in sample]


@pytest.mark.parametrize("sample", WRITTEN, ids=range(len(WRITTEN)))
def test_published_sentences(sample: dict[str, object]) -> None:
    tree = read_published_tree(sample["tree"])
    assert write_sentence(PAPER, tree, "released") == sample["instruction"]
    assert read_sentence(PAPER, sample["instruction"], "released") == tree


@pytest.mark.parametrize("form", FORM_NAMES)
@settings(derandomize=True, deadline=None, max_examples=20)
@given(name=st.sampled_from(list(SCHEMAS)), depth=st.sampled_from([1, 3, 5]), seed=st.integers(0, 10**9))
def test_every_form_is_read_back(form: str, name: str, depth: int, seed: int) -> None:
    plan = make_plan(SCHEMAS[name], depth, two_objects=0.5)
    for tree, _ in questions(plan, clean(plan, 24, seed)):
        text = write_sentence(plan.schema, tree, form)
        assert read_sentence(plan.schema, text, form) == tree
        assert text == " ".join(text.split())


def test_depth_7_is_read_back() -> None:
    plan = make_plan(depth=7)
    for tree, _ in questions(plan, clean(plan, 12)):
        assert all(read_sentence(PAPER, write_sentence(PAPER, tree, form), form) == tree for form in FORM_NAMES)


def test_the_released_form_has_57_words() -> None:
    words = set()
    for depth in (1, 3):
        plan = make_plan(depth=depth, two_objects=0.5)
        for tree, _ in questions(plan, clean(plan, 1024)):
            words |= set(write_sentence(PAPER, tree, "released").split(" "))
    assert len(words) == 57


def test_different_trees_have_different_sentences() -> None:
    plan = make_plan(SCHEMAS["every operator"], 3, two_objects=0.5)
    trees = {tree for tree, _ in questions(plan, clean(plan, 512))}
    for form in FORM_NAMES:
        assert len({write_sentence(plan.schema, tree, form) for tree in trees}) == len(trees)


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("released", "current red a exists ?", "no operator matches 'current red a exists'"),
        ("released", "current red a exist", "expected 'current red a exist \\?', got"),
        ("released", "[ if current red a exist , then loc of current red a ]", "expected ', else'"),
        ("released", "[ if current red a exist , else loc of current red a ]", "expected ', then' after"),
        ("english", "Name the color of the b", "expected 'Name the color of the b.'"),
        ("english", "If there is a red a, then name the color of the b.", "expected ', otherwise'"),
        ("english", "Name the taste of the b.", "no operator matches 'name the taste of the b'"),
        ("english", "Name the color of the b, otherwise.", "no operator matches|expected the end"),
        ("prefix", "(Exist red)", "Exist cannot be about 'red'"),
        ("prefix", "(Exists red a)", "expected \\(operator …\\)"),
        ("prefix", "(Exist red a) (Exist red b)", "expected the end of the question, got"),
        ("prefix", "(AddEqual red a)", "AddEqual needs a number"),
        ("prefix", "(if (Exist red a) (Exist red b))", "expected \\(operator …\\)"),
        ("prefix", "", "expected \\(operator …\\)"),
    ],
)
def test_what_is_no_sentence_is_refused(form: str, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_sentence(PAPER, text, form)


TREE = Conditional(
    Query("SumOdd", (("a", "red"),)), Query("GetColor", (("b", None),)), Query("GetLocation", (("c", "blue"),))
)
GRID_OBJECTS = [GridObject(("a", "red"), 1, 3), GridObject(("b", "green"), 0, 0), GridObject(("c", "blue"), 9, 2)]


def view() -> ExampleView:
    steps = (Step(TREE.test, (GRID_OBJECTS[0],), False), Step(TREE.otherwise, (GRID_OBJECTS[2],), (9, 2)))
    return ExampleView("gcog/test", PAPER, TREE, GRID_OBJECTS, Solution(31, steps), 31)


def test_description() -> None:
    assert (
        describe_example(view())
        == """\
gcog/test, depth 3
question: If the sum of the coordinates of the red a is odd, then name the color of the b, otherwise say where the blue c is.
objects:  red a (1, 3), green b (0, 0), blue c (9, 2)
       0 1 2 3 4 5 6 7 8 9
     0 b · · · · · · · · ·
     1 · · · · · · · · · ·
     2 · · · · · · · · · c
     3 · a · · · · · · · ·
     4 · · · · · · · · · ·
     5 · · · · · · · · · ·
     6 · · · · · · · · · ·
     7 · · · · · · · · · ·
     8 · · · · · · · · · ·
     9 · · · · · · · · · ·
tree (→ the path taken):
  → SumOdd red a → False
      then   GetColor b
      else → GetLocation blue c → (9, 2)
because:
  1. SumOdd red a: red a (1, 3); 1 + 3 = 4 → False
  2. GetLocation blue c: blue c (9, 2) → (9, 2)
answer:   (9, 2)  (class 31)"""
    )


def test_a_wrong_target_is_not_explained_away() -> None:
    wrong = ExampleView("gcog/test", view().schema, TREE, GRID_OBJECTS, view().solution, 0)
    assert describe_example(wrong).endswith("answer:   True  (class 0); the solver says (9, 2)")


@pytest.mark.parametrize(
    ("query", "grid_objects", "value", "words"),
    [
        (Query("Exist", (("q", "red"),)), (), False, "Exist red q: not there → False"),
        (
            Query("ProductEven", (("a", "red"), ("c", "blue"))),
            (GRID_OBJECTS[0], GRID_OBJECTS[2]),
            True,
            "ProductEven red a, blue c: red a (1, 3), blue c (9, 2); 1 · 3 · 9 · 2 = 54 → True",
        ),
        (
            Query("SubtractEqual", (("a", "red"),), -4),
            (GRID_OBJECTS[0],),
            True,
            "SubtractEqual red a = -4: red a (1, 3); −(1 + 3) = -4 → True",
        ),
        (Query("GetShape", ((None, "blue"),)), (GRID_OBJECTS[2],), ("shape", "c"), "GetShape blue: blue c (9, 2) → c"),
    ],
)
def test_reasons(query: Query, grid_objects: tuple[GridObject, ...], value: object, words: str) -> None:
    assert explain_step(view().schema, Step(query, grid_objects, value)) == words

"""Questions in words: the published sentences, and every form read back."""

from __future__ import annotations

import pytest
from gcog_cases import PAPER, PUBLISHED, SCHEMAS, clean, make_plan, questions, tree_of
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen.errors import UsageError
from unseen.tasks.gcog.sentences import FORM_NAMES, read_sentence, write_sentence

WRITTEN = [sample for sample in PUBLISHED if "instruction" in sample]


@pytest.mark.parametrize("sample", WRITTEN, ids=range(len(WRITTEN)))
def test_published_sentences(sample: dict[str, object]) -> None:
    tree = tree_of(sample["tree"])
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
        ("released", "current red a exists ?", "no operator is written 'current red a exists'"),
        ("released", "current red a exist", "expected 'current red a exist \\?', got"),
        ("released", "[ if current red a exist , then loc of current red a ]", "expected ', else'"),
        ("released", "[ if current red a exist , else loc of current red a ]", "expected ', then' after"),
        ("english", "Name the color of the b", "expected 'Name the color of the b.'"),
        ("english", "If there is a red a, then name the color of the b.", "expected ', otherwise'"),
        ("english", "Name the taste of the b.", "no operator is written 'name the taste of the b'"),
        ("english", "Name the color of the b, otherwise.", "no operator|should have ended"),
        ("prefix", "(Exist red)", "Exist can't be asked about 'red'"),
        ("prefix", "(Exists red a)", "expected \\(operator …\\)"),
        ("prefix", "(Exist red a) (Exist red b)", "should have ended before"),
        ("prefix", "(AddEqual red a)", "AddEqual compares with a number"),
        ("prefix", "(if (Exist red a) (Exist red b))", "expected \\(operator …\\)"),
        ("prefix", "", "expected \\(operator …\\)"),
    ],
)
def test_what_is_no_sentence_is_refused(form: str, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_sentence(PAPER, text, form)

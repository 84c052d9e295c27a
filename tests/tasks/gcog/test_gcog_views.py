"""Examples for people: words, trees, pictures, and the JSON record."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from unseen.cli.main import app
from unseen.tasks import task
from unseen.tasks.gcog import contact_sheet, decode, read_sentence
from unseen.tasks.gcog.font import GLYPHS
from unseen.tasks.gcog.operators import STANDARD
from unseen.tasks.gcog.schema import FEATURES, LETTERS
from unseen.tasks.gcog.solver import Solution, Step
from unseen.tasks.gcog.task import Gcog
from unseen.tasks.gcog.tree import Ask, Branch, Thing, asks
from unseen.tasks.gcog.views import View, because, describe

SVG = "{http://www.w3.org/2000/svg}"
TREE = Branch(Ask("SumOdd", (("a", "red"),)), Ask("GetColor", (("b", None),)), Ask("GetLocation", (("c", "blue"),)))
THINGS = [Thing(("a", "red"), 1, 3), Thing(("b", "green"), 0, 0), Thing(("c", "blue"), 9, 2)]


def gcog(name: str = "gcog/productive", **options: object) -> Gcog:
    made = task(name, **options)
    assert isinstance(made, Gcog)
    return made


def view() -> View:
    steps = (Step(TREE.condition, (THINGS[0],), False), Step(TREE.otherwise, (THINGS[2],), (9, 2)))
    return View("gcog/test", gcog().domain, TREE, THINGS, Solution(31, steps), 31)


def test_description() -> None:
    assert (
        describe(view())
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
    wrong = View("gcog/test", view().schema, TREE, THINGS, view().solution, 0)
    assert describe(wrong).endswith("answer:   True  (class 0); the solver says (9, 2)")


@pytest.mark.parametrize(
    ("ask", "things", "value", "words"),
    [
        (Ask("Exist", (("q", "red"),)), (), False, "Exist red q: not there → False"),
        (
            Ask("ProductEven", (("a", "red"), ("c", "blue"))),
            (THINGS[0], THINGS[2]),
            True,
            "ProductEven red a, blue c: red a (1, 3), blue c (9, 2); 1 · 3 · 9 · 2 = 54 → True",
        ),
        (
            Ask("SubtractEqual", (("a", "red"),), -4),
            (THINGS[0],),
            True,
            "SubtractEqual red a = -4: red a (1, 3); −(1 + 3) = -4 → True",
        ),
        (Ask("GetShape", ((None, "blue"),)), (THINGS[2],), ("shape", "c"), "GetShape blue: blue c (9, 2) → c"),
    ],
)
def test_reasons(ask: Ask, things: tuple[Thing, ...], value: object, words: str) -> None:
    assert because(view().schema, Step(ask, things, value)) == words


@pytest.mark.parametrize("preset", ["clean", "released"])
def test_pictures_show_every_object_and_operator_and_the_path(preset: str) -> None:
    made = gcog(preset=preset)
    for condition in ("iid/depth=1", "iid/depth=3", "ood/depth=7"):
        examples = made.sample(condition, 6)
        for i in range(6):
            seen, drawn = made.view(examples, i), ElementTree.fromstring(made.picture(examples, i))
            words = [element.text for element in drawn.iter(f"{SVG}text")]
            for ask in asks(seen.tree):
                assert ask.operator in words
            letters = [p for p in drawn.iter(f"{SVG}path") if (p.get("d") or "").endswith("z")]
            dots = sum((p.get("d") or "").count("M") for p in letters)
            assert len(letters) == len(seen.things)
            assert dots == sum(int(GLYPHS[thing.values[0]].sum()) for thing in seen.things)
            assert any(word == seen.answer for word in words)
            assert all(because(seen.schema, step) in " ".join(map(str, words)) for step in seen.solution.steps)


def test_further_features_are_written_beside_the_letters() -> None:
    made = gcog(features=(*FEATURES, ("size", ("small", "big"))), grid=(6, 8))
    examples = made.sample("iid/depth=3", 1)
    words = [element.text for element in ElementTree.fromstring(made.picture(examples, 0)).iter(f"{SVG}text")]
    sizes = sorted(thing.values[2] for thing in made.view(examples, 0).things)
    assert sorted(word for word in words if word in ("small", "big")) == sizes


def test_contact_sheet_has_all_examples() -> None:
    made = gcog()
    examples = made.sample("iid", 10)
    sheet = ElementTree.fromstring(contact_sheet([made.view(examples, i) for i in range(10)], columns=4))
    words = [element.text for element in sheet.iter(f"{SVG}text")]
    for i in range(10):
        assert f"→ {made.view(examples, i).schema.answer_name(int(examples.targets[i]))}" in words
    assert sum(word in map(str, range(1, 11)) for word in words) >= 10


@pytest.mark.parametrize("coding", ["integer", "onehot", "embedding"])
def test_views_are_of_one_record(coding: str) -> None:
    """Tokens, tree, objects, sentence, picture and target of an example agree, whatever the coding."""
    made = gcog(coding=coding)
    examples = made.sample("ood/depth=5", 20)
    sentences, images = made.sentences(examples, "released"), made.pixels(examples, cell=9)
    np.testing.assert_array_equal(decode(made.domain, images), made.tokens(examples).grid)
    for i in range(20):
        seen, record = made.view(examples, i), made.record(examples, i)
        assert read_sentence(made.domain, sentences[i], "released") == seen.tree
        assert record["sentences"]["released"] == sentences[i]
        assert record["target"] == examples.targets[i] == seen.solution.answer
        assert [(o["shape"], o["color"]) for o in record["objects"]] == [t.values for t in seen.things]
        assert record["path"] == examples.factors["path"][i].astype(bool).tolist()
    assert json.loads(json.dumps(record)) == record


@pytest.mark.parametrize(
    ("format", "begins"),
    [("text", "gcog/productive · train"), ("json", '{"tree"'), ("svg", "<svg"), ("html", "<!doctype html>")],
)
def test_show(format: str, begins: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["show", "gcog/productive", "-n", "1", "--format", format])
    assert result.exit_code == 0 and result.output.startswith(begins)


def test_show_json_is_what_verify_reads(tmp_path: Path) -> None:
    path = tmp_path / "examples.jsonl"
    shown = CliRunner().invoke(
        app,
        [
            "show",
            "gcog/systematic-trees",
            "-n",
            "30",
            "--condition",
            "ood/trees",
            "--format",
            "json",
            "--out",
            str(path),
        ],
    )
    assert shown.exit_code == 0
    result = CliRunner().invoke(app, ["verify", "gcog", "--data", str(path)])
    assert result.exit_code == 0 and "30 of 30 answers agree with gcog" in result.output


def test_every_operator_can_be_shown() -> None:
    names = (*STANDARD, *(n for n in gcog().domain.operators if n not in STANDARD))
    made = gcog(operators=names, two_objects=0.5)
    examples = made.sample("iid/depth=1", 60)
    for i in range(60):
        assert made.describe(examples, i) and ElementTree.fromstring(made.picture(examples, i)) is not None
    assert set(examples.factors["operator"].tolist()) == set(names)
    assert set(LETTERS) >= {t.values[0] for i in range(9) for t in made.view(examples, i).things}

"""Examples for people: the text agrees with the example, and the picture is valid SVG."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from support.retrieval_cases import KINDS, make
from unseen.tasks.retrieval.files import read_examples, write_tsv


@pytest.mark.parametrize("kind", KINDS)
def test_description_agrees_with_the_example(kind: str) -> None:
    made = make(kind, length=4)
    examples = made.sample("train", 40)
    for i in range(40):
        lines = made.describe(examples, i).splitlines()
        relevant = set(examples.factors["relevant"][i].tolist())
        for number, token in enumerate(examples.inputs["sequence"][i]):
            words = lines[1 + number].partition(": ")[2].split()
            if words != ["(nothing)"]:
                assert [int(w.strip("[]")) for w in words] == np.flatnonzero(token).tolist()
                assert {int(w.strip("[]")) for w in words if w.startswith("[")} == set(np.flatnonzero(token)) & relevant
        query, answer = lines[5:7]
        assert query.startswith("query: ") and all(str(f) in query for f in relevant)
        assert answer.startswith("answer: yes: " if examples.targets[i] else "answer: no: ")


def test_a_worked_description() -> None:
    made = make("T6", length=5)
    examples = made.sample("ood/single", 50)
    i = int((examples.factors["scenario"] == "no/wrong-order").argmax())
    (a, b), (p, q) = examples.factors["relevant"][i], examples.factors["positions"][i]
    text = made.describe(examples, i)
    query = examples.factors["query_id"][i]
    assert f"query: {query} (stands for: have you seen {a} before {b}?)" in text
    assert f"answer: no: {a} at token {p}, {b} at token {q}, and {p} ≥ {q}" in text
    assert "built as: no/wrong-order (single occurrences)" in text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [2, 30])
def test_the_picture_is_self_contained_svg(kind: str, length: int) -> None:
    made = make(kind, length=length)
    examples = made.sample("train", 10)
    for i in range(10):
        root = ElementTree.fromstring(made.picture(examples, i))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        texts = [e.text or "" for e in root.iter("{http://www.w3.org/2000/svg}text")]
        assert any(text.startswith("answer: ") for text in texts) and {"0", "35", "token", "query", "feature"} <= set(
            texts
        )
        assert "have you seen feature " in texts[0], "a number alone could be a token"
        cells = sum(e.attrib["d"].count("M") for e in root.iter("{http://www.w3.org/2000/svg}path"))
        assert cells == 36 * (length + 1)
        attributes = [name for element in root.iter() for name in element.attrib]
        assert not any("href" in name or name == "src" for name in attributes)


def test_foreign_examples_can_be_described_and_drawn(tmp_path: Path) -> None:
    made, path = make("T2", length=3), tmp_path / "test.tsv"
    write_tsv(made.sample("train", 3), path)
    examples = read_examples(path, "T2")
    named = examples.factors["named"][0]
    assert f"have you seen {named[0]} and {named[1]}?" in made.describe(examples, 0)
    assert made.picture(examples, 0).startswith("<svg")


def test_of_a_long_sequence_the_first_tokens_and_the_relevant_ones_are_listed() -> None:
    made = make("T1", length=5_000)
    examples = made.sample("train", 4)
    for index in range(4):
        text = made.describe(examples, index)
        listed = [line for line in text.splitlines() if line.startswith("  token ")]
        assert 50 <= len(listed) <= 100 and f"and {5_000 - len(listed):,} tokens that are not listed" in text
        assert max(map(len, text.splitlines())) < 500
        assert ("[" in text) == bool(examples.targets[index, 0]), "the token that decides is listed"

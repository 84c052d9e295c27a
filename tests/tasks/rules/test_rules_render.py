"""Examples for people: the printed numbers are the ones that count."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from unseen.tasks import task


def numbers(text: str) -> list[float]:
    return [float(found.replace("−", "-")) for found in re.findall(r"−?\d+\.\d+", text)]


def test_mlp_prints_its_sum() -> None:
    made = task("rules/mlp", setting="regression")
    examples = made.sample("train", 20)
    for i in range(20):
        text = made.describe(examples, i)
        assert numbers(text.splitlines()[-1]) == [pytest.approx(examples.targets[i, 0], abs=6e-4)]
        sides = text.splitlines()[2].rsplit("=", 2)[1:]
        alpha, x1, beta, x2 = numbers(sides[0])
        sign = -1 if ") − " in sides[0] or re.search(r"\d − ", sides[0]) else 1
        assert alpha * x1 + sign * beta * x2 == pytest.approx(numbers(sides[1])[0], abs=0.01)


@pytest.mark.parametrize("options", [{"search": 1}, {"search": 2}, {"search": 2, "preset": "paper"}])
def test_mha_names_the_tokens_that_are_found(options: dict[str, object]) -> None:
    made = task("rules/mha", rules=3, length=4, setting="regression", **options)
    examples = made.sample("train", 5)
    for i in range(5):
        text = made.describe(examples, i).splitlines()
        blocks, rule = examples.inputs["features"][i].reshape(4, 3, -1), examples.inputs["rule"][i]
        for n in range(4):
            first, second = (int(found) for found in re.findall(r"(?:nearest|product) token (\d)", text[1 + 2 * n]))
            assert n not in (first, second)
            alpha, beta = made.parameters.alpha[rule[n]], made.parameters.beta[rule[n]]
            found = alpha * blocks[first, rule[n], -2] + beta * blocks[second, rule[n], -1]
            assert found == pytest.approx(examples.targets[i, n, 0], abs=1e-5)
            assert numbers(text[2 + 2 * n])[-1] == pytest.approx(examples.targets[i, n, 0], abs=6e-4)


@pytest.mark.parametrize("kind", ["state", "readout", None])
def test_rnn_prints_rows_that_add_up(kind: str | None) -> None:
    options = {"setting": "regression", "target": kind} if kind else {}
    made = task("rules/rnn", **options)
    examples = made.sample("train", 2)
    rows = [line for line in made.describe(examples, 1).splitlines() if re.match(r" +\d+ +\d", line)]
    assert len(rows) == 10
    for n, row in enumerate(rows):
        found = numbers(row)
        carried, added, state = np.array(found[3:12]).reshape(3, 3)
        np.testing.assert_allclose(carried + added, state, atol=2e-3)
        if kind == "state":
            np.testing.assert_allclose(state, examples.targets[1, n, :3], atol=6e-4)
        elif kind == "readout":
            assert found[13] == pytest.approx(examples.targets[1, n, 0], abs=6e-4)
        else:
            assert row.split()[-1] == str(int(found[13] >= 0)) == str(examples.targets[1, n, 0])


def test_small_rnn_prints_everything_that_is_needed() -> None:
    made = task("rules/rnn", dimension=2, length=3, rules=2, order=2, setting="regression")
    text = made.describe(made.sample("train", 1), 0)
    assert all(said in text for said in ("the last 2 states · A[rule]", "w = ", "all numbers"))
    assert "dimension" not in text
    single = task("rules/rnn", dimension=1, length=2, rules=1)
    alone = float(single.parameters.A[0, 0, 0, 0])
    assert f"rule 0: A = [[{alone:.3f}]], B = [[" in single.describe(single.sample("train", 1), 0)


@pytest.mark.parametrize("name", ["rules/mlp", "rules/mha", "rules/rnn"])
def test_pictures_say_what_they_show(name: str) -> None:
    made = task(name)
    for i in range(3):
        picture = ElementTree.fromstring(made.picture(made.sample("train", 3), i))
        title = picture.find("{http://www.w3.org/2000/svg}title")
        assert title is not None and title.text and title.text.startswith(name)
        assert "nan" not in ElementTree.tostring(picture, "unicode")


@pytest.mark.parametrize("setting", ["classification", "regression"])
@pytest.mark.parametrize("name", ["rules/mlp", "rules/rnn"])
def test_pictures_have_axes_and_a_legend(name: str, setting: str) -> None:
    made = task(name, setting=setting)
    picture = ElementTree.fromstring(made.picture(made.sample("train", 1), 0))
    texts = {element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")}
    suffix = {"classification": (" (class 1)", " (class 0)"), "regression": ("", "")}[setting]
    expected = {
        "rules/mlp": {"x1", "x2", "0", "the example", "y = 0", "where y grows"},
        "rules/rnn": {"token", "rule", "s · w", "number 32", f"s · w ≥ 0{suffix[0]}", f"s · w < 0{suffix[1]}"},
    }
    assert expected[name] <= texts
    if name == "rules/mlp":
        assert ("class 1 (y ≥ 0)" in texts) == (setting == "classification")

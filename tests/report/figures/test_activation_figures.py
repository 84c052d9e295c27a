"""Activation matrices and attention maps: from trained runs, from directories, and as figures of a store."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment

import unseen
from unseen.analysis import activation_matrix, alignment
from unseen.report.data import Source
from unseen.report.figures import figure
from unseen.report.figures.activations import (
    activation_cells,
    activation_figure,
    attention_figure,
    decoder_cells,
    weight_outside,
)

RECIPE: dict[str, Any] = {"steps": 6, "batch": 20, "validate_every": 2, "validation_examples": 20}
SMALL = unseen.Evaluation(splits=("iid",), examples=40)


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> unseen.Runs:
    return unseen.train(
        unseen.task("rules/mlp", rules=4),
        unseen.model("rules-mlp", gating="joint"),
        seeds=3,
        out=tmp_path_factory.mktemp("traces") / "rules",
        evaluation=SMALL,
        progress="none",
        **RECIPE,
    )


@pytest.fixture(scope="module")
def retrieval(tmp_path_factory: pytest.TempPathFactory) -> unseen.Runs:
    return unseen.train(
        unseen.task("retrieval/T6", length=5, train_size=100, evaluation_size=60),
        "retrieval-transformer",
        seeds=3,
        out=tmp_path_factory.mktemp("traces") / "retrieval",
        progress="none",
        evaluation=unseen.Evaluation(examples=40),
        **RECIPE,
    )


def test_activation_is_that_of_the_trace(rules: unseen.Runs, tmp_path: Path) -> None:
    found = unseen.activation(rules, seed=1, examples=500, out=tmp_path / "x.svg")
    trace = rules.activations("iid", n=500, keep=["gating.weights"])
    expected = activation_matrix(trace.activations["rules-mlp", 1]["gating.weights"], trace.factors["rule"])
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert "rules-mlp on rules/mlp, seed 1" in (tmp_path / "x.svg").read_text()
    assert (unseen.activation(rules.path, seed=1, examples=500) == found).all()
    best, last = (unseen.activation(rules.path, seed=0, examples=50, selection=which) for which in ("best", "last"))
    assert best.shape == last.shape == (4, 4)


def test_the_best_assignment_is_marked() -> None:
    matrix = np.random.default_rng(0).dirichlet(np.ones(5), 5)
    pi = np.array([0.4, 0.3, 0.1, 0.1, 0.1])
    cells = activation_cells(matrix, pi)
    rows, columns = linear_sum_assignment(pi[:, None] * matrix, maximize=True)
    marked = cells[cells.best]
    assert marked[["rule", "module"]].values.tolist() == np.stack([rows, columns], 1).tolist()
    assert (
        1 - (pi[rows] * matrix[rows, columns]).sum()
        == pytest.approx(weight_outside(matrix, pi))
        == alignment(matrix, pi)
    )
    assert cells.weight.tolist() == matrix.ravel().round(4).tolist()


def test_fewer_modules_and_rules_that_never_occur(tmp_path: Path) -> None:
    matrix = np.array([[0.9, 0.1], [0.8, 0.2], [np.nan, np.nan], [0.3, 0.7]])
    cells = activation_cells(matrix, np.array([0.5, 0.3, 0.0, 0.2]))
    assert cells[cells.best][["rule", "module"]].values.tolist() == [[0, 0], [1, 0], [3, 1]]
    chart = json.loads(activation_figure(matrix, np.array([0.5, 0.3, 0, 0.2]), tmp_path / "x.json", "t").read_text())
    (data,) = chart["datasets"].values()
    assert len(data) == 8 and sum(row["best"] for row in data) == 3


def test_wrong_use_of_activation(rules: unseen.Runs, retrieval: unseen.Runs, tmp_path: Path) -> None:
    with pytest.raises(unseen.UsageError, match="no activation of modules: it is about tasks made by rules"):
        unseen.activation(retrieval, seed=0)
    with pytest.raises(unseen.UsageError, match="which run"):
        unseen.activation(rules)
    with pytest.raises(unseen.UsageError, match=r"written as \.svg, \.pdf"):
        unseen.activation(rules, seed=0, examples=50, out=tmp_path / "x.gif")
    with pytest.raises(unseen.UsageError, match="a probability for each rule"):
        activation_figure(np.eye(3), np.ones(2) / 2, tmp_path / "x.svg", "t")


def test_attention_is_that_of_the_trace(retrieval: unseen.Runs, tmp_path: Path) -> None:
    found = unseen.attention(retrieval, seed=2, split="iid", n=10, out=tmp_path / "x.svg")
    trace = retrieval.activations("iid", n=10).activations["retrieval-transformer", 2]
    assert set(found) == {"decoder.attention", "encoder.attention"}
    for name, weights in found.items():
        np.testing.assert_allclose(weights, trace[name], atol=1e-6)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    text = (tmp_path / "x.svg").read_text()
    assert "retrieval-transformer on retrieval/T6, seed 2" in text and "attends to token" in text
    again = unseen.attention(retrieval.path, seed=2, split="iid", n=10)
    assert all((again[name] == found[name]).all() for name in found)


def test_letters_stand_on_the_tokens_that_carry_the_features() -> None:
    weights = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    cells = decoder_cells(
        weights, np.array([1.0, 0.0]), {"scenario": np.array(["yes", "no"]), "positions": np.array([[1, 1], [2, -1]])}
    )
    assert cells.example.tolist() == ["2 no"] * 3 + ["1 yes"] * 3
    assert cells.features.tolist() == ["", "", "a", "", "ab", ""]
    assert cells.weight.tolist() == [0.1, 0.1, 0.8, 0.7, 0.2, 0.1]
    assert cells.answer.tolist() == ["wrong"] * 3 + ["right"] * 3


def test_attention_without_self_attention_or_factors(tmp_path: Path) -> None:
    maps = {"decoder.attention": np.full((40, 6), 1 / 6)}
    assert attention_figure(maps, np.ones(40), {}, tmp_path / "x.png", "t").read_bytes()[:4] == b"\x89PNG"


def test_attention_of_the_tokens_that_are_read_alone(tmp_path: Path) -> None:
    """The generic Transformer keeps the row of its read-out token, the last of sequence, query and read-out."""
    runs = unseen.train(
        unseen.task("retrieval/T1", length=4, train_size=200, evaluation_size=100),
        unseen.model("transformer", width=8, heads=2),
        seeds=1,
        steps=2,
        batch=10,
        progress="none",
    )
    found = unseen.attention(runs, seed=0, n=5, out=tmp_path / "x.json")
    assert found["encoder.attention"].shape == (5, 2, 1, 6) and len(found) == 1
    cells = list(json.loads((tmp_path / "x.json").read_text())["datasets"].values())
    assert [[(row["from"], row["to"]) for row in data] for data in cells] == [[(6, to) for to in range(1, 7)]] * 2
    for head, data in enumerate(cells):
        np.testing.assert_allclose(
            [row["weight"] for row in data], found["encoder.attention"][:, head, 0].mean(0), atol=1e-4
        )


def test_maps_of_other_axes_are_not_drawn() -> None:
    class Odd(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.answer = torch.nn.Linear(36, 1)

        def forward(self, inputs: dict[str, torch.Tensor], ctx: Any) -> torch.Tensor:
            ctx.capture("decoder.attention", torch.softmax(inputs["sequence"], 1))
            return self.answer(inputs["query"])

    runs = unseen.train(
        unseen.task("retrieval/T1", length=4, train_size=200, evaluation_size=100),
        Odd,
        seeds=1,
        steps=2,
        batch=10,
        progress="none",
    )
    with pytest.raises(unseen.UsageError, match=r"captures none of decoder\.attention \(example, token\), encoder"):
        unseen.attention(runs, seed=0)


def test_wrong_use_of_attention(rules: unseen.Runs, retrieval: unseen.Runs) -> None:
    with pytest.raises(unseen.UsageError, match=r"no attention: the model captures none of decoder\.attention"):
        unseen.attention(rules, seed=0)
    with pytest.raises(unseen.UsageError, match="n = 0"):
        unseen.attention(retrieval, seed=0, n=0)
    with pytest.raises(unseen.UsageError, match="no split"):
        unseen.attention(retrieval, seed=0, split="odd")


def test_figures_of_stores_that_keep_weights(rules: unseen.Runs, retrieval: unseen.Runs) -> None:
    drawing = figure("activation").draw(Source.read(rules.path))
    assert drawing is not None and len(drawing.data) == 2 * 16
    scores = rules.accuracy("iid")
    for which, seed in (("best", scores.idxmax()), ("worst", scores.idxmin())):
        part = drawing.data[drawing.data.which == which]
        assert scores[part.seed.iloc[0]] == scores[seed] and part.runs.iloc[0] == 3
        expected = unseen.activation(rules, seed=int(part.seed.iloc[0]), examples=4_000)
        np.testing.assert_allclose(part.weight.to_numpy().reshape(4, 4), expected, atol=1e-4)
    looked = figure("attention").draw(Source.read(retrieval.path))
    assert looked is not None and set(looked.data.which) == {"best", "worst"}
    assert figure("attention").draw(Source.read(rules.path)) is None
    assert figure("activation").draw(Source.read(retrieval.path)) is None


def test_weights_are_found_by_the_store_whatever_their_files_are_called(rules: unseen.Runs, tmp_path: Path) -> None:
    """In a store that was migrated they are called after the ids of the older release."""
    copy = Path(shutil.copytree(rules.path, tmp_path / "copy"))
    with closing(sqlite3.connect(copy / "store.sqlite")) as database, database:
        for (name,) in database.execute("SELECT file FROM weights").fetchall():
            other = f"weights/{name.removeprefix('weights/')[::-1].replace('.', '-')}.safetensors"
            (copy / name).rename(copy / other)
            database.execute("UPDATE weights SET file = ? WHERE file = ?", (other, name))
    assert figure("activation").draw(Source.read(copy)) is not None


def test_damaged_weights_are_left_out(rules: unseen.Runs, tmp_path: Path) -> None:
    copy = shutil.copytree(rules.path, tmp_path / "copy")
    for file in (copy / "weights").iterdir():
        file.write_bytes(b"nothing")
    assert figure("activation").draw(Source.read(copy)) is None

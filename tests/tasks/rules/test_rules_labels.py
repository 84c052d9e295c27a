"""The fast labels: as the published ones, as the plain solver's, and with the symmetries of the processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from unseen.errors import UsageError
from unseen.tasks.rules import Coefficients, Matrices
from unseen.tasks.rules.labels import labels
from unseen.tasks.rules.solver import classes, solve_mha, solve_mlp, solve_rnn

PUBLISHED = {case["id"]: case for case in json.loads((Path(__file__).parent / "rules_labelers.json").read_text())}
PROPERTY = settings(derandomize=True, deadline=None, max_examples=60)


def published(start: str) -> dict[str, Any]:
    case = next(case for name, case in PUBLISHED.items() if name.startswith(start))
    return {key: np.array(value) if isinstance(value, list) else value for key, value in case.items()}


class TestPublished:
    """Labels that the authors' program gave for inputs made for this purpose."""

    def test_mlp(self) -> None:
        case = published("label_MLP")
        rules, x, c = Coefficients(case["alpha"], case["beta"]), case["model_input"][:, :2], case["c_index0"]
        np.testing.assert_allclose(labels("mlp", rules, x, c, "regression"), case["y_regression"], rtol=1e-6)
        np.testing.assert_array_equal(labels("mlp", rules, x, c, "classification"), case["y_classification"])

    @pytest.mark.parametrize(("version", "wide"), [("v1", 4), ("v2", 6)])
    def test_mha(self, version: str, wide: int) -> None:
        case = published(f"label_MHA_{version}")
        rules, c = Coefficients(case["alpha"], case["beta"]), case["c_index0"]
        x = case["model_input"][..., : wide * case["R"]].reshape(*c.shape, case["R"], wide)
        np.testing.assert_allclose(labels("mha", rules, x, c, "regression"), case["y_regression"], rtol=1e-6)
        np.testing.assert_array_equal(labels("mha", rules, x, c, "classification"), case["y_classification"])

    def test_rnn(self) -> None:
        case = published("label_RNN")
        rules, x, c = Matrices(case["A_rowvec"][:, None], case["B_rowvec"], case["w"]), case["x"], case["c_index0"]
        for kind, key in (("regression", "y_regression_state"), ("readout", "y_regression_readout_derived")):
            np.testing.assert_allclose(labels("rnn", rules, x, c, kind), case[key], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(labels("rnn", rules, x, c, "classification"), case["y_classification"])


class Draw:
    """Rules and inputs of any size, from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.rules, self.batch, self.length = (int(self.random.integers(low, 6)) for low in (1, 1, 2))

    def c(self, *shape: int) -> NDArray[np.int64]:
        return self.random.integers(self.rules, size=shape)

    def coefficients(self) -> Coefficients:
        return Coefficients(self.random.normal(size=self.rules), self.random.normal(size=self.rules))

    def mlp(self) -> tuple[Coefficients, NDArray[Any], NDArray[np.int64]]:
        return self.coefficients(), self.random.normal(size=(self.batch, 2)), self.c(self.batch)

    def mha(self, search: int) -> tuple[Coefficients, NDArray[Any], NDArray[np.int64]]:
        features = self.random.normal(size=(self.batch, self.length, self.rules, 2 + 2 * search))
        if self.random.random() < 0.5:  # many ties: the first of equals is found
            features = features.round()
        return self.coefficients(), features.astype(np.float32), self.c(self.batch, self.length)

    def rnn(self) -> tuple[Matrices, NDArray[Any], NDArray[np.int64]]:
        order, dimension = (int(self.random.integers(1, 4)) for _ in range(2))
        square = dimension, dimension
        rules = Matrices(
            self.random.normal(size=(self.rules, order, *square)) / 2,
            self.random.normal(size=(self.rules, *square)),
            self.random.normal(size=dimension),
        )
        x = self.random.normal(size=(self.batch, self.length, dimension))
        return rules, x, self.c(self.batch, self.length)

    def any(self, process: str) -> tuple[Coefficients | Matrices, NDArray[Any], NDArray[np.int64]]:
        return {"mlp": self.mlp, "mha1": lambda: self.mha(1), "mha2": lambda: self.mha(2), "rnn": self.rnn}[process]()


draws = st.builds(Draw, st.integers(0, 2**32 - 1))
processes = st.sampled_from(["mlp", "mha1", "mha2", "rnn"])


class TestAgainstThePlainSolver:
    @PROPERTY
    @given(draws)
    def test_mlp(self, draw: Draw) -> None:
        rules, x, c = draw.mlp()
        solved = [solve_mlp(rules.alpha.tolist(), rules.beta.tolist(), *pair) for pair in zip(x, c, strict=True)]
        np.testing.assert_array_equal(labels("mlp", rules, x, c, "regression"), solved)

    @PROPERTY
    @given(draws, st.sampled_from([1, 2]), st.booleans())
    def test_mha(self, draw: Draw, search: int, nearest: bool) -> None:
        rules, x, c = draw.mha(search)
        alpha, beta = rules.alpha.tolist(), rules.beta.tolist()
        solved = [solve_mha(alpha, beta, *pair, nearest) for pair in zip(x.tolist(), c.tolist(), strict=True)]
        np.testing.assert_array_equal(labels("mha", rules, x, c, "regression", nearest=nearest), solved)

    @PROPERTY
    @given(draws)
    def test_rnn(self, draw: Draw) -> None:
        rules, x, c = draw.rnn()
        solved = np.array([solve_rnn(rules.A, rules.B, *pair) for pair in zip(x, c.tolist(), strict=True)])
        found = labels("rnn", rules, x, c, "regression")
        scale = np.abs(solved).max()
        np.testing.assert_allclose(found, solved, atol=1e-12 * scale)
        np.testing.assert_allclose(labels("rnn", rules, x, c, "readout"), solved @ rules.w, atol=1e-11 * scale)
        np.testing.assert_array_equal(
            labels("rnn", rules, x, c, "classification"), labels("rnn", rules, x, c, "readout") >= 0
        )


class TestSymmetries:
    @PROPERTY
    @given(draws, processes)
    def test_twice_the_input_is_twice_the_number_and_the_same_class(self, draw: Draw, process: str) -> None:
        rules, x, c = draw.any(process)
        name = process[:3]
        np.testing.assert_array_equal(
            labels(name, rules, 2 * x, c, "regression"), 2 * labels(name, rules, x, c, "regression")
        )
        np.testing.assert_array_equal(
            labels(name, rules, 2 * x, c, "classification"), labels(name, rules, x, c, "classification")
        )

    @PROPERTY
    @given(draws, st.sampled_from([1, 2]))
    def test_own_values_never_count(self, draw: Draw, search: int) -> None:
        rules, x, c = draw.mha(search)
        n = int(draw.random.integers(draw.length))
        changed = x.copy()
        changed[:, n, :, -2:] += 100
        before, after = (labels("mha", rules, values, c, "regression") for values in (x, changed))
        np.testing.assert_array_equal(before[:, n], after[:, n])

    @PROPERTY
    @given(draws, st.sampled_from([1, 2]))
    def test_numbers_of_other_rules_never_count(self, draw: Draw, search: int) -> None:
        rules, x, c = draw.mha(search)
        changed = x.copy()
        unused = np.array([[r not in c[b] for r in range(draw.rules)] for b in range(draw.batch)])
        changed[np.broadcast_to(unused[:, None, :, None], x.shape)] += 100
        np.testing.assert_array_equal(*(labels("mha", rules, values, c, "regression") for values in (x, changed)))

    @PROPERTY
    @given(draws, st.sampled_from([1, 2]))
    def test_tokens_of_mha_are_a_set(self, draw: Draw, search: int) -> None:
        rules, _, c = draw.mha(search)
        # Without ties: among equals the first is found, and a permutation changes which that is.
        x = draw.random.normal(size=(draw.batch, draw.length, draw.rules, 2 + 2 * search))
        order = draw.random.permutation(draw.length)
        np.testing.assert_array_equal(
            labels("mha", rules, x[:, order], c[:, order], "regression"),
            labels("mha", rules, x, c, "regression")[:, order],
        )

    @PROPERTY
    @given(draws)
    def test_later_tokens_of_rnn_change_nothing_before_them(self, draw: Draw) -> None:
        rules, x, c = draw.rnn()
        n = int(draw.random.integers(draw.length))
        changed = x.copy()
        changed[:, n:] = 7
        before, after = (labels("rnn", rules, values, c, "regression") for values in (x, changed))
        np.testing.assert_array_equal(before[:, :n], after[:, :n])

    def test_nearest_and_least_product_are_different_tasks(self) -> None:
        """D2: classes under the two readings agree about as often as coins do."""
        random = np.random.default_rng(0)
        rules = Coefficients(random.normal(size=4), random.normal(size=4))
        points = random.normal(size=(2_000, 10, 4, 6))
        points[..., :4] /= np.repeat(np.hypot(points[..., 0:4:2], points[..., 1:4:2]), 2, axis=-1)
        c = random.integers(4, size=(2_000, 10))
        near, far = (labels("mha", rules, points, c, "classification", nearest=nearest) for nearest in (True, False))
        assert (near == far).mean() == pytest.approx(0.504, abs=0.02)


def test_zero_is_class_one() -> None:
    rules = Coefficients(np.array([1.0]), np.array([1.0]))
    x = np.array([[1.0, -1.0], [-0.0, 0.0], [0.0, -1e-300]])
    found = labels("mlp", rules, x, np.zeros(3, int), "classification")
    assert found.tolist() == classes(np.array([0.0, -0.0, -1e-300])).tolist() == [1, 1, 0]


@pytest.mark.parametrize("process", ["mlp", "mha1", "mha2", "rnn"])
def test_no_examples_have_no_answers(process: str) -> None:
    rules, x, c = Draw(0).any(process)
    for kind in ("regression", "classification"):
        assert len(labels(process[:3], rules, x[:0], c[:0], kind)) == 0


def test_parts_compared_at_a_time_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rules, x, c = Draw(3).mha(2)
    x, c = np.tile(x, (7, 1, 1, 1)), np.tile(c, (7, 1))
    whole = labels("mha", rules, x, c, "regression")
    monkeypatch.setattr("unseen.tasks.rules.labels._PAIRS", 1)
    np.testing.assert_array_equal(labels("mha", rules, x, c, "regression"), whole)


def test_wrong_questions() -> None:
    rules = Coefficients(np.ones(1), np.ones(1))
    with pytest.raises(UsageError, match="a readout is an answer of rnn, not of mlp"):
        labels("mlp", rules, np.ones((1, 2)), np.zeros(1, int), "readout")
    with pytest.raises(UsageError, match="belong to mlp and mha; got process 'rnn'"):
        labels("rnn", rules, np.ones((1, 1, 2)), np.zeros((1, 1), int), "regression")

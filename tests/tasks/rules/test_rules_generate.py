"""The authors' sampler, and how often each rule occurs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from unseen.errors import UsageError
from unseen.randomness import stream
from unseen.tasks import task
from unseen.tasks.rules import Coefficients, Matrices, task_parameters
from unseen.tasks.rules.generate import make_labels
from unseen.tasks.rules.solver import classify, solve_mha, solve_mlp, solve_rnn
from unseen.tasks.rules.task import draw_rules, rule_prior

ZERO_LOSSES = {
    2: (1.7129, 1.1742, 1.5230, 1.4781, 0.7389),
    4: (1.4432, 1.4682, 1.3841, 0.8908, 0.8352),
    8: (1.0390, 1.2835, 1.2351, 0.9304, 0.7674),
    16: (1.1035, 1.0116, 1.0693, 1.0128, 1.0111),
    32: (1.0794, 0.9070, 0.9533, 1.1321, 0.9741),
}
"""Mean absolute answers of the authors' five tasks of rules/mlp and rules/mha, by the number of rules."""
MEANS = {2: 1.325, 4: 1.204, 8: 1.051, 16: 1.042, 32: 1.009}


@pytest.mark.parametrize("process", ["mlp", "mha"])
@pytest.mark.parametrize("rules", ZERO_LOSSES)
def test_zero_predictor_of_the_authors_tasks(process: str, rules: int) -> None:
    found = [
        task(f"rules/{process}", rules=rules, task_seed=seed, setting="regression").zero_loss("iid")
        for seed in range(5)
    ]
    np.testing.assert_allclose(found, ZERO_LOSSES[rules], atol=5e-5)
    assert np.mean(found) == pytest.approx(MEANS[rules], abs=6e-4)


def test_coefficients_are_drawn_one_after_the_other() -> None:
    for process in ("mlp", "mha"):
        found, drawn = task_parameters(process, 5, 3), np.random.RandomState(3)
        assert found.alpha.tolist() == [drawn.randn() for _ in range(5)]
        assert found.beta.tolist() == [drawn.randn() for _ in range(5)]


@pytest.mark.parametrize(("dimension", "order"), [(32, 1), (3, 2)])
def test_matrices_are_drawn_in_the_authors_order(dimension: int, order: int) -> None:
    found, drawn = task_parameters("rnn", 2, 4, dimension=dimension, order=order), np.random.RandomState(4)
    square = dimension, dimension
    assert found.A.shape == (2, order, *square) and found.B.shape == (2, *square) and found.w.shape == (dimension,)
    carry, take = drawn.randn(2, order, *square), drawn.randn(2, *square)
    np.testing.assert_array_equal(found.A, carry / math.sqrt(order * dimension))
    np.testing.assert_array_equal(found.B, take / math.sqrt(dimension))
    np.testing.assert_array_equal(found.w, drawn.randn(dimension))


def test_literal_reading_of_the_entries_is_another_scale_of_the_same_draws() -> None:
    """D5: 1/√32 as a variance; states then grow 2.4-fold a step."""
    plain, literal = (task_parameters("rnn", 8, 0, spread=spread) for spread in ("deviation", "variance"))
    np.testing.assert_allclose(literal.A, plain.A * 32**0.25)
    np.testing.assert_allclose(literal.B, plain.B * 32**0.25)
    np.testing.assert_array_equal(literal.w, plain.w)
    assert np.abs(np.linalg.eigvals(literal.A)).max(axis=2).mean() == pytest.approx(2.4, abs=0.15)
    assert np.abs(np.linalg.eigvals(plain.A)).max(axis=2).mean() == pytest.approx(1.0, abs=0.1)


def test_global_generator_is_left_alone() -> None:
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    task_parameters("rnn", 2, 0)
    rule_prior("dirichlet(1, 0)", 4)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_unknown_process() -> None:
    with pytest.raises(UsageError, match=r"unknown process 'rmn'. Did you mean 'rnn'"):
        task_parameters("rmn", 2, 0)  # type: ignore[call-overload]


class TestPrior:
    def test_kinds(self) -> None:
        assert rule_prior("uniform", 4).tolist() == [0.25] * 4
        assert rule_prior("zipf(0)", 4).tolist() == [0.25] * 4
        np.testing.assert_allclose(rule_prior("zipf(2)", 3), np.array([1, 1 / 4, 1 / 9]) / (49 / 36))
        np.testing.assert_allclose(rule_prior("dirichlet(0.5, 7)", 5), np.random.RandomState(7).dirichlet([0.5] * 5))
        assert rule_prior((0.5, 0.0, 0.5), 3).tolist() == [0.5, 0.0, 0.5]
        assert rule_prior("zipf(1.5)", 1).tolist() == [1.0]

    @pytest.mark.parametrize(
        ("prior", "message"),
        [
            ("zipf", "expected uniform, zipf"),
            ("zipf(-1)", "expected uniform"),
            ("normal(1)", "expected uniform"),
            ("dirichlet(1)", "expected uniform"),
            ("dirichlet(0, 1)", "alpha <= 0"),
            ("", "expected uniform"),
            ("dirichlet(1, 1.5)", "expected uniform"),
            ("uniform(1)", "expected uniform"),
            ("zipf(inf)", "expected uniform"),
            ((0.5, 0.5), "each of the 3 rules; got 2"),
            ((0.5, 0.6, -0.1), "add up to 1"),
            ((0.5, 0.2, 0.2), "add up to 1"),
        ],
    )
    def test_wrong_ones_are_refused(self, prior: str | tuple[float, ...], message: str) -> None:
        with pytest.raises(UsageError, match=message):
            task("rules/mlp", rules=3, prior=prior)

    @pytest.mark.parametrize("prior", ["uniform", "zipf(1)", "dirichlet(1, 3)", (0.25, 0.0, 0.5, 0.25)])
    def test_rules_occur_as_often_as_told(self, prior: str | tuple[float, ...]) -> None:
        pi = rule_prior(prior, 4)
        n = 200_000
        shares = np.bincount(draw_rules(pi, n, stream("test", "rules").block()), minlength=4) / n
        np.testing.assert_allclose(shares, pi, atol=4 * 0.5 / math.sqrt(n))
        assert (shares[pi == 0] == 0).all()

    def test_bits_at_the_ends_belong_to_the_rule_that_begins_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        draws = stream("test", "ends").block()
        monkeypatch.setattr(draws, "lanes", lambda *_: np.array([0, 2**31 - 1, 2**31, 2**32 - 1], np.uint32))
        assert draw_rules(np.array([0, 0.5, 0, 0.5, 0]), 4, draws).tolist() == [1, 1, 3, 3]

    @settings(derandomize=True, deadline=None, max_examples=30)
    @given(st.integers(1, 40), st.floats(0, 3))
    def test_zipf_falls(self, rules: int, exponent: float) -> None:
        pi = rule_prior(f"zipf({exponent})", rules)
        assert pi.sum() == pytest.approx(1)
        assert (np.diff(pi) <= 0).all()


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
        np.testing.assert_allclose(make_labels("mlp", rules, x, c, "regression"), case["y_regression"], rtol=1e-6)
        np.testing.assert_array_equal(make_labels("mlp", rules, x, c, "classification"), case["y_classification"])

    @pytest.mark.parametrize(("version", "wide"), [("v1", 4), ("v2", 6)])
    def test_mha(self, version: str, wide: int) -> None:
        case = published(f"label_MHA_{version}")
        rules, c = Coefficients(case["alpha"], case["beta"]), case["c_index0"]
        x = case["model_input"][..., : wide * case["R"]].reshape(*c.shape, case["R"], wide)
        np.testing.assert_allclose(make_labels("mha", rules, x, c, "regression"), case["y_regression"], rtol=1e-6)
        np.testing.assert_array_equal(make_labels("mha", rules, x, c, "classification"), case["y_classification"])

    def test_rnn(self) -> None:
        case = published("label_RNN")
        rules, x, c = Matrices(case["A_rowvec"][:, None], case["B_rowvec"], case["w"]), case["x"], case["c_index0"]
        for kind, key in (("regression", "y_regression_state"), ("readout", "y_regression_readout_derived")):
            np.testing.assert_allclose(make_labels("rnn", rules, x, c, kind), case[key], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(make_labels("rnn", rules, x, c, "classification"), case["y_classification"])


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
        np.testing.assert_array_equal(make_labels("mlp", rules, x, c, "regression"), solved)

    @PROPERTY
    @given(draws, st.sampled_from([1, 2]), st.booleans())
    def test_mha(self, draw: Draw, search: int, nearest: bool) -> None:
        rules, x, c = draw.mha(search)
        alpha, beta = rules.alpha.tolist(), rules.beta.tolist()
        solved = [solve_mha(alpha, beta, *pair, nearest) for pair in zip(x.tolist(), c.tolist(), strict=True)]
        np.testing.assert_array_equal(make_labels("mha", rules, x, c, "regression", nearest=nearest), solved)

    @PROPERTY
    @given(draws)
    def test_rnn(self, draw: Draw) -> None:
        rules, x, c = draw.rnn()
        solved = np.array([solve_rnn(rules.A, rules.B, *pair) for pair in zip(x, c.tolist(), strict=True)])
        found = make_labels("rnn", rules, x, c, "regression")
        scale = np.abs(solved).max()
        np.testing.assert_allclose(found, solved, atol=1e-12 * scale)
        np.testing.assert_allclose(make_labels("rnn", rules, x, c, "readout"), solved @ rules.w, atol=1e-11 * scale)
        np.testing.assert_array_equal(
            make_labels("rnn", rules, x, c, "classification"), make_labels("rnn", rules, x, c, "readout") >= 0
        )


class TestSymmetries:
    @PROPERTY
    @given(draws, processes)
    def test_twice_the_input_is_twice_the_number_and_the_same_class(self, draw: Draw, process: str) -> None:
        rules, x, c = draw.any(process)
        name = process[:3]
        np.testing.assert_array_equal(
            make_labels(name, rules, 2 * x, c, "regression"), 2 * make_labels(name, rules, x, c, "regression")
        )
        np.testing.assert_array_equal(
            make_labels(name, rules, 2 * x, c, "classification"), make_labels(name, rules, x, c, "classification")
        )

    @PROPERTY
    @given(draws, st.sampled_from([1, 2]))
    def test_own_values_never_count(self, draw: Draw, search: int) -> None:
        rules, x, c = draw.mha(search)
        n = int(draw.random.integers(draw.length))
        changed = x.copy()
        changed[:, n, :, -2:] += 100
        before, after = (make_labels("mha", rules, values, c, "regression") for values in (x, changed))
        np.testing.assert_array_equal(before[:, n], after[:, n])

    @PROPERTY
    @given(draws, st.sampled_from([1, 2]))
    def test_numbers_of_other_rules_never_count(self, draw: Draw, search: int) -> None:
        rules, x, c = draw.mha(search)
        changed = x.copy()
        unused = np.array([[r not in c[b] for r in range(draw.rules)] for b in range(draw.batch)])
        changed[np.broadcast_to(unused[:, None, :, None], x.shape)] += 100
        np.testing.assert_array_equal(*(make_labels("mha", rules, values, c, "regression") for values in (x, changed)))

    @PROPERTY
    @given(draws, st.sampled_from([1, 2]))
    def test_tokens_of_mha_are_a_set(self, draw: Draw, search: int) -> None:
        rules, _, c = draw.mha(search)
        # Without ties: among equals the first is found, and a permutation changes which that is.
        x = draw.random.normal(size=(draw.batch, draw.length, draw.rules, 2 + 2 * search))
        order = draw.random.permutation(draw.length)
        np.testing.assert_array_equal(
            make_labels("mha", rules, x[:, order], c[:, order], "regression"),
            make_labels("mha", rules, x, c, "regression")[:, order],
        )

    @PROPERTY
    @given(draws)
    def test_later_tokens_of_rnn_change_nothing_before_them(self, draw: Draw) -> None:
        rules, x, c = draw.rnn()
        n = int(draw.random.integers(draw.length))
        changed = x.copy()
        changed[:, n:] = 7
        before, after = (make_labels("rnn", rules, values, c, "regression") for values in (x, changed))
        np.testing.assert_array_equal(before[:, :n], after[:, :n])

    def test_nearest_and_least_product_are_different_tasks(self) -> None:
        """D2: classes under the two readings agree about as often as coins do."""
        random = np.random.default_rng(0)
        rules = Coefficients(random.normal(size=4), random.normal(size=4))
        points = random.normal(size=(2_000, 10, 4, 6))
        points[..., :4] /= np.repeat(np.hypot(points[..., 0:4:2], points[..., 1:4:2]), 2, axis=-1)
        c = random.integers(4, size=(2_000, 10))
        near, far = (
            make_labels("mha", rules, points, c, "classification", nearest=nearest) for nearest in (True, False)
        )
        assert (near == far).mean() == pytest.approx(0.504, abs=0.02)


def test_zero_is_class_one() -> None:
    rules = Coefficients(np.array([1.0]), np.array([1.0]))
    x = np.array([[1.0, -1.0], [-0.0, 0.0], [0.0, -1e-300]])
    found = make_labels("mlp", rules, x, np.zeros(3, int), "classification")
    assert found.tolist() == classify(np.array([0.0, -0.0, -1e-300])).tolist() == [1, 1, 0]


@pytest.mark.parametrize("process", ["mlp", "mha1", "mha2", "rnn"])
def test_no_examples_have_no_answers(process: str) -> None:
    rules, x, c = Draw(0).any(process)
    for kind in ("regression", "classification"):
        assert len(make_labels(process[:3], rules, x[:0], c[:0], kind)) == 0


def test_parts_compared_at_a_time_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rules, x, c = Draw(3).mha(2)
    x, c = np.tile(x, (7, 1, 1, 1)), np.tile(c, (7, 1))
    whole = make_labels("mha", rules, x, c, "regression")
    monkeypatch.setattr("unseen.tasks.rules.generate._PAIRS", 1)
    np.testing.assert_array_equal(make_labels("mha", rules, x, c, "regression"), whole)


def test_wrong_questions() -> None:
    rules = Coefficients(np.ones(1), np.ones(1))
    with pytest.raises(UsageError, match="a readout is an answer of rnn, not of mlp"):
        make_labels("mlp", rules, np.ones((1, 2)), np.zeros(1, int), "readout")
    with pytest.raises(UsageError, match="belong to mlp and mha; got process 'rnn'"):
        make_labels("rnn", rules, np.ones((1, 1, 2)), np.zeros((1, 1), int), "regression")

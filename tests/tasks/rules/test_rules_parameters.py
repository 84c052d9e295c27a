"""The authors' sampler, and how often each rule occurs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen.errors import UsageError
from unseen.randomness import stream
from unseen.tasks import task
from unseen.tasks.rules import task_parameters
from unseen.tasks.rules.prior import draw_rules, rule_prior

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

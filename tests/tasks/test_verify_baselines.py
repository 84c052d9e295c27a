"""The generic baselines: unbiased on clean data however many rules they try, and strong enough for a small leak."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from support import standins
from unseen.randomness import stream
from unseen.spec import Field, Spec, Stream, Target
from unseen.tasks.base import Array, Examples
from unseen.tasks.verify import verify
from unseen.tasks.verify.baselines import (
    MARGIN,
    BaselineScore,
    extract_columns,
    score_answers,
    score_baselines,
    score_variance,
)

N = 4_000


def scores(spec: Spec, inputs: Mapping[str, Array], targets: Array) -> dict[str, BaselineScore]:
    return dict(score_baselines(spec, Examples(inputs, targets, {})))


def exceeds(found: BaselineScore, allowed: float) -> bool:
    return found.accuracy > allowed + MARGIN * found.error


def test_choice_among_hundreds_of_rules_does_not_bias_the_score() -> None:
    task = standins.Clean(width=16, tokens=8)
    deviations: dict[str, list[float]] = {}
    for seed in range(60):
        for name, found in score_baselines(task.spec, task.sample("train", 1_000, data_seed=seed)):
            deviations.setdefault(name, []).append((found.accuracy - 0.5) / found.error)
    assert set(deviations) == {"majority", "input-blind", "single-feature", "bag-of-tokens"}
    for found_deviations in deviations.values():
        assert abs(np.mean(found_deviations)) < 4 / np.sqrt(60)
        assert 0.7 < np.std(found_deviations) < 1.4
        assert max(found_deviations) < MARGIN


def test_leak_of_five_points_in_one_of_a_thousand_columns_is_found() -> None:
    task = standins.LeakyBit(width=36, tokens=30)
    found = dict(score_baselines(task.spec, task.sample("train", 20_000)))
    assert exceeds(found["single-feature"], 0.5)
    assert found["single-feature"].note == "bits at 3, column 5, above 0"
    assert not exceeds(found["input-blind"], 0.5)


def test_threshold_on_a_real_number_is_found_and_scored_as_a_single_feature() -> None:
    draws = stream("test", "threshold").block()
    x = draws.normal((N, 3)).astype(np.float32)
    spec = Spec((), (Field("x", "real", 3),), Target("binary"))
    found = scores(spec, {"x": x}, (x[:, 1:2] > 0.5).astype(np.uint8))
    assert found["single-feature"].accuracy > 0.97
    assert found["single-feature"].note.startswith("x, column 1, above 0.")
    # Without streams all is given once: seeing it is not being blind to the input.
    assert found["input-blind"] == found["majority"]


def test_total_of_a_field_is_tried() -> None:
    draws = stream("test", "total").block()
    yes = draws.bernoulli(0.5, N)
    bits = (draws.uniform((N, 10, 10)) < np.where(yes, 0.54, 0.46)[:, None, None]).astype(np.uint8)
    spec = Spec((Stream("tokens", 10),), (Field("bits", "bits", 10, "tokens"),), Target("binary"))
    found = scores(spec, {"bits": bits}, yes[:, None].astype(np.uint8))
    assert found["single-feature"].note.startswith("total of bits")
    assert found["single-feature"].accuracy == pytest.approx(0.788, abs=0.04)  # Φ(0.04 · 100 / 5)


def test_categories_are_told_apart_by_one_value_and_by_counts() -> None:
    draws = stream("test", "category").block()
    target = draws.integers(4, N)
    token = draws.integers(6, (N, 5))
    told = np.where(draws.bernoulli(0.75, N), target, 5)
    token[np.arange(N), draws.integers(5, N)] = told
    spec = Spec((Stream("tokens", 5),), (Field("token", "category", 6, "tokens"),), Target("category", 4))
    found = scores(spec, {"token": token}, target)
    assert not exceeds(found["majority"], 0.25)
    assert exceeds(found["single-feature"], 0.25)
    assert found["bag-of-tokens"].accuracy > found["single-feature"].accuracy + 0.1


def test_input_blind_knows_combinations_and_falls_back_on_new_ones() -> None:
    draws = stream("test", "blind").block()
    a, b = draws.integers(4, N), draws.integers(4, N)
    a[N // 2 : N // 2 + 200] = 4  # never met in the first half
    tokens = draws.bernoulli(0.5, (N, 3, 2)).astype(np.uint8)
    target = ((a + b) % 2)[:, None]
    fields = Field("tokens", "bits", 2, "tokens"), Field("a", "category", 5), Field("b", "category", 4)
    found = scores(Spec((Stream("tokens", 3),), fields, Target("binary")), {"tokens": tokens, "a": a, "b": b}, target)
    assert found["input-blind"].accuracy == pytest.approx(1 - 0.5 * 200 / (N / 2), abs=0.02)
    assert found["input-blind"].note == "given a, b"
    assert not exceeds(found["single-feature"], 0.5)


def test_several_outputs_each_have_their_own_rule() -> None:
    draws = stream("test", "outputs").block()
    x = draws.bernoulli(0.5, (N, 4)).astype(np.uint8)
    target = np.stack([x[:, 2], draws.bernoulli(0.5, N)], axis=1)
    spec = Spec((), (Field("x", "bits", 4),), Target("binary", 2))
    assert scores(spec, {"x": x}, target)["single-feature"].accuracy == pytest.approx(0.75, abs=0.02)


def test_error_counts_examples_and_not_their_answers() -> None:
    right = np.repeat(np.array([[1], [0], [1], [0]]), 25, axis=1)
    assert score_answers(right) == BaselineScore(0.5, 0.25)


def test_padded_places_count_as_zeros() -> None:
    fields = Field("token", "category", 3, "tokens"), Field("real", "mask", 1, "tokens")
    spec = Spec((Stream("tokens", 2),), fields, Target("binary"))
    inputs = {"token": np.array([[1, 1], [1, 1]]), "real": np.array([[True, True], [True, False]])}
    table = {c.name: c.values.tolist() for c in extract_columns(spec, Examples(inputs, np.zeros((2, 1)), {}))}
    assert table["token summed over tokens"] == [[0, 2, 0], [0, 1, 0]]
    assert table["token at 1"] == [[0, 1, 0], [0, 0, 0]]
    assert table["real summed over tokens"] == [[2], [1]]


def test_columns_of_answers_along_a_stream() -> None:
    fields = Field("x", "real", 1, "tokens"), Field("q", "bits", 2)
    spec = Spec((Stream("tokens", 3),), fields, Target("binary", 1, "tokens"))
    inputs = {"x": np.array([[[1.0], [2.0], [3.0]]]), "q": np.array([[0, 1]], np.uint8)}
    table = {c.name: c.values.tolist() for c in extract_columns(spec, Examples(inputs, np.zeros((1, 3, 1)), {}))}
    assert table == {
        "x at its position": [[1], [2], [3]],
        "x summed over tokens": [[6], [6], [6]],
        "q": [[0, 1]] * 3,
        "total of q": [[1]] * 3,
        "position in tokens": np.eye(3).tolist(),
    }


# Real targets: the explained share of the variance

REGRESSION_N = 6_000
WIDE = Spec((), (Field("x", "real", 3),), Target("real", 2))


def test_a_line_and_its_best_threshold() -> None:
    """y0 = 3 x1 + noise of variance 1, y1 = noise of variance 10: 9 of 20 are a line's, 2/π of that a threshold's."""
    draws = stream("test", "regression").block()
    x, noise = draws.normal((REGRESSION_N, 3), np.float32), draws.normal((REGRESSION_N, 2)) * np.sqrt([1, 10])
    found = scores(WIDE, {"x": x}, noise + 3 * x[:, [1]] * np.array([1, 0]) + 5)
    assert found["bag-of-tokens"].accuracy == pytest.approx(9 / 20, abs=0.03)
    assert found["single-feature"].accuracy == pytest.approx(9 / 20 * 2 / np.pi, abs=0.03)
    assert found["single-feature"].note.startswith("x, column 1, above ")
    assert found["input-blind"] == BaselineScore(0.0, 0.0, "always the mean")


def test_nothing_is_explained_where_there_is_nothing() -> None:
    deviations: dict[str, list[float]] = {}
    for seed in range(40):
        draws = stream("test", "nothing", seed).block()
        found = scores(WIDE, {"x": draws.normal((1_000, 3), np.float32)}, draws.normal((1_000, 2)))
        for name in ("single-feature", "bag-of-tokens"):
            deviations.setdefault(name, []).append(found[name].accuracy / found[name].error)
    assert all(max(found) < MARGIN for found in deviations.values())


def test_means_of_combinations_and_answers_along_a_stream() -> None:
    draws = stream("test", "once").block()
    given = draws.integers(3, REGRESSION_N)
    tokens = draws.normal((REGRESSION_N, 4, 2), np.float32)
    noise = draws.normal((REGRESSION_N, 4, 1))
    spec = Spec(
        (Stream("tokens", 4),),
        (Field("x", "real", 2, "tokens"), Field("q", "category", 3)),
        Target("real", 1, "tokens"),
    )
    levels = np.array([-1.0, 0.0, 1.0])[given][:, None, None]
    found = scores(spec, {"x": tokens, "q": given}, levels + noise)
    assert found["input-blind"].accuracy == pytest.approx((2 / 3) / (2 / 3 + 1), abs=0.04)
    assert found["input-blind"].note == "given q"
    own = scores(spec, {"x": tokens, "q": given}, tokens[:, :, :1] + noise)
    assert own["single-feature"].accuracy == pytest.approx(1 / np.pi, abs=0.04)
    assert own["single-feature"].note.startswith("x at its position, column 0")


def test_error_of_the_share_is_its_spread_over_samples() -> None:
    draws = stream("test", "score_variance").block()
    found = []
    for _ in range(400):
        truth = draws.normal((200, 3))
        found.append(score_variance(truth - 0.5 * truth + 0.3 * draws.normal((200, 3)), truth))
    assert np.std([one.accuracy for one in found]) == pytest.approx(np.mean([one.error for one in found]), rel=0.15)


class Declared(standins.Line):
    """The same line with a zero predictor that is declared, rightly or wrongly, and with a ceiling."""

    name: str = "standin/declared"
    declared: float = 2 * np.sqrt(2 / np.pi)
    ceiling: float = 1.0

    def zero_loss(self, split: str) -> float | None:
        return self.declared

    def ceilings(self, split: str) -> dict[str, float]:
        return {"single-feature": self.ceiling * 2 / np.pi, "bag-of-tokens": self.ceiling}


def test_verify_judges_the_zero_predictor_and_the_ceilings() -> None:
    def status(**options: float) -> dict[str, str]:
        return {check.name: check.status for check in verify(Declared(**options), 2_000)}

    right = status()
    assert right["labels"] == right["single-feature"] == right["bag-of-tokens"] == "ok"
    assert status(declared=1.9)["labels"] == "FAIL"
    assert status(ceiling=0.5)["bag-of-tokens"] == "FAIL"
    undeclared = {check.name: check for check in verify(standins.Line(), 2_000)}
    assert undeclared["labels"].status == "shown" and "always answering 0 is off by 1.5" in undeclared["labels"].detail
    assert undeclared["single-feature"].status == "FAIL"

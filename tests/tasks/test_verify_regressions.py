"""The generic baselines of real targets: what they explain of made-up data, and no more."""

from __future__ import annotations

import numpy as np
import pytest
import standins

from unseen.randomness import stream
from unseen.spec import Field, Spec, Stream, Target
from unseen.tasks.base import Array, Examples
from unseen.tasks.verify import verify
from unseen.tasks.verify.baselines import MARGIN, Score
from unseen.tasks.verify.regressions import regressions, share

N = 6_000
WIDE = Spec((), (Field("x", "real", 3),), Target("real", 2))


def scores(spec: Spec, inputs: dict[str, Array], targets: Array) -> dict[str, Score]:
    return dict(regressions(spec, Examples(inputs, targets, {})))


def test_a_line_and_its_best_threshold() -> None:
    """y0 = 3 x1 + noise of variance 1, y1 = noise of variance 10: 9 of 20 are a line's, 2/π of that a threshold's."""
    draws = stream("test", "regression").block()
    x, noise = draws.normal((N, 3), np.float32), draws.normal((N, 2)) * np.sqrt([1, 10])
    found = scores(WIDE, {"x": x}, noise + 3 * x[:, [1]] * np.array([1, 0]) + 5)
    assert found["bag-of-tokens"].accuracy == pytest.approx(9 / 20, abs=0.03)
    assert found["single-feature"].accuracy == pytest.approx(9 / 20 * 2 / np.pi, abs=0.03)
    assert found["single-feature"].note.startswith("x, column 1, above ")
    assert found["input-blind"] == Score(0.0, 0.0, "always the mean")


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
    given = draws.integers(3, N)
    tokens = draws.normal((N, 4, 2), np.float32)
    noise = draws.normal((N, 4, 1))
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
    assert own["single-feature"].note.startswith("x at its place, column 0")


def test_error_of_the_share_is_its_spread_over_samples() -> None:
    draws = stream("test", "share").block()
    found = []
    for _ in range(400):
        truth = draws.normal((200, 3))
        found.append(share(truth - 0.5 * truth + 0.3 * draws.normal((200, 3)), truth))
    assert np.std([one.accuracy for one in found]) == pytest.approx(np.mean([one.error for one in found]), rel=0.15)


class Declared(standins.Line):
    """The same line with a zero predictor that is declared, rightly or wrongly, and with a ceiling."""

    name: str = "standin/declared"
    declared: float = 2 * np.sqrt(2 / np.pi)
    ceiling: float = 1.0

    def zero_loss(self, condition: str) -> float | None:
        return self.declared

    def ceilings(self, condition: str) -> dict[str, float]:
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
